"""BERT and what is built like it (MiniLM): learned positions, norms after the sums, token types."""

from typing import Any, ClassVar

from headstart.interop.huggingface.family import (
    ACTIVATION_NAMES,
    ACTIVATIONS,
    ENCODER,
    ONNX,
    OTHER_HEAD,
    Family,
    NoCounterpart,
    answer_rules,
)
from headstart.interop.huggingface.foreign_config import ForeignConfig
from headstart.interop.huggingface.tensors import TensorRule, pair
from headstart.model.config import (
    BaseConfig,
    ClassificationConfig,
    HeadConfig,
    LanguageModelingConfig,
    MaskedNextSentenceConfig,
    SpansConfig,
    TaggingConfig,
)


class Bert(Family):
    """The preset `bert` is one."""

    model_types: ClassVar[tuple[str, ...]] = ("bert",)
    prefix = "bert."
    class_name = "Bert"
    endings: ClassVar[dict[str, str]] = {**ENCODER, "masked_next_sentence": "ForPreTraining"}
    ignored: ClassVar[tuple[str, ...]] = (
        r"(bert\.)?embeddings\.position_ids",
        r"(bert\.)?pooler\..*",
        r"cls\.seq_relationship\..*",
        r"cls\.predictions\.decoder\.(weight|bias)",
    )
    token_types = True

    def fits(self, base: BaseConfig) -> bool:
        return like_bert(base) and base.token_types > 0 and not base.position_offset

    def read_base(self, config: ForeignConfig) -> BaseConfig:
        return read_bert(config)

    def write_base(self, base: BaseConfig) -> dict[str, Any]:
        return write_bert(base)

    def base_rules(self, base: BaseConfig, prefix: str) -> list[TensorRule]:
        embeddings = f"{prefix}embeddings"
        rules = pair("base.embedding", f"{embeddings}.word_embeddings", bias=False)
        rules += pair("base.positions", f"{embeddings}.position_embeddings", bias=False)
        rules += pair("base.token_types", f"{embeddings}.token_type_embeddings", bias=False)
        rules += pair("base.embedding_norm", f"{embeddings}.LayerNorm")
        for number in range(base.layers):
            ours, theirs = f"base.blocks.{number}", f"{prefix}encoder.layer.{number}"
            parts = (f"{theirs}.attention.self.{part}" for part in ("query", "key", "value"))
            rules += pair(f"{ours}.attention.query_key_value", *parts)
            rules += pair(f"{ours}.attention.output", f"{theirs}.attention.output.dense")
            rules += pair(f"{ours}.attention_norm", f"{theirs}.attention.output.LayerNorm")
            rules += pair(f"{ours}.feed_forward.up", f"{theirs}.intermediate.dense")
            rules += pair(f"{ours}.feed_forward.down", f"{theirs}.output.dense")
            rules += pair(f"{ours}.feed_forward_norm", f"{theirs}.output.LayerNorm")
        return rules

    def head_rules(self, base: BaseConfig, head: HeadConfig) -> list[TensorRule]:
        if isinstance(head, MaskedNextSentenceConfig):
            rules = self.head_rules(base, LanguageModelingConfig())
            rules += pair("head.next_sentence.dense", "bert.pooler.dense")
            # There 0 means "follows", here 1 does.
            for part in ("weight", "bias"):
                names = (f"cls.seq_relationship.{part}",)
                rules.append(TensorRule(f"head.next_sentence.output.{part}", names, reversed=True))
            return rules
        if isinstance(head, LanguageModelingConfig):
            theirs = "cls.predictions"
            return piece_rules(f"{theirs}.transform.dense", f"{theirs}.transform.LayerNorm", theirs)
        if isinstance(head, ClassificationConfig):
            return pair("head.dense", "bert.pooler.dense") + pair("head.output", "classifier")
        return answer_rules(head)

    def read_head(self, kind: str, base: BaseConfig, config: ForeignConfig) -> HeadConfig | None:
        if kind == "masked_next_sentence":
            return MaskedNextSentenceConfig() if _predicts_alike(base, config) else None
        return read_bert_head(kind, base, config)

    def no_counterpart(self, base: BaseConfig, head: HeadConfig) -> NoCounterpart | None:
        return bert_head_problem(base, head)

    def aliases(self, names: set[str]) -> dict[str, str]:
        return old_names(names, "cls.predictions.bias", "cls.predictions.decoder.bias")


def piece_rules(dense: str, norm: str, output: str) -> list[TensorRule]:
    """The head that scores pieces: a dense layer, a norm, and a bias for the tied output layer."""
    rules = pair("head.transform.dense", dense) + pair("head.transform.norm", norm)
    return [*rules, TensorRule("head.output.bias", (f"{output}.bias",))]


def like_bert(base: BaseConfig) -> bool:
    """Whether a base has BERT's blocks, whatever its embeddings add."""
    return (
        base.attention == "bidirectional"
        and (base.positions, base.norm, base.norm_place) == ("learned", "layer", "after")
        and not (base.gated or base.embedding_scale or base.key_value_heads)
        and base.biases
        and base.embedding_norm
    )


def read_bert(config: ForeignConfig, **more: Any) -> BaseConfig:
    """The base of a config with BERT's names."""
    for name in ("is_decoder", "add_cross_attention"):
        config.expect(name, False, "Headstart's encoders look at one text, from both sides")
    config.expect("position_embedding_type", "absolute", "Headstart has absolute positions here")
    return BaseConfig(
        **{
            "vocab_size": config.whole("vocab_size"),
            "width": config.whole("hidden_size"),
            "layers": config.whole("num_hidden_layers"),
            "heads": config.whole("num_attention_heads"),
            "feed_forward_width": config.whole("intermediate_size"),
            "max_length": config.whole("max_position_embeddings", 512),
            "norm_epsilon": config.number("layer_norm_eps", 1e-12),
            "feed_forward": config.choose("hidden_act", ACTIVATIONS, "gelu"),
            "token_types": config.whole("type_vocab_size", 2),
            "dropout": config.number("hidden_dropout_prob", 0.1),
            **BERT_BLOCKS,
            **more,
        }
    )


BERT_BLOCKS: dict[str, Any] = {
    "attention": "bidirectional",
    "positions": "learned",
    "norm": "layer",
    "norm_place": "after",
    "biases": True,
    "embedding_norm": True,
}


def write_bert(base: BaseConfig) -> dict[str, Any]:
    """A base in BERT's names."""
    return {
        "vocab_size": base.vocab_size,
        "hidden_size": base.width,
        "num_hidden_layers": base.layers,
        "num_attention_heads": base.heads,
        "intermediate_size": base.feed_forward_width,
        "max_position_embeddings": base.max_length + base.position_offset,
        "layer_norm_eps": float(base.norm_epsilon),
        "hidden_act": ACTIVATION_NAMES[base.feed_forward],
        "type_vocab_size": base.token_types,
        "hidden_dropout_prob": base.dropout,
        "attention_probs_dropout_prob": base.dropout,
        "tie_word_embeddings": True,
    }


def _predicts_alike(base: BaseConfig, config: ForeignConfig) -> bool:
    """Whether the layer before BERT's output layer has our activation, and the output is tied."""
    tied = config.values.get("tie_word_embeddings", True) is not False
    return base.feed_forward == "gelu" and tied


def read_bert_head(kind: str, base: BaseConfig, config: ForeignConfig) -> HeadConfig | None:
    """The heads that BERT and RoBERTa have alike."""
    if kind == "language_modeling":
        known = _predicts_alike(base, config)
        return LanguageModelingConfig(bias=True, transform=True) if known else None
    if kind == "classification":
        return ClassificationConfig(
            classes=len(config.labels), pooling="first", dense=True, dropout=base.dropout
        )
    if kind == "tagging":
        return TaggingConfig(tags=len(config.labels), dropout=base.dropout)
    return SpansConfig() if kind == "spans" else None


def bert_head_problem(
    base: BaseConfig, head: HeadConfig, activation: str = "tanh"
) -> NoCounterpart | None:
    """Why a head has no counterpart in BERT, RoBERTa or, with a ReLU, in DistilBERT."""
    if isinstance(head, LanguageModelingConfig):
        if not (head.tied and head.bias and head.transform and base.feed_forward == "gelu"):
            return NoCounterpart("there it is tied, with a bias and a GELU before it", ONNX)
        return None
    if isinstance(head, ClassificationConfig):
        plain = head.pooling == "first" and head.dense and head.bias and not head.transform
        if not plain or head.dense_activation != activation:
            why = f"there the first token counts, with a dense layer and {activation} before the "
            return NoCounterpart(f"{why}classes", OTHER_HEAD)
        return None
    if head.transform:
        return NoCounterpart("there no layer stands before the answers", OTHER_HEAD)
    return None


def old_names(names: set[str], bias: str, decoder_bias: str) -> dict[str, str]:
    """Files of the first years: gamma and beta, and the output's bias under its layer."""
    found = {
        name: f"{name.removesuffix(old)}{new}"
        for old, new in (
            ("LayerNorm.gamma", "LayerNorm.weight"),
            ("LayerNorm.beta", "LayerNorm.bias"),
        )
        for name in names
        if name.endswith(old)
    }
    if bias not in names and decoder_bias in names:
        found[decoder_bias] = bias
    return found
