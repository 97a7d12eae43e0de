"""Studies of pairs, multi-label, tagging and spans, each with its own metric."""

import pytest

from headstart.config import StudyConfig
from headstart.errors import HeadstartError
from headstart.evaluation import metric_name
from headstart.run import Run
from headstart.study.jobs import run_job, unpack
from headstart.study.report.build import build_report
from headstart.study.results import read_results
from headstart.study.study import plan_study
from tests.labelled import write_conll, write_labels, write_pairs, write_squad
from tests.study.small_study import results_of, run_config, small_config

METRICS = {"pairs": "accuracy", "multi-label": "micro_f1", "tagging": "f1", "spans": "f1"}


FILES = {
    "pairs": lambda folder: write_pairs(folder / "data.csv", rows=100),
    "multi-label": lambda folder: write_labels(folder / "data.jsonl", rows=100),
    "tagging": lambda folder: write_conll(folder / "data.conll", sentences=100),
    "spans": lambda folder: write_squad(folder / "data.json", texts=100),
}


def config(task, folder, **changes):
    settings = {"labels": ["20", "40"], "epochs": 1, "tokens": 2048, **changes}
    dataset = [str(FILES[task](folder))]
    return small_config(folder, dataset=dataset, corpus=[], task=task, **settings)


@pytest.fixture(scope="module", params=list(METRICS))
def study(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    linear = {"pairs": ["tfidf"], "spans": []}.get(request.param, ["linear"])
    arms = ["trivial", *linear, "scratch"]
    return run_config(config(request.param, folder, arms=arms), folder / "out")


def test_the_scores_of_the_rows_have_the_metric_as_their_mean(study):
    metric = METRICS[study.config.task]
    results = read_results(study.folder)
    values = {
        (v["arm"], v["objective"], v["labels"], v["seed"]): v["value"]
        for v in results.values.to_pylist()
        if (v["split"], v["metric"]) == ("test", metric)
    }
    assert len(values) == len(study.trainings)
    for run in results.runs:
        scores = results.scores(*run)
        assert scores.shape[1] == len(study.data.splits.test)
        for seed, one in zip(study.plan.seeds, scores, strict=True):
            assert one.mean() == pytest.approx(values[*run, seed], abs=1e-6)


@pytest.mark.parametrize("study", ["multi-label", "tagging"], indirect=True)
def test_the_linear_model_of_a_task_is_saved_and_opened(study, tmp_path):
    (first, *_), test = results_of(study, "linear", labels=40), study.data.splits.test
    rows, config = study.data.rows(40, first.job.seed), study.config
    again = run_job(first.job, config, study.plan, rows, study.data.task, {})
    unpack(again.run, tmp_path / "run")
    run = Run.open(tmp_path / "run")
    metrics = run.task.metrics(run.scores(test), test)
    assert metrics[METRICS[config.task]] == first.value("test", METRICS[config.task])
    assert run.predict([run.task.texts(test)[0]])


def test_the_report_names_the_metric_of_the_task(study):
    report = build_report(study.folder)
    name = metric_name(METRICS[study.config.task])
    assert f"% {name} on new texts" in report.recommendation.sentences[0]
    page = report.path.read_text()
    assert f"Test {name} by number of labels" in page
    if name != "accuracy":
        assert "accuracy" not in page.lower()


@pytest.mark.parametrize(
    ("task", "arm"), [("tagging", "tfidf"), ("spans", "linear"), ("classification", "linear")]
)
def test_an_arm_that_is_not_for_the_task_is_rejected_with_those_that_are(task, arm):
    """The arms that the error proposes are accepted."""
    with pytest.raises(HeadstartError, match=f"{arm} is for .* not for {task}") as error:
        StudyConfig.create(dataset=["d"], task=task, arms=[arm, "scratch"])
    proposed = str(error.value).split("--arms ")[1].split()[0].split(",")
    assert StudyConfig.create(dataset=["d"], task=task, arms=proposed).arms == proposed


@pytest.mark.parametrize("task", ["multi-label", "spans"])
def test_one_row_cannot_train_and_select(task, tmp_path):
    with pytest.raises(HeadstartError, match="a budget of 1 is too small") as error:
        plan_study(config(task, tmp_path, labels=["1", "20"], arms=["scratch"]), tmp_path / "out")
    assert error.value.fix == "give --labels 2 or more"
