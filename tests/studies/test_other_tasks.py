"""Studies of pairs, of several labels, of tags and of answers, each by its own metric."""

import json

import numpy as np
import pytest

from headstart.cli.study import plan_lines
from headstart.errors import HeadstartError
from headstart.run import Run
from headstart.studies.analysis import analyse
from headstart.studies.outcomes import FINAL, read_training
from headstart.studies.recipe import make_study_recipe
from headstart.studies.record import write_results
from headstart.studies.report.build import write_report
from headstart.studies.results import (
    read_measures,
    read_predictions,
    read_study,
    read_test_rows,
)
from headstart.studies.run import StudyRun
from tests.labelled import TINY, write_conll, write_squad

METRICS = {"pairs": "accuracy", "multi-label": "micro_f1", "tagging": "f1", "spans": "f1"}


def write_pairs(path):
    rows = [f"{n} is it {word},it is {word} {n},{n % 2}" for n, word in _words(100)]
    path.write_text("text1,text2,label\n" + "\n".join(rows) + "\n")
    return path


def write_labels(path):
    kinds = ["funny", "funny|sad", "sad", ""]
    rows = [
        f"{n} {kinds[n % 4].replace('|', ' ')} {word},{kinds[n % 4]}" for n, word in _words(100)
    ]
    path.write_text("text,label\n" + "\n".join(rows) + "\n")
    return path


def _words(count):
    return [(n, ["no", "yes"][n % 2]) for n in range(count)]


FILES = {
    "pairs": lambda folder: write_pairs(folder / "data.csv"),
    "multi-label": lambda folder: write_labels(folder / "data.csv"),
    "tagging": lambda folder: write_conll(folder / "data.conll", sentences=100),
    "spans": lambda folder: write_squad(folder / "data.json", texts=100),
}


def recipe(task, folder, **changes):
    settings = {
        "dataset": [str(FILES[task](folder))],
        "task": task,
        "labels": ["20", "40"],
        "seeds": 2,
        "epochs": 1,
        "tokens": 2048,
        "threads": 1,
        **TINY,
    }
    return make_study_recipe(**{**settings, **changes})


@pytest.fixture(scope="module", params=list(METRICS))
def study(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    linear = {"pairs": ["tfidf"], "spans": []}.get(request.param, ["linear"])
    arms = ["trivial", *linear, "scratch"]
    study = StudyRun(recipe(request.param, folder, arms=arms), folder / "out")
    study.run()
    write_results(study, command="headstart compare")
    return study


def test_every_arm_is_measured_by_the_metric_of_the_task(study):
    metric = METRICS[study.recipe.task]
    assert study.data.task.metric == metric
    measured = [m for m in read_measures(study.folder) if m.split == "test" and m.epoch == FINAL]
    assert {m.run for m in measured if m.metric == metric} == set(study.runs)


def test_the_rows_numbers_have_the_metric_as_their_mean(study):
    metric = METRICS[study.recipe.task]
    values = {
        m.run: m.value
        for m in read_measures(study.folder)
        if (m.epoch, m.split, m.metric) == (FINAL, "test", metric)
    }
    for said in read_predictions(study.folder):
        assert np.mean(said.right) == pytest.approx(values[said.run], abs=1e-6)
        assert len(said.right) == len(study.data.test) == len(read_test_rows(study.folder))


def test_arms_are_compared_on_the_same_rows_with_intervals(study):
    kept = read_study(study.folder)
    assert (kept.task, kept.metric) == (study.recipe.task, METRICS[study.recipe.task])
    found = analyse(kept, read_measures(study.folder), read_predictions(study.folder))
    assert len(found.scores) == len(study.recipe.arms) * 2
    for score in found.scores:
        assert 0 <= score.accuracy.value <= 1


def test_the_report_speaks_of_the_metric(study):
    written = write_report(study.folder)
    page = written.path.read_text(encoding="utf-8")
    if METRICS[study.recipe.task] == "accuracy":
        assert "accuracy" in page
    else:
        assert "accuracy" not in page.split("<main>")[1].split("</main>")[0]
        assert "F1" in " ".join(written.sentences)
    assert json.loads((study.folder / "study.json").read_text())["task"] == study.recipe.task


def test_the_best_arm_that_can_be_kept_answers_for_the_task(study):
    run = Run.open(study.folder / "best")
    assert run.task is not None
    assert run.task.name == study.recipe.task
    answers = run.scores(study.data.test).values
    assert run.task.metrics(answers, study.data.test)[METRICS[study.recipe.task]] >= 0


def test_the_plan_says_what_is_compared(study):
    shown = "\n".join(map(str, plan_lines(study)))
    assert {"pairs": "2 classes", "multi-label": "compared by micro-F1"}.get(
        study.recipe.task, "compared by F1"
    ) in shown


def test_a_budget_of_other_tasks_is_nested_and_the_same_for_every_arm(study):
    rows = {}
    for run in study.runs:
        context = study.context.for_run(run)
        texts = set(context.task.row_texts(context.splits.train))
        assert len(texts) == run.labels
        assert rows.setdefault((run.labels, run.seed), texts) == texts
    for seed in (0, 1):
        assert rows[20, seed] < rows[40, seed]


@pytest.mark.parametrize(
    ("task", "arms"),
    [
        ("pairs", ["trivial", "tfidf", "cooccurrence", "scratch", "counted", "pretrained"]),
        ("multi-label", ["trivial", "linear", "scratch", "counted", "pretrained"]),
        ("tagging", ["trivial", "linear", "scratch", "counted", "pretrained"]),
        ("spans", ["trivial", "scratch", "counted", "pretrained"]),
    ],
)
def test_the_usual_arms_of_each_task(task, arms):
    chosen = make_study_recipe(dataset=["d"], task=task).arms
    assert [name for name in chosen if name in arms] == arms
    assert set(chosen) - set(arms) <= {"stack", "nb"}


@pytest.mark.parametrize(
    ("task", "arm", "said"),
    [
        ("tagging", "tfidf", "tfidf is for one class per row, not for tagging"),
        ("spans", "linear", "the task spans has no linear model"),
        ("classification", "linear", "tfidf is that of classification"),
    ],
)
def test_an_arm_that_does_not_suit_the_task_is_refused(task, arm, said):
    with pytest.raises(HeadstartError, match=said):
        make_study_recipe(dataset=["d"], task=task, arms=[arm, "scratch"])


@pytest.mark.parametrize("task", ["multi-label", "tagging", "spans"])
def test_one_row_cannot_train_and_choose(task, tmp_path):
    with pytest.raises(HeadstartError, match="a budget of 1 is too small") as error:
        StudyRun(recipe(task, tmp_path, labels=["1", "20"], arms=["scratch"]), tmp_path / "out")
    assert error.value.fix == "give --labels 2 or more"


@pytest.mark.parametrize("task", ["tagging", "spans"])
def test_two_rows_are_enough(task, tmp_path):
    study = StudyRun(
        recipe(task, tmp_path, labels=["2"], seeds=1, arms=["trivial", "scratch"]), tmp_path / "out"
    )
    study.run()
    write_results(study, command="headstart compare")
    assert write_report(study.folder).path.is_file()


def test_where_nothing_is_chosen_a_tagger_takes_the_epochs_of_the_plan(tmp_path):
    settings = {"arms": ["scratch"], "labels": ["20"], "seeds": 1, "epochs": None}
    study = StudyRun(recipe("tagging", tmp_path, selection="none", **settings), tmp_path / "study")
    study.run()
    (run,) = study.runs
    taken = read_training(study.folder, run).facts["chosen"]["epochs"]
    assert taken == study.plan.epochs[run.labels]
