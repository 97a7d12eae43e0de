"""The study folder reads back what was written, and says what it lacks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from headstart.errors import HeadstartError
from headstart.studies.outcomes import FINAL, Measure, RunKey
from headstart.studies.results import (
    Predictions,
    TestRow,
    read_measures,
    read_predictions,
    read_study,
    read_test_rows,
    write_measures,
    write_predictions,
    write_study,
    write_test_rows,
)
from tests.studies.fake_study import fake_study

NAMES = some.text(some.characters(codec="utf-8", exclude_characters="\r\x00"))
NUMBERS = some.floats(allow_nan=False, allow_infinity=False)


@given(
    some.lists(
        some.builds(
            Measure,
            some.builds(RunKey, NAMES, NAMES, some.integers(0), some.integers(0)),
            some.integers(FINAL).filter(lambda epoch: epoch != 0),
            NAMES,
            NAMES,
            NUMBERS,
            some.integers(0, 10**6).map(float),
        )
    )
)
def test_measures_read_back_equal(tmp_path_factory, measures):
    folder = tmp_path_factory.mktemp("study")
    write_measures(folder, measures)
    assert read_measures(folder) == measures


def test_a_final_value_has_an_empty_epoch(tmp_path):
    write_measures(
        tmp_path, [Measure(RunKey("tfidf", "", 100, 1), FINAL, "test", "accuracy", 0.5, 2.0)]
    )
    assert (tmp_path / "results.csv").read_text().splitlines() == [
        "arm,objective,labels,seed,epoch,split,metric,value,seconds",
        "tfidf,,100,1,,test,accuracy,0.5,2.000",
    ]


def test_predictions_read_back_run_by_run_with_rows_ascending(tmp_path):
    rows, gold = np.array([2, 0, 1]), np.array([1, 0, 1])
    probabilities = np.array([[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]], dtype=np.float32)
    runs = [RunKey("scratch", "causal", 100, 1), RunKey("scratch", "causal", 100, 0)]
    write_predictions(
        tmp_path, [Predictions(run, rows, gold, np.array([1, 0, 0]), probabilities) for run in runs]
    )
    read = read_predictions(tmp_path)
    assert [said.run for said in read] == sorted(runs)
    assert read[0].rows.tolist() == [0, 1, 2]
    assert read[0].gold.tolist() == [0, 1, 1]
    assert read[0].predicted.tolist() == [0, 0, 1]
    assert read[0].probabilities.tolist() == [[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]]


def test_test_rows_read_back_equal(tmp_path):
    rows = [TestRow(0, "naïve — 日本\n<b>", "good"), TestRow(7, "", "bad")]
    write_test_rows(tmp_path, rows)
    assert read_test_rows(tmp_path) == rows


def test_a_study_reads_back_equal(tmp_path):
    study = read_study(fake_study(tmp_path))
    write_study(tmp_path / "copy", study)
    assert read_study(tmp_path / "copy") == study


def test_a_study_without_a_format_is_an_old_one_and_opens(tmp_path):
    study = read_study(fake_study(tmp_path))
    (tmp_path / "format.json").unlink()
    assert read_study(tmp_path) == study


def test_a_study_of_a_later_version_says_which_one_and_what_to_do(tmp_path):
    fake_study(tmp_path)
    (tmp_path / "format.json").write_text('{"format": 99, "headstart": "9.1"}')
    with pytest.raises(HeadstartError, match=r"Headstart 9\.1 made this folder, in format 99"):
        read_study(tmp_path)


@pytest.mark.parametrize("read", [read_measures, read_predictions, read_test_rows, read_study])
def test_a_folder_that_is_no_study_is_named(tmp_path, read):
    with pytest.raises(HeadstartError, match="this folder has no"):
        read(tmp_path)


def test_a_broken_line_is_named_with_its_number(tmp_path):
    fake_study(tmp_path)
    with (tmp_path / "results.csv").open("a") as file:
        file.write("scratch,causal,many,0,1,test,accuracy,0.5,1\n")
    lines = (tmp_path / "results.csv").read_text().count("\n")
    with pytest.raises(HeadstartError, match=f"line {lines}"):
        read_measures(tmp_path)


def test_a_study_with_an_unknown_name_is_refused(tmp_path):
    (tmp_path / "study.json").write_text('{"arm": []}')
    with pytest.raises(HeadstartError, match="not a study"):
        read_study(tmp_path)
