"""Each word has a tag and entities have positions; in files no sentence is lost."""

import json
from dataclasses import replace

import numpy as np
import pytest

from headstart.data.splits import read_dataset
from headstart.errors import HeadstartError
from headstart.run import NetworkRun
from headstart.tasks.task import run_network
from tests.labelled import write_conll

TEXT = "7 Grace Hopper saw New York."


@pytest.fixture(scope="module")
def run(tagger):
    return NetworkRun.open(tagger)


def read_rows(path):
    return [json.loads(line) for line in path.open(encoding="utf-8")]


def test_entities_are_found_with_their_words_and_characters(run):
    found = run.predict([TEXT])[0]
    assert found["words"] == ["7", "Grace", "Hopper", "saw", "New", "York", "."]
    assert found["tags"][:6] == ["O", "B-PER", "I-PER", "O", "B-LOC", "I-LOC"]
    person, place = found["entities"][:2]
    assert (person["kind"], person["text"], person["start_word"], person["end_word"]) == (
        "PER",
        "Grace Hopper",
        1,
        3,
    )
    assert TEXT[place["start"] : place["end"]] == place["text"] == "New York"
    assert person["probability"] == pytest.approx(np.prod(found["probabilities"][1:3]))
    with pytest.raises(HeadstartError, match="its task is tagging"):
        run.predict_proba([TEXT])


def test_a_sentence_is_tagged_as_evaluation_tags_it(run, tagger):
    part = read_dataset([str(tagger.parent / "train.conll")], task="tagging").validation
    examples = run.task.encode(part, run.encoding)
    scores = run.task.decode(run_network(run.model, examples), examples)
    wanted = [[run.labels[tag] for tag in one.argmax(axis=1)] for one in scores]
    texts = [" ".join(words) for words in part.words]
    assert [one["tags"] for one in run.predict(texts)] == wanted


def test_words_behind_the_length_have_no_tag(run):
    short = replace(run, length=12, long="truncate")
    found = short.predict(["Ada saw Oslo " * 9])[0]
    assert len(found["words"]) == len(found["tags"]) == len(found["probabilities"]) == 27
    unread = found["tags"].count(None)
    assert 0 < unread < 27
    assert found["tags"][-unread:] == found["probabilities"][-unread:] == [None] * unread
    windows = replace(run, length=12, long="windows")
    assert windows.predict(["Ada saw Oslo " * 9])[0]["tags"].count(None) == 0


@pytest.mark.slow
@pytest.mark.parametrize("text", ["Ada saw Oslo . " * 70_000, "x" * 1_000_000])
def test_a_text_of_a_megabyte_is_tagged(run, text):
    assert run.predict([text])[0]["tags"][0] is not None


def test_words_that_are_split_already_are_tagged_as_given(run):
    (found,) = run.predict([["Grace", "Hopper", "saw"]])
    assert found["words"] == ["Grace", "Hopper", "saw"]
    assert found["entities"][0]["text"] == "Grace Hopper"


def test_conll_goes_in_and_comes_out_with_the_words_in_their_places(run, tmp_path):
    source, output = write_conll(tmp_path / "in.conll", 1_500, seed=5), tmp_path / "out.conll"
    summary = run.predict_file(source, output)
    assert (summary["rows"], summary["bad_rows"]) == (1_500, 0)
    lines = output.read_text().splitlines()
    wanted = source.read_text().splitlines()[2:]
    assert [line.split("\t")[0] for line in lines] == [line.split("\t")[0] for line in wanted]
    pairs = zip(lines, wanted, strict=True)
    right = [line.split("\t")[-1] == other.split("\t")[-1] for line, other in pairs]
    assert np.mean(right) > 0.95


@pytest.mark.parametrize("suffix", [".jsonl", ".conll"])
def test_a_broken_sentence_keeps_its_place_and_its_reason(run, tmp_path, suffix):
    source, output = tmp_path / "in.conll", tmp_path / f"out{suffix}"
    source.write_bytes(b"Ada O\n\ncaf\xe9 O\n\nOslo O\n")
    summary = run.predict_file(source, output)
    assert summary["bad"] == [{"row": 2, "error": "byte 0xE9 is not text in UTF-8"}]
    if suffix == ".jsonl":
        rows = read_rows(output)
        assert [row["row"] for row in rows] == [1, 2, 3]
        assert [row["tags"] is None for row in rows] == [False, True, False]
        assert rows[1]["error"] == summary["bad"][0]["error"]
    else:
        first, broken, last = output.read_text().strip().split("\n\n")
        assert first.startswith("Ada\t")
        assert broken == "# row 2: byte 0xE9 is not text in UTF-8\ncaf?\t_"
        assert last.startswith("Oslo\t")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", "id,text\n1,Ada saw.\n2,Oslo\n", [["Ada", "saw", "."], ["Oslo"]]),
        ("a.txt", "Ada saw.\nOslo\n", [["Ada", "saw", "."], ["Oslo"]]),
        ("a.CONLL", "Ada\nsaw\n\nOslo\n", [["Ada", "saw"], ["Oslo"]]),
    ],
)
def test_texts_and_sentences_of_every_kind_of_file_are_tagged(run, tmp_path, name, content, words):
    (tmp_path / name).write_text(content)
    run.predict_file(tmp_path / name, tmp_path / "out.jsonl")
    rows = read_rows(tmp_path / "out.jsonl")
    assert [row["words"] for row in rows] == words
    assert [len(row["tags"]) for row in rows] == [len(one) for one in words]
