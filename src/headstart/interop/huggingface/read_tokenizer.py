"""The tokenizer of a folder in Hugging Face's form, with its own ids."""

import json
from pathlib import Path
from typing import Any

import tokenizers

from headstart.data.tokenizers import Tokenizer
from headstart.errors import HeadstartError
from headstart.interop.huggingface.foreign_config import ForeignConfig


def read_tokenizer(folder: Path, config: ForeignConfig) -> Tokenizer:
    """Read `tokenizer.json`, or make it from the older files of BERT and GPT-2."""
    path = folder / "tokenizer.json"
    if path.is_file():
        return Tokenizer.read(path)
    try:
        if (folder / "vocab.txt").is_file():
            return Tokenizer(_word_pieces(folder))
        if (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
            return Tokenizer(_byte_pairs(folder))
    except HeadstartError:
        raise
    except Exception as error:  # the library raises bare exceptions
        raise HeadstartError(f"the tokenizer cannot be read: {error}", where=folder) from error
    raise HeadstartError(
        "there is no tokenizer.json here",
        where=folder,
        fix="save it there: AutoTokenizer.from_pretrained(NAME).save_pretrained(FOLDER)",
    )


def _settings(folder: Path) -> dict[str, Any]:
    path = folder / "tokenizer_config.json"
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise HeadstartError(f"{path.name} is damaged: {error}", where=path) from None
    return found if isinstance(found, dict) else {}


def _word_pieces(folder: Path) -> tokenizers.Tokenizer:
    """BERT's: `vocab.txt` has one piece per line."""
    from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer

    given = _settings(folder)
    made = BertWordPieceTokenizer(
        str(folder / "vocab.txt"),
        lowercase=bool(given.get("do_lower_case", True)),
        strip_accents=given.get("strip_accents"),
        handle_chinese_chars=bool(given.get("tokenize_chinese_chars", True)),
    )
    return made._tokenizer


def _byte_pairs(folder: Path) -> tokenizers.Tokenizer:
    """GPT-2's: pieces with their ids, and the merges that make them."""
    from tokenizers.implementations.byte_level_bpe import ByteLevelBPETokenizer

    prefix = bool(_settings(folder).get("add_prefix_space", False))
    made = ByteLevelBPETokenizer(
        str(folder / "vocab.json"), str(folder / "merges.txt"), add_prefix_space=prefix
    )
    known = made.get_vocab()
    names = ("<s>", "<pad>", "</s>", "<unk>", "<mask>", "<|endoftext|>")
    made.add_special_tokens([name for name in names if name in known])
    return made._tokenizer
