"""Arms: the ways to get a classifier that a study compares, one file each."""

from headstart.studies.arms.registry import arm_label, arms, find_arm, headline_arm

__all__ = ["arm_label", "arms", "find_arm", "headline_arm"]
