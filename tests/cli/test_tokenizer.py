"""`headstart tokenizer`, as a user runs it."""

import pytest

from headstart.data.tokenizers import load_tokenizer


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    path.write_text("A good film, a very good film.\nUn très bon livre.\n\n" * 20, encoding="utf-8")
    return path


def test_a_tokenizer_is_trained_and_its_true_size_reported(headstart_json, corpus, tmp_path):
    out = tmp_path / "t.json"
    found = headstart_json("tokenizer", corpus, "--vocab-size", 280, "--out", out)
    assert 262 <= found["vocab_size"] <= 280
    assert load_tokenizer(out).vocab_size == found["vocab_size"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("nowhere.txt", "--out", "t.json"),
        ("corpus.txt", "--out", "t.model"),
        ("corpus.txt", "--vocab-size", "10", "--out", "t.json"),
    ],
)
def test_a_mistake_gets_one_message_and_code_2(headstart, corpus, arguments, monkeypatch):
    monkeypatch.chdir(corpus.parent)
    result = headstart("tokenizer", *arguments)
    assert result.returncode == 2
    assert result.stderr.startswith("error: ")
    assert "fix: " in result.stderr
    assert "Traceback" not in result.stderr
