"""Pretraining objectives, one file each."""

from headstart.errors import HeadstartError
from headstart.objectives.causal import Causal
from headstart.objectives.masked import Masked
from headstart.objectives.next_sentence import NextSentence
from headstart.objectives.objective import Objective

OBJECTIVES: dict[str, type[Objective]] = {
    objective.name: objective for objective in (Causal, Masked, NextSentence)
}


def find_objective(name: str) -> type[Objective]:
    """Return the objective of that name; an unknown one is an error that lists the known ones."""
    if name not in OBJECTIVES:
        raise HeadstartError(f"unknown objective {name!r}; there are {', '.join(OBJECTIVES)}")
    return OBJECTIVES[name]
