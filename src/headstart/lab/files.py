"""The lab's files: texts as SentencePiece tokens, their labels, and the vocabulary `dict.txt`.

`dict.txt` has one token and its count per line. `<sos>`, `<pad>`, `<eos>` and `<oov>` have the ids
0 to 3, the other tokens the ids from 4 on in the order of the file. Texts are tokens separated by
spaces; "▁" marks the start of a word.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headstart.errors import HeadstartError
from headstart.files import write_text
from headstart.text.tokenizers.tokenizer import (
    SENTENCEPIECE_SUFFIX,
    Tokenizer,
    TokenizerFormat,
    Tokens,
    hash_of,
)

if TYPE_CHECKING:
    from headstart.text.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer

WORD_MARK = "▁"
SPECIALS = ["<sos>", "<pad>", "<eos>", "<oov>"]
FIX = "give the lab's dict.txt, a tokenizer.json or a SentencePiece .model"


class LabTokenizer(Tokenizer):
    """Looks tokens up in `dict.txt`; a token that it does not have is `<oov>`.

    A text with "▁" in it is already tokenized. Any other text is tokenized with the SentencePiece
    model in the folder of `dict.txt`; without one, its words are the tokens.
    """

    begin_id, pad_id, end_id, unknown_id = range(4)

    def __init__(
        self, tokens: Sequence[str], model: "SentencePieceTokenizer | None" = None
    ) -> None:
        self._tokens = [*SPECIALS, *tokens]
        self._model = model
        # A special token spelled in a text is not in the dictionary, hence unknown.
        self._ids = {token: i for i, token in enumerate(self._tokens) if i >= len(SPECIALS)}
        self.vocab_size = len(self._tokens)

    @classmethod
    def read(cls, path: Path) -> "LabTokenizer":
        """Read a `dict.txt`, and the SentencePiece model in its folder if there is one."""
        try:
            lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        except UnicodeDecodeError as error:
            raise HeadstartError(f"byte {error.start} is not UTF-8", where=path, fix=FIX) from error
        tokens = []
        for number, line in enumerate(lines, start=1):
            token, _, count = line.rpartition(" ")
            if not token or not count.isdecimal():
                raise HeadstartError(
                    f"line {number} is not a token and its count: {line[:60]!r}",
                    where=path,
                    fix=FIX,
                )
            tokens.append(token)
        models = sorted(path.parent.glob(f"*{SENTENCEPIECE_SUFFIX}"))
        if len(models) > 1:
            raise HeadstartError(
                f"there are several SentencePiece models in the folder of {path.name}: "
                + ", ".join(model.name for model in models),
                where=path.parent,
                fix="leave only the one that tokenized the texts",
            )
        if not models:
            return cls(tokens)
        from headstart.text.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer

        return cls(tokens, SentencePieceTokenizer(models[0].read_bytes(), where=models[0]))

    @cached_property
    def fingerprint(self) -> str:
        model = "" if self._model is None else self._model.fingerprint
        return hash_of(b"lab", "\n".join(self._tokens).encode(), model.encode())

    def encode_arrays(self, texts: Sequence[str]) -> list[Tokens]:
        ids, unknown = self._ids, self.unknown_id
        return [
            np.array([ids.get(token, unknown) for token in self._split(text)], dtype=self.dtype)
            for text in texts
        ]

    def decode(self, ids: Sequence[int]) -> str:
        tokens = [self._tokens[i] for i in ids if i not in self._special_ids]
        return "".join(tokens).replace(WORD_MARK, " ").strip()

    def pieces(self, text: str) -> list[str]:
        return [self._tokens[number] for number in self.encode([text])[0]]

    def vocabulary(self) -> list[str]:
        return [token.replace(WORD_MARK, " ") for token in self._tokens]

    def save(self, path: Path) -> Path:
        path = path / "dict.txt" if path.is_dir() else path
        write_text(path, "".join(f"{token} 1\n" for token in self._tokens[len(SPECIALS) :]))
        if self._model is not None:
            self._model.save(path.parent)
        return path

    def _split(self, text: str) -> list[str]:
        if self._model is None or WORD_MARK in text:
            return text.split()
        return self._model.pieces(text)


TOKENIZER = TokenizerFormat(suffix=".txt", pattern="dict.txt", read=LabTokenizer.read)
