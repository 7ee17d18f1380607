"""Where code that models write is run: apart from this machine, or not at all."""
