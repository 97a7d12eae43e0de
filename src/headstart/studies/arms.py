"""The arms: one function each, from a budget's labelled rows to probabilities.

Every arm is given the same rows: `splits` holds the budget's training rows for the seed and the
parts that are the same for all. The arms with a network also take the same number of steps over
them in the same order: batches depend on the seed and the rows' lengths alone. Only the start
differs.
"""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import load_file

from headstart.baselines.cooccurrence import CooccurrenceClassifier
from headstart.baselines.stack import Stack, over_all_classes
from headstart.baselines.tfidf import TfidfClassifier
from headstart.evaluation.calibration import at_temperature
from headstart.evaluation.metrics import classification_metrics
from headstart.run_folder import open_run
from headstart.studies.recipe import StudyRecipe
from headstart.studies.results import FINAL, Measure, RunKey
from headstart.studies.trainings import Outcome, read_training, training_name
from headstart.tasks.classification import Classification
from headstart.tasks.run import run_network
from headstart.text.reading.dataset import Dataset, Splits
from headstart.text.tokenizers.tokenizer import load_tokenizer
from headstart.training.finetune import VALIDATION, FinetuneListener, finetune
from headstart.training.finetune_recipe import FinetuneRecipe, make_recipe
from headstart.training.recipe_file import FILE

# A head alone, drawn at random, has few weights and none of them is worth protecting: at the usual
# rate it would still be on its way when the steps are over. A fitted one is where it should be.
FROZEN_LEARNING_RATE = 3e-3
Tell = Callable[[int, float], None]  # an epoch and its validation accuracy


@dataclass(frozen=True)
class Ground:
    """What the arms stand on: files of the study's folder, the same for every training."""

    folder: Path
    recipe: StudyRecipe
    epochs: dict[int, int]  # of each budget
    bases: dict[str, str] = field(default_factory=dict)  # objective -> run
    tokenizer: str = ""
    vectors: str = ""
    threads: int = 1

    def run_folder(self, run: RunKey) -> Path:
        return self.folder / "runs" / training_name(run)


def train(run: RunKey, splits: Splits, ground: Ground, tell: Tell) -> Outcome:
    """Run one training of the study, from a checkpoint if there is one."""
    return ARM_FUNCTIONS[run.arm](run, splits, ground, tell)


def tfidf(run: RunKey, splits: Splits, ground: Ground, tell: Tell) -> Outcome:
    texts = {name: part.texts for name, part in splits.parts().items()}
    return _regression(run, splits, TfidfClassifier(), texts)


def cooccurrence(run: RunKey, splits: Splits, ground: Ground, tell: Tell) -> Outcome:
    tokenizer = load_tokenizer(ground.tokenizer)
    vectors = load_file(ground.vectors)["vectors"]
    ids = {name: tokenizer.encode_arrays(part.texts) for name, part in splits.parts().items()}
    return _regression(run, splits, CooccurrenceClassifier(vectors), ids)


def _regression(run: RunKey, splits: Splits, arm: Any, texts: dict[str, Any]) -> Outcome:
    started = time.monotonic()
    held_out = (texts["validation"], splits.validation.labels)
    arm.fit(texts["train"], splits.train.labels, validation=held_out)
    every = range(len(splits.train.label_names))
    answers = [
        over_all_classes(arm.predict_proba(texts[name]), arm.classes_.tolist(), every)
        for name in ("validation", "test")
    ]
    facts = {"strength": arm.strength_}
    return _outcome(run, splits, answers, [], time.monotonic() - started, facts)


def stack(run: RunKey, splits: Splits, ground: Ground, tell: Tell) -> Outcome:
    """The other arms' probabilities, combined; they must have finished."""
    started = time.monotonic()
    members = stack_members(run, ground.recipe)
    outcomes = [read_training(ground.folder, member) for member in members]
    mixture = Stack().fit([one.validation for one in outcomes], splits.validation.labels)
    answers = [
        mixture.combine([getattr(one, part) for one in outcomes]) for part in ("validation", "test")
    ]
    weights = {
        member.arm: float(weight) for member, weight in zip(members, mixture.weights_, strict=True)
    }
    return _outcome(run, splits, answers, [], time.monotonic() - started, {"weights": weights})


def stack_members(run: RunKey, recipe: StudyRecipe) -> list[RunKey]:
    return [
        RunKey(arm, run.objective if arm == "pretrained" else "", run.labels, run.seed)
        for arm in recipe.stacked
    ]


def network(run: RunKey, splits: Splits, ground: Ground, tell: Tell) -> Outcome:
    """`scratch`, `pretrained` and `frozen`: the same network, rows and steps."""
    recipe = network_recipe(run, ground)
    folder = ground.run_folder(run)
    resume = (folder / FILE).is_file()
    if not resume:
        shutil.rmtree(folder, ignore_errors=True)  # killed before it was a run
    listener = FinetuneListener(on_epoch=lambda row: tell(row["epoch"], row["accuracy"]))
    summary = finetune(recipe, folder, splits=splits, resume=resume, listener=listener)
    validation = at_temperature(load_file(folder / VALIDATION)["logits"], 1.0)
    assert splits.test is not None
    test = _probabilities(folder, splits.test, recipe)
    measures, seconds = [], 0.0
    for row in summary["epochs"]:
        seconds += row["seconds"]
        for split, metric, name in (
            ("train", "loss", "train_loss"),
            ("validation", "loss", "validation_loss"),
            ("validation", "accuracy", "accuracy"),
            ("validation", "macro_f1", "macro_f1"),
        ):
            measures.append(Measure(run, row["epoch"], split, metric, row[name], seconds))
    facts = {name: summary[name] for name in ("best_epoch", "steps", "cut")}
    return _outcome(run, splits, [validation, test], measures, seconds, facts)


def network_recipe(run: RunKey, ground: Ground) -> FinetuneRecipe:
    study = ground.recipe
    settings: dict[str, Any] = {
        "dataset": study.dataset,
        "validation": study.validation,
        "test": study.test,
        "text_column": study.text_column,
        "label_column": study.label_column,
        "encoding": study.encoding,
        "drop_overlap": study.drop_overlap,
        "split_seed": study.split_seed,
        "preset": study.preset,
        "objective": "causal" if run.objective == "causal" else "masked",
        "epochs": ground.epochs[run.labels],
        "seed": run.seed,
        "threads": ground.threads,
    }
    if study.length:
        settings["length"] = study.length
    if run.objective in ground.bases:
        settings["base"] = ground.bases[run.objective]
        settings["fresh"] = run.arm == "scratch"
    else:
        settings |= {"tokenizer": ground.tokenizer, **study.sizes()}
    if run.arm == "frozen":
        settings["strategy"] = "frozen"
    recipe = make_recipe(**settings)
    if run.arm == "frozen" and recipe.new_head == "drawn":
        return recipe.changed(learning_rate=FROZEN_LEARNING_RATE)
    return recipe


def _probabilities(folder: Path, part: Dataset, recipe: FinetuneRecipe) -> Any:
    """What the run's best epoch says of these rows."""
    opened = open_run(folder)
    task = Classification(part.label_names)
    examples = task.encode(part, opened.encoding)
    with torch.no_grad():
        answers = task.join(run_network(opened.model, examples), examples)
    return at_temperature(answers, 1.0)


def _outcome(
    run: RunKey,
    splits: Splits,
    answers: list[Any],
    measures: list[Measure],
    seconds: float,
    facts: dict[str, Any],
) -> Outcome:
    assert splits.test is not None
    names = splits.train.label_names
    validation, test = (np.asarray(answer, dtype=np.float32) for answer in answers)
    final = []
    for name, said, part in (
        ("validation", validation, splits.validation),
        ("test", test, splits.test),
    ):
        found = classification_metrics(said, part.labels, names)
        for metric, value in (
            ("accuracy", found.accuracy.value),
            ("macro_f1", found.macro_f1),
            ("loss", found.log_loss),
        ):
            final.append(Measure(run, FINAL, name, metric, value, seconds))
    return Outcome(run, [*measures, *final], validation, test, facts)


ARM_FUNCTIONS: dict[str, Callable[[RunKey, Splits, Ground, Tell], Outcome]] = {
    "tfidf": tfidf,
    "cooccurrence": cooccurrence,
    "scratch": network,
    "pretrained": network,
    "frozen": network,
    "stack": stack,
}
