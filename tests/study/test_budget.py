"""A budget of n labels means that n labelled rows were used for everything."""

import csv
import io
import json
import tarfile

import numpy as np
import pytest

from headstart.baselines.linear import TfidfClassifier
from headstart.baselines.stack import Stack
from headstart.folds import make_folds
from headstart.study import jobs, selection
from headstart.study.jobs import run_file
from headstart.study.progress import StudyCallback
from headstart.study.study import finish_study, plan_study
from headstart.training.finetune import finetune
from tests.labelled import dataset, write_csv
from tests.study.small_study import results_of, small_config, small_study

ARMS = ["tfidf", "cooc-lr", "scratch", "pretrained", "stack"]


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
def true_and_false(tmp_path_factory):
    """A study, and the same one with false labels on its validation and test rows."""
    studies = []
    for name in ("true", "false"):
        folder = tmp_path_factory.mktemp(name)
        parts = {}
        for seed, part in enumerate(("validation", "test"), start=1):
            path = folder / f"{part}.csv"
            write_csv(path, dataset(60, seed=seed))
            if name == "false":
                path = flipped(path, folder / f"{part}-flipped.csv")
            parts[part] = str(path)
        settings = {"arms": ARMS, "labels": ["20"], "seeds": 1, "epochs": None, "tokens": 2048}
        studies.append(small_study(folder, **settings, **parts))
    return studies


@pytest.mark.parametrize("arm", ARMS)
def test_labels_outside_the_budget_change_neither_weights_nor_choices(true_and_false, arm):
    (true,), (false,) = (results_of(study, arm) for study in true_and_false)
    np.testing.assert_array_equal(true.probabilities, false.probabilities)
    np.testing.assert_array_equal(true.oof, false.oof)
    assert true.facts.get("chosen") == false.facts.get("chosen")
    assert true.value("test", "accuracy") != false.value("test", "accuracy")


@pytest.mark.parametrize("arm", ARMS)
def test_at_the_largest_budget_every_arm_has_out_of_fold_predictions_of_every_row(
    true_and_false, arm
):
    (found,) = results_of(true_and_false[0], arm)
    assert found.oof_rows.tolist() == list(range(20))
    np.testing.assert_allclose(found.oof.sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("arm", ["scratch", "pretrained"])
def test_a_network_reports_its_choice_and_a_curve_of_its_epochs(true_and_false, arm):
    (found,) = results_of(true_and_false[0], arm)
    curve = [v for v in found.values if (v["split"], v["metric"]) == ("validation", "accuracy")]
    assert found.facts["tries"] == 2
    assert len(curve) - 1 == found.facts["chosen"]["epochs"]  # and one at the end


def test_what_a_fold_held_out_is_predicted_by_a_model_that_has_not_seen_it():
    texts = [f"word{number}" for number in range(60)]  # nothing in common: all there is, is memory
    labels = np.arange(60) % 2
    folds = make_folds(labels)
    arm = TfidfClassifier().fit(texts, labels, folds=folds)
    assert (arm.predict(texts) == labels).mean() > 0.9
    for fold, scores in zip(folds, arm.oof_scores_, strict=True):
        assert (scores.argmax(axis=1) == labels[fold.held]).mean() < 0.75


@pytest.mark.parametrize("many", [50, 10_000])
def test_a_network_is_refitted_on_all_rows_of_its_budget(tmp_path, monkeypatch, many):
    """Of 2,000 rows or more, networks were trained on 90 %."""
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
    """Networks had three folds and linear models five."""
    monkeypatch.setattr("headstart.folds.MANY", 50)
    arms = ["tfidf", "scratch", "stack", "cooc-lr"]
    study = small_study(tmp_path, arms=arms, labels=["20", "60"], seeds=1)
    for labels, held_out in ((20, 20), (60, 6)):
        rows = {tuple(results_of(study, arm, labels=labels)[0].oof_rows) for arm in arms[:1]}
        assert [len(one) for one in rows] == [held_out]
        whole = [results_of(study, arm, labels=labels)[0].oof_rows for arm in ("tfidf", "cooc-lr")]
        assert np.array_equal(*whole)
    assert len({tuple(results_of(study, arm, labels=60)[0].oof_rows) for arm in arms}) == 1


@pytest.mark.parametrize("many", [50, 10_000])
def test_with_all_labels_one_selection_serves_every_seed(tmp_path, monkeypatch, many):
    """With several jobs, every one of them repeated it."""
    monkeypatch.setattr("headstart.folds.MANY", many)
    seeds = []
    train = selection._held_out_scores

    def spy(config, *more):
        seeds.append(config.seed)
        return train(config, *more)

    monkeypatch.setattr(selection, "_held_out_scores", spy)
    study = small_study(tmp_path, arms=["scratch"], labels=["all"], seeds=3, corpus=None)
    assert [job.select for job in study.jobs] == [True, False, False, False]
    found = results_of(study, "scratch")
    assert len({str(one.facts["chosen"]) for one in found}) == 1
    assert seeds == [0] * (2 if many == 50 else 4)  # both settings, then the other folds
    assert len({one.probabilities.tobytes() for one in found}) == 3


def test_where_nothing_is_selected_the_last_epoch_is_taken_as_it_is(tmp_path):
    settings = {"arms": ["tfidf", "pretrained", "stack"], "labels": ["20"], "tokens": 2048}
    study = small_study(tmp_path, **settings, selection="none", epochs=3)
    networks = results_of(study, "pretrained")
    assert [one.facts["chosen"] for one in networks] == [{"epochs": 3}] * 2
    assert {one.facts["temperature"] for one in networks} == {1.0}
    stack, *_ = results_of(study, "stack", seed=0)
    parts = [results_of(study, arm, seed=0)[0].probabilities for arm in ("tfidf", "pretrained")]
    assert stack.probabilities == pytest.approx(Stack([0.5, 0.5]).predict_proba(parts), abs=1e-6)


def test_seeds_take_turns_with_several_bases(tmp_path):
    config = small_config(tmp_path, arms=["pretrained"], labels=["20"], bases=2, tokens=2048)
    study = plan_study(config, tmp_path / "out")
    used = []

    class Archives(StudyCallback):
        def on_job(self, job, event, epoch=None, value=None):
            if event == "done":
                with tarfile.open(run_file(study.folder, job)) as archive:
                    summary = archive.extractfile("./summary.json").read()
                used.append(json.load(io.BytesIO(summary))["base"].rsplit("/", 1)[1])

    finish_study(study, Archives())
    assert used == ["causal", "causal-1"]
    bases = [study.folder / "bases" / name / "model.safetensors" for name in used]
    assert bases[0].read_bytes() != bases[1].read_bytes()
