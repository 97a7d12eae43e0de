"""Run a network over examples: the short with the short, the answers in the order given."""

import numpy as np
import torch

from headstart.model.model import Model
from headstart.progress import ProgressCallback
from headstart.tasks.examples import Examples
from headstart.tasks.task import Output

BATCH_TOKENS = 2_048  # padding included; larger batches leave the processor's cache


def run_network(
    model: Model,
    examples: Examples,
    *,
    batch_tokens: int = BATCH_TOKENS,
    progress: ProgressCallback | None = None,
) -> list[Output]:
    """The head's scores of each example; one a token where the head answers for each of them."""
    device = next(model.parameters()).device
    lengths = examples.lengths
    order = np.argsort(lengths, kind="stable")
    outputs: list[Output | None] = [None] * len(examples)
    start = 0
    with torch.no_grad():
        while start < len(order):
            stop = start + 1
            while (
                stop < len(order) and (stop + 1 - start) * int(lengths[order[stop]]) <= batch_tokens
            ):
                stop += 1
            rows = order[start:stop]
            batch = examples.batch(rows).to(device)
            scores = model(batch.tokens, batch.segments, batch.token_types)
            found = scores.float().cpu().numpy()
            for place, row in enumerate(rows):
                one = found[place]
                outputs[row] = one if one.ndim == 1 else one[: lengths[row]]
            start = stop
            if progress is not None:
                progress(start, len(order))
    return [output for output in outputs if output is not None]
