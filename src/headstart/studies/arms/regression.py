"""What the arms share that fit a logistic regression to features of a text."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from headstart.studies.arms.arm import Amounts, Arm, Fitted, HeldOutPart, Speed

if TYPE_CHECKING:
    from headstart.baselines.regression import RegressionClassifier
    from headstart.studies.context import ArmContext

SECONDS = 3.0  # for each MB of labelled text


class RegressionArm(Arm):
    """A `RegressionClassifier`: a subclass says which one, and what it reads."""

    stackable: ClassVar[bool] = True
    varies_with_seed: ClassVar[bool] = False

    @abstractmethod
    def classifier(self, context: ArmContext) -> RegressionClassifier:
        """The classifier, not fitted yet."""

    @abstractmethod
    def inputs(self, context: ArmContext, part: HeldOutPart | None) -> Sequence[Any]:
        """What the classifier reads of a held-out part; of the training rows where it is None."""

    @abstractmethod
    def strengths(self) -> Sequence[float]:
        """The strengths (scikit-learn's C) that are tried on validation."""

    def settings_grid(self) -> Mapping[str, Sequence[Any]]:
        return {"strength": self.strengths()}

    def seconds(self, labels: int, epochs: int, amounts: Amounts, speed: Speed) -> float:
        rows = labels + amounts.validation_rows + amounts.test_rows
        return SECONDS * amounts.megabytes(rows)

    def fit(self, context: ArmContext) -> Fitted:
        from headstart.baselines.stack import over_all_classes

        splits, every = context.splits, range(len(context.label_names))
        classifier = self.classifier(context)
        held_out = (self.inputs(context, "validation"), splits.validation.labels)
        classifier.fit(self.inputs(context, None), splits.train.labels, validation=held_out)

        def answer(part: HeldOutPart) -> Any:
            found = classifier.predict_proba(self.inputs(context, part))
            return over_all_classes(found, classifier.classes_.tolist(), every)

        return Fitted(answer, {"strength": classifier.strength_})
