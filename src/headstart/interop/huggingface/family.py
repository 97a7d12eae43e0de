"""A family of models that share one structure: how its settings and tensors become ours and back.

One file per family holds both directions. `FAMILIES` is the table that a `model_type` and a base
of ours are looked up in.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

from headstart.errors import HeadstartError
from headstart.interop.huggingface.foreign_config import ForeignConfig
from headstart.interop.huggingface.tensors import TensorRule, pair
from headstart.model.config import BaseConfig, HeadConfig

ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu-tanh", "gelu_pytorch_tanh": "gelu-tanh"}
ACTIVATIONS["relu"] = "relu"
# The other way round: of several names the first one.
ACTIVATION_NAMES = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
# How the classes of transformers end, by the kind of our head; causal ones differ by one.
ENCODER = {
    "": "Model",
    "language_modeling": "ForMaskedLM",
    "classification": "ForSequenceClassification",
    "tagging": "ForTokenClassification",
    "spans": "ForQuestionAnswering",
}

ONNX = "export it with --to onnx"
OTHER_HEAD = f"fine-tune with --head stock, or {ONNX}"


@dataclass(frozen=True)
class NoCounterpart:
    """Why a head cannot go out, and how to train one that can."""

    why: str
    fix: str


class Family(ABC):
    """One structure, for instance BERT's."""

    model_types: ClassVar[tuple[str, ...]]  # what its config.json may say; the first is written
    prefix: ClassVar[str]  # of the base's tensors; files of a base alone may leave it out
    class_name: ClassVar[str]  # how the names of its classes begin
    endings: ClassVar[Mapping[str, str]] = ENCODER  # and end, by the head's kind
    # Tensors that a file may hold without their being weights of ours: tables that are computed,
    # copies of tied weights, and heads of the pretraining that the named class does not have.
    ignored: ClassVar[tuple[str, ...]] = ()
    token_types: ClassVar[bool] = False  # whether its models are given token_type_ids

    @property
    def architectures(self) -> dict[str, str]:
        """The classes of transformers, by the head's kind."""
        return {kind: f"{self.class_name}{ending}" for kind, ending in self.endings.items()}

    @abstractmethod
    def fits(self, base: BaseConfig) -> bool:
        """Whether a base of ours has exactly this structure."""

    @abstractmethod
    def read_base(self, config: ForeignConfig) -> BaseConfig:
        """Our settings; what our network lacks is among `config.problems` then."""

    @abstractmethod
    def write_base(self, base: BaseConfig) -> dict[str, Any]:
        """Their settings of a base that fits."""

    @abstractmethod
    def base_rules(self, base: BaseConfig, prefix: str) -> list[TensorRule]:
        """The tensors of the base; `prefix` stands before their names there."""

    @abstractmethod
    def head_rules(self, base: BaseConfig, head: HeadConfig) -> list[TensorRule]:
        """The tensors of a head that has a counterpart."""

    @abstractmethod
    def read_head(self, kind: str, base: BaseConfig, config: ForeignConfig) -> HeadConfig | None:
        """The settings of a head of this kind; None for one that ours cannot compute."""

    @abstractmethod
    def no_counterpart(self, base: BaseConfig, head: HeadConfig) -> NoCounterpart | None:
        """Why this head cannot go out, if it cannot."""

    def pad_problem(self, base: BaseConfig, pad_id: int | None) -> NoCounterpart | None:
        """Why the tokenizer's padding cannot go out with this base, if it cannot."""
        return None

    def write_head(self, head: HeadConfig) -> dict[str, Any]:
        """Settings that the head adds to theirs."""
        return {}

    def aliases(self, names: set[str]) -> dict[str, str]:
        """Other names that older files have for the same tensors: {name there: today's name}."""
        return {}

    def base_prefix(self, head: HeadConfig | None) -> str:
        """What stands before the base's names in a model with this head."""
        return "" if head is None else self.prefix


def answer_rules(head: HeadConfig) -> list[TensorRule]:
    """The output layer of a head for a task, as most families call it."""
    return pair("head.output", "qa_outputs" if head.kind == "spans" else "classifier")


# By the first of its model types, in the order in which a base of ours is looked up.
FAMILIES = {
    "llama": "headstart.interop.huggingface.llama:Llama",
    "modernbert": "headstart.interop.huggingface.modernbert:ModernBert",
    "bert": "headstart.interop.huggingface.bert:Bert",
    "roberta": "headstart.interop.huggingface.bert_relatives:Roberta",
    "distilbert": "headstart.interop.huggingface.bert_relatives:DistilBert",
    "gpt2": "headstart.interop.huggingface.gpt2:Gpt2",
}


def families() -> list[Family]:
    """One of each family."""
    found = []
    for place in FAMILIES.values():
        module, _, name = place.partition(":")
        found.append(getattr(import_module(module), name)())
    return found


def family_of_type(config: ForeignConfig) -> Family:
    """The family of a `model_type`; an unknown one is an error that lists the known ones."""
    known = families()
    for family in known:
        if config.model_type in family.model_types:
            return family
    names = sorted(name for family in known for name in family.model_types)
    raise HeadstartError(
        f"Headstart has no network like {config.model_type!r}",
        where=config.path,
        fix=f"choose a model of one of these types: {', '.join(names)}",
    )


def family_of_base(base: BaseConfig) -> Family | None:
    """The family whose structure a base of ours has."""
    return next((family for family in families() if family.fits(base)), None)
