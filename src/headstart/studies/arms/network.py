"""What the arms with a network share: the same network, rows, steps and batches."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from headstart.studies.arms.arm import (
    Amounts,
    Arm,
    Effort,
    Fitted,
    HeldOutPart,
    Need,
    Speed,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from headstart.config import FinetuneConfig
    from headstart.studies.context import ArmContext
    from headstart.studies.outcomes import Measure, RunKey
    from headstart.training.callbacks import Callback
    from headstart.training.trainer import TrainState

# What is kept of every epoch, beside the task's own metrics: part, metric, name in the table.
KEPT = (
    ("train", "loss", "train_loss"),
    ("validation", "loss", "validation_loss"),
)
SHOWN_APART = ("epoch", "step", "best", "seconds", "train_loss", "validation_loss")


class NetworkArm(Arm):
    """A fine-tuned Transformer; a subclass says what it starts from."""

    needs: ClassVar[frozenset[Need]] = frozenset({"tokenizer"})
    uses_objective: ClassVar[bool] = True
    is_network: ClassVar[bool] = True
    learns_long: ClassVar[bool] = False  # whether it is expected to choose the longer setting

    def changes(self, context: ArmContext, recipe: FinetuneConfig) -> dict[str, Any]:
        """Settings in which this arm differs from fine-tuning the base."""
        return {}

    def learning_seconds(self, speed: Speed) -> float:
        """Seconds to learn from one token."""
        return speed.trained_token

    def seconds(self, labels: int, effort: Effort, amounts: Amounts, speed: Speed) -> float:
        from headstart.folds import HELD_BACK, MANY
        from headstart.studies.arms.choosing import FOLDS, long_epochs

        usual, long = effort.epochs, effort.epochs if effort.fixed else long_epochs(effort.epochs)
        epochs = long if effort.tries > 1 and self.learns_long else usual
        trained, read = float(epochs * labels), float(labels)
        chooses = effort.tries > 1 and not effort.chosen
        if effort.tries and labels >= MANY:
            trained += (usual + long) * chooses * labels * (1 - 1 / HELD_BACK)
        elif effort.tries:
            folds = usual + long if chooses else epochs
            folds += epochs * (FOLDS - 1) * self.stackable
            trained += folds * labels * (FOLDS - 1) / FOLDS
            read += (effort.tries + FOLDS) * labels
        # Every row is read once more before the first step, to fit the head.
        read += (epochs + 1) * amounts.validation_rows + amounts.test_rows
        trained *= 1 - amounts.dropout_share
        seconds = trained * self.learning_seconds(speed) + read * speed.read_token
        return seconds * amounts.text_tokens

    def recipe(self, context: ArmContext) -> FinetuneConfig:
        """The recipe of this training, the same for every such arm except for `changes`."""
        from headstart.config import FinetuneConfig
        from headstart.studies.recipe import network_kind

        study, run = context.study.recipe, context.run
        settings: dict[str, Any] = {
            **study.dataset_settings(),
            "preset": study.preset,
            "epochs": context.study.epochs[run.labels],
            "labels": str(run.labels) if study.task == "classification" else None,
            "length": study.length,
            "device": "cpu",
            "seed": run.seed,
            "threads": context.study.threads,
            "precision": study.precision,
        }
        if context.base is not None:
            settings["base"] = context.base
        else:
            kind = network_kind(run.objective)
            tokenizer = context.study.tokenizer
            settings |= {"objective": kind, "tokenizer": tokenizer, **study.sizes()}
        usual = FinetuneConfig.create(**settings)
        return usual.replace(**self.changes(context, usual))

    def prepare(self, context: ArmContext) -> None:
        """Tokenize the held-out parts before the first training, not in each of them."""
        from headstart.text.tokenizers.tokenizer import load_tokenizer

        if not context.study.reads_whole_texts:
            return
        tokenizer = context.tokenizer if context.base is None else load_tokenizer(context.base)
        context.study.ids(tokenizer, "validation")
        context.study.ids(tokenizer, "test")

    def fit(self, context: ArmContext) -> Fitted:
        from headstart.evaluation.calibration import at_temperature
        from headstart.studies.arms.choosing import train_within_budget

        if not context.study.recipe.has_classes:
            return self._fit_task(context)
        if context.study.recipe.selection != "budget":
            return self._fit_once(context)
        found = train_within_budget(
            self.recipe(context),
            context,
            _epochs(context),
            fixed=bool(context.study.recipe.epochs),
            stacked=self.stackable and context.study.stacks,
        )
        measures, seconds = _measures(context.run, found.rows)
        facts = {
            "chosen": vars(found.setting),
            "tries": found.tries,
            "temperature": found.temperature,
        }
        own = None if found.own is None else at_temperature(found.own, found.temperature)
        return Fitted(
            lambda part: _probabilities(context, part, found.temperature),
            facts,
            measures,
            seconds,
            own=own,
            own_rows=found.own_rows,
            save=_keep_temperature(found.temperature),
        )

    def _fit_task(self, context: ArmContext) -> Fitted:
        """Train for a task without classes; a part of the budget chooses the epoch."""
        from headstart.studies.arms.held_back import train_held_back

        summary, rows = train_held_back(
            self.recipe(context),
            context,
            _epochs(context),
            fixed=bool(context.study.recipe.epochs),
        )
        measures, seconds = _measures(context.run, rows)
        facts = {"chosen": {"epochs": summary["best_epoch"]}, "tries": 1}
        return Fitted(lambda part: _answers(context, part), facts, measures, seconds)

    def _fit_once(self, context: ArmContext) -> Fitted:
        """Train once; the validation part chooses the epoch and the temperature, or nothing."""
        from safetensors.numpy import load_file

        from headstart.evaluation.calibration import fit_temperature
        from headstart.run import VALIDATION
        from headstart.studies.arms.choosing import begun
        from headstart.training.finetune import finetune

        folder, recipe = context.folder, self.recipe(context)
        fixed = context.study.recipe.selection == "none"
        run = finetune(
            recipe.replace(selection_metric="last") if fixed else recipe,
            folder,
            splits=context.splits,
            validation=lambda encoding: context.study.examples(encoding, "validation"),
            resume=begun(folder),
            callbacks=[_epochs(context)],
        )
        summary = run.summary
        temperature = 1.0
        if not fixed:
            logits = load_file(folder / VALIDATION)["logits"]  # of the epoch that was kept
            temperature = fit_temperature(logits, context.splits.validation.labels)
        measures, seconds = _measures(context.run, summary["epochs"])
        facts = {
            "chosen": {"epochs": summary["best_epoch"]},
            "tries": 1,
            "temperature": temperature,
        }
        return Fitted(
            lambda part: _probabilities(context, part, temperature),
            facts,
            measures,
            seconds,
            save=_keep_temperature(temperature),
        )


def _keep_temperature(temperature: float) -> Callable[[Path], None]:
    """The run is in its folder already; it was calibrated with the rows that it was watched by."""
    from headstart.run import write_temperature

    return partial(write_temperature, temperature)


def _epochs(context: ArmContext) -> Callback:
    """Reports every epoch to the study."""
    from headstart.training.callbacks import Callback

    class Epochs(Callback):
        def on_evaluation(self, state: TrainState) -> None:
            context.report_epoch(state.evaluations, state.metrics[context.task.metric])

    return Epochs()


def _measures(run: RunKey, epochs: list[dict[str, Any]]) -> tuple[list[Measure], float]:
    """The values of each epoch, and the seconds of all of them."""
    from headstart.studies.outcomes import Measure

    measures, seconds = [], 0.0
    for row in epochs:
        seconds += row["seconds"]
        others = [("validation", name, name) for name in row if name not in SHOWN_APART]
        for split, metric, name in [*KEPT, *others]:
            measures.append(Measure(run, row["epoch"], split, metric, row[name], seconds))
    return measures, seconds


def _probabilities(context: ArmContext, part: HeldOutPart, temperature: float) -> Any:
    """The predictions of the run's kept epoch for the rows of a held-out part."""
    from headstart.evaluation.calibration import at_temperature

    return at_temperature(_answers(context, part), temperature)


def _answers(context: ArmContext, part: HeldOutPart) -> Any:
    """The same as the task joins them: scores of classes, tags of words, answers."""
    from headstart.run import NetworkRun

    opened = NetworkRun.open(context.folder)
    examples = context.study.examples(opened.encoding, part)
    return opened.require_task().decode(opened.outputs(examples), examples)
