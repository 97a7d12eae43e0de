"""The arm `scratch`: the network with random weights, fine-tuned on the labelled rows alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headstart.studies.arms.arm import Colours
from headstart.studies.arms.network import NetworkArm

if TYPE_CHECKING:
    from headstart.config import FinetuneConfig
    from headstart.studies.context import ArmContext


class ScratchArm(NetworkArm):
    """The control of pretraining: the same network, rows and steps, from random weights."""

    name = "scratch"
    label = "scratch"
    description = "The same network from random weights, fine-tuned on the labelled rows alone."
    colours = Colours("#d55e00", "#f0803c", light_text="#b34f00", dark_text="#f0803c")
    position = 10
    default = True
    learns_long = True

    @property
    def phrase(self) -> str:
        return "training from scratch"

    def changes(self, context: ArmContext, recipe: FinetuneConfig) -> dict[str, Any]:
        return {"fresh": context.base is not None}


ARM = ScratchArm()
