"""A written graph, opened with onnxruntime: its outputs beside those of the run's network."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headstart.interop.measure import OutputDifference
from headstart.interop.onnx.export import WINDOWS
from headstart.interop.onnx.exported_run import open_export
from headstart.model.config import ClassificationConfig
from headstart.run import NetworkRun

ALLOWED = 1e-4  # of the outputs' size: rounding adds up over the layers
# In 8 bits: what it costs in accuracy is measured, not guessed from here.
ALLOWED_INT8 = 0.25
# Padding changes the rounding of a sum, which may tip a token's rounding to 8 bits.
ALLOWED_INT8_ALONE = 0.02
TEXTS = [
    "A short one.",
    "Le café était déjà fermé — dommage, n'est-ce pas ? (Oui.) [MASK]",
    "Москва не сразу строилась. 東京は日本の首都です。 مرحبا بالعالم 🙂",
]


@dataclass(frozen=True)
class TrialBatch:
    """Inputs of both networks, in words and in numbers."""

    words: str
    tokens: Tensor  # (B, T)
    real: Tensor  # (B, T)
    token_types: Tensor | None = None
    owners: Tensor | None = None

    def feeds(self) -> dict[str, NDArray[Any]]:
        """The same for onnxruntime."""
        named = {
            "input_ids": self.tokens,
            "attention_mask": self.real,
            "token_type_ids": self.token_types,
            WINDOWS: self.owners,
        }
        return {name: value.numpy() for name, value in named.items() if value is not None}


def compare_with_run(run: NetworkRun, folder: Path, *, int8: bool) -> list[OutputDifference]:
    """Compare over batch sizes, lengths, paddings and windows; an answer also with itself alone."""
    exported = open_export(folder)
    session = exported.one_thread
    ids = [one.tolist() for one in run.tokenizer.encode_arrays(TEXTS)]
    theirs = [one.tolist() for one in exported.tokenizer.encode_arrays(TEXTS)]
    wrong = sum(a != b for a, b in zip(ids, theirs, strict=True))
    found = [OutputDifference(f"the ids of {len(TEXTS)} texts", float(wrong), 0.0)]
    allowed = ALLOWED_INT8 if int8 else ALLOWED
    for batch in _batches(run):
        with torch.no_grad():
            network = run.model(batch.tokens, batch.real, batch.token_types, owners=batch.owners)
        ours = network.float().numpy() / exported.temperature
        output = session.run(["logits"], batch.feeds())[0]
        found.append(_difference(batch.words, ours, output, batch.real, allowed))
        if "padded" in batch.words:
            alone = _alone(session, batch)
            words = f"{batch.words}, against each text by itself"
            tipped = ALLOWED_INT8_ALONE if int8 else ALLOWED
            found.append(_difference(words, alone, output, batch.real, tipped))
    return found


def _alone(session: Any, batch: TrialBatch) -> NDArray[np.float32]:
    """The outputs of each text without its neighbours and its padding, in the batch's form."""
    outputs = []
    for row in range(len(batch.tokens)):
        kept = batch.real[row] > 0
        single = TrialBatch("", batch.tokens[row : row + 1, kept], batch.real[row : row + 1, kept])
        output = session.run(["logits"], single.feeds())[0][0]
        if output.ndim == 2:
            padded = np.zeros((batch.tokens.size(1), output.shape[1]), dtype=np.float32)
            padded[kept.numpy()] = output
            output = padded
        outputs.append(output)
    return np.stack(outputs)


def _batches(run: NetworkRun) -> Iterator[TrialBatch]:
    config = run.model.base.config
    longest = min(config.max_length, run.length) if config.positions == "learned" else run.length
    random = torch.Generator().manual_seed(0)

    def draw(rows: int, length: int) -> tuple[Tensor, Tensor]:
        shape = (rows, min(length, longest))
        tokens = torch.randint(run.tokenizer.vocab_size, shape, generator=random)
        return tokens, torch.ones(shape, dtype=torch.int64)

    yield TrialBatch("one text of one token", *draw(1, 1))
    yield TrialBatch(f"one text of {longest} tokens", *draw(1, longest))
    tokens, real = draw(4, 24)
    yield TrialBatch("a batch of 4 equally long texts", tokens, real)
    length = tokens.size(1)
    lengths = torch.tensor([length, 5, 1, 3]).clamp(max=length)
    right = (torch.arange(length) < lengths.unsqueeze(1)).long()
    yield TrialBatch("a batch of 4, padded on the right", tokens, right)
    yield TrialBatch("a batch of 4, padded on the left", tokens, right.flip(1))
    if config.token_types > 1:
        kinds = (torch.arange(length) >= length // 2).long().expand(4, -1).contiguous()
        yield TrialBatch("pairs with token types", tokens, right, kinds)
    if run.long == "windows" and isinstance(run.model.head_config, ClassificationConfig):
        owners = torch.tensor([0, 0, 0, 1])
        yield TrialBatch("a text in three windows and one in one", tokens, right, None, owners)


def _difference(
    words: str,
    ours: NDArray[np.float32],
    theirs: NDArray[np.float32],
    real: Tensor,
    allowed: float,
) -> OutputDifference:
    """The largest difference where the texts are, and what is allowed for outputs of this size."""
    if ours.shape != theirs.shape:
        return OutputDifference(words, float("inf"), allowed)
    if ours.ndim == 3:  # one row per token: what stands in the padding means nothing
        kept = real.numpy() > 0
        ours, theirs = ours[kept], theirs[kept]
    size = max(1.0, float(np.abs(ours).max()))
    return OutputDifference(words, float(np.abs(ours - theirs).max()), allowed * size)
