"""Pretraining objectives, one file each. A new file here is a new objective."""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from headstart.errors import HeadstartError
from headstart.objectives.objective import Objective


@cache
def objectives() -> dict[str, type[Objective]]:
    """Every objective in this folder, by name."""
    for module in iter_modules(__path__, prefix=f"{__name__}."):
        import_module(module.name)
    return {kind.name: kind for kind in sorted(_all(Objective), key=lambda kind: kind.name)}  # type: ignore[type-abstract]


def find_objective(name: str) -> type[Objective]:
    known = objectives()
    if name not in known:
        raise HeadstartError(f"unknown objective {name!r}; there are {', '.join(known)}")
    return known[name]


def _all(kind: type[Objective]) -> list[type[Objective]]:
    found = [sub for direct in kind.__subclasses__() for sub in [direct, *_all(direct)]]
    return [sub for sub in found if hasattr(sub, "name")]
