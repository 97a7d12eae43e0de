"""The arms that fit a logistic regression to features of a text: n-grams, or counted vectors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from headstart.studies.arms.arm import Amounts, Arm, Colours, Fitted, HeldOutPart, Speed

if TYPE_CHECKING:
    from headstart.baselines.cooccurrence import CooccurrenceClassifier
    from headstart.baselines.regression import RegressionClassifier
    from headstart.baselines.tfidf import TfidfClassifier
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


class TfidfArm(RegressionArm):
    """What any text model must beat; it needs seconds and nothing but the labelled rows."""

    name = "tfidf"
    label = "TF-IDF"
    description = "Word and character n-grams, weighted by rarity, and a logistic regression."
    # Okabe and Ito's palette, safe for colour-blind readers; the reference is grey.
    colours = Colours("#767676", "#9a9a9a", light_text="#666666", dark_text="#b0b0b0")
    position = 10
    default = True
    is_reference = True

    def classifier(self, context: ArmContext) -> TfidfClassifier:
        from headstart.baselines.tfidf import TfidfClassifier

        return TfidfClassifier()

    def strengths(self) -> Sequence[float]:
        from headstart.baselines.tfidf import STRENGTHS

        return STRENGTHS

    def inputs(self, context: ArmContext, part: HeldOutPart | None) -> Sequence[str]:
        return context.splits.parts()[part or "train"].texts


TFIDF = TfidfArm()


class CooccurrenceArm(RegressionArm):
    """How far the counted vectors come by themselves, without a network."""

    name = "cooccurrence"
    label = "co-occurrence"
    description = "Mean and maximum of token vectors counted in the corpus, and a regression."
    colours = Colours("#cc79a7", "#e09ac1", light_text="#a3507e", dark_text="#e09ac1")
    position = 20
    default = True
    needs = frozenset({"tokenizer", "vectors"})

    def classifier(self, context: ArmContext) -> CooccurrenceClassifier:
        from safetensors.numpy import load_file

        from headstart.baselines.cooccurrence import CooccurrenceClassifier

        return CooccurrenceClassifier(load_file(context.study.vectors)["vectors"])

    def strengths(self) -> Sequence[float]:
        from headstart.linear import STRENGTHS

        return STRENGTHS

    def inputs(self, context: ArmContext, part: HeldOutPart | None) -> Sequence[Any]:
        if part is None:
            return context.tokenizer.encode_arrays(context.splits.train.texts)
        return context.study.ids(context.tokenizer, part)


COOCCURRENCE = CooccurrenceArm()
