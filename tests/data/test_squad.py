"""Every question has its place, also one that cannot be asked."""

import json

import pytest

from headstart.data.readers import open_rows
from headstart.data.sources import find_source
from headstart.errors import HeadstartError


def write(path, *asked, context="a cat"):
    path.write_text(json.dumps({"data": [{"paragraphs": [{"context": context, "qas": asked}]}]}))
    return path


def questions(path, **how):
    return list(open_rows(find_source(path, "squad"), pairs=True, **how))


def test_answers_are_not_looked_at(tmp_path):
    wrong = {"text": "dog", "answer_start": 99}
    path = write(tmp_path / "a.json", {"id": "x", "question": "who?", "answers": [wrong]})
    (found,) = questions(path)
    assert (found.text, found.columns["id"], found.problem) == (("who?", "a cat"), "x", None)
    (checked,) = questions(path, labels="one")
    assert "is not at character 99" in checked.problem.what


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"id": "x"}, "the text is empty"),
        ({"id": "x", "question": 7}, "the text is not text"),
        ("who?", "not a question in SQuAD's form"),
    ],
)
def test_a_broken_question_keeps_its_place(tmp_path, asked, reason):
    good = {"question": "who?"}
    found = questions(write(tmp_path / "a.json", good, asked, good))
    assert [one.number for one in found] == [1, 2, 3]
    assert [one.problem is None for one in found] == [True, False, True]
    assert reason in found[1].problem.what


@pytest.mark.parametrize("content", ["[]", '{"data": ["x"]}', '{"data": 3}', '{"data": [{}, 1]}'])
def test_a_file_of_another_form_is_rejected(tmp_path, content):
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(HeadstartError, match="JSON") as error:
        questions(tmp_path / "a.json")
    assert "paragraphs" in error.value.fix
