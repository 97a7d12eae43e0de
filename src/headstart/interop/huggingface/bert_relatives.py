"""RoBERTa (CamemBERT, XLM-R) and DistilBERT: BERT's blocks with other embeddings and names."""

from dataclasses import replace
from typing import Any, ClassVar

from headstart.interop.huggingface.bert import (
    BERT_BLOCKS,
    Bert,
    bert_head_problem,
    like_bert,
    old_names,
    piece_rules,
    read_bert,
    read_bert_head,
    write_bert,
)
from headstart.interop.huggingface.family import (
    ACTIVATION_NAMES,
    ACTIVATIONS,
    ENCODER,
    ONNX,
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
)

DISTILBERT_EPSILON = 1e-12  # which is no setting there


class Roberta(Bert):
    """The positions of a text start at the padding's id + 1; the rows before are not used."""

    model_types: ClassVar[tuple[str, ...]] = ("roberta", "camembert", "xlm-roberta")
    prefix = "roberta."
    class_name = "Roberta"
    endings: ClassVar[dict[str, str]] = ENCODER
    ignored: ClassVar[tuple[str, ...]] = (
        r"(roberta\.)?embeddings\.position_ids",
        r"(roberta\.)?pooler\..*",
        r"lm_head\.decoder\.(weight|bias)",
    )
    token_types = False

    def fits(self, base: BaseConfig) -> bool:
        return like_bert(base) and base.token_types > 0 and base.position_offset > 0

    def read_base(self, config: ForeignConfig) -> BaseConfig:
        padding = config.values.get("pad_token_id", 1)
        offset = (padding if isinstance(padding, int) else 1) + 1
        rows = config.whole("max_position_embeddings", 514)
        if rows <= offset:
            config.problems.append(f"{rows} positions, of which the first {offset} are not used")
        return read_bert(config, max_length=max(rows - offset, 1), position_offset=offset)

    def write_base(self, base: BaseConfig) -> dict[str, Any]:
        return {**write_bert(base), "pad_token_id": base.position_offset - 1}

    def head_rules(self, base: BaseConfig, head: HeadConfig) -> list[TensorRule]:
        if isinstance(head, LanguageModelingConfig):
            return piece_rules("lm_head.dense", "lm_head.layer_norm", "lm_head")
        if isinstance(head, ClassificationConfig):
            rules = pair("head.dense", "classifier.dense")
            return rules + pair("head.output", "classifier.out_proj")
        return answer_rules(head)

    def read_head(self, kind: str, base: BaseConfig, config: ForeignConfig) -> HeadConfig | None:
        return read_bert_head(kind, base, config)

    def no_counterpart(self, base: BaseConfig, head: HeadConfig) -> NoCounterpart | None:
        if isinstance(head, MaskedNextSentenceConfig):
            return NoCounterpart("RoBERTa has no next sentence", "pretrain with --objective masked")
        return bert_head_problem(base, head)

    def pad_problem(self, base: BaseConfig, pad_id: int | None) -> NoCounterpart | None:
        if pad_id == base.position_offset - 1:
            return None
        return NoCounterpart(
            f"there positions begin at the padding's id + 1, which is {base.position_offset} in "
            f"this base, and its tokenizer's padding has the id {pad_id}",
            ONNX,
        )

    def aliases(self, names: set[str]) -> dict[str, str]:
        return old_names(names, "lm_head.bias", "lm_head.decoder.bias")


class DistilBert(Family):
    """Its classifier has a ReLU where BERT's has a tanh."""

    model_types: ClassVar[tuple[str, ...]] = ("distilbert",)
    prefix = "distilbert."
    class_name = "DistilBert"
    ignored = (
        r"vocab_projector\.weight",
        r"(distilbert\.)?embeddings\.position_ids",
    )

    def fits(self, base: BaseConfig) -> bool:
        plain = not base.token_types and not base.position_offset
        return like_bert(base) and plain and base.norm_epsilon == DISTILBERT_EPSILON

    def read_base(self, config: ForeignConfig) -> BaseConfig:
        return BaseConfig(
            vocab_size=config.whole("vocab_size"),
            width=config.whole("dim"),
            layers=config.whole("n_layers"),
            heads=config.whole("n_heads"),
            feed_forward_width=config.whole("hidden_dim"),
            max_length=config.whole("max_position_embeddings", 512),
            norm_epsilon=DISTILBERT_EPSILON,
            feed_forward=config.choose("activation", ACTIVATIONS, "gelu"),
            dropout=config.number("dropout", 0.1),
            **BERT_BLOCKS,
        )

    def write_base(self, base: BaseConfig) -> dict[str, Any]:
        return {
            "vocab_size": base.vocab_size,
            "dim": base.width,
            "n_layers": base.layers,
            "n_heads": base.heads,
            "hidden_dim": base.feed_forward_width,
            "max_position_embeddings": base.max_length,
            "activation": ACTIVATION_NAMES[base.feed_forward],
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
            return piece_rules("vocab_transform", "vocab_layer_norm", "vocab_projector")
        rules = pair("head.dense", "pre_classifier") if head.kind == "classification" else []
        return rules + answer_rules(head)

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
