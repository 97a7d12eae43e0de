"""Head initialisation for a new task."""
