"""Arms: the ways to get a classifier that a study compares, one file each.

A new file here is a new arm, and so is a package with an entry point in the group `headstart.arms`
or a call of `register`. Plan, runner, report and command line know arms through this registry only.
"""

from headstart.studies.arms.registry import arm_label, arms, find_arm, headline_arm, register

__all__ = ["arm_label", "arms", "find_arm", "headline_arm", "register"]
