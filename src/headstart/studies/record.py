"""The study's results as files: tidy measures, predictions, study.json, the best classifier."""

from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from headstart.config import PretrainConfig
from headstart.data.corpus import Corpus
from headstart.data.dataset import as_text
from headstart.data.overlap import overlap_sentence
from headstart.data.tokenizers import load_tokenizer
from headstart.machine import look_up
from headstart.model.counts import count_parameters
from headstart.model.presets import Preset
from headstart.studies.bases import pretraining_curve
from headstart.studies.keep_best import Best, keep_best
from headstart.studies.outcomes import Outcome, read_training
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
from headstart.studies.study_task import gold_words, take_rows
from headstart.studies.words import dataset_name

VERSIONS = ("headstart", "torch", "tokenizers", "scikit-learn", "numpy")


def write_results(study: StudyRun, *, command: str) -> Best:
    """Write everything that the report is made from; then keep the best classifier."""
    outcomes = [read_training(study.folder, run) for run in study.runs]
    write_measures(study.folder, (m for one in outcomes for m in one.measures))
    test, task = study.data.test, study.data.task
    write_predictions(study.folder, (_predictions(one, test) for one in outcomes))
    texts, gold = map(as_text, test.keys), gold_words(task, test)
    rows = zip(range(len(test)), texts, gold, strict=True)
    write_test_rows(study.folder, (TestRow(*row) for row in rows))
    best = keep_best(study.context, outcomes)
    kept = asdict(best.kept or best.run)
    write_study(study.folder, replace(_study(study, command), best=kept))
    return best


def _predictions(one: Outcome, test: Any) -> Predictions:
    rows = np.arange(len(test), dtype=np.int64)
    if len(one.scores):  # no classes: what each row adds to the metric says it all
        none = np.zeros(len(test), dtype=np.int64)
        return Predictions(one.run, rows, none, none, np.zeros((len(test), 0)), one.scores)
    gold = np.asarray(test.labels, dtype=np.int64)
    return Predictions(one.run, rows, gold, one.test.argmax(axis=1).astype(np.int64), one.test)


def _study(study: StudyRun, command: str) -> Study:
    recipe, data, plan = study.recipe, study.data, study.plan
    facts = look_up()
    return Study(
        dataset=recipe.name or dataset_name(recipe.dataset),
        corpus=_corpus(study),
        label_names=list(data.task.labels),
        task=data.task.name,
        metric=data.task.metric,
        splits={name: len(part) for name, part in data.splits.parts().items()},
        command=command,
        seeds=plan.seeds,
        budgets=plan.budgets,
        arms=recipe.arms,
        versions={"python": facts["python"]} | {name: version(name) for name in VERSIONS},
        machine={
            "processor": facts["cpu"],
            "cores": facts["usable_cores"],
            "memory": f"{facts['memory_bytes'] / 1e9:.1f} GB",
            **({} if recipe.executor == "local" else {"executor": recipe.executor}),
            "trainings side by side": plan.jobs,
            "threads of each": plan.threads,
            "threads of pretraining": plan.pretrain_threads,
        },
        minutes=study.minutes,
        warnings=[*data.warnings, *_notes(study)],
        task_texts=_joined_texts(data.corpus),
        overlap_dropped=data.overlap_dropped,
        overlap_checked=overlap_sentence(data.left_out) if data.corpus is not None else "",
        parameters=_parameters(study),
        pretraining=_pretraining(study),
        all_labels=len(take_rows(data.task, data.splits.train, "all", 0)),
        cuts=plan.cuts,
        selection=recipe.selection,
        shared_test=data.test is data.splits.validation,
    )


def _corpus(study: StudyRun) -> str:
    names = ", ".join(Path(one).name for one in study.recipe.corpus)
    if study.recipe.base:
        return f"the base {Path(study.recipe.base).name}"
    if study.recipe.uses_own_texts:
        return "its own training texts"
    return names if any(arm.needs_corpus for arm in study.recipe.arm_objects) else ""


def _joined_texts(corpus: Corpus | None) -> int:
    """How many training texts joined a corpus; none where they are the corpus."""
    return 0 if corpus is None or corpus.is_task_text else len(corpus.task_text)


def _notes(study: StudyRun) -> list[str]:
    notes = []
    if study.recipe.selection == "none" and study.recipe.has_networks:
        notes.append(
            "no setting of a network was chosen: each took all of its epochs and kept the last "
            "one, and a stack weighs its members equally; the validation part chose which arm is "
            "kept, and nothing else"
        )
    if study.recipe.selection == "validation":
        notes.append(
            f"{len(study.data.splits.validation):,} labelled validation rows chose epochs, "
            "strengths and weights beside each label budget"
        )
    if study.recipe.needs_base:
        steps = study.plan.pretrain_steps
        how = f"{steps * PretrainConfig.batch_tokens:,} tokens" if steps else "elsewhere"
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
        classes = max(2, len(study.data.task.labels))
        found[objective] = count_parameters(chosen, classes).document()
    return found


def _trained_preset(study: StudyRun, objective: str) -> Preset:
    """A small corpus has fewer pieces than the preset: what was trained is what counts."""
    if study.recipe.base:
        return study_preset(study.recipe, objective)
    trained = (
        study.base_folder(objective) if study.recipe.needs_base else study.folder / "tokenizer"
    )
    pieces = load_tokenizer(trained).vocab_size
    return study_preset(study.recipe.replace(vocab_size=pieces), objective)


def _pretraining(study: StudyRun) -> list[PretrainingCurve]:
    if not study.recipe.needs_base:
        return []
    texts = study.data.task.texts(study.data.splits.validation)
    return [
        pretraining_curve(study.base_folder(objective), objective, texts)
        for objective in study.recipe.objectives
    ]
