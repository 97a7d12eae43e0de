"""The results table reads back what was written, and names what is missing or damaged."""

import json

import numpy as np
import pytest

from headstart.errors import HeadstartError
from headstart.run import Run
from headstart.study.results import make_results, read_results, run_predictions, write_results
from tests.study.fake_study import ABOUT, Recipe, facts_of, fake_study

STUDY = {**ABOUT, **facts_of([5], ("pretrained", ""), ("tfidf", "")), "seeds": [0, 1]}
ROWS = [{"row": number, "text": "", "gold": "a"} for number in (3, 7, 2)]


def run(arm, seed, predictions, gold=None):
    key = {"arm": arm, "objective": "", "labels": 5, "seed": seed}
    return run_predictions(key, [3, 7, 2], predictions, gold)


def test_a_study_reads_back_equal(tmp_path):
    written = read_results(fake_study(tmp_path, Recipe(test_rows=20)))
    write_results(tmp_path / "copy", written)
    again = read_results(tmp_path / "copy")
    assert again.about == written.about
    for name in ("values", "predictions", "rows"):
        assert getattr(again, name).equals(getattr(written, name))


def test_scores_are_one_where_the_prediction_is_correct():
    probabilities = np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]])
    gold = np.array([0, 1, 0])
    parts = [
        run(arm, seed, probabilities, gold) for arm in ("tfidf", "pretrained") for seed in (0, 1)
    ]
    results = make_results(STUDY, [], parts, ROWS)
    assert results.runs == [("pretrained", "", 5), ("tfidf", "", 5)]
    assert results.scores("tfidf", "", 5).tolist() == [[1, 1, 0], [1, 1, 0]]
    assert results.probabilities("tfidf", "", 5).shape == (2, 3, 2)


def test_a_task_without_classes_has_scores_of_its_own():
    parts = [run("tfidf", seed, np.array([0.5, 1.0, 0.25])) for seed in (0, 1)]
    results = make_results(STUDY, [], parts, ROWS)
    assert results.scores("tfidf", "", 5).tolist() == [[0.5, 1.0, 0.25]] * 2


def test_a_study_that_lacks_a_name_is_damaged(tmp_path):
    fake_study(tmp_path, Recipe(test_rows=20))
    about = json.loads((tmp_path / "study.json").read_text())
    del about["budgets"]
    (tmp_path / "study.json").write_text(json.dumps(about))
    with pytest.raises(HeadstartError, match=r"study\.json is missing or damaged"):
        read_results(tmp_path)


def test_an_unfinished_study_is_resumed_and_not_called_damaged(tmp_path):
    """The same holds for its `best/`, which does not exist yet."""
    (tmp_path / "plan.json").write_text('{"seeds": [0], "budgets": [20]}')
    for read in (read_results, lambda folder: Run.open(folder / "best")):
        with pytest.raises(HeadstartError, match="not finished") as caught:
            read(tmp_path)
        assert "headstart compare" in caught.value.fix
    (tmp_path / "plan.json").write_text('{"steps": 5}')  # of a run
    with pytest.raises(HeadstartError, match="no such run"):
        Run.open(tmp_path / "best")


def test_a_damaged_table_is_named(tmp_path):
    fake_study(tmp_path, Recipe(test_rows=20))
    (tmp_path / "values.parquet").write_bytes(b"PAR1 but not really")
    with pytest.raises(HeadstartError) as caught:
        read_results(tmp_path)
    assert str(caught.value.where).endswith("values.parquet")
