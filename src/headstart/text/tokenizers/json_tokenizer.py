"""A tokenizer of the `tokenizers` library: the ones we train, and any `tokenizer.json`.

Byte-level tokenizers first cut a text with GPT-2's pattern, then tokenize every part on its own.
So a text may be taken apart wherever that pattern surely cuts, each part looked up or tokenized by
itself, and the ids joined: the result is the same, and looking up is much faster than tokenizing
(bench/store.py measures it). Only cuts that hold in every version of Unicode are used:

- after a run of Latin or Cyrillic letters, of ASCII digits, or of ASCII marks without the
  apostrophe (which begins parts such as "'ll"), where the next character is ASCII and of another
  kind;
- before a single space between two visible characters. What lies between such cuts (other
  scripts, line breaks, several spaces) stays together, and a script without spaces is simply
  tokenized as a whole.
"""

import json
import re
from array import array
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers

from headstart.errors import HeadstartError
from headstart.files import write_text
from headstart.text.tokenizers.probe import check_tokenizer_file
from headstart.text.tokenizers.tokenizer import SPECIAL_NAMES, Tokenizer, Tokens, hash_of

_LETTERS = "A-Za-zÀ-ÖØ-öø-ɏЀ-ҁ"
_MARKS = r"!-&(-/:-@\[-`{-~"
_VISIBLE = r"[!-~\w]"  # characters that no version of Unicode calls a space
_PART = re.compile(
    rf" ?[{_LETTERS}]++(?=[ -@\[-`{{-~\n]|\Z)"
    rf"| ?[{_MARKS}]++(?=[ \nA-Za-z0-9]|\Z)"
    r"| ?[0-9]++(?=[ -/:-~\n]|\Z)"
    rf"|(?s:.+?)(?:(?<={_VISIBLE})(?= {_VISIBLE})|\Z)"
)

# The cache starts anew when it has grown to about this size.
_MOST_BYTES = 48 << 20
_BYTES_OF_A_PART = 160  # two Python objects and their place in the dictionary


class WordCache:
    """The ids of words, kept as bytes that only need joining. Threads may share it."""

    def __init__(
        self,
        encode: Callable[[list[str]], list[list[int]]],
        dtype: np.dtype[np.unsignedinteger],
    ) -> None:
        self._encode = encode
        self._dtype = dtype
        self._typecode = "H" if dtype.itemsize == 2 else "I"
        self._known: dict[str, bytes] = {}
        self._bytes = 0

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        """The ids of each text: the same as tokenizing it in one go."""
        known = self._known  # another thread may start a new one meanwhile
        parts = [_PART.findall(text) for text in texts]
        self._learn(known, list(set().union(*parts).difference(known)))
        ids = [b"".join(map(known.__getitem__, parts_of_text)) for parts_of_text in parts]
        if self._bytes > _MOST_BYTES:
            self._known, self._bytes = {}, 0
        return [np.frombuffer(ids_of_text, self._dtype) for ids_of_text in ids]

    def _learn(self, known: dict[str, bytes], parts: list[str]) -> None:
        for part, ids in zip(parts, self._encode(parts), strict=True):
            known[part] = array(self._typecode, ids).tobytes()
            self._bytes += _BYTES_OF_A_PART + 6 * len(part)


_PARTS_AT_ONCE = 512

# Byte-level vocabularies spell a byte as one character: itself where that can be seen, otherwise
# one of those from 256 on, in order.
_SEEN = {*range(33, 127), *range(161, 173), *range(174, 256)}
_BYTES = {chr(byte): byte for byte in _SEEN} | {
    chr(256 + place): byte for place, byte in enumerate(sorted({*range(256)} - _SEEN))
}


class JsonTokenizer(Tokenizer):
    """Wraps a `tokenizers.Tokenizer`; text is never cut to a length, padded or read as specials."""

    def __init__(self, inner: tokenizers.Tokenizer) -> None:
        inner.no_truncation()
        inner.no_padding()
        # Text that spells a special stays text. The library does not keep this in its file.
        inner.encode_special_tokens = True
        self._inner = inner
        self._settings: dict[str, Any] = json.loads(inner.to_str())
        self.vocab_size = max(inner.get_vocab(with_added_tokens=True).values(), default=-1) + 1
        names = {token["content"] for token in self._settings["added_tokens"] if token["special"]}
        for role, candidates in SPECIAL_NAMES.items():
            name = next((name for name in candidates if name in names), None)
            if role == "unknown" and name is None:
                name = self._unknown_of_model()
            setattr(self, f"{role}_id", None if name is None else inner.token_to_id(name))
        self._read_template(names)
        self._cache = WordCache(self._encode_parts, self.dtype) if self._may_be_cut() else None

    @classmethod
    def read(cls, path: Path) -> "JsonTokenizer":
        """Read a `tokenizer.json`."""
        try:
            inner = tokenizers.Tokenizer.from_file(str(path))
            check_tokenizer_file(path)
            return cls(inner)
        except HeadstartError:
            raise
        except Exception as error:  # the library raises bare exceptions
            raise HeadstartError(
                f"this is not a tokenizer.json: {error}",
                where=path,
                fix="give a file that the tokenizers library wrote",
            ) from error

    @cached_property
    def fingerprint(self) -> str:
        return hash_of(b"tokenizers", self._inner.to_str().encode())

    def encode_arrays(self, texts: Sequence[str]) -> list[Tokens]:
        if self._cache is not None:
            return self._cache.encode(texts)
        return [np.array(ids, dtype=self.dtype) for ids in self._encode_whole(list(texts))]

    def decode(self, ids: Sequence[int]) -> str:
        return self._inner.decode(list(ids), skip_special_tokens=True)

    def pieces(self, text: str) -> list[str]:
        return [self._piece(number) for number in self.encode([text])[0]]

    def vocabulary(self) -> list[str]:
        specials = self._special_ids
        return [
            (self._inner.id_to_token(number) or "")
            if number in specials
            else self._piece(number).replace("▁", " ")
            for number in range(self.vocab_size)
        ]

    def save(self, path: Path) -> Path:
        path = path / "tokenizer.json" if path.is_dir() else path
        write_text(path, self.to_json())
        return path

    def to_json(self) -> str:
        """The content of its `tokenizer.json`."""
        return self._inner.to_str(pretty=True)

    def _encode_whole(self, texts: list[str]) -> list[list[int]]:
        encodings = self._inner.encode_batch_fast(texts, add_special_tokens=False)
        return [self._without_specials(encoding.ids) for encoding in encodings]

    def _encode_parts(self, parts: list[str]) -> list[list[int]]:
        """Like `_encode_whole` for very short texts: many at once, as the words of one text."""
        batch = [parts[i : i + _PARTS_AT_ONCE] for i in range(0, len(parts), _PARTS_AT_ONCE)]
        encodings = self._inner.encode_batch(batch, is_pretokenized=True, add_special_tokens=False)
        result = []
        for words, encoding in zip(batch, encodings, strict=True):
            ids, start = encoding.ids, 0
            lengths = np.bincount(np.array(encoding.word_ids, np.int64), minlength=len(words))
            for end in np.cumsum(lengths).tolist():
                result.append(self._without_specials(ids[start:end]))
                start = end
        return result

    def _piece(self, number: int) -> str:
        piece = self._inner.id_to_token(number) or ""
        if not self._is_byte_level():
            return piece
        # Part of a character has no text of its own: show its bytes.
        if not _BYTES.keys() >= set(piece):  # a special
            return piece
        return bytes(map(_BYTES.__getitem__, piece)).decode(errors="backslashreplace")

    def _read_template(self, names: set[str]) -> None:
        """What its own template puts around a text and between two: it knows better than names."""
        if self._settings["post_processor"] is None:
            return
        specials = {self._inner.token_to_id(name) for name in names}
        before, after = self._around(self._inner.encode("a"), 0)
        if len(before) == 1 and before[0] in specials:
            self.begin_id = before[0]
        if len(after) == 1 and after[0] in specials:
            self.end_id = after[0]
        between, _ = self._around(self._inner.encode("a", "b"), 1)
        if between and {*between} == {self.separator_id}:
            self.separators = len(between)

    @staticmethod
    def _around(encoding: tokenizers.Encoding, text: int) -> tuple[list[int], list[int]]:
        """The specials before the text of this number, back to the one before it, and behind it."""
        texts, ids = encoding.sequence_ids, encoding.ids
        if text not in texts:
            return [], []
        first, last = texts.index(text), len(texts) - 1 - texts[::-1].index(text)
        start = next((n + 1 for n in reversed(range(first)) if texts[n] is not None), 0)
        stop = next((n for n in range(last + 1, len(texts)) if texts[n] is not None), len(texts))
        return ids[start:first], ids[last + 1 : stop]

    def _unknown_of_model(self) -> str | None:
        model = self._settings["model"]
        if model["type"] == "Unigram":
            number = model.get("unk_id")
            return None if number is None else str(model["vocab"][number][0])
        name: str | None = model.get("unk_token")
        return name

    def _is_byte_level(self) -> bool:
        return (self._settings["decoder"] or {}).get("type") == "ByteLevel"

    def _may_be_cut(self) -> bool:
        """Whether a text's ids are those of its words: see `word_cache`."""
        before = self._settings["pre_tokenizer"] or {}
        return (
            self._settings["normalizer"] is None
            and before.get("type") == "ByteLevel"
            and before.get("use_regex", True)
            and not before.get("add_prefix_space")
            and not self._settings["model"].get("dropout")
            and all(token["special"] for token in self._settings["added_tokens"])
        )
