"""Tokenize each word once: most words of a corpus have been seen before.

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

import re
from array import array
from collections.abc import Callable, Sequence

import numpy as np

from headstart.text.tokenizers.tokenizer import Tokens

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
