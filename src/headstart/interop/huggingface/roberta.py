"""RoBERTa, CamemBERT and XLM-R: BERT's blocks, with positions that begin behind the padding's."""

from typing import Any, ClassVar

from headstart.interop.huggingface.bert import (
    Bert,
    bert_head_problem,
    like_bert,
    old_names,
    read_bert,
    read_bert_head,
    write_bert,
)
from headstart.interop.huggingface.family import ONNX, NoCounterpart
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


class Roberta(Bert):
    """The positions of a text start at the padding's id + 1; the rows before are not used."""

    model_types: ClassVar[tuple[str, ...]] = ("roberta", "camembert", "xlm-roberta")
    prefix = "roberta."
    architectures: ClassVar[dict[str, str]] = {
        "": "RobertaModel",
        "language_modeling": "RobertaForMaskedLM",
        "classification": "RobertaForSequenceClassification",
        "tagging": "RobertaForTokenClassification",
        "spans": "RobertaForQuestionAnswering",
    }
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
            rules = pair("head.transform.dense", "lm_head.dense")
            rules += pair("head.transform.norm", "lm_head.layer_norm")
            return [*rules, TensorRule("head.output.bias", ("lm_head.bias",))]
        if isinstance(head, ClassificationConfig):
            rules = pair("head.dense", "classifier.dense")
            return rules + pair("head.output", "classifier.out_proj")
        spans = isinstance(head, SpansConfig)
        return pair("head.output", "qa_outputs" if spans else "classifier")

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
