"""`headstart pretrain`, `generate`, `fill` and `perplexity`, as a user runs them."""

import json
import os
import shutil
import signal
import types

import pytest

from headstart import language_model
from tests.corpora import write_corpus
from tests.forked import start
from tests.runs import options

OPTIONS = options()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus") / "corpus.txt")


@pytest.fixture(scope="module")
def causal(corpus, headstart_json):
    folder = corpus.parent / "causal"
    options = [*OPTIONS, "--objective", "causal", "--steps", 150]
    summary = headstart_json("pretrain", corpus, *options, "--out", folder)
    assert summary["held_out"]["perplexity"] < summary["unigram_perplexity"]
    return folder


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "no corpus was given"),
        (["--resume"], "this is not a run"),
        (["CORPUS", "--minutes", "1", "--steps", "5"], "exclude each other"),
        (["CORPUS", "--objective", "guess"], "choose causal, masked"),
        (["CORPUS", "--device", "abacus"], "no device called"),
        (["CORPUS", "--mask-share", "2"], "it must be less than 1"),
        (["CORPUS", "--tokens", "many"], "--tokens is 'many'"),
        (["CORPUS", "--tokenizer", "nowhere.json"], "no such tokenizer"),
    ],
)
def test_wrong_use_is_one_message_and_nothing_is_written(
    corpus, headstart, tmp_path, options, message
):
    words = [corpus if word == "CORPUS" else word for word in options]
    result = headstart("pretrain", *words, "--out", tmp_path / "run")
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "kind", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_a_signal_saves_and_says_how_to_go_on(corpus, tmp_path, kind):
    out = tmp_path / "run"
    process = start(["pretrain", corpus, *OPTIONS, "--steps", 5000, "--out", out])
    process.wait_for_lines(out / "metrics.jsonl", 1)
    os.kill(process.pid, kind)
    assert process.wait() == 130, process.messages
    assert "resume with: headstart pretrain --resume" in process.messages.replace("\n", " ")
    assert list((out / "checkpoints").glob("step-*"))


def test_generated_control_characters_are_escaped_to_the_end(headstart, monkeypatch, tmp_path):
    class Tokenizer:
        end_id = 0

        def decode(self, ids):
            return "".join({1: "a", 2: "\x1b[31m\ufffd"}[number] for number in ids)

    opened = types.SimpleNamespace(tokenizer=Tokenizer())
    monkeypatch.setattr(language_model, "open_language_model", lambda *_, **__: opened)
    monkeypatch.setattr(language_model, "generate", lambda *_, **__: iter((1, 2)))
    result = headstart("generate", tmp_path, "prompt ")
    assert result.returncode == 0, result.stderr
    assert "\x1b" not in result.stdout
    assert r"prompt a\x1b[31m" in result.stdout


def test_a_finished_run_without_checkpoints_is_not_trained_again(causal, headstart, tmp_path):
    shutil.copytree(causal, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoints", ignore_errors=True)
    result = headstart("pretrain", "--resume", "--out", tmp_path / "run")
    assert result.returncode == 0, result.stderr
    for name in ("model.safetensors", "metrics.jsonl"):
        assert (tmp_path / "run" / name).read_bytes() == (causal / name).read_bytes()


def test_a_config_file_repeats_a_run_with_its_duplicates_noted(
    corpus, headstart, headstart_json, tmp_path
):
    text = corpus.read_text()
    (tmp_path / "twice.txt").write_text(text + text)
    arguments = [tmp_path / "twice.txt", *OPTIONS, "--tokens", "0.0015M"]
    out = tmp_path / "one"
    first = headstart("pretrain", *arguments, "--resume", "--out", out)  # nothing there: it starts
    assert first.returncode == 0, first.stderr
    assert "note:" in first.stderr
    again = headstart_json("pretrain", "--config", out / "config.toml", "--out", tmp_path / "two")
    assert again["held_out"] == json.loads((out / "summary.json").read_text())["held_out"]
    refused = headstart("pretrain", "--resume", "--out", out, "--tokens", "1M")
    assert refused.returncode == 2
    assert "tokens: 1500 in the run, 1000000 now" in refused.stderr


def test_a_base_writes_and_is_measured_and_says_what_it_cannot(
    causal, corpus, headstart, headstart_json, tmp_path
):
    written = headstart("generate", causal, "the old cat", "--temperature", 0)
    assert "chases the mouse" in written.stdout
    document = headstart_json("generate", causal, "the old", "--tokens", 3, "--temperature", 0)
    assert (document["prompt"], document["ended"]) == ("the old", False)
    found = headstart_json("perplexity", causal, corpus)
    assert found["documents"] == 400
    assert 1 < found["perplexity"] < 30
    for arguments, message in [
        (["fill", causal, "the old [MASK] chases the mouse ."], "causal mask"),
        (["generate", causal, "the", "--seed", 10**23], "--seed"),
        (["generate", causal, "the", "--temperature", -1], "--temperature"),
        (["generate", causal, "the", "--top-p", 1.5], "--top-p"),
        (["generate", tmp_path / "nothing", "hello"], "there is no such run"),
    ]:
        result = headstart(*arguments)
        assert result.returncode == 2
        assert message in result.stderr
        assert not result.stdout
