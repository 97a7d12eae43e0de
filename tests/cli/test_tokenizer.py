"""`headstart tokenizer` and `headstart tokenize`, as a user runs them."""

import pytest


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    path.write_text("A good film, a very good film.\nUn très bon livre.\n\n" * 20, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def tokenizer_file(headstart, corpus):
    path = corpus.with_name("tokenizer.json")
    result = headstart("tokenizer", corpus, "--vocab-size", 300, "--out", path)
    assert result.returncode == 0, result.stderr
    return path


def test_a_tokenizer_is_trained_and_its_true_size_told(headstart_json, corpus, tmp_path):
    out = tmp_path / "t.json"
    told = headstart_json("tokenizer", corpus, "--vocab-size", 280, "--out", out)
    assert out.is_file()
    assert 262 <= told["vocab_size"] <= 280


def test_tokens_and_ids_are_shown(headstart, tokenizer_file):
    result = headstart("tokenize", tokenizer_file, "a good film")
    assert result.returncode == 0
    assert "·good|" in result.stdout


def test_json_has_pieces_ids_and_the_text_back(headstart_json, tokenizer_file):
    told = headstart_json("tokenize", tokenizer_file, "a [MASK]", "très")
    assert [text["decoded"] for text in told["texts"]] == ["a [MASK]", "très"]
    assert told["specials"]["mask"] not in told["texts"][0]["ids"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("tokenizer", "nowhere.txt", "--out", "t.json"),
        ("tokenizer", "corpus.txt", "--out", "t.model"),
        ("tokenizer", "corpus.txt", "--vocab-size", "10", "--out", "t.json"),
        ("tokenize", "nowhere.json", "a"),
    ],
)
def test_a_mistake_gets_one_message_and_code_2(headstart, corpus, arguments):
    result = headstart(*arguments, cwd=corpus.parent)
    assert result.returncode == 2
    assert result.stderr.startswith("error: ")
    assert "fix: " in result.stderr
    assert "Traceback" not in result.stderr
