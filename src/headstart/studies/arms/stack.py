"""The arm `stack`: the probabilities of other arms, combined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headstart.studies.arms.arm import Arm, Colours, Fitted, HeldOutPart
from headstart.studies.arms.registry import arms

if TYPE_CHECKING:
    from headstart.studies.context import ArmContext
    from headstart.studies.outcomes import RunKey
    from headstart.studies.recipe import StudyRecipe


class StackArm(Arm):
    """A weighted product of the arms that are `stackable`; the weights come from validation."""

    name = "stack"
    label = "stack"
    description = "The probabilities of the other arms, combined with weights from validation."
    colours = Colours("#009e73", "#2cc496", light_text="#007a59", dark_text="#2cc496")
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
        return [
            f"a stack joins two or more of {possible}; "
            f"--arms has {', '.join(joined) or 'none of them'}"
        ]

    def fit(self, context: ArmContext) -> Fitted:
        from headstart.baselines.stack import Stack

        members = self.members(context.run, context.study.recipe)
        outcomes = [context.outcome(member) for member in members]
        labels = context.splits.validation.labels
        mixture = Stack().fit([one.validation for one in outcomes], labels)

        def answer(part: HeldOutPart) -> Any:
            return mixture.combine([getattr(one, part) for one in outcomes])

        weights = {
            member.arm: float(weight)
            for member, weight in zip(members, mixture.weights_, strict=True)
        }
        return Fitted(answer, {"weights": weights})


def _joined(recipe: StudyRecipe) -> list[Arm]:
    return [arm for name, arm in arms().items() if arm.stackable and name in recipe.arms]


ARM = StackArm()
