"""With a budget of n labels, only n labelled rows are used, also for selection."""

import numpy as np
import pytest

from headstart.baselines.stack import Stack
from headstart.study import jobs
from headstart.training.finetune import finetune
from tests.labelled import dataset, write_csv
from tests.study.small_study import results_of, small_study

ARMS = ["tfidf", "cooc-lr", "scratch", "pretrained", "stack"]


@pytest.fixture(scope="module")
def true_and_false(tmp_path_factory):
    """A study, and the same one with wrong labels in its validation and test rows."""
    studies = []
    for name in ("true", "false"):
        folder = tmp_path_factory.mktemp(name)
        parts = {}
        for seed, part in enumerate(("validation", "test"), start=1):
            rows = dataset(60, seed=seed, wrong=float(name == "false"))
            parts[part] = str(write_csv(folder / f"{part}.csv", rows))
        settings = {"arms": ARMS, "labels": ["20"], "seeds": 1, "epochs": None, "tokens": 2048}
        studies.append(small_study(folder, **settings, **parts))
    return studies


@pytest.mark.parametrize("arm", ARMS)
def test_labels_outside_the_budget_change_neither_weights_nor_choices(true_and_false, arm):
    (true,), (false,) = (results_of(study, arm) for study in true_and_false)
    np.testing.assert_array_equal(true.predictions, false.predictions)
    np.testing.assert_array_equal(true.oof, false.oof)
    assert true.oof_rows.tolist() == list(range(20))
    assert true.facts.get("chosen") == false.facts.get("chosen")
    assert true.value("test", "accuracy") != false.value("test", "accuracy")


@pytest.mark.parametrize("many", [50, 10_000])
def test_a_network_is_refitted_on_all_rows_of_its_budget(tmp_path, monkeypatch, many):
    """The final training uses all rows, also where a tenth was held out for selection."""
    monkeypatch.setattr("headstart.folds.MANY", many)
    trained = []

    def spy(config, folder, **more):
        if folder is not None:
            trained.append(len(more["splits"].train))
        return finetune(config, folder, **more)

    monkeypatch.setattr(jobs, "finetune", spy)
    study = small_study(tmp_path, arms=["scratch"], labels=["60", "all"], corpus=None, seeds=1)
    assert trained == study.plan.budgets == [60, study.data.all_labels]


def test_all_arms_use_the_same_folds(tmp_path, monkeypatch):
    """Networks and linear models have the same number of folds."""
    monkeypatch.setattr("headstart.folds.MANY", 50)
    arms = ["tfidf", "scratch", "stack", "cooc-lr"]
    study = small_study(tmp_path, arms=arms, labels=["20", "60"], seeds=1)
    for labels, held_out in ((20, 20), (60, 6)):
        rows = [results_of(study, arm, labels=labels)[0].oof_rows for arm in ("tfidf", "cooc-lr")]
        assert len(rows[0]) == held_out
        assert np.array_equal(*rows)
    assert len({tuple(results_of(study, arm, labels=60)[0].oof_rows) for arm in arms}) == 1


def test_few_labels_may_train_only_the_head_of_a_network_that_has_learned_something(tmp_path):
    arms = ["scratch", "cooc-init", "pretrained"]
    study = small_study(tmp_path, arms=arms, labels=["20"], seeds=1, tokens=4096)
    tries = {arm: results_of(study, arm)[0].facts["tries"] for arm in arms}
    assert tries == {"scratch": 2, "cooc-init": 3, "pretrained": 3}


def test_with_all_labels_one_selection_serves_every_seed(tmp_path):
    study = small_study(tmp_path, arms=["scratch"], labels=["all"], seeds=3, corpus=None)
    found = results_of(study, "scratch")
    assert len({str(one.facts["chosen"]) for one in found}) == 1
    assert len({one.predictions.tobytes() for one in found}) == 3


def test_where_nothing_is_selected_the_last_epoch_is_taken_as_it_is(tmp_path):
    settings = {"arms": ["tfidf", "pretrained", "stack"], "labels": ["20"], "tokens": 2048}
    study = small_study(tmp_path, **settings, selection="none", epochs=3)
    networks = results_of(study, "pretrained")
    assert [one.facts["chosen"] for one in networks] == [{"epochs": 3}] * 2
    assert {one.facts["temperature"] for one in networks} == {1.0}
    stack, *_ = results_of(study, "stack", seed=0)
    parts = [results_of(study, arm, seed=0)[0].predictions for arm in ("tfidf", "pretrained")]
    assert stack.predictions == pytest.approx(Stack([0.5, 0.5]).predict_proba(parts), abs=1e-6)
