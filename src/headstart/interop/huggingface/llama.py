"""Llama (and what is built like it): rotary positions, RMS norms, SwiGLU, grouped queries."""

from typing import Any, ClassVar

from headstart.interop.huggingface.family import ENCODER, ONNX, OTHER_HEAD, Family, NoCounterpart
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


class Llama(Family):
    """The causal `small` is one."""

    model_types = ("llama", "mistral")
    prefix = "model."
    class_name = "Llama"
    endings: ClassVar[dict[str, str]] = {**ENCODER, "language_modeling": "ForCausalLM"}
    ignored = (r"(.*\.)?rotary_emb\.inv_freq",)

    def fits(self, base: BaseConfig) -> bool:
        return (
            base.attention == "causal"
            and (base.positions, base.norm, base.norm_place) == ("rotary", "rms", "before")
            and base.feed_forward == "swiglu"
            and not (base.biases or base.embedding_scale or base.embedding_norm or base.token_types)
        )

    def read_base(self, config: ForeignConfig) -> BaseConfig:
        width, heads = config.whole("hidden_size"), config.whole("num_attention_heads")
        config.expect("hidden_act", "silu", "ours is SwiGLU")
        config.expect("attention_bias", False, "ours has no biases there")
        config.expect("mlp_bias", False, "ours has no biases there")
        config.expect("head_dim", width // heads, f"ours is {width} / {heads} heads")
        if config.values.get("sliding_window"):
            config.problems.append("sliding_window: ours sees all tokens before")
        return BaseConfig(
            vocab_size=config.whole("vocab_size"),
            width=width,
            layers=config.whole("num_hidden_layers"),
            heads=heads,
            key_value_heads=_grouped(config, heads),
            feed_forward_width=config.whole("intermediate_size"),
            max_length=config.whole("max_position_embeddings", 2048),
            norm_epsilon=config.number("rms_norm_eps", 1e-6),
            rotary_base=rotary_base(config, 10_000.0),
        )

    def write_base(self, base: BaseConfig) -> dict[str, Any]:
        return {
            "vocab_size": base.vocab_size,
            "hidden_size": base.width,
            "num_hidden_layers": base.layers,
            "num_attention_heads": base.heads,
            "num_key_value_heads": base.key_value_heads or base.heads,
            "head_dim": base.head_width,
            "intermediate_size": base.feed_forward_width,
            "max_position_embeddings": base.max_length,
            "rms_norm_eps": float(base.norm_epsilon),
            "hidden_act": "silu",
            "attention_bias": False,
            "mlp_bias": False,
            "attention_dropout": base.dropout,
            "rope_theta": float(base.rotary_base),  # version 4; version 5 has the next one
            "rope_parameters": {"rope_type": "default", "rope_theta": float(base.rotary_base)},
            "tie_word_embeddings": True,
        }

    def base_prefix(self, head: HeadConfig | None) -> str:
        return "transformer." if isinstance(head, SpansConfig) else super().base_prefix(head)

    def base_rules(self, base: BaseConfig, prefix: str) -> list[TensorRule]:
        rules = pair("base.embedding", f"{prefix}embed_tokens", bias=False)
        rules += pair("base.final_norm", f"{prefix}norm", bias=False)
        grouped = base.key_value_width
        for number in range(base.layers):
            ours, theirs = f"base.blocks.{number}", f"{prefix}layers.{number}"
            attention, feed_forward = f"{theirs}.self_attn", f"{theirs}.mlp"
            rules += pair(
                f"{ours}.attention.query_key_value",
                *(f"{attention}.{part}_proj" for part in "qkv"),
                bias=False,
                sizes=(base.width, grouped, grouped),
            )
            rules += pair(f"{ours}.attention.output", f"{attention}.o_proj", bias=False)
            gate, up = f"{feed_forward}.gate_proj", f"{feed_forward}.up_proj"
            rules += pair(f"{ours}.feed_forward.up", gate, up, bias=False)
            rules += pair(f"{ours}.feed_forward.down", f"{feed_forward}.down_proj", bias=False)
            rules += pair(f"{ours}.attention_norm", f"{theirs}.input_layernorm", bias=False)
            after = f"{theirs}.post_attention_layernorm"
            rules += pair(f"{ours}.feed_forward_norm", after, bias=False)
        return rules

    def head_rules(self, base: BaseConfig, head: HeadConfig) -> list[TensorRule]:
        if isinstance(head, LanguageModelingConfig):
            return [] if head.tied else pair("head.output", "lm_head", bias=False)
        if isinstance(head, SpansConfig):
            return pair("head.output", "qa_outputs")
        return pair("head.output", "score", bias=isinstance(head, TaggingConfig))

    def read_head(self, kind: str, base: BaseConfig, config: ForeignConfig) -> HeadConfig | None:
        if kind == "language_modeling":
            tied = bool(config.values.get("tie_word_embeddings", False))
            return LanguageModelingConfig(tied=tied)
        if kind == "classification":
            return ClassificationConfig(classes=len(config.labels), pooling="last", bias=False)
        if kind == "tagging":
            return TaggingConfig(tags=len(config.labels))
        return SpansConfig()

    def no_counterpart(self, base: BaseConfig, head: HeadConfig) -> NoCounterpart | None:
        return last_token_head(head)

    def write_head(self, head: HeadConfig) -> dict[str, Any]:
        tied = not isinstance(head, LanguageModelingConfig) or head.tied
        return {"tie_word_embeddings": tied}


def last_token_head(head: HeadConfig) -> NoCounterpart | None:
    """Why a head has no counterpart in a causal model there; None for one that has."""
    if isinstance(head, LanguageModelingConfig):
        if head.bias or head.transform:
            return NoCounterpart("its output layer has a bias or a transform", ONNX)
        return None
    if isinstance(head, ClassificationConfig):
        if head.pooling != "last":
            why = f"it pools by {head.pooling}, and there the last token counts"
            return NoCounterpart(why, OTHER_HEAD)
        if head.bias or head.dense or head.transform:
            return NoCounterpart("there the classes have no bias and no layer before", OTHER_HEAD)
        return None
    if head.transform:
        return NoCounterpart("there no layer stands before the answers", OTHER_HEAD)
    return None


def rotary_base(config: ForeignConfig, default: float) -> float:
    """The base of the rotary angles; other kinds of scaling are a problem."""
    found = config.values.get("rope_parameters") or {}
    scaling = config.values.get("rope_scaling") or found
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind != "default":
        config.problems.append(f"rope_scaling is {kind!r}; Headstart has plain rotary positions")
    if float(found.get("partial_rotary_factor", 1.0)) != 1.0:
        config.problems.append("only a part of each head is rotated; Headstart rotates all of it")
    theta = found.get("rope_theta", config.values.get("rope_theta", default))
    return float(theta)


def _grouped(config: ForeignConfig, heads: int) -> int:
    """How many heads have keys and values of their own; 0 where all have."""
    found = config.whole("num_key_value_heads", heads)
    if heads % found:
        config.problems.append(f"{heads} heads cannot share {found} keys and values evenly")
    return 0 if found == heads else found
