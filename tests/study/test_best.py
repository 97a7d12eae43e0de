"""Every kind of arm can be the best one: best/ predicts as the training in the study did."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

import headstart
from headstart.config import FinetuneConfig
from headstart.run import Run, evaluation_rows
from headstart.study import study as driver
from headstart.study.study import measure, save_best
from tests.study.small_study import results_of, small_study

ARMS = ["tfidf", "nb", "cooc-lr", "scratch", "pretrained", "stack"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A study whose jobs have finished, before the best arm is selected."""
    folder = tmp_path_factory.mktemp("study")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "save_best", lambda *_: (None, None))
        patch.setattr(driver, "make_study_results", lambda *_, **__: None)
        patch.setattr(driver, "write_results", lambda *_: None)
        return small_study(folder, arms=["trivial", *ARMS], labels=["60"], tokens=2 * 2048)


def with_oof(study, good):
    """Return the study's results, with correct out-of-fold predictions for one arm only."""
    found = {}
    for job, one in study.results.items():
        labels = np.array(study.data.rows(job.labels, job.seed).train.labels)
        right = np.eye(2)[labels] * 0.8 + 0.1
        oof = right if job.arm == good else 1 - right
        test = np.full_like(one.predictions, 0.5)
        rows = np.arange(len(labels))
        found[job] = replace(one, oof=oof, oof_rows=rows, predictions=test)
    return found


@pytest.mark.parametrize("arm", ARMS)
def test_rows_of_the_budget_choose_and_best_predicts_as_in_the_study(trained, tmp_path, arm):
    shutil.copytree(trained.folder / "runs", tmp_path / "runs")
    best, saved = save_best(replace(trained, folder=tmp_path, results=with_oof(trained, arm)))
    assert best == saved
    assert best.arm == arm
    opened = headstart.load(tmp_path / "best")
    found = opened.predict_proba(trained.data.splits.test.texts).astype(np.float32)
    assert np.array_equal(found, trained.results[best].predictions)
    assert opened.summary["run"] == str(tmp_path / "best")
    assert not (tmp_path / "runs").exists()
    rows, _ = evaluation_rows(FinetuneConfig.load(opened.folder), opened.task, None)
    measured = opened.evaluate(rows)
    assert measured["seen_rows"] == 0
    assert measured["accuracy"] == trained.results[best].value("test", "accuracy")


def test_arms_are_compared_on_rows_that_all_of_them_have(trained):
    first, second = (results_of(trained, arm, seed=0)[0] for arm in ("tfidf", "scratch"))
    labels = np.array(trained.data.rows(60, 0).train.labels[:10])
    right = np.eye(2)[labels] * 0.8 + 0.1
    half = np.where(np.arange(10)[:, None] < 5, right, 1 - right)
    few = replace(first, oof=right[:5], oof_rows=np.arange(5))
    many = replace(second, oof=half, oof_rows=np.arange(10))
    found = measure([few, many], trained.data, selection="budget")
    assert list(found.values()) == pytest.approx([-np.log(0.9)] * 2)


def test_without_out_of_fold_predictions_of_one_arm_validation_compares_all(trained):
    """Validation losses and out-of-fold losses are never compared with each other."""
    results = [one for one in trained.results.values() if one.job.seed == 0]
    none = [replace(results[0], oof=np.zeros((0, 2)), oof_rows=np.zeros(0, dtype=np.int64))]
    found = measure([*none, *results[1:]], trained.data, selection="budget")
    losses = [-one.value("validation", "accuracy") for one in results]
    assert list(found.values()) == losses


def test_an_arm_that_cannot_be_saved_leaves_best_to_another(trained, tmp_path):
    shutil.copytree(trained.folder / "runs", tmp_path / "runs")
    results = with_oof(trained, "trivial")
    study = replace(trained, folder=tmp_path, results=results)
    best, saved = save_best(study)
    assert best.arm == "trivial"
    assert saved.arm == Run.open(tmp_path / "best").kind == "tfidf"
    alone = replace(study, config=trained.config.replace(arms=["trivial"]))
    assert save_best(alone) == (best, None)
