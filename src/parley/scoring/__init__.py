"""Numbers in, numbers out: what tasks and results compute scores with."""
