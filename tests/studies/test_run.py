"""A whole study: every training once, the same rows for every arm, and a report at the end."""

import json
import shutil

import numpy as np
import pytest
from filelock import FileLock
from headstart.text import cooccurrence

from headstart.config import FinetuneConfig, PretrainConfig
from headstart.data.tokenizers import JsonTokenizer
from headstart.errors import HeadstartError
from headstart.run import NetworkRun, Run
from headstart.studies.outcomes import FINAL, read_training, training_file
from headstart.studies.record import write_results
from headstart.studies.report.build import write_report
from headstart.studies.results import read_measures, read_predictions, read_study
from headstart.studies.run import StudyListener, StudyRun
from tests.corpora import write_corpus
from tests.labelled import dataset, write_csv
from tests.studies.small_study import small_recipe


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A study with every arm, run to its report."""
    folder = tmp_path_factory.mktemp("study")
    arms = ["tfidf", "cooccurrence", "scratch", "counted", "pretrained", "frozen", "stack"]
    write_csv(folder / "data.csv", dataset(100, wrong=0.1))
    write_corpus(folder / "corpus.txt", 100)
    study = StudyRun(small_recipe(folder, arms=arms), folder / "out")
    study.run()
    best = write_results(study, command="headstart compare")
    return study, best, write_report(study.folder)


def test_every_training_of_the_plan_leaves_one_file(finished):
    study, _, _ = finished
    assert len(study.runs) == 7 * 2 * 2
    assert all(training_file(study.folder, run).is_file() for run in study.runs)


def test_counted_and_pretrained_differ_by_the_steps_of_pretraining_alone(finished):
    study, _, _ = finished
    base = study.base_folder("causal")
    start, trained = NetworkRun.open(base / "start"), NetworkRun.open(base)
    assert start.tokenizer.fingerprint == trained.tokenizer.fingerprint
    assert start.model.base.config == trained.model.base.config
    assert not np.array_equal(
        start.model.base.embedding.weight.detach(), trained.model.base.embedding.weight.detach()
    )


def test_the_report_is_written_with_a_verdict(finished):
    _, _, report = finished
    assert report.path.is_file()
    assert report.sentences


def test_the_parameters_told_are_those_of_the_network_that_was_trained(finished):
    study, _, _ = finished
    trained = NetworkRun.open(study.base_folder("causal")).model.base.config.vocab_size
    told = read_study(study.folder).parameters["causal"]
    assert told["config"]["vocab_size"] == trained


def test_every_arm_answers_for_the_same_test_rows(finished):
    study, _, _ = finished
    said = read_predictions(study.folder)
    assert len(said) == len(study.runs)
    for one in said:
        assert np.array_equal(one.gold, study.data.test.labels)
        assert np.allclose(one.probabilities.sum(axis=1), 1, atol=1e-5)


def test_validation_chooses_and_test_is_measured_once(finished):
    study, _, _ = finished
    measures = read_measures(study.folder)
    assert {m.epoch for m in measures if m.split == "test"} == {FINAL}
    for run in study.runs:
        lines = [m for m in measures if m.run == run and m.metric == "accuracy"]
        epochs = [m.value for m in lines if m.split == "validation" and m.epoch != FINAL]
        chosen = [m.value for m in lines if m.split == "validation" and m.epoch == FINAL]
        assert chosen == ([max(epochs)] if epochs else chosen)


def test_the_best_arm_is_kept_ready_for_use(finished):
    study, best, _ = finished
    assert best.kept == best.run
    assert FinetuneConfig.load(study.folder / "best").seed == best.kept.seed
    assert Run.open(study.folder / "best").labels == study.data.test.label_names
    assert not (study.folder / "runs").exists()


def test_the_summary_of_the_best_arm_names_the_folder_it_is_kept_in(finished):
    study, _, _ = finished
    place = study.folder / "best"
    summary = json.loads((place / "summary.json").read_text(encoding="utf-8"))
    assert summary["run"] == str(place)


def test_study_json_tells_what_a_reader_needs(finished):
    study, _, _ = finished
    told = read_study(study.folder)
    assert told.budgets == study.plan.budgets
    assert told.pretraining[0].samples
    assert told.pretraining[0].points[-1]["step"] == study.plan.pretrain_steps
    assert "causal" in told.parameters
    assert any("pretrained once" in warning for warning in told.warnings)


def test_a_finished_study_that_is_started_again_trains_nothing(finished):
    study, best, _ = finished
    before = (study.folder / "results.csv").read_bytes()
    trained = []
    again = StudyRun(study.recipe, study.folder, listener=StudyListener(on_done=trained.append))
    again.run()
    assert write_results(again, command="headstart compare") == best
    assert trained == []
    assert (study.folder / "results.csv").read_bytes() == before


def test_a_study_goes_on_with_its_own_settings_only(finished):
    study, _, _ = finished
    with pytest.raises(HeadstartError, match="seeds: 2 in the run, 3 now"):
        StudyRun(study.recipe.replace(seeds=3), study.folder)


def test_a_study_notices_that_its_data_changed(tmp_path):
    recipe = small_recipe(tmp_path, arms=["tfidf"], labels=["20"])
    StudyRun(recipe, tmp_path / "out").run()
    write_csv(tmp_path / "data.csv", dataset(200, seed=5))
    with pytest.raises(HeadstartError, match="the dataset is not the one"):
        StudyRun(recipe, tmp_path / "out")


def test_two_processes_do_not_share_a_study(tmp_path):
    study = StudyRun(small_recipe(tmp_path, arms=["tfidf"]), tmp_path / "out")
    study.folder.mkdir()
    with FileLock(study.folder / ".lock"), pytest.raises(HeadstartError, match="running already"):
        study.run()


def test_a_study_that_ended_leaves_its_lock_free(finished):
    study, _, _ = finished
    with FileLock(study.folder / ".lock", timeout=0):
        pass


def test_the_held_out_texts_are_tokenized_once_for_all_trainings(tmp_path, monkeypatch):
    arms = ["cooccurrence", "scratch", "pretrained"]
    recipe = small_recipe(tmp_path, arms=arms, labels=["20"], seeds=2, epochs=1)
    study = StudyRun(recipe, tmp_path / "out")
    held_out = set(study.data.test.texts)
    tokenized = []
    plain = JsonTokenizer.encode_arrays

    def counting(self, texts):
        tokenized.extend(text for text in texts if text in held_out)
        return plain(self, texts)

    monkeypatch.setattr(JsonTokenizer, "encode_arrays", counting)
    study.run()
    assert sorted(tokenized) == sorted(held_out)


def test_co_occurrences_are_counted_once_for_the_start_and_for_the_arm(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADSTART_CACHE", str(tmp_path / "cache"))
    counted = []
    plain = cooccurrence.count_pairs
    monkeypatch.setattr(
        cooccurrence, "count_pairs", lambda *a, **k: counted.append(1) or plain(*a, **k)
    )
    arms = ["cooccurrence", "pretrained"]
    recipe = small_recipe(tmp_path, arms=arms, labels=["20"], seeds=1, epochs=1)
    StudyRun(recipe, tmp_path / "out").run()
    assert len(counted) == 1


@pytest.mark.slow
def test_trainings_side_by_side_come_to_the_same_numbers(finished, tmp_path):
    study, _, _ = finished
    arms = ["tfidf", "scratch", "pretrained", "stack"]
    shutil.copytree(study.base_folder("causal"), tmp_path / "out" / "bases" / "causal")
    recipe = study.recipe.replace(jobs=2, arms=arms, labels=["20"])
    other = StudyRun(recipe, tmp_path / "out")
    other.run()
    assert {run.arm for run in other.runs} == set(arms)
    for run in other.runs:
        one, same = read_training(study.folder, run), read_training(other.folder, run)
        assert np.array_equal(one.test, same.test)
        assert np.array_equal(one.validation, same.validation)


@pytest.mark.slow
def test_a_training_that_fails_side_by_side_is_told_with_its_reason(finished, tmp_path):
    study, _, _ = finished
    shutil.copytree(study.base_folder("causal"), tmp_path / "out" / "bases" / "causal")
    (tmp_path / "out" / "bases" / "causal" / "model.safetensors").write_bytes(b"damaged")
    recipe = study.recipe.replace(jobs=2, arms=["scratch", "pretrained"])
    with pytest.raises(HeadstartError, match="damaged"):
        StudyRun(recipe, tmp_path / "out").run()


def test_a_study_in_bf16_pretrains_and_fine_tunes_in_bf16(tmp_path):
    changes = {"arms": ["scratch", "pretrained"], "labels": ["20"], "precision": "bf16"}
    study = StudyRun(small_recipe(tmp_path, **changes), tmp_path / "out")
    study.run()
    write_results(study, command="headstart compare")
    assert PretrainConfig.load(study.folder / "bases" / "causal").precision == "bf16"
    assert FinetuneConfig.load(study.folder / "best").precision == "bf16"
