"""Train only the embedding rows that occur; the result is exactly that of training all of them.

A row that no text uses never has a gradient, and embeddings do not decay, so the optimizer would
leave it where it is: it only costs time. While training, the embedding therefore holds just the
rows in use, and the texts' ids are numbered anew; for saving, the rows go back to their places.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from headstart.model.model import Model


class CompactEmbedding:
    """The rows `used` of a model's embedding, put in its place until they are put back."""

    def __init__(self, model: Model, used: NDArray[np.int64]) -> None:
        self.model = model
        self.used = torch.from_numpy(np.asarray(used, dtype=np.int64))
        self.full = model.base.embedding
        # An id that is not in use has no place: -1 would be found out at once.
        self.numbers: NDArray[np.int64] = np.full(self.full.num_embeddings, -1, dtype=np.int64)
        self.numbers[used] = np.arange(len(used))
        rows = self.full.weight.detach()[self.used.to(self.full.weight.device)].clone()
        self.compact = nn.Embedding(len(used), self.full.embedding_dim, _weight=rows)
        self.compact.weight.requires_grad_(self.full.weight.requires_grad)
        model.base.embedding = self.compact

    @contextmanager
    def put_back(self) -> Iterator[Model]:
        """The model with its whole vocabulary, and what was learned in it."""
        with torch.no_grad():
            self.full.weight[self.used.to(self.full.weight.device)] = self.compact.weight
        self.model.base.embedding = self.full
        try:
            yield self.model
        finally:
            self.model.base.embedding = self.compact
