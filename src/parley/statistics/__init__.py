"""Numbers with their uncertainty: plain observations in, plain results out."""
