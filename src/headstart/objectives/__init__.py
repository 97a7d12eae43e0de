"""Pretraining objectives, one file each, found by name: ours, other packages', and your own.

`register` adds an objective for this process; the entry point group `headstart.objectives` adds
one with an installed package:

    [project.entry-points."headstart.objectives"]
    denoising = "my_package.denoising:Denoising"
"""

from headstart.errors import HeadstartError
from headstart.objectives.objective import Objective
from headstart.registry import Registry

OBJECTIVES: Registry[type[Objective]] = Registry(
    "objective",
    group="headstart.objectives",
    base=Objective,
    of_classes=True,
    built_in={
        "causal": "headstart.objectives.causal:Causal",
        "masked": "headstart.objectives.masked:Masked",
        "masked+next-sentence": "headstart.objectives.next_sentence:NextSentence",
    },
)


def register(objective: type[Objective]) -> type[Objective]:
    """Let `headstart pretrain --objective NAME` find an objective by its name.

    Parameters
    ----------
    objective : a subclass of `headstart.objectives.objective.Objective` with a `name`.

    Returns
    -------
    The class itself, so that this is also a decorator.
    """
    return OBJECTIVES.add(objective)


def unregister(name: str) -> None:
    """Remove an objective that `register` added."""
    OBJECTIVES.unregister(name)


def objectives() -> dict[str, type[Objective]]:
    """Every objective by name."""
    return OBJECTIVES.entries()


def find_objective(name: str) -> type[Objective]:
    """The objective of that name; an unknown one is an error that lists the known ones."""
    known = objectives()
    if name not in known:
        raise HeadstartError(f"unknown objective {name!r}; there are {', '.join(known)}")
    return known[name]
