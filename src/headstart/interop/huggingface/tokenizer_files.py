"""A run's tokenizer as `transformers` reads it: the same ids, and the same frame around a text."""

import json
from typing import Any

import tokenizers
from tokenizers import processors

from headstart.data.tokenizers import LabTokenizer
from headstart.errors import HeadstartError
from headstart.run import NetworkRun
from headstart.tasks.examples import between_texts

# Our roles and the names that transformers has for them. A text's begin and end are BERT's CLS
# and SEP.
ROLES = {
    "pad": ("pad_token",),
    "unknown": ("unk_token",),
    "begin": ("bos_token", "cls_token"),
    "end": ("eos_token",),
    "mask": ("mask_token",),
    "separator": ("sep_token",),
}

TextFrame = tuple[list[int], list[int], list[int]]


def tokenizer_files(run: NetworkRun, *, inputs: list[str]) -> dict[str, str]:
    """The content of `tokenizer.json` and `tokenizer_config.json`.

    Parameters
    ----------
    run : NetworkRun
    inputs : list of str
        What the model is given: `input_ids`, `attention_mask`, and perhaps `token_type_ids`.
    """
    if isinstance(run.tokenizer, LabTokenizer):
        raise HeadstartError(
            "transformers reads tokenizers of the form tokenizer.json, and this run has another",
            where=run.folder,
            fix="export it with --to onnx, or pretrain with a tokenizer of headstart tokenizer",
        )
    settings = json.loads(run.tokenizer.to_json())
    inner = tokenizers.Tokenizer.from_str(json.dumps(settings))
    wanted = _frame(run)
    if not _frames_alike(inner, wanted):
        inner.post_processor = _template(inner, wanted)
    length = run.model.base.config.max_length if run.task is None else run.length
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": length,
        "model_input_names": inputs,
        "padding_side": "right",
        "clean_up_tokenization_spaces": False,
        **_special_names(run, inner),
    }
    return {
        "tokenizer.json": inner.to_str(pretty=True),
        "tokenizer_config.json": json.dumps(config, indent=2, ensure_ascii=False) + "\n",
    }


def _frame(run: NetworkRun) -> TextFrame:
    """What stands before a text, between two, and behind; a causal base's prompt has no end."""
    encoding = run.encoding
    writes = run.causal and run.task is None
    return encoding.before, between_texts(encoding), [] if writes else encoding.after


def _frames_alike(inner: tokenizers.Tokenizer, frame: TextFrame) -> bool:
    before, between, after = frame
    one, two = (inner.encode(text, add_special_tokens=False).ids for text in ("a", "b"))
    return (
        inner.encode("a").ids == before + one + after
        and inner.encode("a", "b").ids == before + one + between + two + after
    )


def _template(inner: tokenizers.Tokenizer, frame: TextFrame) -> processors.PostProcessor:
    before, between, after = ([str(inner.id_to_token(i)) for i in ids] for ids in frame)
    ids = {number for part in frame for number in part}
    used = {str(inner.id_to_token(number)): number for number in ids}
    template = processors.TemplateProcessing(
        single=[*before, "$A", *after],
        pair=[*before, "$A", *between, "$B:1", *(f"{name}:1" for name in after)],
        special_tokens=list(used.items()),
    )
    own: Any = inner.post_processor
    # Byte-level tokenizers keep theirs, which only says where in the text a piece stands.
    if own is not None and type(own).__name__ == "ByteLevel":
        return processors.Sequence([own, template])
    return template


def _special_names(run: NetworkRun, inner: tokenizers.Tokenizer) -> dict[str, str]:
    numbers = {**run.tokenizer.specials, "unknown": run.tokenizer.unknown_id}
    return {
        name: str(inner.id_to_token(number))
        for role, names in ROLES.items()
        if (number := numbers.get(role)) is not None
        for name in names
    }
