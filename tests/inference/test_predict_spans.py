"""Answers are parts of the text, with their positions; in files every row has one or none."""

import json
from dataclasses import replace

import pytest

from headstart.data.splits import read_labelled
from headstart.run import NetworkRun
from tests.labelled import write_squad

TEXT = "In year 7, Ada lives here. Kurt works there!"


@pytest.fixture(scope="module")
def run(answerer):
    return NetworkRun.open(answerer)


def read_rows(path):
    return [json.loads(line) for line in path.open(encoding="utf-8")]


def test_the_answer_comes_with_its_place_and_its_probability(run):
    lives, works = run.predict([("who lives?", TEXT), ("who works?", TEXT)])
    assert (lives["answer"], works["answer"]) == ("Ada", "Kurt")
    assert TEXT[lives["start"] : lives["end"]] == "Ada"
    assert 0.5 < lives["probability"] <= 1


def test_no_answer_has_no_place_but_a_probability(run):
    (found,) = run.predict([("who sleeps?", TEXT)])
    assert (found["answer"], found["start"], found["end"]) == (None, None, None)
    assert 0.5 < found["probability"] <= 1


def test_answers_are_those_that_evaluation_scores(run, answerer):
    part = read_labelled(answerer.parent / "train.json", (), task="spans")
    pairs = list(zip(part.questions, part.contexts, strict=True))
    answers = [one["answer"] or "" for one in run.predict(pairs)]
    right = [
        answer in [text for _, text in wanted] or not (wanted or answer)
        for answer, wanted in zip(answers, part.answers, strict=True)
    ]
    assert run.evaluate(part)["exact_match"] == pytest.approx(sum(right) / len(right))


@pytest.mark.parametrize("long", ["truncate", "windows"])
def test_a_word_of_a_megabyte_is_no_more_than_a_window(run, long):
    asked = replace(run, length=64, long=long)
    (found,) = asked.predict([("who lives?", "x" * 1_000_000 + " Ada lives here.")])
    assert 0 < found["probability"] <= 1
    part = asked.task.unlabelled([("who?", "x" * 1_000 + " Ada lives here.")])
    assert max(asked.task.encode(part, asked.encoding).lengths) <= 64


def test_every_question_of_a_file_is_answered_with_its_id(run, tmp_path):
    source = write_squad(tmp_path / "in.json", texts=40, seed=3)
    summary = run.predict_file(source, tmp_path / "out.jsonl")
    assert (summary["rows"], summary["bad_rows"]) == (40, 0)
    rows = read_rows(tmp_path / "out.jsonl")
    assert [row["id"] for row in rows] == [f"q{n}" for n in range(40)]
    contexts = read_labelled(source, (), task="spans").contexts
    for row, text in zip(rows, contexts, strict=True):
        assert row["answer"] is None or text[row["start"] : row["end"]] == row["answer"]


def test_a_table_of_questions_and_contexts_is_answered_by_row(run, tmp_path):
    (tmp_path / "in.csv").write_text(f'question,context\nwho lives?,"{TEXT}"\n,"{TEXT}"\n')
    summary = run.predict_file(tmp_path / "in.csv", tmp_path / "out.jsonl")
    assert summary["bad"] == [{"row": 2, "error": "the text is empty"}]
    assert [row["answer"] for row in read_rows(tmp_path / "out.jsonl")] == ["Ada", None]
