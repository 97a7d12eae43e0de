"""Find arms by name: built in, or of a Hugging Face model that a study names."""

from collections.abc import Collection
from functools import cache
from importlib import import_module

from headstart.errors import HeadstartError
from headstart.studies.arms.arm import Arm

LINEAR = ("trivial", "tfidf", "linear", "nb", "cooccurrence")
NETWORKS = ("scratch", "counted", "pretrained", "frozen")
BUILT_IN = (*LINEAR, *NETWORKS, "stack")
FOREIGN: dict[str, Arm] = {}  # arms like hf:NAME, which a study names


@cache
def _built_in() -> dict[str, Arm]:
    modules = {name: import_module(f"headstart.studies.arms.{name}") for name in BUILT_IN}
    return {name: module.ARM for name, module in modules.items()}


def add_arm(arm: Arm) -> None:
    """Make an arm like `hf:NAME` known under its name."""
    FOREIGN[arm.name] = arm


def arms() -> dict[str, Arm]:
    """Every arm by name, in the order in which they are trained and listed."""
    ordered = sorted({**_built_in(), **FOREIGN}.values(), key=lambda arm: (arm.stage, arm.position))
    return {arm.name: arm for arm in ordered}


def find_arm(name: str) -> Arm:
    """The arm of this name; an unknown one is an error that lists those there are."""
    arm = {**_built_in(), **FOREIGN}.get(name)
    if arm is None:
        raise HeadstartError(f"unknown arm {name!r}; there are {', '.join(arms())}")
    return arm


def arm_label(name: str) -> str:
    """The arm as people write it; the name itself where the arm is no longer installed."""
    arm = {**_built_in(), **FOREIGN}.get(name)
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
