"""What the arms with a network share: the same network, rows, steps and batches."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, ClassVar

from headstart.studies.arms.arm import (
    Amounts,
    Arm,
    Fitted,
    HeldOutPart,
    Need,
    Speed,
)

if TYPE_CHECKING:
    from headstart.studies.context import ArmContext
    from headstart.studies.outcomes import Measure, RunKey
    from headstart.training.listener import Listener, Progress
    from headstart.training.recipe import FinetuneRecipe

# What is kept of every epoch: part, metric, and its name in the training's table.
KEPT = (
    ("train", "loss", "train_loss"),
    ("validation", "loss", "validation_loss"),
    ("validation", "accuracy", "accuracy"),
    ("validation", "macro_f1", "macro_f1"),
)


class NetworkArm(Arm):
    """A fine-tuned Transformer; a subclass says what it starts from."""

    needs: ClassVar[frozenset[Need]] = frozenset({"tokenizer"})
    uses_objective: ClassVar[bool] = True
    is_network: ClassVar[bool] = True

    def changes(self, context: ArmContext, recipe: FinetuneRecipe) -> dict[str, Any]:
        """Settings in which this arm differs from fine-tuning the base."""
        return {}

    def learning_seconds(self, speed: Speed) -> float:
        """Seconds to learn from one token."""
        return speed.trained_token

    def seconds(self, labels: int, epochs: int, amounts: Amounts, speed: Speed) -> float:
        trained = epochs * labels * amounts.text_tokens
        # Every row is read once more before the first step, to fit the head.
        rows = labels + (epochs + 1) * amounts.validation_rows + amounts.test_rows
        read = rows * amounts.text_tokens
        return trained * self.learning_seconds(speed) + read * speed.read_token

    def recipe(self, context: ArmContext) -> FinetuneRecipe:
        """The recipe of this training, the same for every such arm except for `changes`."""
        from headstart.studies.recipe import network_kind
        from headstart.training.recipe import make_recipe
        from headstart.training.recipe_file import DATASET_SETTINGS

        study, run = context.study.recipe, context.run
        settings: dict[str, Any] = {
            **{name: getattr(study, name) for name in DATASET_SETTINGS},
            "preset": study.preset,
            "objective": network_kind(run.objective),
            "epochs": context.study.epochs[run.labels],
            "labels": str(run.labels),
            "seed": run.seed,
            "threads": context.study.threads,
        }
        if study.length:
            settings["length"] = study.length
        if run.objective in context.study.bases:
            settings["base"] = context.study.bases[run.objective]
        else:
            settings |= {"tokenizer": context.study.tokenizer, **study.sizes()}
        usual = make_recipe(**settings)
        return usual.changed(**self.changes(context, usual))

    def prepare(self, context: ArmContext) -> None:
        """Tokenize the held-out parts before the first training, not in each of them."""
        from headstart.text.tokenizers.tokenizer import load_tokenizer

        base = context.study.bases.get(context.run.objective)
        tokenizer = context.tokenizer if base is None else load_tokenizer(base)
        context.study.ids(tokenizer, "validation")
        context.study.ids(tokenizer, "test")

    def fit(self, context: ArmContext) -> Fitted:
        from safetensors.numpy import load_file

        from headstart.evaluation.calibration import at_temperature
        from headstart.run_folder import VALIDATION
        from headstart.training.finetune import finetune
        from headstart.training.recipe_file import FILE

        folder = context.folder
        resume = (folder / FILE).is_file()
        if not resume:
            shutil.rmtree(folder, ignore_errors=True)  # killed before it was a run
        summary = finetune(
            self.recipe(context),
            folder,
            splits=context.splits,
            validation=lambda encoding: context.study.examples(encoding, "validation"),
            resume=resume,
            listener=_epochs(context),
        )

        def answer(part: HeldOutPart) -> Any:
            if part == "validation":  # kept by the best epoch
                return at_temperature(load_file(folder / VALIDATION)["logits"], 1.0)
            return _probabilities(context)

        measures, seconds = _measures(context.run, summary["epochs"])
        facts = {name: summary[name] for name in ("best_epoch", "steps", "cut")}
        return Fitted(answer, facts, measures, seconds)


def _epochs(context: ArmContext) -> Listener:
    """Reports every epoch to the study."""
    from headstart.training.listener import Listener

    class Epochs(Listener):
        def on_evaluation(self, progress: Progress) -> None:
            context.report_epoch(progress.evaluations, progress.evaluation["accuracy"])

    return Epochs()


def _measures(run: RunKey, epochs: list[dict[str, Any]]) -> tuple[list[Measure], float]:
    """The values of each epoch, and the seconds of all of them."""
    from headstart.studies.outcomes import Measure

    measures, seconds = [], 0.0
    for row in epochs:
        seconds += row["seconds"]
        for split, metric, name in KEPT:
            measures.append(Measure(run, row["epoch"], split, metric, row[name], seconds))
    return measures, seconds


def _probabilities(context: ArmContext) -> Any:
    """The predictions of the run's best epoch for the test rows."""
    import torch

    from headstart.evaluation.calibration import at_temperature
    from headstart.run_folder import open_run
    from headstart.tasks.classification import Classification
    from headstart.tasks.run_network import run_network

    opened = open_run(context.folder)
    examples = context.study.examples(opened.encoding, "test")
    with torch.no_grad():
        outputs = run_network(opened.model, examples)
    return at_temperature(Classification(context.label_names).join(outputs, examples), 1.0)
