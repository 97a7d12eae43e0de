"""Arms like `hf:PATH`: somebody else's base, fine-tuned on the same rows as the study's own."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from headstart.config import FinetuneConfig, hf_name
from headstart.studies.arms.arm import Amounts, Colours, Effort, Need, Speed
from headstart.studies.arms.network import NetworkArm
from headstart.studies.arms.registry import FOREIGN, add_arm

if TYPE_CHECKING:
    from headstart.studies.context import ArmContext


class ForeignArm(NetworkArm):
    """Their weeks beside your minutes: same rows, seeds and budgets, at the rate they take.

    Parameters
    ----------
    name : str
        The base, as `--base` takes it: `hf:PATH` or `hf:owner/name@REVISION`.
    """

    colours = Colours("#8c6d1f", "#d9b44a", light_text="#7a5f1a", dark_text="#e0c06a")
    position = 40
    needs: ClassVar[frozenset[Need]] = frozenset()  # it brings its own tokenizer
    uses_objective = False
    stackable = True

    def __init__(self, name: str) -> None:
        prefix, _, rest = name.partition(":")
        short = Path(rest.partition("@")[0]).name
        self.name = name  # type: ignore[misc]
        self.label = f"{prefix}:{short}"  # type: ignore[misc]
        self.description = (  # type: ignore[misc]
            f"{short}, which others have pretrained, its head swapped, fine-tuned as a whole."
        )

    def seconds(self, labels: int, effort: Effort, amounts: Amounts, speed: Speed) -> float:
        times = _times_slower(self.name)
        slower = replace(
            speed,
            trained_token=speed.trained_token * times,
            read_token=speed.read_token * times,
        )
        # Its windows are longer, so that few texts are longer than one.
        return super().seconds(labels, effort, replace(amounts, dropout_share=0.0), slower)

    def recipe(self, context: ArmContext) -> FinetuneConfig:
        study, run = context.study.recipe, context.run
        return FinetuneConfig.create(
            **study.dataset_settings(),
            length=study.length,
            base=str(self.copy(context)),
            epochs=context.study.epochs[run.labels],
            seed=run.seed,
            threads=context.study.threads,
            precision=study.precision,
            device="cpu",
        )

    def prepare(self, context: ArmContext) -> None:
        """Copy the base into the study, and tokenize the held-out parts with its tokenizer."""
        from headstart.text.tokenizers.tokenizer import load_tokenizer

        tokenizer = load_tokenizer(self.copy(context))
        if not context.study.reads_whole_texts:
            return
        context.study.ids(tokenizer, "validation")
        context.study.ids(tokenizer, "test")

    def copy(self, context: ArmContext) -> Path:
        """The base as a run in the study's folder."""
        from headstart.studies.outcomes import safe_name
        from headstart.training.initialization import local_base

        return local_base(self.name, context.study.folder / "bases" / safe_name(self.name))


def know_foreign_arms(names: list[str]) -> None:
    """Register the arms among `names` that name a base of another source."""
    for name in names:
        if re.match(r"\w\w+:", name) and name not in FOREIGN and hf_name(name) is not None:
            add_arm(ForeignArm(name))


@lru_cache
def _times_slower(name: str) -> float:
    """About how many times as long a token takes as with the study's usual network."""
    from headstart.model.counts import multiplications
    from headstart.model.presets import preset
    from headstart.run import NetworkRun
    from headstart.studies.recipe import STUDY_WIDTH

    usual = preset("small", width=STUDY_WIDTH)
    theirs = NetworkRun.open(Path(name)).model.base.config
    head = usual.language_modeling
    return multiplications(theirs, head)["layers"] / multiplications(usual.base, head)["layers"]
