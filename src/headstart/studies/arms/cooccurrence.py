"""The arm `cooccurrence`: a regression on token vectors that were counted in the corpus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headstart.data.dataset import as_text
from headstart.studies.arms.arm import Colours, HeldOutPart
from headstart.studies.arms.regression import RegressionArm

if TYPE_CHECKING:
    from headstart.baselines.linear import CooccurrenceClassifier
    from headstart.studies.context import ArmContext


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

        from headstart.baselines.linear import CooccurrenceClassifier

        vectors = load_file(context.study.vectors)["vectors"]
        return CooccurrenceClassifier(vectors, tokenizer=context.tokenizer)

    def inputs(self, context: ArmContext, part: HeldOutPart | None) -> Sequence[Any]:
        if part is None:
            return context.tokenizer.encode_arrays(list(map(as_text, context.splits.train.texts)))
        return context.study.ids(context.tokenizer, part)


ARM = CooccurrenceArm()
