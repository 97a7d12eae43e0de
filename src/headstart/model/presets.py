"""Ready-made networks. A preset is nothing but values of `BaseConfig` and of its usual heads."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from headstart.errors import HeadstartError
from headstart.model.config import (
    BaseConfig,
    ClassificationConfig,
    HeadConfig,
    LanguageModelingConfig,
    Pooling,
    SpansConfig,
    TaggingConfig,
)
from headstart.registry import Registry

PresetObjective = Literal["causal", "masked"]


@dataclass(frozen=True)
class Preset:
    """A base and the heads that go with it."""

    name: str
    base: BaseConfig
    language_modeling: LanguageModelingConfig
    pooling: Pooling
    dense: bool = False

    def classification(self, classes: int = 2) -> ClassificationConfig:
        return ClassificationConfig(
            classes=classes, pooling=self.pooling, dense=self.dense, dropout=self.base.dropout
        )


@dataclass(frozen=True)
class PresetFactory:
    """How a preset is made, from an objective and the sizes that were given."""

    make: Callable[[PresetObjective, dict[str, int]], Preset]
    objective: PresetObjective = "causal"  # its usual one


def preset(name: str, *, objective: PresetObjective | None = None, **sizes: int | None) -> Preset:
    """The preset `name` for an objective (by default its own), with other sizes where given.

    `sizes` are `vocab_size`, `width`, `layers`, `heads`, `feed_forward_width`. A width alone
    takes the feed-forward and, where heads have a usual width, the heads with it.
    """
    given = {key: value for key, value in sizes.items() if value is not None}
    factory = PRESETS.get(name)
    if factory is None:
        raise HeadstartError(
            f"unknown preset {name!r}; the presets are {', '.join(preset_names())}"
        )
    return factory.make(objective or factory.objective, given)


def preset_names() -> list[str]:
    """The names of all presets."""
    return list(PRESETS.entries())


def register_preset(name: str, factory: PresetFactory) -> None:
    """Let `--preset NAME` find a network of your own; a name that is taken is an error.

    An installed package does so with an entry point in the group `headstart.presets`. The settings
    with which a preset is usually trained are in `training.recipe_file.PROTOCOLS`.
    """
    PRESETS.register(name, factory)


def unregister_preset(name: str) -> None:
    """Remove a preset that `register_preset` added."""
    PRESETS.unregister(name)


def _lab(objective: PresetObjective, sizes: dict[str, int]) -> Preset:
    """The lab's network: post-norm layers like PyTorch's, feed-forward as wide as the model."""
    width = sizes.get("width", 200)
    values = {
        "vocab_size": 50_001,
        "layers": 4,
        "heads": 2,
        "feed_forward_width": width,
        "positions": "sinusoidal",
        "norm": "layer",
        "norm_place": "after",
        "feed_forward": "relu",
        "biases": True,
        "embedding_scale": True,
        "initialization": "lab",
    }
    head = LanguageModelingConfig(tied=False, bias=True)
    return Preset("lab", _base(objective, width, values, sizes), head, pooling="last")


def _small(objective: PresetObjective, sizes: dict[str, int]) -> Preset:
    """What trains best in minutes: causal it is a small Llama, masked a small ModernBERT."""
    width = sizes.get("width", 256)
    values = {
        "vocab_size": 32_768,
        "layers": 4,
        "heads": _heads_of_64(width),
        # Three matrices instead of two: 8/3 keeps a gated layer as large as a plain one of 4×.
        "feed_forward_width": _round_up(width * 8 // 3, 64),
        "positions": "rotary",
    }
    if objective == "causal":
        values |= {"norm": "rms", "feed_forward": "swiglu"}
        head = LanguageModelingConfig(tied=True)
    else:
        values |= {"norm": "layer", "feed_forward": "geglu", "embedding_norm": True}
        head = LanguageModelingConfig(tied=True, bias=True, transform=True)
    return Preset("small", _base(objective, width, values, sizes), head, pooling="mean+max")


def _bert(objective: PresetObjective, sizes: dict[str, int]) -> Preset:
    """BERT-base (Devlin et al. 2019), uncased English vocabulary."""
    width = sizes.get("width", 768)
    values = _like_gpt(width) | {
        "vocab_size": 30_522,
        "norm_place": "after",
        "norm_epsilon": 1e-12,
        "feed_forward": "gelu",
        "embedding_norm": True,
        "token_types": 2,
    }
    head = LanguageModelingConfig(tied=True, bias=True, transform=True)
    base = _base(objective, width, values, sizes)
    return Preset("bert", base, head, pooling="first", dense=True)


def _gpt2(objective: PresetObjective, sizes: dict[str, int]) -> Preset:
    """GPT-2, the smallest (Radford et al. 2019)."""
    width = sizes.get("width", 768)
    values = _like_gpt(width) | {
        "vocab_size": 50_257,
        "max_length": 1_024,
        "feed_forward": "gelu-tanh",
    }
    head = LanguageModelingConfig(tied=True)
    return Preset("gpt2", _base(objective, width, values, sizes), head, pooling="last")


def _like_gpt(width: int) -> dict[str, Any]:
    """What BERT-base and the smallest GPT-2 both took over from GPT (Radford et al. 2018)."""
    return {
        "layers": 12,
        "heads": _heads_of_64(width),
        "feed_forward_width": 4 * width,
        "positions": "learned",
        "norm": "layer",
        "biases": True,
        "dropout": 0.1,
    }


def _base(
    objective: PresetObjective, width: int, values: dict[str, Any], sizes: dict[str, int]
) -> BaseConfig:
    """The preset's values; the sizes that were given win over them."""
    attention = "causal" if objective == "causal" else "bidirectional"
    return BaseConfig(**{**values, "width": width, "attention": attention, **sizes})


def _heads_of_64(width: int) -> int:
    return max(1, width // 64)


def _round_up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


PRESETS: Registry[PresetFactory] = Registry(
    "preset",
    group="headstart.presets",
    base=PresetFactory,
    built_in={
        "lab": PresetFactory(_lab),
        "small": PresetFactory(_small),
        "bert": PresetFactory(_bert, objective="masked"),
        "gpt2": PresetFactory(_gpt2),
    },
)


def stock_head(head: HeadConfig, base: BaseConfig, *, chosen_pooling: bool = False) -> HeadConfig:
    """The head that stock `transformers` has for a base like this one, so that it can go there.

    Parameters
    ----------
    head : HeadConfig
        The head for the task.
    base : BaseConfig
    chosen_pooling : bool
        The user has chosen the pooling: it is kept where it exists there.
    """
    causal, rotary = base.attention == "causal", base.positions == "rotary"
    if isinstance(head, TaggingConfig | SpansConfig):
        return replace(head, transform=rotary and not causal)
    if not isinstance(head, ClassificationConfig):
        return head
    if causal:
        return replace(head, pooling="last", dense=False, bias=False)
    if rotary:
        kept = chosen_pooling and head.pooling in ("first", "mean")
        pooling: Pooling = head.pooling if kept else "mean"
        return replace(head, pooling=pooling, dense=False, transform=True)
    activation: Literal["tanh", "relu"] = "tanh" if base.token_types else "relu"  # DistilBERT
    return replace(head, pooling="first", dense=True, dense_activation=activation)


def preset_of(base: BaseConfig) -> Preset:
    """The preset that a base was made from, with that base: how it is usually pooled."""
    objective: PresetObjective = "causal" if base.attention == "causal" else "masked"
    for name in preset_names():
        usual = preset(name, objective=objective)
        if (usual.base.positions, usual.base.norm_place) == (base.positions, base.norm_place):
            return replace(usual, base=base)
    return replace(preset("small", objective=objective), base=base)
