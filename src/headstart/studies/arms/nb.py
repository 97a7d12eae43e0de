"""The arm `nb`: naive-Bayes log-count ratios of words and a logistic regression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headstart.studies.arms.arm import Colours, HeldOutPart
from headstart.studies.arms.regression import RegressionArm

if TYPE_CHECKING:
    from headstart.baselines.linear import NaiveBayesClassifier
    from headstart.studies.context import ArmContext


class NaiveBayesArm(RegressionArm):
    """Strong on short texts with few labels; it needs seconds and nothing but labelled rows."""

    name = "nb"
    label = "naive Bayes"
    description = "Words and pairs of them, scaled by log-count ratios, and a logistic regression."
    colours = Colours("#7a8b99", "#9fb0bd", light_text="#5d6d7a", dark_text="#b4c3cf")
    position = 15

    def classifier(self, context: ArmContext) -> NaiveBayesClassifier:
        from headstart.baselines.linear import NaiveBayesClassifier

        return NaiveBayesClassifier()

    def inputs(self, context: ArmContext, part: HeldOutPart | None) -> Sequence[str]:
        return context.splits.parts()[part or "train"].texts


ARM = NaiveBayesArm()
