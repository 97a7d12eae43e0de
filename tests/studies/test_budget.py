"""A budget of n labels means that n labelled rows were used for everything."""

import csv

import numpy as np
import pytest

from headstart.baselines.linear import TfidfClassifier
from headstart.baselines.stack import Stack
from headstart.folds import make_folds
from headstart.studies.arms import choosing, find_arm
from headstart.studies.outcomes import read_training
from headstart.studies.run import StudyRun
from tests.labelled import dataset, write_csv
from tests.studies.small_study import small_recipe

ARMS = ["tfidf", "cooccurrence", "scratch", "pretrained", "stack"]


def run_study(folder, **changes):
    study = StudyRun(small_recipe(folder, **changes), folder / "out")
    study.run()
    return {run: read_training(study.folder, run) for run in study.runs}


def flipped(path, to):
    """The same file with every label turned around."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = sorted({row["label"] for row in rows})
    other = dict(zip(names, names[::-1], strict=True))
    with to.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows({**row, "label": other[row["label"]]} for row in rows)
    return to


@pytest.fixture(scope="module")
def told_and_misled(tmp_path_factory):
    """A study, and the same one with false labels on its validation and test rows."""
    outcomes = []
    for name in ("told", "misled"):
        folder = tmp_path_factory.mktemp(name)
        parts = {}
        for seed, part in enumerate(("validation", "test"), start=1):
            path = folder / f"{part}.csv"
            write_csv(path, dataset(60, seed=seed))
            if name == "misled":
                path = flipped(path, folder / f"{part}-flipped.csv")
            parts[part] = str(path)
        settings = {
            "arms": ARMS,
            "labels": ["20"],
            "seeds": 1,
            "epochs": None,
            "jobs": 1,
            "tokens": 2048,
        }
        settings |= parts
        outcomes.append(run_study(folder, **settings))
    return outcomes


@pytest.mark.parametrize("arm", ARMS)
def test_labels_outside_the_budget_change_neither_weights_nor_choices(told_and_misled, arm):
    (told,), (misled,) = (
        [outcome for run, outcome in outcomes.items() if run.arm == arm]
        for outcomes in told_and_misled
    )
    np.testing.assert_array_equal(told.test, misled.test)
    np.testing.assert_array_equal(told.own, misled.own)
    assert told.facts.get("chosen") == misled.facts.get("chosen")
    assert told.measure("test", "accuracy") != misled.measure("test", "accuracy")


@pytest.mark.parametrize("arm", ARMS)
def test_arms_that_are_stacked_answer_for_every_row_of_a_small_budget_unseen(told_and_misled, arm):
    (outcome,) = [one for run, one in told_and_misled[0].items() if run.arm == arm]
    stacked = find_arm(arm).stackable or arm == "stack"
    assert len(outcome.own_rows) == (20 if stacked else 7)  # others judge their settings alone
    np.testing.assert_allclose(outcome.own.sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("arm", ["scratch", "pretrained"])
def test_a_network_says_what_it_chose(told_and_misled, arm):
    (outcome,) = [one for run, one in told_and_misled[0].items() if run.arm == arm]
    chosen = outcome.facts["chosen"]
    curve = [m for m in outcome.measures if (m.split, m.metric) == ("validation", "accuracy")]
    assert outcome.facts["tries"] == 2
    assert len(curve) - 1 == chosen["epochs"]  # and one for the epoch that was kept


def test_what_a_fold_held_back_is_answered_by_a_model_that_has_not_seen_it():
    texts = [f"word{number}" for number in range(60)]  # nothing in common: all there is, is memory
    labels = np.arange(60) % 2
    arm = TfidfClassifier().fit(texts, labels, folds=make_folds(labels))
    assert (arm.predict(texts) == labels).mean() > 0.9
    held = arm.oof_proba_.argmax(axis=1)
    assert (held == labels[arm.oof_rows_]).mean() < 0.75


def test_many_rows_are_chosen_by_with_a_part_held_back(tmp_path, monkeypatch):
    monkeypatch.setattr("headstart.folds.MANY", 50)
    settings = {"arms": ["tfidf", "scratch"], "labels": ["all"], "seeds": 1, "jobs": 1}
    outcomes = run_study(tmp_path, **settings, corpus=None, epochs=None)
    held = {tuple(one.own_rows) for run, one in outcomes.items() if run.seed == 0}
    assert len(held) == 1
    assert 0 < len(held.pop()) < 50
    for run, one in outcomes.items():
        if run.arm == "scratch":
            curve = [m for m in one.measures if (m.split, m.metric) == ("validation", "accuracy")]
            assert len(curve) - 1 >= one.facts["chosen"]["epochs"]


@pytest.mark.parametrize("many", [50, 10_000])
def test_with_all_labels_one_choice_serves_every_seed(tmp_path, monkeypatch, many):
    monkeypatch.setattr("headstart.folds.MANY", many)
    seeds = []
    train_aside = choosing._Tries._train_aside

    def spy(tries, fold, setting):
        seeds.append(tries.recipe.seed)
        return train_aside(tries, fold, setting)

    monkeypatch.setattr(choosing._Tries, "_train_aside", spy)
    settings = {"arms": ["scratch"], "labels": ["all"], "seeds": 3, "jobs": 1}
    outcomes = run_study(tmp_path, **settings, corpus=None, epochs=None)
    assert len({str(one.facts["chosen"]) for one in outcomes.values()}) == 1
    assert seeds[:2] == [0, 0]  # both settings
    assert len(seeds) == (2 if many == 50 else 4)  # few rows: each other seed has its own fold
    assert len({one.test.tobytes() for one in outcomes.values()}) == 3


def test_the_validation_part_chooses_where_that_is_wanted(tmp_path):
    settings = {"arms": ["tfidf", "scratch"], "labels": ["20"], "seeds": 1, "jobs": 1}
    outcomes = run_study(tmp_path, **settings, corpus=None, selection="validation")
    assert all(len(one.own_rows) == 0 for one in outcomes.values())


def test_where_nothing_is_chosen_the_last_epoch_is_kept_as_it_is(tmp_path):
    settings = {"arms": ["tfidf", "pretrained", "stack"], "labels": ["20"], "seeds": 2, "jobs": 1}
    outcomes = run_study(tmp_path, **settings, tokens=2048, selection="none", epochs=3)
    networks = [one for run, one in outcomes.items() if run.arm == "pretrained"]
    assert [one.facts["chosen"] for one in networks] == [{"epochs": 3}] * 2
    assert {one.facts["temperature"] for one in networks} == {1.0}
    stack = next(one for run, one in outcomes.items() if run.arm == "stack")
    parts = [one.test for run, one in outcomes.items() if run.arm != "stack" and run.seed == 0]
    assert stack.test == pytest.approx(Stack.equal(2).predict_proba(parts), abs=1e-6)


def test_seeds_take_turns_with_several_bases(tmp_path):
    recipe = small_recipe(
        tmp_path, arms=["pretrained"], labels=["20"], bases=2, jobs=1, tokens=2048
    )
    study = StudyRun(recipe, tmp_path / "out")
    study.run()
    contexts = [study.context.for_run(run) for run in study.runs]
    assert [context.base.rsplit("/", 1)[1] for context in contexts] == ["causal", "causal-1"]
    weights = [
        (study.folder / "bases" / name / "model.safetensors") for name in ("causal", "causal-1")
    ]
    assert weights[0].read_bytes() != weights[1].read_bytes()
