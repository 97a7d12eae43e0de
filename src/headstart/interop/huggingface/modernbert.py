"""ModernBERT: rotary positions, GeGLU, no biases, and layers that see only the tokens around."""

from typing import Any, ClassVar

from headstart.config import Pooling
from headstart.interop.huggingface.family import ONNX, OTHER_HEAD, Family, NoCounterpart
from headstart.interop.huggingface.foreign_config import ForeignConfig
from headstart.interop.huggingface.tensors import TensorRule, pair
from headstart.model.config import (
    BaseConfig,
    ClassificationConfig,
    HeadConfig,
    LanguageModelingConfig,
    SpansConfig,
    TaggingConfig,
)

POOLINGS: dict[str, Pooling] = {"cls": "first", "mean": "mean"}


class ModernBert(Family):
    """The masked `small` is one. Its heads all have a dense layer, GELU and a norm before."""

    model_types: ClassVar[tuple[str, ...]] = ("modernbert",)
    prefix = "model."
    class_name = "ModernBert"
    ignored = (r"decoder\.weight", r"(.*\.)?rotary_emb\..*inv_freq")

    def fits(self, base: BaseConfig) -> bool:
        return (
            base.attention == "bidirectional"
            and (base.positions, base.norm, base.norm_place) == ("rotary", "layer", "before")
            and base.feed_forward == "geglu"
            and base.embedding_norm
            and not (base.biases or base.embedding_scale or base.token_types)
            and not base.key_value_heads
        )

    def read_base(self, config: ForeignConfig) -> BaseConfig:
        layers = config.whole("num_hidden_layers")
        for name in ("attention_bias", "mlp_bias", "norm_bias", "classifier_bias"):
            config.expect(name, False, "Headstart's network of this kind has no biases")
        config.expect("hidden_activation", "gelu", "Headstart has GeGLU here")
        config.expect("classifier_activation", "gelu", "Headstart has GELU here")
        every = _global_every(config, layers)
        window = 0 if every == 1 else config.whole("local_attention", 128) // 2
        return BaseConfig(
            vocab_size=config.whole("vocab_size"),
            width=config.whole("hidden_size"),
            layers=layers,
            heads=config.whole("num_attention_heads"),
            feed_forward_width=config.whole("intermediate_size"),
            attention="bidirectional",
            max_length=config.whole("max_position_embeddings", 8192),
            norm="layer",
            norm_epsilon=config.number("norm_eps", 1e-5),
            feed_forward="geglu",
            embedding_norm=True,
            rotary_base=_rotary_base(config, "full_attention", "global_rope_theta", 160_000.0),
            global_every=every,
            local_rotary_base=_rotary_base(config, "sliding_attention", "local_rope_theta", 1e4),
            dropout=config.number("embedding_dropout", 0.0),
            local_window=window,
        )

    def write_base(self, base: BaseConfig) -> dict[str, Any]:
        whole, local = (
            {"rope_type": "default", "rope_theta": float(theta)}
            for theta in (base.rotary_base, base.local_rotary_base)
        )
        kinds = ["sliding" if base.is_local(n) else "full" for n in range(base.layers)]
        window = {"local_attention": 2 * base.local_window} if base.local_window else {}
        return {
            "vocab_size": base.vocab_size,
            "hidden_size": base.width,
            "num_hidden_layers": base.layers,
            "num_attention_heads": base.heads,
            "intermediate_size": base.feed_forward_width,
            "max_position_embeddings": base.max_length,
            "norm_eps": float(base.norm_epsilon),
            "norm_bias": False,
            "attention_bias": False,
            "mlp_bias": False,
            "decoder_bias": True,
            "classifier_bias": False,
            "hidden_activation": "gelu",
            "classifier_activation": "gelu",
            "embedding_dropout": base.dropout,
            "attention_dropout": base.dropout,
            "mlp_dropout": base.dropout,
            "layer_types": [f"{kind}_attention" for kind in kinds],
            "rope_parameters": {"full_attention": whole, "sliding_attention": local},
            **window,
            # Version 4 has these instead of the two above.
            "global_attn_every_n_layers": base.global_every,
            "global_rope_theta": float(base.rotary_base),
            "local_rope_theta": float(base.local_rotary_base),
            "tie_word_embeddings": True,
        }

    def base_rules(self, base: BaseConfig, prefix: str) -> list[TensorRule]:
        rules = pair("base.embedding", f"{prefix}embeddings.tok_embeddings", bias=False)
        rules += pair("base.embedding_norm", f"{prefix}embeddings.norm", bias=False)
        rules += pair("base.final_norm", f"{prefix}final_norm", bias=False)
        for number in range(base.layers):
            ours, theirs = f"base.blocks.{number}", f"{prefix}layers.{number}"
            rules += pair(f"{ours}.attention.query_key_value", f"{theirs}.attn.Wqkv", bias=False)
            rules += pair(f"{ours}.attention.output", f"{theirs}.attn.Wo", bias=False)
            rules += pair(f"{ours}.feed_forward.up", f"{theirs}.mlp.Wi", bias=False)
            rules += pair(f"{ours}.feed_forward.down", f"{theirs}.mlp.Wo", bias=False)
            if number:  # the normed embedding is not normed a second time
                rules += pair(f"{ours}.attention_norm", f"{theirs}.attn_norm", bias=False)
            rules += pair(f"{ours}.feed_forward_norm", f"{theirs}.mlp_norm", bias=False)
        return rules

    def head_rules(self, base: BaseConfig, head: HeadConfig) -> list[TensorRule]:
        rules = pair("head.transform.dense", "head.dense", bias=False)
        rules += pair("head.transform.norm", "head.norm", bias=False)
        if isinstance(head, LanguageModelingConfig):
            return [*rules, TensorRule("head.output.bias", ("decoder.bias",))]
        return rules + pair("head.output", "classifier")

    def read_head(self, kind: str, base: BaseConfig, config: ForeignConfig) -> HeadConfig | None:
        if kind == "language_modeling":
            if not config.values.get("decoder_bias", True):
                return None
            return LanguageModelingConfig(bias=True, transform=True)
        if kind == "classification":
            return ClassificationConfig(
                classes=len(config.labels),
                pooling=config.choose("classifier_pooling", POOLINGS, "cls"),
                transform=True,
            )
        if kind == "tagging":
            return TaggingConfig(tags=len(config.labels), transform=True)
        return SpansConfig(transform=True)

    def write_head(self, head: HeadConfig) -> dict[str, Any]:
        if not isinstance(head, ClassificationConfig):
            return {}
        return {"classifier_pooling": "cls" if head.pooling == "first" else "mean"}

    def no_counterpart(self, base: BaseConfig, head: HeadConfig) -> NoCounterpart | None:
        if head.kind not in self.endings:
            return NoCounterpart(f"there is no {head.kind} for it", ONNX)
        if isinstance(head, LanguageModelingConfig):
            if not (head.tied and head.bias and head.transform):
                return NoCounterpart("there it is tied, with a bias and a layer before it", ONNX)
            return None
        if isinstance(head, ClassificationConfig):
            if head.pooling not in POOLINGS.values():
                why = f"it pools by {head.pooling}, and there are only the first token and the mean"
                return NoCounterpart(why, OTHER_HEAD)
            if head.dense or not head.bias:
                return NoCounterpart("there a GELU and a norm stand before the classes", OTHER_HEAD)
        if not head.transform:
            why = "there a dense layer, GELU and a norm stand before the answers"
            return NoCounterpart(why, OTHER_HEAD)
        return None


def _global_every(config: ForeignConfig, layers: int) -> int:
    """Every how many layers one sees the whole text; the others see the tokens around each."""
    kinds = config.values.get("layer_types")
    if not isinstance(kinds, list):
        return config.whole("global_attn_every_n_layers", 3)
    whole = [kind == "full_attention" for kind in kinds]
    for every in range(1, layers + 1):
        if whole == [number % every == 0 for number in range(layers)]:
            return every
    config.problems.append(f"layer_types is {kinds}; Headstart has a global layer at equal steps")
    return 1


def _rotary_base(config: ForeignConfig, kind: str, older: str, default: float) -> float:
    found = (config.values.get("rope_parameters") or {}).get(kind) or {}
    if found.get("rope_type", "default") != "default":
        config.problems.append("its rotary positions are scaled; Headstart's are not")
    return float(found.get("rope_theta", config.values.get(older, default)))
