"""predict for tags and for answers in texts, as a user runs it."""

import json

import pytest

TEXT = "In year 7, Ada lives here. Kurt works there!"


def test_tags_are_shown_with_the_entities(tagger, headstart, headstart_json):
    result = headstart("predict", tagger, "7 Grace Hopper saw Oslo", "11 saw")
    assert result.returncode == 0, result.stderr
    assert "7/O Grace/B-PER Hopper/I-PER saw/O Oslo/B-LOC" in result.stdout
    (found,) = headstart_json("predict", tagger, "7 Grace Hopper saw")["predictions"]
    assert found["tags"] == ["O", "B-PER", "I-PER", "O"]
    assert found["entities"][0]["text"] == "Grace Hopper"


def test_answers_are_shown_where_they_stand(answerer, headstart, tmp_path):
    result = headstart("predict", answerer, "who lives?", TEXT, "who sleeps?", TEXT)
    assert result.returncode == 0, result.stderr
    shown = " ".join(result.stdout.split())
    assert "characters 11 to 14" in shown
    assert "no answer in this text" in shown
    source, out = answerer.parent / "train.json", tmp_path / "answers.jsonl"
    assert headstart("predict", answerer, "--input", source, "--output", out).returncode == 0
    assert [json.loads(line)["id"] for line in out.open()] == [f"q{n}" for n in range(250)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["TAGGER", ""], "the text is empty"),
        (["TAGGER", "Ada", "--explain"], "--explain shows which words"),
        (["ANSWERER", "who lives?"], "texts come in pairs, and 1 was given"),
        (["ANSWERER", "", TEXT], "the question is empty"),
        (["TAGGER", "--input", "CONLL", "--output", "x.csv"], "let the name end in .jsonl or"),
        (["ANSWERER", "--input", "CONLL", "--output", "OUT"], "no column 'question'"),
        (["TAGGER", "--input", "missing.conll", "--output", "OUT"], "there is no file"),
        (["TAGGER", "--input", "EMPTY", "--output", "OUT"], "the file holds no"),
        (["ANSWERER", "--input", "NOT_SQUAD", "--output", "OUT"], "not SQuAD's JSON"),
    ],
)
def test_bad_input_is_one_clear_message_and_code_2(
    tagger, answerer, headstart, tmp_path, arguments, message
):
    (tmp_path / "empty.conll").write_text("\n\n")
    (tmp_path / "list.json").write_text("[]")
    places = {
        "TAGGER": tagger,
        "ANSWERER": answerer,
        "CONLL": tagger.parent / "train.conll",
        "EMPTY": tmp_path / "empty.conll",
        "NOT_SQUAD": tmp_path / "list.json",
        "OUT": tmp_path / "out.jsonl",
    }
    result = headstart("predict", *(places.get(word, word) for word in arguments))
    assert result.returncode == 2, result.stderr
    assert message in result.stderr.replace("\n", " ")
    assert "Traceback" not in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.conll", "list.json"]
