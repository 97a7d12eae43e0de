"""The arm `counted`: the base as pretraining would begin it, with counted vectors and no step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headstart.studies.arms.arm import START, Colours
from headstart.studies.arms.network import NetworkArm

if TYPE_CHECKING:
    from headstart.config import FinetuneConfig
    from headstart.studies.context import ArmContext
    from headstart.studies.recipe import StudyRecipe


class CountedArm(NetworkArm):
    """Tells counting and pretraining apart: both start from this, only one of them is trained."""

    name = "counted"
    label = "counted"
    description = (
        "The same network with its embedding counted from the corpus and no step of pretraining, "
        "fine-tuned as a whole."
    )
    colours = Colours("#8a6d3b", "#c9a66b", light_text="#735a2e", dark_text="#d3b57f")
    position = 15
    default = True
    effect = "counting"
    needs = frozenset({"tokenizer", "base", "start"})

    @property
    def phrase(self) -> str:
        return "counting alone"

    def problems(self, recipe: StudyRecipe) -> list[str]:
        if recipe.base:
            return [
                f"{self.name} is what pretraining starts from; with --base nothing is pretrained"
            ]
        return []

    def changes(self, context: ArmContext, recipe: FinetuneConfig) -> dict[str, Any]:
        return {"base": f"{recipe.base}/{START}"}


ARM = CountedArm()
