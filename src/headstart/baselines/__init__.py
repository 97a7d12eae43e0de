"""Classifiers without a network, the stack, and the baselines of a run."""
