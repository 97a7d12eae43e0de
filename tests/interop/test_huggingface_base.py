"""`hf:PATH` works wherever a command takes a base."""

import pytest

from headstart.config import FinetuneConfig
from headstart.run import NetworkRun
from headstart.study.results import read_results
from tests.corpora import write_corpus
from tests.interop.foreign import language_model, make, save
from tests.labelled import TINY, dataset, write_csv
from tests.study.small_study import run_config, small_config

pytest.importorskip("transformers")
# The base decides about the sizes.
ONE_ARM = {"arms": ["pretrained"], "seeds": 1, "epochs": 1, **dict.fromkeys(TINY)}


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return f"hf:{save(make('bert', language_model('bert')), tmp_path_factory.mktemp('bert'))}"


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    theirs = make("llama-grouped", language_model("llama"))
    return f"hf:{save(theirs, tmp_path_factory.mktemp('llama'))}"


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    return write_csv(tmp_path_factory.mktemp("data") / "data.csv", dataset(60))


def test_it_is_fine_tuned_and_predicts(bert, labelled, tmp_path, headstart, headstart_json):
    run, few = tmp_path / "run", ("--epochs", 1, "--threads", 1)
    found = headstart_json("finetune", labelled, "--base", bert, "--out", run, *few)
    assert {row["part"]: row["status"] for row in found["swap"]} == {
        "embedding": "kept",
        "blocks × 2": "kept",
        "language modeling head": "dropped",
        "classification head": "new",
    }
    assert NetworkRun.open(run).model.base.config.width == 16
    assert f'base = "{bert}"' in (run / "config.toml").read_text()
    assert "learning_rate = 5e-05" in (run / "config.toml").read_text()
    assert headstart("predict", run, "the cat sat").returncode == 0


def test_a_run_that_is_resumed_must_find_the_same_weights(labelled, tmp_path, headstart):
    base = save(make("bert"), tmp_path / "theirs")
    words = ("--base", f"hf:{base}", "--out", tmp_path / "run", "--epochs", 1, "--threads", 1)
    assert headstart("finetune", labelled, *words).returncode == 0
    (tmp_path / "run" / "summary.json").unlink()
    save(make("bert", seed=1), base)
    result = headstart("finetune", labelled, *words, "--resume")
    assert result.returncode == 2
    assert "the base is not the one" in result.stderr


def test_it_fills_gaps_writes_and_its_perplexity_is_measured(bert, llama, tmp_path, headstart_json):
    assert len(headstart_json("fill", bert, "the [MASK] sat")["gaps"][0]) == 5
    assert headstart_json("generate", llama, "the cat", "--tokens", 3)["text"]
    write_corpus(tmp_path / "corpus.txt", 5)
    assert headstart_json("perplexity", llama, tmp_path / "corpus.txt")["perplexity"] > 1


@pytest.mark.parametrize("base", ["bert", "llama"])
def test_its_pretraining_goes_on_with_its_own_tokenizer(base, tmp_path, headstart_json, request):
    base = request.getfixturevalue(base)
    write_corpus(tmp_path / "corpus.txt")
    words = ("--out", tmp_path / "run", "--steps", 2, "--length", 16, "--threads", 1)
    found = headstart_json("pretrain", tmp_path / "corpus.txt", "--base", base, *words)
    assert found["objective"] == ("masked" if "bert" in base else "causal")
    before, after = NetworkRun.open(base), NetworkRun.open(tmp_path / "run")
    assert after.tokenizer.fingerprint == before.tokenizer.fingerprint
    assert after.model.base.config == before.model.base.config
    moved = after.model.base.embedding.weight - before.model.base.embedding.weight
    assert 0 < float(moved.detach().abs().max()) < 0.01


def test_a_study_starts_from_it_at_its_own_learning_rate(bert, tmp_path):
    """The arms open a copy in the study's folder, which is a run."""
    folder = tmp_path / "study"
    config = small_config(tmp_path, base=bert, corpus=[], labels=["20"], **ONE_ARM)
    run_config(config, folder)
    (copy,) = (folder / "bases").iterdir()
    assert NetworkRun.open(copy).model.base.config == NetworkRun.open(bert).model.base.config
    assert FinetuneConfig.create(dataset=["x"], base=str(copy)).learning_rate == 5e-5


def test_it_is_compared_with_other_arms_on_the_same_rows(bert, labelled, tmp_path, headstart):
    few = ("--labels", 20, "--seeds", 2, "--folds", 1, "--epochs", 1, "--threads", 1, "--jobs", 1)
    out = tmp_path / "study"
    result = headstart("compare", labelled, "--arms", f"tfidf,{bert}", *few, "--out", out)
    assert result.returncode == 0, result.stderr
    assert len(read_results(out).scores(bert, "", 20)) == 2
    assert "hf:bert0" in (out / "report.html").read_text()
    assert len(list((out / "jobs").iterdir())) == 4
