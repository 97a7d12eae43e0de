"""Which differences a study may claim: looking several times must not be several chances to err.

Three rules, from the outside in:
- Each objective gets its share of the 5 % (Bonferroni), because the one that gains most speaks.
- A difference between pretrained and scratch is claimed only where its mean over all label budgets
  excludes zero. So a study of arms that are alike claims one no more often than that one question
  allows, however many budgets it has and whatever is said of them.
- Of the budgets that are named, one stands out only if the mean over every group of them that it
  belongs to excludes zero (closed testing: Marcus, Peritz and Gabriel 1976). So where some budgets
  differ and others do not, one of the others is named with at most the same 5 %. Unlike dividing
  the 5 %, this leaves the intervals of three seeds as narrow as they are: a budget's own interval
  is the last test that it has to pass.

A study may hence claim a difference over all budgets and none at a single one, and that is what is
to be said then. The opposite cannot happen.

What is said of TF-IDF beside is a question of its own, with 5 % of its own and the last rule.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from headstart.evaluation.interval import LEVEL
from headstart.studies.difference import paired_difference


def shared_level(questions: int) -> float:
    """The level of each of several questions, so that all of them together err in 5 %."""
    return 1 - (1 - LEVEL) / questions


def named_budgets(budgets: Sequence[int]) -> list[int]:
    """Those that are spoken of: the fewest labels and the most."""
    return sorted({budgets[0], budgets[-1]})


def standing_out(first: np.ndarray, second: np.ndarray, *, level: float = LEVEL) -> list[bool]:
    """Which of the named budgets stand out, by the last rule.

    Both are (budgets, seeds, rows), 1 where the run is right: the named budgets and no others.
    """
    found = [True] * len(first)
    for size in range(len(first), 0, -1):
        for group in map(list, combinations(range(len(first)), size)):
            mean = paired_difference(first[group].mean(0), second[group].mean(0), level=level)
            if not mean.excludes(0):
                found = [stands and k not in group for k, stands in enumerate(found)]
    return found
