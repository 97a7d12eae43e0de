"""The lab: its text files, its dictionary and its checkpoints, found through the registries."""
