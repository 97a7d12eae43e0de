"""The lab's files: text already cut into SentencePiece pieces, their labels, and its `dict.txt`.

The file has one piece and its count per line. `<sos>`, `<pad>`, `<eos>` and `<oov>` take the ids 0
to 3, the pieces those from 4 on in the file's order. The lab's texts are pieces separated by
spaces; "▁" marks where a word began.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headstart.errors import HeadstartError
from headstart.files import write_text
from headstart.text.reading.records import read_lines
from headstart.text.reading.sources import Reader, Source
from headstart.text.tokenizers.tokenizer import (
    SENTENCEPIECE_SUFFIX,
    Tokenizer,
    TokenizerFormat,
    Tokens,
    hash_of,
)

if TYPE_CHECKING:
    from headstart.text.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer

SPACE = "\u2581"
# What the lab calls the parts.
PARTS = {"train": "train", "validation": "valid", "test": "test"}


class LabReader(Reader):
    """Reads the lab's folder and single files of pieces."""

    description = "SentencePiece pieces"
    suffixes = (".spm",)

    def find_parts(self, folder: Path) -> dict[str, Path]:
        if not (folder / "train.label").is_file():
            return {}
        files = {part: folder / f"{name}.review.spm" for part, name in PARTS.items()}
        found = {part: file for part, file in files.items() if file.is_file()}
        return found if "train" in found else {}

    def read_texts(self, source: Source, encoding: str) -> Iterator[str]:
        return map(join_pieces, read_lines(source, encoding))

    def read_labelled(self, source: Source, encoding: str) -> Iterator[tuple[str, str]]:
        """Yield (text, label); both files must have equally many lines."""
        labels = _label_file(source)
        texts = list(self.read_texts(source, encoding))
        values = [line.strip() for line in read_lines(labels, encoding)]
        if len(texts) != len(values):
            raise HeadstartError(
                f"{len(texts):,} texts but {len(values):,} labels",
                where=f"{source.name} and {labels.name}",
                fix="both files must have one line for each text",
            )
        return zip(texts, values, strict=True)


READER = LabReader()


def join_pieces(line: str) -> str:
    """The text that a line of pieces was cut from."""
    return "".join(line.split(" ")).replace(SPACE, " ").strip()


def _label_file(source: Source) -> Source:
    stem = source.file.name.split(".")[0]
    path = source.file.with_name(f"{stem}.label")
    if not path.is_file():
        raise HeadstartError(
            f"the labels are missing: there is no {path.name} beside the pieces",
            where=source.name,
            fix="unlabelled text is given with --corpus",
            code="no-labels",
        )
    return Source(str(path), "text", path)


SPECIALS = ["<sos>", "<pad>", "<eos>", "<oov>"]
WORD_MARK = "▁"


class LabTokenizer(Tokenizer):
    """Looks pieces up; a piece that the dictionary does not have is `<oov>`.

    A text with "▁" in it is already cut. Any other text is cut with the SentencePiece model
    that lies beside the dictionary; without one, its words are taken as pieces.
    """

    begin_id, pad_id, end_id, unknown_id = range(4)

    def __init__(
        self, pieces: Sequence[str], cutter: "SentencePieceTokenizer | None" = None
    ) -> None:
        self._pieces = [*SPECIALS, *pieces]
        self._cutter = cutter
        # A special spelled in the text is not in the dictionary, hence unknown.
        self._ids = {piece: i for i, piece in enumerate(self._pieces) if i >= len(SPECIALS)}
        self.vocab_size = len(self._pieces)

    @classmethod
    def read(cls, path: Path) -> "LabTokenizer":
        """Read a `dict.txt`, and the SentencePiece model beside it if there is one."""
        pieces = []
        try:
            lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        except UnicodeDecodeError as error:
            raise HeadstartError(
                f"byte {error.start} is not UTF-8",
                where=path,
                fix="give the lab's dict.txt, a tokenizer.json or a SentencePiece .model",
            ) from error
        for number, line in enumerate(lines, start=1):
            piece, space, count = line.rpartition(" ")
            if not space or not piece or not count.isdecimal():
                raise HeadstartError(
                    f"line {number} is not a piece and its count: {line[:60]!r}",
                    where=path,
                    fix="give the lab's dict.txt, a tokenizer.json or a SentencePiece .model",
                )
            pieces.append(piece)
        models = sorted(path.parent.glob(f"*{SENTENCEPIECE_SUFFIX}"))
        if len(models) > 1:
            raise HeadstartError(
                f"several SentencePiece models lie beside {path.name}: "
                + ", ".join(model.name for model in models),
                where=path.parent,
                fix="leave only the one that cut the texts",
            )
        if not models:
            return cls(pieces)
        from headstart.text.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer

        return cls(pieces, SentencePieceTokenizer(models[0].read_bytes(), where=models[0]))

    @cached_property
    def fingerprint(self) -> str:
        cutter = self._cutter.fingerprint if self._cutter is not None else ""
        return hash_of(b"lab", "\n".join(self._pieces).encode(), cutter.encode())

    def encode_arrays(self, texts: Sequence[str]) -> list[Tokens]:
        ids, unknown = self._ids, self.unknown_id
        return [
            np.array([ids.get(piece, unknown) for piece in self._cut(text)], dtype=self.dtype)
            for text in texts
        ]

    def decode(self, ids: Sequence[int]) -> str:
        pieces = [self._pieces[i] for i in ids if i not in self._special_ids]
        return "".join(pieces).replace(WORD_MARK, " ").strip()

    def pieces(self, text: str) -> list[str]:
        return [self._pieces[number] for number in self.encode([text])[0]]

    def vocabulary(self) -> list[str]:
        return [piece.replace(WORD_MARK, " ") for piece in self._pieces]

    def save(self, path: Path) -> Path:
        path = path / "dict.txt" if path.is_dir() else path
        write_text(path, "".join(f"{piece} 1\n" for piece in self._pieces[len(SPECIALS) :]))
        if self._cutter is not None:
            self._cutter.save(path.parent)
        return path

    def _cut(self, text: str) -> list[str]:
        if self._cutter is None or WORD_MARK in text:
            return text.split()
        return self._cutter.pieces(text)


TOKENIZER = TokenizerFormat(suffix=".txt", pattern="dict.txt", read=LabTokenizer.read)
