"""Arms: the ways to get a classifier that a study compares, one file each.

Another package adds one with an entry point in the group `headstart.arms`, a program with
`register`; a new file here also needs its name in `registry.py`. Plan, runner, report and command
line know arms through this registry only.
"""

from headstart.studies.arms.registry import arm_label, arms, find_arm, headline_arm, register

__all__ = ["arm_label", "arms", "find_arm", "headline_arm", "register"]
