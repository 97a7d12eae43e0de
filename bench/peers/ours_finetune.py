"""Headstart's fine-tuning and prediction, on texts of the same documents."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from headstart.config import FinetuneConfig
from headstart.data.dataset import Dataset
from headstart.data.tokenizers import load_tokenizer
from headstart.interop.export import export_run
from headstart.interop.onnx_run import open_export
from headstart.machine import resolve_machine
from headstart.model.model import build_model
from headstart.model.presets import preset
from headstart.run import NetworkRun, Run
from headstart.tasks.classification import Classification
from headstart.training.finetune import EpochBatches
from headstart.training.initialization import start_model, text_encoding
from headstart.training.trainer import Trainer
from peers.documents import make_texts, make_tokenizer
from peers.ours import trained_tokens

CLASSES = ("no", "yes")


def finetune_steps(
    documents: list[np.ndarray],
    labels: list[int],
    *,
    name: str,
    kind: str,
    sizes: dict[str, int],
    batch: int,
    precision: str,
    threads: int,
    folder: Path,
    **how: Any,
) -> Iterator[int]:
    """Fine-tune; yields the tokens of each step's texts, dropped ones included."""
    rows = Dataset("made up", make_texts(documents), labels, CLASSES)
    config = FinetuneConfig.create(
        dataset=[rows.name],
        preset=name,
        objective=kind,
        tokenizer=str(make_tokenizer(sizes["vocab_size"], folder)),
        batch_size=batch,
        precision=precision,
        threads=threads,
        **sizes,
        **how,
    )
    config = resolve_machine(config)
    task = Classification(CLASSES)
    start = start_model(config, task, rows.texts)
    encoding = text_encoding(config, task, start)
    train = task.encode(rows, encoding)
    batches = EpochBatches(config, task, train, train.weights, encoding)
    trainer = Trainer(
        start.model,
        lambda step: batches.micro_batches(start.model, step),
        dict,
        config,
        epoch_steps=batches.steps_per_epoch,
    )
    steps = config.epochs * batches.steps_per_epoch
    for step, _ in enumerate(trained_tokens(trainer, steps, folder)):
        trainer.average.update(step + 1, steps)
        yield sum(len(ids) for row in batches.order.batch(step) for ids in train.tokens[row])


class Predictor:
    """Headstart's prediction with a network of random weights."""

    def __init__(self, name: str, kind: str, sizes: dict[str, int], folder: Path) -> None:
        chosen = preset(name, objective=kind, **sizes)
        model = build_model(chosen.base, chosen.classification(len(CLASSES))).eval()
        tokenizer = load_tokenizer(make_tokenizer(sizes["vocab_size"], folder))
        self.run: Run = NetworkRun(folder, model, tokenizer, task=Classification(CLASSES))

    def __call__(self, texts: list[str]) -> None:
        assert len(self.run.predict(texts)) == len(texts)


class ExportedPredictor(Predictor):
    """Prediction with the ONNX export of such a network."""

    def __init__(
        self, name: str, kind: str, sizes: dict[str, int], folder: Path, *, int8: bool
    ) -> None:
        super().__init__(name, kind, sizes, folder)
        out = folder / "onnx"
        self.run.save(folder / "run")
        export_run(folder / "run", "onnx", out, int8=int8)
        self.run = open_export(out)
