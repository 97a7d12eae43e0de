"""The arm `pretrained`: a base that was pretrained on the corpus, fine-tuned as a whole."""

from headstart.studies.arms.arm import Colours
from headstart.studies.arms.network import NetworkArm


class PretrainedArm(NetworkArm):
    """What the study is about: counting and pretraining make its difference to `scratch`."""

    name = "pretrained"
    label = "pretrained"
    description = "A base pretrained on the corpus, its head swapped, fine-tuned as a whole."
    colours = Colours("#0072b2", "#3d9fdc", light_text="#0067a1", dark_text="#5cb3e8")
    position = 20
    default = True
    needs = frozenset({"tokenizer", "base"})
    stackable = True
    compared_with = "scratch"
    effect = "pretraining"
    between = ("counted",)


ARM = PretrainedArm()
