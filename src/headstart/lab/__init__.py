"""The lab: its files, vocabulary and checkpoints."""

PRESET = "lab"
