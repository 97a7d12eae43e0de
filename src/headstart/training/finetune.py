"""Fine-tuning: a base and labelled texts become a classifier (or what the task asks for).

`finetune` with `base="none"` trains the same network from scratch. The start is the only
difference: batches, head and everything else come from the recipe and its seed.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save_file

from headstart.files import replacing
from headstart.machine.facts import choose_threads
from headstart.model.checkpoint import WEIGHTS, save_model
from headstart.run_folder import SUMMARY, write_summary, write_task
from headstart.tasks import find_task
from headstart.tasks.examples import Examples, LabelledBatch, Reading
from headstart.tasks.run import run_network
from headstart.tasks.task import Parts, Task
from headstart.text.store.batches import LengthBatches
from headstart.text.tokenizers.tokenizer import hash_of
from headstart.training.checkpoints import Checkpoints
from headstart.training.epochs import epoch_rows
from headstart.training.finetune_data import read_splits
from headstart.training.finetune_recipe import NONE, FinetuneRecipe
from headstart.training.finetune_start import Start, find_start, reading_for
from headstart.training.identity import check_identity, write_identity
from headstart.training.loop import Loop, LoopSettings, MicroBatch, Progress
from headstart.training.metrics import Metrics, read_metrics
from headstart.training.prepare import Stages, quiet
from headstart.training.recipe_file import refuse_a_second_run, resumed, write_recipe
from headstart.training.threads import try_threads
from headstart.transfer.fit_head import can_be_fitted, fit_head
from headstart.transfer.strategies import learning_rate_scales, train_down_to, trained_depth

VALIDATION = "validation.safetensors"  # what the best epoch answers there
METRICS = "metrics.jsonl"
BETAS = (0.9, 0.999)


@dataclass(frozen=True)
class FinetuneListener:
    """What wants to know how it goes: a display, or nothing."""

    stages: Stages = quiet
    on_start: Callable[["Finetuning"], None] = lambda training: None
    on_step: Callable[[Progress], None] = lambda progress: None
    on_epoch: Callable[[dict[str, Any]], None] = lambda row: None


def finetune(
    recipe: FinetuneRecipe,
    folder: Path,
    *,
    splits: Parts[Any] | None = None,
    validation: Callable[[Reading], Examples] | None = None,
    resume: bool = False,
    listener: FinetuneListener | None = None,
    save_seconds: float = 60.0,
) -> dict[str, Any]:
    """Fine-tune on labelled texts; returns the run's summary, which is also in `summary.json`.

    `splits` are rows that were read already; without them the recipe's dataset is read. Only its
    training and validation parts are used here: the test part is for `evaluate`. `validation`
    encodes that part, for those who have tokenized it already.
    """
    if resume and (folder / SUMMARY).is_file():
        resumed(recipe, folder)
        summary: dict[str, Any] = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
        return summary  # it ended already
    return Finetuning(
        recipe,
        folder,
        splits=splits,
        validation=validation,
        resume=resume,
        listener=listener,
        save_seconds=save_seconds,
    ).run()


class Finetuning:
    """One fine-tuning, from its recipe to its run folder."""

    def __init__(
        self,
        recipe: FinetuneRecipe,
        folder: Path,
        *,
        splits: Parts[Any] | None = None,
        validation: Callable[[Reading], Examples] | None = None,
        resume: bool = False,
        listener: FinetuneListener | None = None,
        save_seconds: float = 60.0,
    ) -> None:
        self.folder, self.resume = folder, resume
        self.listener = listener or FinetuneListener()
        self.recipe = resumed(recipe, folder) if resume else recipe
        if not resume:
            refuse_a_second_run(folder)
        torch.set_num_threads(choose_threads(self.recipe.threads or None))
        kind = find_task(self.recipe.task)
        self.splits = read_splits(self.recipe, self.listener.stages) if splits is None else splits
        self.task: Task[Any] = kind.of(self.splits.train)
        stages = self.listener.stages
        texts = self.task.texts(self.splits.train)
        self.start: Start = find_start(self.recipe, self.task, texts, stages=stages)
        self.identity = self._identity()
        if resume:
            check_identity(self.identity, folder)
        self.model = self.start.model
        self.model.base.embedding.sparse = True  # rows that no text of a step uses cost nothing
        self.reading = reading_for(self.recipe, self.task, self.start)
        train = self.task.encode(self.splits.train, self.reading, progress=stages("reading"))
        encode = validation or (lambda reading: self.task.encode(self.splits.validation, reading))
        self.cut = train.cut
        self.train: Examples = train
        self.held_out: Examples = encode(self.reading)
        self.weights = (
            self.task.balanced(self.splits.train, train) if self.recipe.balance else train.weights
        )
        self.order = LengthBatches(
            train.lengths, batch_size=self.recipe.batch_size, seed=self.recipe.seed
        )
        self.metrics = Metrics(folder / METRICS)
        self.answers: Any = None
        self.loop = self._loop(save_seconds)
        if not self.recipe.threads:
            self.recipe = self.recipe.changed(threads=try_threads(self.loop))
            torch.set_num_threads(self.recipe.threads)

    def run(self) -> dict[str, Any]:
        self.listener.on_start(self)
        if not self.resume:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.start.tokenizer.save(self.folder)
            write_task(self.task, self.reading, self.folder)
            write_identity(self.identity, self.folder)
            write_recipe(self.recipe, self.folder)  # last: with it, this is a run
        found = self._checkpoints.list()
        self.metrics.cut_after(found[-1].step if found and self.resume else 0)
        if not (self.resume and found) and self.recipe.new_head == "fitted":
            self._fit_head()
        progress = self.loop.run(resume=self.resume and bool(found))
        return self._finish(progress)

    def _fit_head(self) -> None:
        if can_be_fitted(self.model):
            told = self.listener.stages("fitting the head")
            fit_head(self.model, self.train, self.weights, self.held_out, progress=told)

    def batches(self, step: int) -> list[MicroBatch]:
        """A step's texts, cut where they would not fit into memory."""
        epoch = step // self.order.steps_per_epoch
        train_down_to(
            self.model, trained_depth(self.recipe.strategy, epoch, self.model.base.config.layers)
        )
        return [self._micro_batch(rows) for rows in self._fitting(self.order.batch(step))]

    def _fitting(self, rows: Any) -> list[Any]:
        """A step's texts in parts that fit into memory, however many windows they have."""
        self.most_rows = max(
            1, self.recipe.micro_batch_tokens // int(self.train.lengths[rows].max())
        )
        parts: list[list[int]] = [[]]
        taken = 0
        for row, count in zip(rows, np.minimum(self.train.rows[rows], self.most_rows), strict=True):
            if parts[-1] and taken + count > self.most_rows:
                parts.append([])
                taken = 0
            parts[-1].append(int(row))
            taken += int(count)
        return [np.array(part) for part in parts]

    def _micro_batch(self, rows: Any) -> MicroBatch:
        batch: LabelledBatch = self.train.batch(rows, most=self.most_rows).to(self.loop.device)
        weights = torch.from_numpy(self.weights[rows]).to(self.loop.device)

        def compute() -> torch.Tensor:
            outputs = self.model(
                batch.tokens, batch.segments, batch.token_types, owners=batch.owners
            )
            smoothing = self.recipe.label_smoothing
            return (self.task.losses(outputs, batch, smoothing=smoothing) * weights).sum()

        return MicroBatch(compute, float(weights.sum()), int(batch.segments.sum()))

    def evaluate(self) -> dict[str, float]:
        outputs = run_network(self.model, self.held_out)
        self.answers = self.task.join(outputs, self.held_out)
        return self.task.metrics(self.answers, self.splits.validation)

    @property
    def steps(self) -> int:
        return self.recipe.epochs * self.order.steps_per_epoch

    @property
    def _checkpoints(self) -> Checkpoints:
        return Checkpoints(self.folder / "checkpoints")

    def _loop(self, save_seconds: float) -> Loop:
        recipe = self.recipe
        if recipe.strategy == "frozen":
            train_down_to(self.model, 0)  # so that the optimizer does not even know the rest
        settings = LoopSettings(
            steps=self.steps,
            learning_rate=recipe.learning_rate,
            seed=recipe.seed,
            warmup=recipe.warmup,
            weight_decay=recipe.weight_decay,
            betas=BETAS,
            shape=recipe.schedule,
            exploded=float("inf"),  # one confident mistake in a batch of few is no breakdown
            precision=recipe.precision,
            evaluate_every=self.order.steps_per_epoch,
            save_seconds=save_seconds,
        )
        return Loop(
            self.model,
            settings,
            batches=self.batches,
            evaluate=self.evaluate,
            checkpoints=self._checkpoints,
            choose=self._choose,
            enough=self._enough,
            scales=learning_rate_scales(self.model, recipe.layer_decay),
            on_step=self._on_step,
            on_evaluation=self._on_evaluation,
            on_best=self._on_best,
        )

    def _choose(self, evaluation: dict[str, float]) -> float:
        if self.recipe.choose_by == "loss":
            return evaluation["loss"]
        # Of two epochs that are equally good, the one with the lower loss.
        return -evaluation[self.task.metric] + 1e-6 * min(evaluation["loss"], 100.0)

    def _enough(self, progress: Progress) -> bool:
        waited = progress.step - progress.best_step
        patience = self.recipe.patience
        return bool(patience) and waited >= patience * self.order.steps_per_epoch

    def _on_step(self, progress: Progress) -> None:
        self.metrics.write(progress)
        self.listener.on_step(progress)

    def _on_evaluation(self, progress: Progress) -> None:
        self.metrics.write(progress, evaluation=True)
        self.listener.on_epoch(self._rows(progress)[-1])

    def _on_best(self, progress: Progress) -> None:
        save_model(self.model, self.folder)
        with replacing(self.folder / VALIDATION) as temporary:
            save_file(self.task.kept(self.answers, self.splits.validation), temporary)

    def _rows(self, progress: Progress) -> list[dict[str, Any]]:
        return epoch_rows(read_metrics(self.metrics.path), best_step=progress.best_step)

    def _identity(self) -> dict[str, str]:
        parts = [vars(self.splits.train), vars(self.splits.validation)]
        identity = {
            "dataset": hash_of(json.dumps(parts, default=list).encode()),
            "tokenizer": self.start.tokenizer.fingerprint,
        }
        if self.recipe.base != NONE:
            weights = Path(self.recipe.base) / WEIGHTS
            identity["base"] = hash_of(weights.read_bytes())
        return identity

    def _finish(self, progress: Progress) -> dict[str, Any]:
        rows = self._rows(progress)
        best = next(row for row in rows if row["best"])
        summary = {
            "run": str(self.folder),
            "task": self.task.name,
            "labels": list(self.task.labels),
            "base": self.recipe.base,
            "seed": self.recipe.seed,
            "train_rows": len(self.splits.train),
            "validation_rows": len(self.splits.validation),
            "steps": progress.step,
            "tokens": progress.tokens,
            "seconds": progress.seconds,
            "cut": self.cut,
            "epochs": rows,
            "best_epoch": best["epoch"],
            "validation": {
                name: best[name] for name in best if name not in ("epoch", "step", "best")
            },
            "parameters": sum(p.numel() for p in self.model.parameters()),
            "swap": [vars(row) for row in self.start.swap],
        }
        write_summary(summary, self.folder)
        shutil.rmtree(self._checkpoints.folder, ignore_errors=True)  # it has ended
        return summary
