"""Headstart's own fine-tuning and prediction, on texts of the same documents."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from headstart.training.finetune_prepare import prepare_finetuning
from headstart.training.metrics import MetricsFile
from headstart.training.recipe import make_recipe

from headstart.interop.exporters import ExportOptions, export_run
from headstart.interop.onnx.exported_run import open_export
from headstart.model.model import build_model
from headstart.model.presets import preset
from headstart.run import NetworkRun, Run
from headstart.tasks.classification import Classification
from headstart.text.reading.dataset import Dataset, Splits
from headstart.text.tokenizers.tokenizer import load_tokenizer
from headstart.training.finetune import plan_finetuning
from peers.documents import make_texts, make_tokenizer

CLASSES = ("no", "yes")
HELD_OUT = 16


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
    """Fine-tune; yields how many tokens each step's texts have, left out or not."""
    rows = Dataset("made up", make_texts(documents), labels, CLASSES)
    splits = Splits(rows, rows.pick(range(HELD_OUT)), None)
    recipe = make_recipe(
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
    setup = prepare_finetuning(recipe, folder, splits=splits)
    loop = plan_finetuning(setup).loop
    metrics, progress = MetricsFile(folder), loop.progress
    for step in range(loop.settings.steps):
        loop._step()
        metrics.on_step(progress)
        yield sum(len(setup.train.tokens[row]) for row in setup.order.batch(step))


class Predictor:
    """`predict` with a network of random weights."""

    def __init__(self, name: str, kind: str, sizes: dict[str, int], folder: Path) -> None:
        chosen = preset(name, objective=kind, **sizes)
        model = build_model(chosen.base, chosen.classification(len(CLASSES))).eval()
        tokenizer = load_tokenizer(make_tokenizer(sizes["vocab_size"], folder))
        self.run: Run = NetworkRun(folder, model, tokenizer, task=Classification(CLASSES))

    def __call__(self, texts: list[str]) -> None:
        assert len(self.run.predict(texts)) == len(texts)


class ExportedPredictor(Predictor):
    """The same with its export to ONNX."""

    def __init__(
        self, name: str, kind: str, sizes: dict[str, int], folder: Path, *, int8: bool
    ) -> None:
        super().__init__(name, kind, sizes, folder)
        out = folder / "onnx"
        self.run.save(folder / "run")
        export_run(folder / "run", "onnx", out, ExportOptions(int8=int8))
        self.run = open_export(out)
