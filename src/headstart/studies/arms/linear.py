"""The arm `linear`: what TF-IDF is to classes, for tasks of another kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headstart.studies.arms.arm import Amounts, Arm, Colours, Effort, Fitted, HeldOutPart, Speed

if TYPE_CHECKING:
    from headstart.studies.context import ArmContext
    from headstart.studies.recipe import StudyRecipe
    from headstart.tasks.task import Task

LINEAR_TASKS = ("multi-label", "tagging")
SECONDS = 3.0  # for each MB of labelled text


class LinearArm(Arm):
    """The task's own linear model: one regression per label, or a tagger of single words."""

    name = "linear"
    label = "linear model"
    description = "TF-IDF and one regression per label, or a linear tagger of words."
    colours = Colours("#767676", "#9a9a9a", light_text="#666666", dark_text="#b0b0b0")
    position = 12
    is_reference = True
    varies_with_seed = False

    def is_usual(self, task: type[Task[Any]] | None, *, classes: bool) -> bool:
        return not classes and task is not None and task.name in LINEAR_TASKS

    def problems(self, recipe: StudyRecipe) -> list[str]:
        if recipe.has_classes:
            return [f"{self.name} is for tasks without classes; tfidf is that of {recipe.task}"]
        if recipe.task not in LINEAR_TASKS:
            return [f"the task {recipe.task} has no linear model"]
        return []

    def seconds(self, labels: int, effort: Effort, amounts: Amounts, speed: Speed) -> float:
        return SECONDS * amounts.megabytes(labels + amounts.validation_rows + amounts.test_rows)

    def fit(self, context: ArmContext) -> Fitted:
        from headstart.baselines.baselines import LINEAR_MODELS
        from headstart.studies.study_task import hold_back

        task, splits = context.task, context.splits
        train, held = splits.train, splits.validation
        if context.study.recipe.selection != "validation":
            kept, back = hold_back(task, train)
            train, held = task.pick(splits.train, kept), task.pick(splits.train, back)
        answers = LINEAR_MODELS[task.name][1](task, train, held)

        def answer(part: HeldOutPart) -> Any:
            return answers(splits.parts()[part])

        return Fitted(answer)


ARM = LinearArm()
