"""Long tests that look for more: faults, kills, broken input and memory, bounded by time."""
