"""Look at data before it is used, and split it honestly."""
