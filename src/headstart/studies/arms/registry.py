"""Finds arms by name: built in, of installed packages, or registered at run time."""

from collections.abc import Collection

from headstart.errors import HeadstartError
from headstart.registry import Registry
from headstart.studies.arms.arm import Arm

LINEAR = ("trivial", "tfidf", "linear", "nb", "cooccurrence")
NETWORKS = ("scratch", "counted", "pretrained", "frozen")
BUILT_IN = (*LINEAR, *NETWORKS, "stack")
ARMS: Registry[Arm] = Registry(
    "arm",
    group="headstart.arms",
    base=Arm,
    built_in={name: f"headstart.studies.arms.{name}:ARM" for name in BUILT_IN},
)


def register(arm: Arm) -> Arm:
    """Make an arm known under its name, for this process and its workers; returns it.

    Parameters
    ----------
    arm : Arm
        A name that is taken is an error.

    Example
    -------
    >>> from headstart.studies.arms import find_arm
    >>> find_arm("tfidf").label
    'TF-IDF'
    """
    return ARMS.add(arm)


def arms() -> dict[str, Arm]:
    """Every arm by name, in the order in which they are trained and listed."""
    ordered = sorted(ARMS, key=lambda arm: (arm.stage, arm.position))
    return {arm.name: arm for arm in ordered}


def find_arm(name: str) -> Arm:
    """The arm of this name; an unknown one is an error that lists those there are."""
    arm = ARMS.get(name)
    if arm is None:
        raise HeadstartError(f"unknown arm {name!r}; there are {', '.join(arms())}")
    return arm


def arm_label(name: str) -> str:
    """The arm as people write it; the name itself where the arm is no longer installed."""
    arm = ARMS.get(name)
    return name if arm is None else arm.label


def headline_arm(names: Collection[str] | None = None) -> Arm | None:
    """The arm that a study is about: the first that has another to be compared with.

    Parameters
    ----------
    names : collection of str, optional
        The arms that were run. One whose control is among them, too, goes first.
    """
    known = arms().values()
    found = [arm for arm in known if arm.compared_with and (names is None or arm.name in names)]
    whole = [arm for arm in found if names is None or arm.compared_with in names]
    return next(iter([*whole, *found]), None)
