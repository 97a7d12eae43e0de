"""How fast this machine trains this network: a few real steps, on made-up tokens.

Speed depends on the sizes alone, so the steps need neither the corpus nor a tokenizer, and a plan
can be shown before either is read.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from headstart.config import Precision, PretrainConfig
from headstart.machine import autocast
from headstart.model.model import build_model
from headstart.model.presets import Preset
from headstart.model.sampled_softmax import SoftmaxSampler
from headstart.objectives import OBJECTIVES
from headstart.text.store.token_source import PackedBatch, PairBatch, TokenSource
from headstart.training.batches import LARGE_VOCABULARY, NUM_FREQUENT, NUM_SAMPLED
from headstart.training.optimizer import make_optimizer

READ_ROWS = 64
CPU = torch.device("cpu")


def measure_finetuning(
    chosen: Preset,
    *,
    classes: int,
    batch_size: int,
    length: int,
    threads: int,
    precision: Precision = "fp32",
) -> tuple[float, float]:
    """Seconds per token of training, and of reading without learning."""
    torch.set_num_threads(threads)
    model = build_model(chosen.base, chosen.classification(classes))
    optimizer = make_optimizer(model, learning_rate=1e-4, weight_decay=0.01, betas=(0.9, 0.999))
    model.base.embedding.sparse = True  # as in fine-tuning
    made_up = MadeUpTokens(chosen.base.vocab_size, length)
    tokens, many = made_up.draw(batch_size), made_up.draw(READ_ROWS)
    labels = torch.zeros(batch_size, dtype=torch.long)

    def step(number: int) -> None:
        with autocast(precision, CPU):
            F.cross_entropy(model(tokens, torch.ones_like(tokens)), labels).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    @torch.no_grad()
    def read(number: int) -> None:
        with autocast(precision, CPU):
            model(many, torch.ones_like(many))

    return median_seconds(step) / tokens.numel(), median_seconds(read) / many.numel()


def measure_pretraining(chosen: Preset, recipe: PretrainConfig) -> float:
    """Seconds of a step."""
    sampled = chosen.base.vocab_size > LARGE_VOCABULARY
    torch.set_num_threads(recipe.threads or 1)
    objective = OBJECTIVES[recipe.objective](mask_share=recipe.mask_share)
    model = build_model(chosen.base, objective.head(chosen))
    optimizer = make_optimizer(model, learning_rate=1e-4, weight_decay=0.1, betas=(0.9, 0.98))
    source = MadeUpTokens(chosen.base.vocab_size, recipe.length)
    batch = objective.batch(source, recipe.rows, (0, 0))
    model.base.embedding.sparse = sampled or not model.tied
    if sampled:
        sampler = SoftmaxSampler(
            source.counts, num_frequent=NUM_FREQUENT, num_sampled=NUM_SAMPLED, seed=0
        )
        batch = replace(batch, sampled=sampler.draw(batch.targets, 0))

    def step(number: int) -> None:
        with autocast(recipe.precision or "fp32", CPU):
            loss = objective.loss(model, batch)
            (loss.total / loss.targets).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return median_seconds(step)


class MadeUpTokens(TokenSource):
    """Random tokens in full rows, in place of a store: any objective can draw its batches.

    They are as unevenly frequent as words are (Zipf's law): how many pieces a batch has matters.
    """

    def __init__(self, vocab_size: int, length: int) -> None:
        self.length, self.separate = length, False
        self.tokenizer: Any = SimpleNamespace(vocab_size=vocab_size, mask_id=0)
        self.special_ids = torch.zeros(1, dtype=torch.long)
        self._generator = torch.Generator().manual_seed(0)
        self.counts = (1e6 / (np.arange(vocab_size) + 3.0)).astype(np.int64)

    def draw(self, rows: int, extra: int = 0) -> torch.Tensor:
        chances = torch.from_numpy(self.counts).float()
        drawn = torch.multinomial(
            chances, rows * (self.length + extra), replacement=True, generator=self._generator
        )
        return drawn.view(rows, self.length + extra)

    def rows(self, rows: int, key: tuple[int, int], *, extra: int = 0) -> PackedBatch:
        tokens = self.draw(rows, extra)
        return PackedBatch(tokens, torch.ones_like(tokens))

    def pairs(self, rows: int, key: tuple[int, int]) -> PairBatch:
        tokens = self.draw(rows)
        segments = torch.ones_like(tokens)
        segments[:, -1] = 0  # pairs are seldom as long as their row
        return PairBatch(
            tokens, segments, torch.zeros_like(tokens), torch.zeros(rows, dtype=torch.long)
        )


def median_seconds(work: Callable[[int], None]) -> float:
    """The median time of a few repetitions, each given its number; the first one warms up."""
    times = []
    for repetition in range(5):
        start = time.monotonic()
        work(repetition)
        if repetition:
            times.append(time.monotonic() - start)
    return statistics.median(times)
