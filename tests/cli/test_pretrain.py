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
    summary = headstart_json("pretrain", corpus, *OPTIONS, "--steps", 150, "--out", folder)
    assert summary["held_out"]["perplexity"] < summary["unigram_perplexity"]
    return folder


def test_a_dry_run_shows_the_plan_and_writes_nothing(corpus, headstart_json, tmp_path):
    out = tmp_path / "run"
    plan = headstart_json("pretrain", corpus, *OPTIONS, "--minutes", 0.1, "--out", out, "--dry-run")
    assert plan["steps"] >= 1
    assert plan["seconds"] > 0
    assert plan["threads"] == 1
    assert plan["peak_memory_bytes"] > 16 * plan["parameters"]
    assert not out.exists()


def test_tokens_may_be_written_with_a_unit(corpus, headstart_json, tmp_path):
    amount = ("--tokens", "0.05M", "--out", tmp_path / "run", "--dry-run")
    assert 49_500 <= headstart_json("pretrain", corpus, *OPTIONS, *amount)["tokens"] <= 50_500


def test_without_a_corpus_the_message_says_what_to_do(headstart, tmp_path):
    result = headstart("pretrain", "--out", tmp_path / "run")
    assert result.returncode == 2
    assert "no corpus was given" in result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--minutes", "1", "--steps", "5"], "exclude each other"),
        (["--objective", "guess"], "choose causal, masked"),
        (["--preset", "huge"], "choose small, lab"),
        (["--device", "abacus"], "no device called"),
        (["--embedding-init", "magic"], "choose cooccurrence, random"),
        (["--mask-share", "2"], "it must be less than 1"),
        (["--tokens", "many"], "--tokens is 'many'"),
        (["--tokenizer", "nowhere.json"], "no such tokenizer"),
    ],
)
def test_wrong_use_is_one_message_and_nothing_is_written(
    corpus, headstart, tmp_path, options, message
):
    result = headstart("pretrain", corpus, *options, "--out", tmp_path / "run")
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_says_how_to_go_on(corpus, tmp_path, kind):
    out = tmp_path / "run"
    process = start(["pretrain", corpus, *OPTIONS, "--steps", 5000, "--out", out])
    process.wait_for_lines(out / "metrics.jsonl", 1)
    os.kill(process.pid, kind)
    assert process.wait() == 130, process.messages
    assert "resume with: headstart pretrain --resume" in process.messages.replace("\n", " ")
    assert list((out / "checkpoints").glob("step-*"))


def test_resuming_a_folder_without_a_run_is_refused(headstart, tmp_path):
    result = headstart("pretrain", "--resume", "--out", tmp_path)
    assert result.returncode == 2
    assert "this is not a run" in result.stderr


def test_duplicates_in_the_corpus_are_said_before_training(headstart, tmp_path):
    text = write_corpus(tmp_path / "corpus.txt", documents=100).read_text()
    (tmp_path / "corpus.txt").write_text(text + text)
    result = headstart(
        "pretrain", tmp_path / "corpus.txt", *OPTIONS, "--steps", 1, "--out", tmp_path / "run"
    )
    assert result.returncode == 0, result.stderr
    assert "note:" in result.stderr


def test_tensorboard_files_are_written_on_request(corpus, headstart, tmp_path):
    result = headstart(
        "pretrain",
        corpus,
        *OPTIONS,
        "--steps",
        2,
        "--track",
        "tensorboard",
        "--out",
        tmp_path / "run",
    )
    assert result.returncode == 0, result.stderr
    assert list((tmp_path / "run" / "tensorboard").iterdir())


def test_generate_writes_on(causal, headstart):
    result = headstart("generate", causal, "the old cat", "--temperature", 0)
    assert result.returncode == 0, result.stderr
    assert "chases the mouse" in result.stdout


def test_generate_as_json_has_alternatives(causal, headstart_json):
    document = headstart_json("generate", causal, "the old", "--tokens", 3, "--temperature", 0)
    first = document["tokens"][0]["alternatives"]
    assert len(first) == 5
    assert first[0]["probability"] >= first[1]["probability"]


def test_generated_control_characters_are_escaped_to_the_end(headstart, monkeypatch, tmp_path):
    class Tokenizer:
        end_id = 0

        def decode(self, ids):
            return "".join({1: "a", 2: "\x1b[31m\ufffd"}[number] for number in ids)

    steps = [(number, []) for number in (1, 2)]
    opened = types.SimpleNamespace(tokenizer=Tokenizer())
    monkeypatch.setattr(language_model, "open_language_model", lambda *_, **__: opened)
    monkeypatch.setattr(language_model, "generate", lambda *_, **__: iter(steps))
    result = headstart("generate", tmp_path, "prompt ")
    assert result.returncode == 0, result.stderr
    assert "\x1b" not in result.stdout
    assert r"prompt a\x1b[31m" in result.stdout


def test_resuming_before_anything_was_started_starts(corpus, headstart, tmp_path):
    out = tmp_path / "run"
    result = headstart("pretrain", corpus, *OPTIONS, "--steps", 2, "--resume", "--out", out)
    assert result.returncode == 0, result.stderr
    again = headstart("pretrain", "--resume", "--out", out, "--steps", 3)
    assert again.returncode == 2
    assert "steps: 2 in the run, 3 now" in again.stderr


def test_a_config_file_repeats_a_run(corpus, headstart_json, tmp_path):
    first = headstart_json("pretrain", corpus, *OPTIONS, "--steps", 3, "--out", tmp_path / "one")
    file = tmp_path / "one" / "config.toml"
    second = headstart_json("pretrain", "--config", file, "--out", tmp_path / "two")
    assert second["held_out"] == first["held_out"]


def test_fill_with_a_causal_base_says_why_not(causal, headstart):
    result = headstart("fill", causal, "the old [MASK] chases the mouse .")
    assert result.returncode == 2
    assert "causal mask" in result.stderr


def test_perplexity_of_a_file(causal, corpus, headstart_json):
    found = headstart_json("perplexity", causal, corpus)
    assert found["documents"] == 400
    assert 1 < found["perplexity"] < 30


def test_a_finished_run_without_checkpoints_is_not_trained_again(causal, headstart, tmp_path):
    shutil.copytree(causal, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoints", ignore_errors=True)
    result = headstart("pretrain", "--resume", "--out", tmp_path / "run")
    assert result.returncode == 0, result.stderr
    for name in ("model.safetensors", "metrics.jsonl"):
        assert (tmp_path / "run" / name).read_bytes() == (causal / name).read_bytes()


def test_a_seed_that_is_too_large_is_one_message(causal, headstart):
    result = headstart("generate", causal, "the", "--seed", 10**23)
    assert result.returncode == 2
    assert "--seed" in result.stderr
    assert not result.stdout


def test_a_run_that_is_none_is_refused(headstart, tmp_path):
    result = headstart("generate", tmp_path / "nothing", "hello", "--json")
    assert result.returncode == 2
    assert "there is no such run" in result.stderr
    assert "there is no such run" in json.loads(result.stdout)["error"]["what"]


def test_the_summary_is_one_json_document(causal):
    assert json.loads((causal / "summary.json").read_text())["objective"] == "causal"
