"""The lab's plain loop: `nn.TransformerEncoder`, padded documents, Adam, fp32."""

import math
from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

PAD = 1


class LabModel(nn.Module):
    def __init__(self, vocab_size: int, width: int, layers: int, heads: int, outputs: int) -> None:
        super().__init__()
        self.width = width
        self.encoder = nn.Embedding(vocab_size, width)
        layer = nn.TransformerEncoderLayer(width, heads, width, dropout=0.0)
        self.transformer_encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.decoder = nn.Linear(width, outputs)
        position = torch.arange(5_000).unsqueeze(1)
        rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
        table = torch.zeros(5_000, 1, width)
        table[:, 0, 0::2], table[:, 0, 1::2] = (
            torch.sin(position * rate),
            torch.cos(position * rate),
        )
        self.register_buffer("table", table, persistent=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:  # (T, B)
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.size(0))
        x = self.encoder(tokens) * math.sqrt(self.width) + self.table[: tokens.size(0)]
        return self.decoder(self.transformer_encoder(x, mask))


def batches(documents: list[np.ndarray], size: int) -> Iterator[tuple[np.ndarray, torch.Tensor]]:
    """Yield shuffled batches: the numbers of the documents, and their padded tokens (T, B)."""
    order = np.random.default_rng(0).permutation(len(documents))
    for start in range(0, len(order) - size, size):
        rows = order[start : start + size]
        texts = [torch.from_numpy(documents[row]).long() for row in rows]
        yield rows, nn.utils.rnn.pad_sequence(texts, padding_value=PAD)


def pretrain_steps(
    documents: list[np.ndarray], *, vocab_size: int, width: int, layers: int, heads: int, batch: int
) -> Iterator[int]:
    """Pretrain; yields the tokens of each step, without padding."""
    model = LabModel(vocab_size, width, layers, heads, vocab_size)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for rows, tokens in batches(documents, batch):
        optimizer.zero_grad()
        scores = model(tokens[:-1])
        loss = F.cross_entropy(scores.view(-1, vocab_size), tokens[1:].flatten(), ignore_index=PAD)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        yield sum(len(documents[row]) for row in rows)


def finetune_steps(
    documents: list[np.ndarray],
    labels: list[int],
    *,
    vocab_size: int,
    width: int,
    layers: int,
    heads: int,
    batch: int,
) -> Iterator[int]:
    """Fine-tune a classifier on the last position; yields the tokens of each step."""
    model = LabModel(vocab_size, width, layers, heads, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for rows, tokens in batches(documents, batch):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(tokens)[-1], torch.tensor([labels[row] for row in rows]))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        yield sum(len(documents[row]) for row in rows)
