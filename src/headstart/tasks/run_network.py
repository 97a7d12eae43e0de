"""Run a network over examples, in batches of similar length."""

import numpy as np
import torch

from headstart.model.heads import ClassificationHead
from headstart.model.model import Model
from headstart.model.pooling import join_windows
from headstart.progress import ProgressCallback
from headstart.tasks.examples import Examples
from headstart.tasks.task import Output

BATCH_TOKENS = 2_048  # padding included; larger batches do not fit into the processor's cache
JOINED_TEXTS = 256  # whose windows are joined at once


def run_network(
    model: Model,
    examples: Examples,
    *,
    batch_tokens: int = BATCH_TOKENS,
    progress: ProgressCallback | None = None,
) -> list[Output]:
    """Compute the head's outputs of each example, in order; batches hold similar lengths.

    A head that scores tokens has one row per token. The windows of a text are read in any batch;
    only their pooled vectors are joined.
    """
    if examples.windows is None:
        return _run_batches(model, examples, batch_tokens, progress)
    assert isinstance(model.head, ClassificationHead)
    windows = examples.by_window()
    vectors = _run_batches(model, windows, batch_tokens, progress, vectors=True)
    device = next(model.parameters()).device
    outputs: list[Output] = []
    with torch.no_grad():
        for first in range(0, len(examples), JOINED_TEXTS):
            rows = slice(*np.searchsorted(windows.owners, [first, first + JOINED_TEXTS]))
            joined = join_windows(
                torch.from_numpy(np.stack(vectors[rows])).to(device),
                torch.from_numpy(windows.lengths[rows]).to(device),
                torch.from_numpy(windows.owners[rows] - first).to(device),
                model.head.config.pooling,
            )
            outputs += list(model.head.classify(joined).float().cpu().numpy())
    return outputs


def _run_batches(
    model: Model,
    examples: Examples,
    batch_tokens: int,
    progress: ProgressCallback | None,
    *,
    vectors: bool = False,
) -> list[Output]:
    device = next(model.parameters()).device
    lengths = examples.lengths
    order = np.argsort(lengths, kind="stable")
    outputs: dict[int, Output] = {}
    call = model.vectors if vectors else model
    start = 0
    with torch.no_grad():
        while start < len(order):
            stop = start + 1
            while stop < len(order) and (stop + 1 - start) * lengths[order[stop]] <= batch_tokens:
                stop += 1
            rows = order[start:stop]
            batch = examples.batch(rows).to(device)
            found = call(batch.tokens, batch.segments, batch.token_types).float().cpu().numpy()
            for one, row in zip(found, rows, strict=True):
                outputs[int(row)] = one if one.ndim == 1 else one[: lengths[row]]
            start = stop
            if progress is not None:
                progress(start, len(order))
    return [outputs[row] for row in range(len(examples))]
