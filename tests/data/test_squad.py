"""Every question has its place, also one that cannot be asked."""

import json

import pytest

from headstart.data.squad import QuestionRows
from headstart.errors import HeadstartError


def write(path, *asked, context="a cat"):
    path.write_text(json.dumps({"data": [{"paragraphs": [{"context": context, "qas": asked}]}]}))
    return path


def test_answers_are_not_looked_at(tmp_path):
    wrong = {"text": "dog", "answer_start": 99}
    path = write(tmp_path / "a.json", {"id": "x", "question": "who?", "answers": [wrong]})
    (found,) = QuestionRows(path, "utf-8")
    assert found == (1, "who?", "a cat", [], None, "x")


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"id": "x"}, "in the question: the text is empty"),
        ({"id": "x", "question": 7}, "in the question: the text is not text"),
        ("who?", "an object with a question was expected"),
    ],
)
def test_a_broken_question_keeps_its_place(tmp_path, asked, reason):
    good = {"question": "who?"}
    found = list(QuestionRows(write(tmp_path / "a.json", good, asked, good), "utf-8"))
    assert [one.id for one in found] in (["1", "x", "3"], ["1", "2", "3"])
    assert [one.problem is None for one in found] == [True, False, True]
    assert reason in found[1].problem.what


def test_a_question_about_nothing_is_said(tmp_path):
    path = write(tmp_path / "a.json", {"question": "who?"}, context=" ")
    assert next(iter(QuestionRows(path, "utf-8"))).problem.what == "the text is empty"


@pytest.mark.parametrize("content", ["[]", '{"data": ["x"]}', '{"data": 3}', "{"])
def test_a_file_of_another_form_is_refused(tmp_path, content):
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(HeadstartError, match="not SQuAD's JSON") as error:
        QuestionRows(tmp_path / "a.json", "utf-8")
    assert "paragraphs" in error.value.fix
