"""What the arms share that fit a logistic regression to features of a text."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from headstart.studies.arms.arm import Amounts, Arm, Effort, Fitted, HeldOutPart, Speed

if TYPE_CHECKING:
    from pathlib import Path

    from headstart.baselines.linear import LinearTextClassifier
    from headstart.studies.context import ArmContext

SECONDS = 3.0  # for each MB of labelled text


class RegressionArm(Arm):
    """A `LinearTextClassifier`: a subclass says which one, and what it reads."""

    class_only: ClassVar[bool] = True
    stackable: ClassVar[bool] = True
    varies_with_seed: ClassVar[bool] = False

    @abstractmethod
    def classifier(self, context: ArmContext) -> LinearTextClassifier:
        """The classifier, not fitted yet."""

    @abstractmethod
    def inputs(self, context: ArmContext, part: HeldOutPart | None) -> Sequence[Any]:
        """What the classifier reads of a held-out part; of the training rows where it is None."""

    def seconds(self, labels: int, effort: Effort, amounts: Amounts, speed: Speed) -> float:
        from headstart.folds import FOLDS, MANY

        times = 1 if not effort.tries else 2 if labels >= MANY else FOLDS
        rows = times * labels + amounts.validation_rows + amounts.test_rows
        return SECONDS * amounts.megabytes(rows)

    def fit(self, context: ArmContext) -> Fitted:
        from headstart.baselines.stack import over_all_classes

        splits, every = context.splits, range(len(context.label_names))
        classifier, train = self.classifier(context), self.inputs(context, None)
        if context.study.recipe.selection == "validation":
            held_out = (self.inputs(context, "validation"), splits.validation.labels)
            classifier.fit(train, splits.train.labels, validation=held_out)
        else:
            classifier.fit(train, splits.train.labels, folds=context.own_folds())

        def answer(part: HeldOutPart) -> Any:
            found = classifier.predict_proba(self.inputs(context, part))
            return over_all_classes(found, classifier.classes_.tolist(), every)

        def save(folder: Path) -> None:
            from headstart.studies.keep_best import save_classifier

            save_classifier(context, classifier, folder)

        facts = {"chosen": {"C": classifier.C_}, "tries": len(classifier.Cs)}
        rows = classifier.oof_rows_
        if not len(rows):
            return Fitted(answer, facts, save=save)
        own = over_all_classes(classifier.oof_proba_, classifier.classes_.tolist(), every)
        return Fitted(answer, facts, own=own, own_rows=rows, save=save)
