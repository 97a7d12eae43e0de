"""The lab: its files, dictionary, checkpoints and protocol, found through the registries."""
