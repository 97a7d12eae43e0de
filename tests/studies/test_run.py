"""A whole study: every training once, the same rows for every arm, and a report at the end."""

import numpy as np
import pytest

from headstart.studies.record import write_results
from headstart.studies.report.build import write_report
from headstart.studies.results import read_predictions
from headstart.studies.run import StudyRun
from headstart.studies.trainings import training_file
from tests.studies.small_study import small_recipe


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A study with every arm, run to its report."""
    folder = tmp_path_factory.mktemp("study")
    arms = ["tfidf", "cooccurrence", "scratch", "pretrained", "frozen", "stack"]
    study = StudyRun(small_recipe(folder, arms=arms), folder / "out")
    study.run()
    best = write_results(study, command="headstart compare")
    return study, best, write_report(study.folder)


def test_every_training_of_the_plan_leaves_one_file(finished):
    study, _, _ = finished
    assert len(study.runs) == 6 * 2 * 2
    assert all(training_file(study.folder, run).is_file() for run in study.runs)


def test_the_report_is_written_with_a_verdict(finished):
    _, _, report = finished
    assert report.path.is_file()
    assert report.sentences


def test_every_arm_answers_for_the_same_test_rows(finished):
    study, _, _ = finished
    said = read_predictions(study.folder)
    assert len(said) == len(study.runs)
    for one in said:
        assert np.array_equal(one.gold, study.data.test.labels)
        assert np.allclose(one.probabilities.sum(axis=1), 1, atol=1e-5)
