"""Ready-made networks: values of `BaseConfig` and of the heads that go with them."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from headstart.config import Pooling
from headstart.errors import HeadstartError
from headstart.model.config import (
    BaseConfig,
    ClassificationConfig,
    HeadConfig,
    LanguageModelingConfig,
    SpansConfig,
    TaggingConfig,
)

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


def preset(name: str, *, objective: PresetObjective | None = None, **sizes: int | None) -> Preset:
    """Return a preset, by default for the objective that the network was published with.

    `sizes` are `vocab_size`, `width`, `layers`, `heads` and `feed_forward_width`; None means "not
    given". A width alone also sets the feed-forward width and, except for `lab`, the heads.
    """
    if name not in PRESETS:
        raise HeadstartError(f"unknown preset {name!r}; the presets are {', '.join(PRESETS)}")
    return PRESETS[name](objective, {key: one for key, one in sizes.items() if one is not None})


def lab(objective: PresetObjective | None, sizes: dict[str, int]) -> Preset:
    """The lab's network: post-norm layers like PyTorch's, feed-forward as wide as the model."""
    width = sizes.get("width", 200)
    base = _base(
        objective or "causal",
        sizes,
        vocab_size=50_001,
        width=width,
        layers=4,
        heads=2,
        feed_forward_width=width,
        positions="sinusoidal",
        norm="layer",
        norm_place="after",
        feed_forward="relu",
        biases=True,
        embedding_scale=True,
        initialization="lab",
    )
    return Preset("lab", base, LanguageModelingConfig(tied=False, bias=True), pooling="last")


def small(objective: PresetObjective | None, sizes: dict[str, int]) -> Preset:
    """What trains best in minutes: causal it is a small Llama, masked a small ModernBERT."""
    width = sizes.get("width", 256)
    masked = objective == "masked"
    base = _base(
        objective or "causal",
        sizes,
        vocab_size=32_768,
        width=width,
        layers=4,
        heads=max(1, width // 64),
        # Three matrices instead of two: 8/3 makes a gated layer as large as a plain one of 4×.
        feed_forward_width=-(-(width * 8 // 3) // 64) * 64,
        positions="rotary",
        norm="layer" if masked else "rms",
        feed_forward="geglu" if masked else "swiglu",
        embedding_norm=masked,
    )
    head = LanguageModelingConfig(tied=True, bias=masked, transform=masked)
    return Preset("small", base, head, pooling="mean+max")


def bert(objective: PresetObjective | None, sizes: dict[str, int]) -> Preset:
    """BERT-base (Devlin et al. 2019), uncased English vocabulary."""
    base = _base(
        objective or "masked",
        sizes,
        **_like_gpt(sizes),
        vocab_size=30_522,
        norm_place="after",
        norm_epsilon=1e-12,
        feed_forward="gelu",
        embedding_norm=True,
        token_types=2,
    )
    head = LanguageModelingConfig(tied=True, bias=True, transform=True)
    return Preset("bert", base, head, pooling="first", dense=True)


def gpt2(objective: PresetObjective | None, sizes: dict[str, int]) -> Preset:
    """GPT-2, the smallest (Radford et al. 2019)."""
    base = _base(
        objective or "causal",
        sizes,
        **_like_gpt(sizes),
        vocab_size=50_257,
        max_length=1_024,
        feed_forward="gelu-tanh",
    )
    return Preset("gpt2", base, LanguageModelingConfig(tied=True), pooling="last")


PRESETS: dict[str, Callable[[PresetObjective | None, dict[str, int]], Preset]] = {
    "lab": lab,
    "small": small,
    "bert": bert,
    "gpt2": gpt2,
}


def _like_gpt(sizes: dict[str, int]) -> dict[str, Any]:
    """What BERT-base and the smallest GPT-2 both took over from GPT (Radford et al. 2018)."""
    width = sizes.get("width", 768)
    return {
        "width": width,
        "layers": 12,
        "heads": max(1, width // 64),
        "feed_forward_width": 4 * width,
        "positions": "learned",
        "norm": "layer",
        "biases": True,
        "dropout": 0.1,
    }


def _base(objective: PresetObjective, sizes: dict[str, int], **values: Any) -> BaseConfig:
    """Make the base from the preset's values, replaced by the given sizes."""
    attention = "causal" if objective == "causal" else "bidirectional"
    return BaseConfig(**{**values, "attention": attention, **sizes})


def preset_of(base: BaseConfig) -> Preset:
    """Return the preset that a base was made from, with that base."""
    objective: PresetObjective = "causal" if base.attention == "causal" else "masked"
    for name in PRESETS:
        usual = preset(name, objective=objective)
        if (usual.base.positions, usual.base.norm_place) == (base.positions, base.norm_place):
            return replace(usual, base=base)
    return replace(preset("small", objective=objective), base=base)


def stock_head(head: HeadConfig, base: BaseConfig) -> HeadConfig:
    """Return the head of stock `transformers` for a base, with the same pooling if possible."""
    causal, rotary = base.attention == "causal", base.positions == "rotary"
    if base.transformers is not None:
        return _own_stock_head(head, base)
    if isinstance(head, TaggingConfig | SpansConfig):
        return replace(head, transform=rotary and not causal)
    if not isinstance(head, ClassificationConfig):
        return head
    if causal:  # Llama, GPT-2
        return replace(head, pooling="last", dense=False, bias=False)
    if rotary:  # ModernBERT
        pooling: Pooling = head.pooling if head.pooling == "first" else "mean"
        return replace(head, pooling=pooling, dense=False, transform=True)
    return replace(head, pooling="first", dense=True)


def _own_stock_head(head: HeadConfig, base: BaseConfig) -> HeadConfig:
    """Return the head that `transformers` has for a base that came from there."""
    if isinstance(head, TaggingConfig):
        return replace(head, stock=True)
    if not isinstance(head, ClassificationConfig):
        return head
    pooling: Pooling = "first"
    if base.attention == "causal":
        pooling = "last"
    elif json.loads(str(base.transformers)).get("classifier_pooling") == "mean":
        pooling = "mean"
    return replace(head, pooling=pooling, dense=False, dropout=0.0, stock=True)
