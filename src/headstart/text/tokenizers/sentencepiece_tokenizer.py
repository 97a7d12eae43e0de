"""A SentencePiece model, read with the `sentencepiece` library."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import sentencepiece

from headstart.errors import HeadstartError
from headstart.files import replacing
from headstart.text.tokenizers.tokenizer import SPECIAL_NAMES, Tokenizer, Tokens, hash_of

DEFAULT_NAME = "sentencepiece.model"


class SentencePieceTokenizer(Tokenizer):
    """Reads the pieces, the normalization and the specials that the model was trained with."""

    def __init__(self, model: bytes, *, where: Path | None = None) -> None:
        self._model = model
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            self._processor.load_from_serialized_proto(model)
        except RuntimeError as error:
            raise HeadstartError(
                "this is not a SentencePiece model",
                where=where,
                fix="give the .model file that SentencePiece wrote, not its .vocab",
            ) from error
        self.vocab_size = self._processor.get_piece_size()
        self.pad_id = self._id(self._processor.pad_id(), "pad")
        self.unknown_id = self._id(self._processor.unk_id(), "unknown")
        self.begin_id = self._id(self._processor.bos_id(), "begin")
        self.end_id = self._id(self._processor.eos_id(), "end")
        self.mask_id = self._id(-1, "mask")
        self.separator_id = self._id(-1, "separator")

    @cached_property
    def fingerprint(self) -> str:
        return hash_of(b"sentencepiece", self._model)

    def encode_arrays(self, texts: Sequence[str]) -> list[Tokens]:
        encoded = self._processor.encode(list(texts), out_type=int)
        return [np.array(self._without_specials(ids), dtype=self.dtype) for ids in encoded]

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self._processor.decode([i for i in ids if i not in self._special_ids])
        return text

    def pieces(self, text: str) -> list[str]:
        return [self._processor.id_to_piece(number) for number in self.encode([text])[0]]

    def vocabulary(self) -> list[str]:
        pieces = self._processor.id_to_piece(list(range(self.vocab_size)))
        return [piece.replace("▁", " ") for piece in pieces]

    def save(self, path: Path) -> Path:
        path = path / DEFAULT_NAME if path.is_dir() else path
        with replacing(path) as temporary:
            temporary.write_bytes(self._model)
        return path

    def _id(self, number: int, role: str) -> int | None:
        """The library's own id for a role, or the id of a piece that is named like it."""
        if number >= 0:
            return number
        for name in SPECIAL_NAMES[role]:
            number = self._processor.piece_to_id(name)
            if number != self._processor.unk_id():
                return number
        return None
