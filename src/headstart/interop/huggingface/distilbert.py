"""DistilBERT: BERT's blocks under other names, without token types and without a pooler."""

from dataclasses import replace
from typing import Any, ClassVar

from headstart.interop.huggingface.bert import (
    BERT_BLOCKS,
    bert_head_problem,
    like_bert,
    read_bert_head,
)
from headstart.interop.huggingface.family import ACTIVATIONS, ONNX, Family, NoCounterpart
from headstart.interop.huggingface.foreign_config import ForeignConfig
from headstart.interop.huggingface.tensors import TensorRule, pair
from headstart.model.config import (
    BaseConfig,
    ClassificationConfig,
    HeadConfig,
    LanguageModelingConfig,
    MaskedNextSentenceConfig,
    SpansConfig,
)

EPSILON = 1e-12  # which is no setting there


class DistilBert(Family):
    """Its classifier has a ReLU where BERT's has a tanh."""

    model_types: ClassVar[tuple[str, ...]] = ("distilbert",)
    prefix = "distilbert."
    architectures: ClassVar[dict[str, str]] = {
        "": "DistilBertModel",
        "language_modeling": "DistilBertForMaskedLM",
        "classification": "DistilBertForSequenceClassification",
        "tagging": "DistilBertForTokenClassification",
        "spans": "DistilBertForQuestionAnswering",
    }
    ignored = (
        r"vocab_projector\.weight",
        r"(distilbert\.)?embeddings\.position_ids",
    )

    def fits(self, base: BaseConfig) -> bool:
        plain = not base.token_types and not base.position_offset
        return like_bert(base) and plain and base.norm_epsilon == EPSILON

    def read_base(self, config: ForeignConfig) -> BaseConfig:
        return BaseConfig(
            vocab_size=config.whole("vocab_size"),
            width=config.whole("dim"),
            layers=config.whole("n_layers"),
            heads=config.whole("n_heads"),
            feed_forward_width=config.whole("hidden_dim"),
            max_length=config.whole("max_position_embeddings", 512),
            norm_epsilon=EPSILON,
            feed_forward=config.choose("activation", ACTIVATIONS, "gelu"),
            dropout=config.number("dropout", 0.1),
            **BERT_BLOCKS,
        )

    def write_base(self, base: BaseConfig) -> dict[str, Any]:
        activations = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
        return {
            "vocab_size": base.vocab_size,
            "dim": base.width,
            "n_layers": base.layers,
            "n_heads": base.heads,
            "hidden_dim": base.feed_forward_width,
            "max_position_embeddings": base.max_length,
            "activation": activations[base.feed_forward],
            "dropout": base.dropout,
            "attention_dropout": base.dropout,
            "sinusoidal_pos_embds": False,
            "tie_word_embeddings": True,
        }

    def base_rules(self, base: BaseConfig, prefix: str) -> list[TensorRule]:
        embeddings = f"{prefix}embeddings"
        rules = pair("base.embedding", f"{embeddings}.word_embeddings", bias=False)
        rules += pair("base.positions", f"{embeddings}.position_embeddings", bias=False)
        rules += pair("base.embedding_norm", f"{embeddings}.LayerNorm")
        for number in range(base.layers):
            ours, theirs = f"base.blocks.{number}", f"{prefix}transformer.layer.{number}"
            parts = (f"{theirs}.attention.{part}_lin" for part in "qkv")
            rules += pair(f"{ours}.attention.query_key_value", *parts)
            rules += pair(f"{ours}.attention.output", f"{theirs}.attention.out_lin")
            rules += pair(f"{ours}.attention_norm", f"{theirs}.sa_layer_norm")
            rules += pair(f"{ours}.feed_forward.up", f"{theirs}.ffn.lin1")
            rules += pair(f"{ours}.feed_forward.down", f"{theirs}.ffn.lin2")
            rules += pair(f"{ours}.feed_forward_norm", f"{theirs}.output_layer_norm")
        return rules

    def head_rules(self, base: BaseConfig, head: HeadConfig) -> list[TensorRule]:
        if isinstance(head, LanguageModelingConfig):
            rules = pair("head.transform.dense", "vocab_transform")
            rules += pair("head.transform.norm", "vocab_layer_norm")
            return [*rules, TensorRule("head.output.bias", ("vocab_projector.bias",))]
        if isinstance(head, SpansConfig):
            return pair("head.output", "qa_outputs")
        rules = pair("head.dense", "pre_classifier") if head.kind == "classification" else []
        return rules + pair("head.output", "classifier")

    def read_head(self, kind: str, base: BaseConfig, config: ForeignConfig) -> HeadConfig | None:
        head = read_bert_head(kind, base, config)
        if isinstance(head, ClassificationConfig):
            dropout = config.number("seq_classif_dropout", 0.2)
            return replace(head, dense_activation="relu", dropout=dropout)
        return head

    def no_counterpart(self, base: BaseConfig, head: HeadConfig) -> NoCounterpart | None:
        if isinstance(head, MaskedNextSentenceConfig):
            return NoCounterpart("DistilBERT has no next sentence", ONNX)
        return bert_head_problem(base, head, "relu")

    def write_head(self, head: HeadConfig) -> dict[str, Any]:
        if not isinstance(head, ClassificationConfig):
            return {}
        return {"seq_classif_dropout": head.dropout}
