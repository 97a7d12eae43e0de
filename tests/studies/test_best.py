"""Whatever arm wins can be used: its folder answers as the study's own training did."""

from dataclasses import replace

import numpy as np
import pytest

import headstart
from headstart.config import FinetuneConfig
from headstart.run import Run, evaluation_rows
from headstart.studies.keep_best import keep_best, measure_own, trained_folder
from headstart.studies.outcomes import read_training
from headstart.studies.run import StudyRun
from tests.studies.small_arms import Majority, registered
from tests.studies.small_study import small_recipe

ARMS = ["tfidf", "nb", "cooccurrence", "scratch", "pretrained", "stack"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A study whose trainings have ended and whose best arm was not chosen yet."""
    folder = tmp_path_factory.mktemp("study")
    recipe = small_recipe(folder, arms=ARMS, labels=["60"], seeds=2, tokens=2 * 2048)
    study = StudyRun(recipe, folder / "out")
    study.run()
    return study


@pytest.mark.parametrize("arm", ARMS)
def test_every_arm_answers_for_the_test_rows_as_it_did_in_the_study(trained, arm):
    texts = trained.data.test.texts
    for run in [run for run in trained.runs if run.arm == arm]:
        outcome = read_training(trained.folder, run)
        opened = headstart.load(trained_folder(trained.context, outcome))
        found = opened.predict_proba(texts).astype(np.float32)
        assert np.array_equal(found, outcome.test)


@pytest.mark.parametrize("arm", ["tfidf", "stack"])
def test_every_arm_is_evaluated_by_the_study_s_own_test_part(trained, arm):
    run = next(run for run in trained.runs if run.arm == arm)
    outcome = read_training(trained.folder, run)
    opened = Run.open(trained_folder(trained.context, outcome))
    part, _ = evaluation_rows(FinetuneConfig.load(opened.folder), opened.task, None)
    found = opened.evaluate(part)
    assert found["seen_rows"] == 0
    assert found["accuracy"] == outcome.measure("test", "accuracy")


def spoken(outcome, rows, *, test=None):
    """An outcome whose unseen rows of the budget, or test rows, are answered like this."""
    own = np.array(rows, dtype=np.float32)
    answers = {} if test is None else {"test": np.array(test, dtype=np.float32)}
    return replace(outcome, own=own, own_rows=np.arange(len(own)), **answers)


def test_rows_of_the_budget_choose_the_best_arm_and_the_test_part_does_not(trained):
    labels = trained.context.for_run(trained.runs[0]).splits.train.labels[:10]
    right = np.eye(2)[labels] * 0.8 + 0.1
    chosen = []
    for winner in ("tfidf", "scratch"):
        outcomes = [
            spoken(
                read_training(trained.folder, run),
                right if run.arm == winner else 1 - right,
                test=np.full((len(trained.data.test), 2), 0.5),
            )
            for run in trained.runs
        ]
        best = min(measure_own(outcomes, trained.context), key=lambda one: one.loss)
        chosen.append(best.run.arm)
    assert chosen == ["tfidf", "scratch"]


def test_arms_are_compared_on_rows_that_all_of_them_have_answered(trained):
    first, second = (read_training(trained.folder, trained.runs[n]) for n in (0, 2))
    assert first.run.seed == second.run.seed
    labels = np.array(trained.context.for_run(first.run).splits.train.labels[:10])
    right = np.eye(2)[labels] * 0.8 + 0.1
    half_wrong = np.where(np.arange(10)[:, None] < 5, right, 1 - right)
    found = measure_own([spoken(first, right[:5]), spoken(second, half_wrong)], trained.context)
    assert [one.accuracy for one in found] == [1, 1]


def test_an_arm_that_cannot_be_saved_leaves_its_place_to_the_best_that_can(tmp_path):
    with registered(Majority()):
        recipe = small_recipe(tmp_path, arms=["majority", "tfidf"], corpus=None, labels=["20"])
        study = StudyRun(recipe, tmp_path / "out")
        study.run()
        outcomes = [read_training(study.folder, run) for run in study.runs]
        labels = [study.context.for_run(one.run).splits.train.labels[:8] for one in outcomes]
        turned = [
            spoken(one, np.eye(2)[gold if one.run.arm == "majority" else 1 - np.array(gold)])
            for one, gold in zip(outcomes, labels, strict=True)
        ]
        best = keep_best(study.context, turned)
    assert best.run.arm == "majority"
    assert best.kept.arm == "tfidf"
    assert Run.open(study.folder / "best").facts()["kind"] == "tfidf"
    assert keep_best(study.context, turned) == best
