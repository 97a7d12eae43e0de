"""A whole study: every job once, the same rows for every arm, results and a best model."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from headstart.config import FinetuneConfig
from headstart.errors import HeadstartError
from headstart.study.jobs import INITIAL, run_folder
from headstart.study.progress import StudyCallback
from headstart.study.results import read_results
from headstart.study.study import finish_study, plan_study
from headstart.training.finetune import finetune
from tests.corpora import write_corpus
from tests.labelled import TINY, dataset, write_csv
from tests.study.small_study import run_config, small_config, small_study

ARMS = ["tfidf", "cooc-lr", "scratch", "cooc-init", "pretrained", "frozen", "stack"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A study with every usual arm."""
    folder = tmp_path_factory.mktemp("study")
    write_csv(folder / "data.csv", dataset(100, wrong=0.1))
    write_corpus(folder / "corpus.txt", 100)
    return small_study(folder, arms=ARMS)


def test_the_results_have_every_training_with_the_same_test_rows(finished):
    results = read_results(finished.folder)
    assert 2 * len(results.runs) == len(finished.trainings)
    assert results.gold.tolist() == list(finished.data.splits.test.labels)
    for run in results.runs:
        assert np.allclose(results.probabilities(*run).sum(axis=2), 1, atol=1e-5)
    values = results.values.to_pylist()
    assert {value["epoch"] for value in values if value["split"] == "test"} == {None}


def test_rows_have_the_numbers_of_the_users_file(finished):
    """Numbers refer to rows of the user's file, not of the test part."""
    lines = Path(finished.config.dataset[0]).read_text(encoding="utf-8").splitlines()[1:]
    for row in read_results(finished.folder).rows.to_pylist():
        assert lines[row["row"] - 1] == f"{row['text']},{row['gold']}"


def test_the_facts_of_a_run_have_the_cost_of_all_that_it_needs(finished):
    about, last = read_results(finished.folder).about, finished.plan.budgets[-1]
    facts = {(one["arm"], one["seed"]): one for one in about["facts"] if one["labels"] == last}
    own = {(job.arm, job.seed): one.facts for job, one in finished.results.items()
           if job.labels == last}  # fmt: skip
    spent = about["pretraining"][0]["points"][-1]["seconds"]
    for arm, needed in (("tfidf", 0.0), ("pretrained", spent)):
        assert facts[arm, 0]["seconds"] >= own[arm, 0]["seconds"] + needed
    stack = facts["stack", 0]
    members = [facts[arm, 0] for arm, weight in stack["weights"].items() if weight]
    assert stack["bytes"] == sum(one["bytes"] for one in members)
    assert stack["seconds"] > max(one["seconds"] for one in members)


def test_a_finished_study_that_is_started_again_has_the_same_values(finished):
    before = (finished.folder / "values.parquet").read_bytes()
    run_config(finished.config, finished.folder)
    assert (finished.folder / "values.parquet").read_bytes() == before


def test_only_the_start_of_scratch_and_pretrained_differs(tmp_path):
    configs = []

    class Configs(StudyCallback):
        def on_job(self, job, event, epoch=None, value=None):
            if event == "done":
                configs.append(FinetuneConfig.load(run_folder(tmp_path / "out", job)))

    config = small_config(tmp_path, arms=["scratch", "pretrained"], labels=["20"], seeds=1)
    run_config(config, tmp_path / "out", Configs())
    scratch, pretrained = configs
    same = pretrained.replace(epochs=scratch.epochs, learning_rate=scratch.learning_rate)
    assert scratch.replace(fresh=False) == same
    assert scratch.fresh


def test_a_study_notices_that_its_data_changed(tmp_path):
    config = small_config(tmp_path, arms=["tfidf"], labels=["20"])
    run_config(config, tmp_path / "out")
    write_csv(tmp_path / "data.csv", dataset(200, seed=5))
    with pytest.raises(HeadstartError, match="the dataset is not the one"):
        plan_study(config, tmp_path / "out")


def test_a_study_that_another_process_has_begun_in_the_meantime_is_rejected(tmp_path):
    planned = plan_study(small_config(tmp_path, arms=["trivial"], corpus=[]), tmp_path / "out")
    small_study(tmp_path, arms=["trivial"], corpus=[])
    with pytest.raises(HeadstartError) as error:
        finish_study(planned, StudyCallback())
    assert error.value.code == "locked"


def test_a_study_notices_that_its_base_changed(finished, tmp_path):
    """A resumed study must not average the seeds of two bases."""
    base = tmp_path / "base"
    shutil.copytree(finished.base_folder(*finished.config.objectives), base)
    settings = {"arms": ["frozen"], "base": str(base), "corpus": [], "labels": ["20"], "epochs": 1}
    sizes = dict.fromkeys(TINY)
    small_study(tmp_path, **settings, **sizes)
    shutil.copy(
        finished.base_folder(*finished.config.objectives) / INITIAL / "model.safetensors", base
    )
    with pytest.raises(HeadstartError, match="base"):
        small_study(tmp_path, **settings, **sizes)


def test_the_config_of_the_best_network_gives_the_same_weights(tmp_path):
    study = small_study(tmp_path, arms=["scratch"], labels=["20"], corpus=None)
    best = study.folder / "best"
    config = FinetuneConfig.load(best)
    assert config.labels == "20"
    finetune(config, tmp_path / "again")
    weights = [(folder / "model.safetensors").read_bytes() for folder in (best, tmp_path / "again")]
    assert weights[0] == weights[1]
