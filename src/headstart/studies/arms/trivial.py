"""The arm `trivial`: the answer without reading, which every other arm must beat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headstart.studies.arms.arm import Arm, Colours, Fitted, HeldOutPart

if TYPE_CHECKING:
    from headstart.studies.context import ArmContext
    from headstart.tasks.task import Task


class TrivialArm(Arm):
    """The majority class, the most frequent labels, no entity at all, the first sentence."""

    name = "trivial"
    label = "without reading"
    description = "The majority class, the most frequent labels, no entity, or the first sentence."
    colours = Colours("#9b9b9b", "#7d7d7d", light_text="#6f6f6f", dark_text="#a8a8a8")
    position = 5
    varies_with_seed = False

    def is_usual(self, task: type[Task[Any]] | None, *, classes: bool) -> bool:
        """A guess among classes is easily judged; elsewhere the zero is worth showing."""
        return task is not None and task.name != "classification"

    def fit(self, context: ArmContext) -> Fitted:
        from headstart.studies.study_task import has_classes

        task, train = context.task, context.splits.train

        def answer(part: HeldOutPart) -> Any:
            found = task.trivial(train, context.splits.parts()[part])
            assert found is not None, task.name
            _, answers = found
            return task.probabilities(answers) if has_classes(task) else answers  # type: ignore[attr-defined]

        return Fitted(answer)


ARM = TrivialArm()
