"""What a task is written with. Pure: no clock, no file, no network, no event loop."""
