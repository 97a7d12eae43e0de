"""Accuracy by tokens of pretraining: is it worth pretraining longer?

`headstart compare … --tokens 0.5M,1M,2M` makes the study with the most tokens, and for each smaller
amount a study of the headline arm alone, in `tokens/AMOUNT/`, with the same rows, budgets and
seeds. Every amount is a pretraining of its own: a checkpoint on the way to a larger one would still
have the learning rate of a training that goes on. No tokens at all is the arm `counted`.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from headstart.errors import HeadstartError
from headstart.studies.arms import headline_arm

if TYPE_CHECKING:
    from headstart.studies.run import StudyListener, StudyRun

FOLDER = "tokens"


def smaller_study(study: "StudyRun", tokens: int, listener: "StudyListener") -> "StudyRun":
    """The study of the headline arm with fewer tokens, inside the folder of the whole one."""
    from headstart.studies.run import StudyRun  # a report does not wait for what trains

    headline = headline_arm(study.recipe.arms)
    if headline is None or study.recipe.base:
        raise HeadstartError(
            "several amounts of tokens need an arm that is pretrained here",
            fix="leave --base out and let --arms have pretrained, or give one amount",
        )
    recipe = study.recipe.replace(
        tokens=tokens,
        arms=[headline.name],
        seeds=len(study.plan.seeds),
        labels=[str(labels) for labels in study.plan.budgets],
        minutes=None,
    )
    smaller = StudyRun(recipe, study.folder / FOLDER / str(tokens), listener=listener)
    if not smaller.is_resumed:  # nothing but the tokens may differ
        kept = ("epochs", "jobs", "threads", "pretrain_threads", "tries")
        smaller.plan = replace(smaller.plan, **{name: getattr(study.plan, name) for name in kept})
    return smaller
