"""Pretraining objectives, one file each. A new one is a file and a line here."""

from importlib import import_module
from typing import TYPE_CHECKING

from headstart.errors import HeadstartError

if TYPE_CHECKING:
    from headstart.objectives.objective import Objective

OBJECTIVES = {  # modules and classes, imported when they are used
    "causal": ("causal", "Causal"),
    "masked": ("masked", "Masked"),
    "masked+next-sentence": ("next_sentence", "NextSentence"),
}


def find_objective(name: str) -> "type[Objective]":
    """Return the objective of that name; an unknown one is an error that lists the known ones."""
    if name not in OBJECTIVES:
        raise HeadstartError(f"unknown objective {name!r}; there are {', '.join(OBJECTIVES)}")
    module, class_name = OBJECTIVES[name]
    found: type[Objective] = getattr(import_module(f"{__name__}.{module}"), class_name)
    return found
