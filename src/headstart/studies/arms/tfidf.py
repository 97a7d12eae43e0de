"""The arm `tfidf`: n-grams and a logistic regression, what any text model must beat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headstart.studies.arms.arm import Colours, HeldOutPart
from headstart.studies.arms.regression import RegressionArm

if TYPE_CHECKING:
    from headstart.baselines.linear import TfidfClassifier
    from headstart.studies.context import ArmContext


class TfidfArm(RegressionArm):
    """What any text model must beat; it needs seconds and nothing but the labelled rows."""

    name = "tfidf"
    label = "TF-IDF"
    description = "Word and character n-grams, weighted by idf, and a logistic regression."
    # Okabe and Ito's palette, safe for colour-blind readers; the reference is grey.
    colours = Colours("#767676", "#9a9a9a", light_text="#666666", dark_text="#b0b0b0")
    position = 10
    default = True
    is_reference = True

    def classifier(self, context: ArmContext) -> TfidfClassifier:
        from headstart.baselines.linear import TfidfClassifier

        return TfidfClassifier()

    def inputs(self, context: ArmContext, part: HeldOutPart | None) -> Sequence[str]:
        return context.splits.parts()[part or "train"].texts


ARM = TfidfArm()
