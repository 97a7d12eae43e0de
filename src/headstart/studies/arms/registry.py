"""Finds arms by name: those of this folder, of installed packages, and registered ones."""

from collections.abc import Collection
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from pkgutil import iter_modules

from headstart.errors import HeadstartError
from headstart.studies.arms.arm import Arm

GROUP = "headstart.arms"  # entry points: a subclass of `Arm`, or an instance
_registered: dict[str, Arm] = {}


def register(arm: Arm) -> Arm:
    """Make an arm known under its name; returns it.

    Parameters
    ----------
    arm : Arm
        The same class may be registered again; another one of the same name is refused.

    Example
    -------
    >>> from headstart.studies.arms import find_arm
    >>> find_arm("tfidf").label
    'TF-IDF'
    """
    known = _registered.get(arm.name)
    if known is not None and type(known) is not type(arm):
        raise HeadstartError(
            f"there are two arms named {arm.name!r}: {_place(known)} and {_place(arm)}",
            fix="rename one of them, or uninstall its package",
        )
    _registered[arm.name] = arm
    return arm


def arms() -> dict[str, Arm]:
    """Every arm by name, in the order in which they are trained and listed."""
    _load_built_in()
    _load_plugins()
    return _sorted()


def find_arm(name: str) -> Arm:
    """The arm of this name; an unknown one is an error that lists those there are."""
    known = arms()
    if name not in known:
        raise HeadstartError(f"unknown arm {name!r}; there are {', '.join(known)}")
    return known[name]


def arm_label(name: str) -> str:
    """The arm as people write it; the name itself where the arm is no longer installed."""
    known = arms().get(name)
    return name if known is None else known.label


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


_HERE = __name__.rpartition(".")[0]


def _sorted() -> dict[str, Arm]:
    ordered = sorted(_registered.values(), key=lambda arm: (arm.stage, arm.position))
    return {arm.name: arm for arm in ordered}


@cache
def _load_built_in() -> None:
    for module in iter_modules([str(Path(__file__).parent)], prefix=f"{_HERE}."):
        arm = getattr(import_module(module.name), "ARM", None)
        if arm is not None:
            register(arm)


@cache
def _load_plugins() -> None:
    for point in entry_points(group=GROUP):
        try:
            found = point.load()
            register(found() if isinstance(found, type) else found)
        except (ImportError, AttributeError, TypeError) as error:
            raise HeadstartError(
                f"the arm {point.name!r} cannot be loaded: {error}",
                where=point.value,
                fix="repair or uninstall the package that brings it",
            ) from error


def _place(arm: Arm) -> str:
    return f"{type(arm).__module__}.{type(arm).__qualname__}"
