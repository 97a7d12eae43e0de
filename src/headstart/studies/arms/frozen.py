"""The arm `frozen`: a pretrained base that does not change; only the head learns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headstart.studies.arms.arm import Colours, Speed
from headstart.studies.arms.network import NetworkArm

if TYPE_CHECKING:
    from headstart.config import FinetuneConfig
    from headstart.studies.context import ArmContext


# A head alone, drawn at random, has few weights and none of them is worth protecting: at the usual
# rate it would still be on its way when the steps are over. A fitted one is where it should be.
LEARNING_RATE = 3e-3


class FrozenArm(NetworkArm):
    """How much of the gain is in the base as pretraining left it."""

    name = "frozen"
    label = "frozen"
    description = "A base pretrained on the corpus that does not change; only its head learns."
    colours = Colours("#56b4e9", "#9bd4f5", light_text="#2077a8", dark_text="#9bd4f5")
    position = 30
    needs = frozenset({"tokenizer", "base"})

    def changes(self, context: ArmContext, recipe: FinetuneConfig) -> dict[str, Any]:
        random = {"learning_rate": LEARNING_RATE} if recipe.head_init == "random" else {}
        return {"freeze": True, **random}

    def learning_seconds(self, speed: Speed) -> float:
        return speed.read_token  # no gradient goes into the base


ARM = FrozenArm()
