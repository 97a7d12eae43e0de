"""Headstart's own training step, on a store made of the same documents."""

import json
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from headstart.training.loop import Loop, LoopSettings, MicroBatch
from headstart.training.recipe import PretrainRecipe

from headstart.model.model import build_model
from headstart.model.presets import preset
from headstart.model.sampled_softmax import SoftmaxSampler
from headstart.objectives import find_objective
from headstart.text.store.token_source import TokenSource
from headstart.text.store.token_store import FORMAT, MANIFEST, ShardWriter, TokenStore


class FewSpecials:
    """As much of a tokenizer as a training step asks for."""

    pad_id, begin_id, end_id, mask_id, separator_id = 0, 2, 3, 5, 4
    fingerprint = "made up"

    def __init__(self, vocab_size: int) -> None:
        self.vocab_size = vocab_size
        self.specials = {"pad": 0, "begin": 2, "end": 3, "mask": 5, "separator": 4}


def make_store(documents: list[np.ndarray], vocab_size: int, folder: Path) -> TokenStore:
    dtype = np.dtype("<u2" if vocab_size <= 1 << 16 else "<u4")
    writer = ShardWriter(folder, dtype, 1 << 26)
    at_once = 2_000  # so that a large store is not held in memory
    for first in range(0, len(documents), at_once):
        writer.write([document.astype(dtype) for document in documents[first : first + at_once]])
    shards, documents_file = writer.close()
    manifest = {
        "format": FORMAT,
        "tokenizer": FewSpecials.fingerprint,
        "vocab_size": vocab_size,
        "dtype": dtype.str,
        "documents": writer.documents,
        "tokens": writer.tokens,
        "documents_file": documents_file,
        "shards": shards,
    }
    (folder / MANIFEST).write_text(json.dumps(manifest))
    return TokenStore(folder)


def pretrain_steps(
    documents: list[np.ndarray],
    *,
    name: str,
    kind: str,
    sizes: dict[str, int],
    length: int,
    rows: int,
    precision: str,
    output: str = "candidates",
) -> Iterator[int]:
    """Train; yields the real tokens of each step."""
    objective = find_objective(kind)(mask_share=0.3)
    chosen = preset(name, objective="causal" if kind == "causal" else "masked", **sizes)
    model = build_model(chosen.base, objective.head(chosen))
    with tempfile.TemporaryDirectory() as folder:
        store = make_store(documents, sizes["vocab_size"], Path(folder))
        source = TokenSource(store, FewSpecials(sizes["vocab_size"]), length=length)
        sampler = None
        if output == "candidates":
            counts = store.counts(sizes["vocab_size"])
            usual = PretrainRecipe(corpus=["none"])
            sampler = SoftmaxSampler(
                counts, num_frequent=usual.frequent, num_sampled=usual.drawn, seed=0
            )
        model.base.embedding.sparse = sampler is not None or not chosen.language_modeling.tied

        def batches(step: int) -> list[MicroBatch]:
            batch = objective.batch(source, rows, (0, step))
            if sampler is not None:
                batch = replace(batch, sampled=sampler.draw(batch.targets, step))
            return [
                MicroBatch(
                    lambda: objective.loss(model, batch).total,
                    batch.targets.numel(),
                    batch.real_tokens,
                )
            ]

        settings = LoopSettings(steps=10**6, learning_rate=1e-3, seed=0, precision=precision)
        loop = Loop(model, settings, batches=batches, evaluate=lambda: {"loss": 0.0})
        torch.manual_seed(0)
        while True:
            before = loop.progress.tokens
            loop._step()
            yield loop.progress.tokens - before
