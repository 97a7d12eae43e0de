"""The arm `stack`: the probabilities of other arms, combined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headstart.studies.arms.arm import Arm, Colours, Fitted, HeldOutPart
from headstart.studies.arms.registry import arms

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from headstart.studies.context import ArmContext
    from headstart.studies.outcomes import Outcome, RunKey
    from headstart.studies.recipe import StudyRecipe


class StackArm(Arm):
    """A weighted product of the arms that are `stackable`.

    The weights are fitted to what the members say of budget rows that they were not trained on.
    """

    name = "stack"
    label = "stack"
    description = "The probabilities of other arms, combined with weights fitted to unseen rows."
    colours = Colours("#009e73", "#2cc496", light_text="#007a59", dark_text="#2cc496")
    class_only = True
    position = 10
    default = True
    needs = frozenset({"arms"})
    uses_objective = True

    def objectives(self, recipe: StudyRecipe) -> list[str]:
        """A stack of arms that depend on no objective depends on none itself."""
        return recipe.objectives if any(arm.uses_objective for arm in _joined(recipe)) else [""]

    def members(self, run: RunKey, recipe: StudyRecipe) -> list[RunKey]:
        from headstart.studies.outcomes import RunKey

        return [
            RunKey(arm.name, run.objective if arm.uses_objective else "", run.labels, run.seed)
            for arm in _joined(recipe)
        ]

    def problems(self, recipe: StudyRecipe) -> list[str]:
        joined = [arm.name for arm in _joined(recipe)]
        if len(joined) >= 2:
            return []
        possible = ", ".join(name for name, arm in arms().items() if arm.stackable)
        others = [name for name in recipe.arms if name not in (*joined, self.name)]
        return [
            f"a stack joins two or more of {possible}; --arms has "
            f"{', '.join(joined) or 'none of them'}"
            + (f", and a stack cannot join {', '.join(others)}" if others else "")
        ]

    def fit(self, context: ArmContext) -> Fitted:
        from headstart.baselines.stack import Stack, fit_out_of_fold

        members = self.members(context.run, context.study.recipe)
        outcomes = [context.outcome(member) for member in members]
        own, own_rows = None, None
        if context.study.recipe.selection == "validation":
            labels = context.splits.validation.labels
            mixture = Stack().fit([one.validation for one in outcomes], labels)
        else:
            rows, said = _shared_rows(outcomes)
            if len(rows):
                labels = [context.splits.train.labels[row] for row in rows]
                mixture, own = fit_out_of_fold(said, labels)
                own_rows = rows
            else:  # too few rows to weigh by, or nothing is chosen
                mixture = Stack.equal(len(members))

        def answer(part: HeldOutPart) -> Any:
            return mixture.combine([getattr(one, part) for one in outcomes])

        weights = dict(zip(members, map(float, mixture.weights_), strict=True))

        def save(folder: Path) -> None:
            from headstart.studies.keep_best import save_stack

            save_stack(context, weights, folder)

        facts = {"weights": {member.arm: weight for member, weight in weights.items()}}
        return Fitted(answer, facts, own=own, own_rows=own_rows, save=save)


def _shared_rows(outcomes: Sequence[Outcome]) -> tuple[Any, list[Any]]:
    """The budget rows that every member has answered for unseen, and these answers."""
    from functools import reduce

    import numpy as np

    rows = reduce(np.intersect1d, [one.own_rows for one in outcomes])
    return rows, [one.own[np.searchsorted(one.own_rows, rows)] for one in outcomes]


def _joined(recipe: StudyRecipe) -> list[Arm]:
    return [arm for name, arm in arms().items() if arm.stackable and name in recipe.arms]


ARM = StackArm()
