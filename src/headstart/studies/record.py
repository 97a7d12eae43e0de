"""The study's results as files: tidy measures, predictions, study.json, the best classifier."""

import shutil
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from headstart.machine import look_up
from headstart.model.account_report import account_document
from headstart.model.accounts import account
from headstart.model.presets import Preset
from headstart.run_folder import name_place
from headstart.studies.arms import find_arm
from headstart.studies.bases import pretraining_curve
from headstart.studies.outcomes import Outcome, RunKey, read_training
from headstart.studies.plan import study_preset
from headstart.studies.results import (
    Predictions,
    PretrainingCurve,
    Study,
    TestRow,
    write_measures,
    write_predictions,
    write_study,
    write_test_rows,
)
from headstart.studies.run import StudyRun
from headstart.studies.words import dataset_name
from headstart.text.checking.splits import take_budget
from headstart.text.tokenizers.tokenizer import load_tokenizer
from headstart.training.recipe import PretrainRecipe

VERSIONS = ("headstart", "torch", "tokenizers", "scikit-learn", "numpy")


@dataclass(frozen=True)
class Best:
    """The best classifier by validation at the most labels, and whether a network is behind."""

    run: RunKey
    accuracy: float
    network: RunKey | None  # the best one with a network, kept in `best/`
    network_accuracy: float | None


def write_results(study: StudyRun, *, command: str) -> Best:
    """Write everything that the report is made from; then keep the best classifier."""
    outcomes = [read_training(study.folder, run) for run in study.runs]
    write_measures(study.folder, (m for one in outcomes for m in one.measures))
    rows = np.arange(len(study.data.test), dtype=np.int64)
    gold = np.asarray(study.data.test.labels, dtype=np.int64)
    write_predictions(
        study.folder,
        (
            Predictions(one.run, rows, gold, one.test.argmax(axis=1).astype(np.int64), one.test)
            for one in outcomes
        ),
    )
    test = study.data.test
    write_test_rows(
        study.folder,
        (
            TestRow(row, text, test.label_names[label])
            for row, (text, label) in enumerate(zip(test.texts, test.labels, strict=True))
        ),
    )
    best = keep_best(study, outcomes)
    write_study(
        study.folder, replace(_study(study, command), best=asdict(best.network or best.run))
    )
    return best


def keep_best(study: StudyRun, outcomes: list[Outcome]) -> Best:
    """The best on validation is kept; any other run leaves no weights behind."""
    last = [one for one in outcomes if one.run.labels == study.plan.budgets[-1]]

    def order(one: Outcome) -> tuple[float, float]:
        return (one.measure("validation", "accuracy"), -one.measure("validation", "loss"))

    best = max(last, key=order)
    networks = [one for one in last if find_arm(one.run.arm).is_network]
    chosen = max(networks, key=order) if networks else None
    place = study.folder / "best"
    if chosen is not None and not place.exists():
        trained = study.context.run_folder(chosen.run)
        name_place(trained, place)
        trained.replace(place)
    shutil.rmtree(study.folder / "runs", ignore_errors=True)
    return Best(
        best.run,
        order(best)[0],
        chosen.run if chosen else None,
        order(chosen)[0] if chosen else None,
    )


def _study(study: StudyRun, command: str) -> Study:
    recipe, data, plan = study.recipe, study.data, study.plan
    facts = look_up()
    return Study(
        dataset=dataset_name(recipe.dataset),
        corpus=_corpus(study),
        label_names=list(data.splits.train.label_names),
        splits={name: len(part) for name, part in data.splits.parts().items()},
        command=command,
        seeds=plan.seeds,
        budgets=plan.budgets,
        arms=recipe.arms,
        versions={"python": facts.python} | {name: version(name) for name in VERSIONS},
        machine={
            "processor": facts.cpu,
            "cores": facts.usable_cores,
            "memory": f"{facts.memory_bytes / 1e9:.1f} GB",
            "trainings side by side": plan.jobs,
            "threads of each": plan.threads,
            "threads of pretraining": plan.pretrain_threads,
        },
        minutes=study.minutes,
        warnings=[*data.warnings, *_notes(study)],
        task_texts=len(data.corpus.task_text) if data.corpus is not None else 0,
        overlap_dropped=data.overlap_dropped,
        parameters=_parameters(study),
        pretraining=_pretraining(study),
        all_labels=len(take_budget(data.splits.train, "all", 0)),
        cuts=plan.cuts,
        choose_by=recipe.choose_by,
    )


def _corpus(study: StudyRun) -> str:
    names = ", ".join(Path(one).name for one in study.recipe.corpus)
    if study.recipe.base:
        return f"the base {Path(study.recipe.base).name}"
    return names if any(arm.needs_corpus for arm in study.recipe.arm_objects) else ""


def _notes(study: StudyRun) -> list[str]:
    notes = []
    if study.recipe.choose_by == "validation":
        notes.append(
            f"{len(study.data.splits.validation):,} labelled validation rows chose epochs, "
            "strengths and weights beside each label budget"
        )
    if study.recipe.needs_base:
        steps = study.plan.pretrain_steps
        how = f"{steps * PretrainRecipe.batch_tokens:,} tokens" if steps else "elsewhere"
        if study.recipe.bases > 1:
            notes.append(
                f"{study.recipe.bases} bases were pretrained from different seeds ({how} each), "
                "and the seeds of the study take turns with them: the intervals are over "
                "pretrainings too"
            )
        else:
            notes.append(
                f"each base was pretrained once ({how}): the intervals are over labelled rows, "
                "fresh heads and test rows, not over pretrainings"
            )
    return notes


def _parameters(study: StudyRun) -> dict[str, dict[str, Any]]:
    if not study.recipe.has_networks:
        return {}
    found = {}
    for objective in study.recipe.objectives:
        chosen = _trained_preset(study, objective)
        classes = len(study.data.splits.train.label_names)
        accounts = account(chosen.base, chosen.language_modeling, chosen.classification(classes))
        found[objective] = account_document(accounts, chosen)
    return found


def _trained_preset(study: StudyRun, objective: str) -> Preset:
    """A small corpus has fewer pieces than the preset: what was trained is what counts."""
    if study.recipe.base:
        return study_preset(study.recipe, objective)
    trained = (
        study.base_folder(objective) if study.recipe.needs_base else study.folder / "tokenizer"
    )
    pieces = load_tokenizer(trained).vocab_size
    return study_preset(study.recipe.changed(vocab_size=pieces), objective)


def _pretraining(study: StudyRun) -> list[PretrainingCurve]:
    if not study.recipe.needs_base:
        return []
    texts = study.data.splits.validation.texts
    return [
        pretraining_curve(study.base_folder(objective), objective, texts)
        for objective in study.recipe.objectives
    ]
