"""Headstart's training step, on a token store of the same documents."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from headstart.config import PretrainConfig
from headstart.data.batches import TokenSource, TokenStore, store_corpus
from headstart.model.model import build_model
from headstart.objectives import OBJECTIVES
from headstart.training.callbacks import MetricsFile
from headstart.training.corpus import PretrainData, network_preset
from headstart.training.pretrain import CorpusBatches
from headstart.training.trainer import Trainer

STEPS = 10**6  # more than any measurement takes


class FewSpecials:
    """The part of a tokenizer that a training step needs."""

    pad_id, begin_id, end_id, mask_id, separator_id = 0, 2, 3, 5, 4
    fingerprint = "made up"

    def __init__(self, vocab_size: int, documents: list[np.ndarray] | None = None) -> None:
        self.vocab_size = vocab_size
        self.documents = documents or []
        self.dtype = np.dtype("<u2" if vocab_size <= 1 << 16 else "<u4")
        self.specials = {"pad": 0, "begin": 2, "end": 3, "mask": 5, "separator": 4}

    def encode_arrays(self, texts: list[str]) -> list[np.ndarray]:
        """Look up documents by their numbers."""
        return [self.documents[int(text)].astype(self.dtype) for text in texts]


def make_store(documents: list[np.ndarray], vocab_size: int, folder: Path) -> TokenStore:
    numbers = map(str, range(len(documents)))
    tokenizer = FewSpecials(vocab_size, documents)
    store, _ = store_corpus(numbers, tokenizer, folder, fingerprint="made up")
    return store


def pretrain_steps(
    documents: list[np.ndarray],
    *,
    name: str,
    kind: str,
    sizes: dict[str, int],
    length: int,
    rows: int,
    precision: str,
    softmax: str = "auto",
) -> Iterator[int]:
    """Train as `headstart pretrain` does; yields the tokens of each step, without padding."""
    config = PretrainConfig.create(
        corpus=["made up"],
        preset=name,
        objective=kind,
        length=length,
        batch_tokens=rows * length,
        precision=precision,
        softmax=softmax,
        **sizes,
    )
    objective, chosen = OBJECTIVES[kind], network_preset(config)
    model = build_model(chosen.base, objective.head(chosen))
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = FewSpecials(sizes["vocab_size"])
        store = make_store(documents, sizes["vocab_size"], Path(folder))
        source = TokenSource(store, tokenizer, length=length)
        batches = CorpusBatches(config, PretrainData(tokenizer, source, source, 1, {}, rows))
        model.base.embedding.sparse = batches.sampler is not None or not model.tied
        trainer = Trainer(
            model,
            lambda step: batches.micro_batches(model, step, STEPS),
            dict,
            config,
        )
        yield from trained_tokens(trainer, STEPS, Path(folder))


def trained_tokens(trainer: Trainer, steps: int, folder: Path) -> Iterator[int]:
    """Take steps as `Trainer.fit` does; yields the tokens that each step has read."""
    metrics, state = MetricsFile(folder), trainer.state
    state.steps = steps
    while state.step < steps:
        before = state.tokens
        trainer._step(state.step)
        metrics.on_step(state)
        yield state.tokens - before
