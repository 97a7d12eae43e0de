"""What every tokenizer can do, and how one is found in a file.

Text never becomes a special id: a document that spells "[MASK]" is tokenized letter by letter, so
that no input can pose as the end of a text or as something to be predicted.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headstart.errors import HeadstartError

Tokens = NDArray[np.unsignedinteger]

SENTENCEPIECE_SUFFIX = ".model"  # the lab's .spm files are texts

# What the special tokens are called in existing vocabularies. Ours come first. BERT's [CLS] and
# [SEP] open and close a text; RoBERTa's </s> also separates.
SPECIAL_NAMES = {
    "pad": ("[PAD]", "<pad>", "<|pad|>", "<|padding|>"),
    "unknown": ("[UNK]", "<unk>", "<|unk|>"),
    "begin": ("[BOS]", "<s>", "<bos>", "<|begin_of_text|>", "[CLS]"),
    "end": ("[EOS]", "</s>", "<eos>", "<|end_of_text|>", "<|endoftext|>", "[SEP]"),
    "mask": ("[MASK]", "<mask>", "<|mask|>"),
    "separator": ("[SEP]", "<sep>", "</s>"),
}


class Tokenizer(ABC):
    """Text to ids and back. An id of a special that the tokenizer does not have is `None`."""

    vocab_size: int
    pad_id: int | None = None
    unknown_id: int | None = None
    begin_id: int | None = None
    end_id: int | None = None
    mask_id: int | None = None
    separator_id: int | None = None
    separators: int = 1  # that stand between the two texts of a pair (RoBERTa: 2)

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Equal for two tokenizers that give the same ids for every text."""

    @abstractmethod
    def encode_arrays(self, texts: Sequence[str]) -> list[Tokens]:
        """The ids of each text as an array of `dtype`, without specials around them."""

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`; specials are left out."""

    @abstractmethod
    def pieces(self, text: str) -> list[str]:
        """What `text` is cut into, readable, one piece an id."""

    @abstractmethod
    def vocabulary(self) -> list[str]:
        """Every piece by its id, readable; a word's beginning is a space, however it is marked."""

    @abstractmethod
    def save(self, path: Path) -> Path:
        """Write the file that `load_tokenizer` reads; in a folder, under the usual name."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, without specials around them."""
        return [array.tolist() for array in self.encode_arrays(texts)]

    @property
    def dtype(self) -> np.dtype[np.unsignedinteger]:
        """The smallest type that holds every id; little-endian, so that files travel."""
        return np.dtype("<u2" if self.vocab_size <= 1 << 16 else "<u4")

    @property
    def specials(self) -> dict[str, int]:
        """The ids that text can never become, by role. Unknown is not one: text does become it."""
        ids = {
            "pad": self.pad_id,
            "begin": self.begin_id,
            "end": self.end_id,
            "mask": self.mask_id,
            "separator": self.separator_id,
        }
        return {role: number for role, number in ids.items() if number is not None}

    @cached_property
    def _special_ids(self) -> frozenset[int]:
        return frozenset(self.specials.values())

    def _without_specials(self, ids: list[int]) -> list[int]:
        """`ids` of a text, where a special that the text spelled becomes unknown.

        Byte-level tokenizers never need it; vocabularies of whole words (and SentencePiece's
        user-defined symbols) do.
        """
        specials = self._special_ids
        if specials.isdisjoint(ids):
            return ids
        if self.unknown_id is None:
            return [number for number in ids if number not in specials]
        return [self.unknown_id if number in specials else number for number in ids]


@dataclass(frozen=True)
class TokenizerFormat:
    """A kind of tokenizer file, and how it is read.

    Parameters
    ----------
    suffix : str
        Files with such names are given to `read`; of several formats the longest suffix wins.
    pattern : str
        The name (or a glob) under which the file is found in a folder, such as a run's.
        `Tokenizer.save` must write a file of that name when it is given a folder.
    read : callable
        Makes the tokenizer from the path of its file.
    """

    suffix: str
    pattern: str
    read: Callable[[Path], Tokenizer]


def _read_json(path: Path) -> Tokenizer:
    # The libraries take a while to import, and a file needs only one of them.
    from headstart.text.tokenizers.json_tokenizer import JsonTokenizer

    return JsonTokenizer.read(path)


def _read_sentencepiece(path: Path) -> Tokenizer:
    from headstart.text.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer

    return SentencePieceTokenizer(path.read_bytes(), where=path)


def _formats() -> list[TokenizerFormat]:
    from headstart.lab.files import TOKENIZER as LAB  # which imports this module

    # The lab before SentencePiece: it has a SentencePiece model next to its dictionary.
    return [
        TokenizerFormat(".json", "tokenizer.json", _read_json),
        LAB,
        TokenizerFormat(SENTENCEPIECE_SUFFIX, f"*{SENTENCEPIECE_SUFFIX}", _read_sentencepiece),
    ]


def load_tokenizer(path: Path | str) -> Tokenizer:
    """Read a tokenizer from its file, or from a folder that holds one.

    Known are `tokenizer.json`, a SentencePiece `.model` and the lab's `dict.txt`.
    """
    path = Path(path)
    if path.is_dir():
        for known in _formats():
            if found := sorted(path.glob(known.pattern)):
                return known.read(found[0])
        raise HeadstartError(
            "the folder holds no tokenizer",
            where=path,
            fix="make one with: headstart tokenizer CORPUS --out tokenizer.json",
        )
    if not path.is_file():
        raise HeadstartError(
            "there is no such tokenizer file",
            where=path,
            fix="check the path, or make one with: headstart tokenizer CORPUS --out FILE",
        )
    fitting = [known for known in _formats() if path.name.endswith(known.suffix)]
    if not fitting:
        raise HeadstartError(
            f"{path.name} is not a tokenizer that Headstart knows",
            where=path,
            fix="give a tokenizer.json, a SentencePiece .model or a dict.txt",
        )
    return max(fitting, key=lambda known: len(known.suffix)).read(path)


def hash_of(*parts: bytes) -> str:
    """A fingerprint of several contents, none of which can leak into the next."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()
