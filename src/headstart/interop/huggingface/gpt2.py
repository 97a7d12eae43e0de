"""GPT-2: learned positions, norms before the parts, matrices stored the other way round."""

from typing import Any, ClassVar

from headstart.interop.huggingface.family import (
    ACTIVATION_NAMES,
    ACTIVATIONS,
    ENCODER,
    Family,
    NoCounterpart,
    answer_rules,
)
from headstart.interop.huggingface.foreign_config import ForeignConfig
from headstart.interop.huggingface.llama import last_token_head
from headstart.interop.huggingface.tensors import TensorRule, pair
from headstart.model.config import (
    BaseConfig,
    ClassificationConfig,
    HeadConfig,
    LanguageModelingConfig,
    SpansConfig,
    TaggingConfig,
)


class Gpt2(Family):
    """The preset `gpt2` is one."""

    model_types: ClassVar[tuple[str, ...]] = ("gpt2",)
    prefix = "transformer."
    class_name = "GPT2"
    endings: ClassVar[dict[str, str]] = {**ENCODER, "language_modeling": "LMHeadModel"}
    ignored = (r"(transformer\.)?h\.\d+\.attn\.(masked_)?bias", r"lm_head\.weight")

    def fits(self, base: BaseConfig) -> bool:
        return (
            base.attention == "causal"
            and (base.positions, base.norm, base.norm_place) == ("learned", "layer", "before")
            and not (base.gated or base.embedding_scale or base.embedding_norm or base.token_types)
            and not (base.key_value_heads or base.position_offset)
            and base.biases
        )

    def read_base(self, config: ForeignConfig) -> BaseConfig:
        width = config.whole("n_embd")
        plain = "Headstart divides by the root of a head's width, and by nothing else"
        config.expect("scale_attn_weights", True, plain)
        config.expect("scale_attn_by_inverse_layer_idx", False, plain)
        config.expect("add_cross_attention", False, "Headstart looks at one text")
        return BaseConfig(
            vocab_size=config.whole("vocab_size"),
            width=width,
            layers=config.whole("n_layer"),
            heads=config.whole("n_head"),
            feed_forward_width=config.whole("n_inner", 4 * width),
            max_length=config.whole("n_positions", 1024),
            positions="learned",
            norm="layer",
            norm_epsilon=config.number("layer_norm_epsilon", 1e-5),
            feed_forward=config.choose("activation_function", ACTIVATIONS, "gelu_new"),
            biases=True,
            dropout=config.number("resid_pdrop", 0.1),
        )

    def write_base(self, base: BaseConfig) -> dict[str, Any]:
        return {
            "vocab_size": base.vocab_size,
            "n_embd": base.width,
            "n_layer": base.layers,
            "n_head": base.heads,
            "n_inner": base.feed_forward_width,
            "n_positions": base.max_length,
            "n_ctx": base.max_length,
            "layer_norm_epsilon": float(base.norm_epsilon),
            "activation_function": ACTIVATION_NAMES[base.feed_forward],
            "resid_pdrop": base.dropout,
            "embd_pdrop": base.dropout,
            "attn_pdrop": base.dropout,
            "tie_word_embeddings": True,
        }

    def base_rules(self, base: BaseConfig, prefix: str) -> list[TensorRule]:
        rules = pair("base.embedding", f"{prefix}wte", bias=False)
        rules += pair("base.positions", f"{prefix}wpe", bias=False)
        rules += pair("base.final_norm", f"{prefix}ln_f")
        for number in range(base.layers):
            ours, theirs = f"base.blocks.{number}", f"{prefix}h.{number}"
            joined = f"{theirs}.attn.c_attn"
            rules += pair(f"{ours}.attention.query_key_value", joined, transposed=True)
            rules += pair(f"{ours}.attention.output", f"{theirs}.attn.c_proj", transposed=True)
            rules += pair(f"{ours}.feed_forward.up", f"{theirs}.mlp.c_fc", transposed=True)
            rules += pair(f"{ours}.feed_forward.down", f"{theirs}.mlp.c_proj", transposed=True)
            rules += pair(f"{ours}.attention_norm", f"{theirs}.ln_1")
            rules += pair(f"{ours}.feed_forward_norm", f"{theirs}.ln_2")
        return rules

    def head_rules(self, base: BaseConfig, head: HeadConfig) -> list[TensorRule]:
        if isinstance(head, LanguageModelingConfig):
            return []  # tied
        if isinstance(head, ClassificationConfig):
            return pair("head.output", "score", bias=False)
        return answer_rules(head)

    def read_head(self, kind: str, base: BaseConfig, config: ForeignConfig) -> HeadConfig | None:
        if kind == "language_modeling":
            tied = config.values.get("tie_word_embeddings", True) is not False
            return LanguageModelingConfig() if tied else None
        if kind == "classification":
            return ClassificationConfig(classes=len(config.labels), pooling="last", bias=False)
        if kind == "tagging":
            return TaggingConfig(tags=len(config.labels), dropout=base.dropout)
        return SpansConfig()

    def no_counterpart(self, base: BaseConfig, head: HeadConfig) -> NoCounterpart | None:
        return last_token_head(head)
