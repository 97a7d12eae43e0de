"""Pretraining: each objective learns, and the run folder holds all there is to know."""

import json
import math
from dataclasses import replace

import pytest

from headstart.errors import HeadstartError
from headstart.model.checkpoint import load_model
from headstart.training.pretrain import pretrain
from headstart.training.recipe import PretrainRecipe, read_recipe
from headstart.training.recipe_file import write_recipe
from tests.runs import small_recipe


@pytest.mark.parametrize("start", ["random", "cooccurrence"])
@pytest.mark.parametrize("objective", ["causal", "masked"])
def test_an_objective_learns_more_than_the_frequencies_of_tokens(tmp_path, objective, start):
    recipe = small_recipe(tmp_path, objective, steps=400, embedding_start=start)
    summary = pretrain(recipe, tmp_path / "run")
    assert summary["held_out"]["perplexity"] < 0.6 * summary["unigram_perplexity"]


@pytest.mark.slow
def test_next_sentence_is_learned_beside_the_hidden_tokens(tmp_path):
    recipe = small_recipe(tmp_path, "masked+next-sentence", steps=800, seed=1)
    found = pretrain(recipe, tmp_path / "run")["held_out"]
    assert found["next_sentence_accuracy"] > 0.65  # chance is 0.5; 6 subjects make 1 in 6 unlucky
    assert math.exp(found["pieces"]) < 40


def test_the_run_folder_is_complete(tmp_path):
    summary = pretrain(small_recipe(tmp_path, steps=6), tmp_path / "run")
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names >= {
        "recipe.toml",
        "plan.json",
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "metrics.jsonl",
        "summary.json",
        "README.md",
        "checkpoints",
    }
    assert json.loads((tmp_path / "run" / "summary.json").read_text()) == summary
    steps = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").open()]
    assert [line["step"] for line in steps if "held_out" not in line] == [1, 2, 3, 4, 5, 6]


def test_the_model_kept_is_the_best_one(tmp_path):
    summary = pretrain(small_recipe(tmp_path, steps=6), tmp_path / "run")
    assert summary["best_step"] in (3, 6)
    assert load_model(tmp_path / "run").base.config.width == 32


@pytest.mark.parametrize(
    ("amount", "steps"), [({"steps": 3}, 3), ({"tokens": 1_024}, 2), ({"tokens": 1_025}, 3)]
)
def test_an_amount_becomes_steps(tmp_path, amount, steps):
    assert pretrain(small_recipe(tmp_path, **amount), tmp_path / "run")["steps"] == steps


def test_minutes_become_steps_once_and_are_kept(tmp_path):
    summary = pretrain(small_recipe(tmp_path, minutes=0.05), tmp_path / "run")
    plan = json.loads((tmp_path / "run" / "plan.json").read_text())
    assert plan["steps"] == summary["steps"] >= 1


def test_two_amounts_cannot_go_together(tmp_path):
    with pytest.raises(HeadstartError, match="--minutes and --steps cannot go together"):
        small_recipe(tmp_path, minutes=1.0, steps=5)


def test_micro_batches_change_memory_and_not_the_result(tmp_path):
    whole = pretrain(small_recipe(tmp_path, steps=5), tmp_path / "whole")
    parts = pretrain(small_recipe(tmp_path, steps=5, micro_batch_tokens=64), tmp_path / "parts")
    assert parts["held_out"]["loss"] == pytest.approx(whole["held_out"]["loss"], abs=1e-4)


def test_bf16_trains_too(tmp_path):
    exact = pretrain(small_recipe(tmp_path, steps=20), tmp_path / "fp32")
    rounded = pretrain(small_recipe(tmp_path, steps=20, precision="bf16"), tmp_path / "bf16")
    assert rounded["held_out"]["loss"] == pytest.approx(exact["held_out"]["loss"], abs=0.1)


def test_a_folder_with_a_run_is_not_overwritten(tmp_path):
    recipe = small_recipe(tmp_path, steps=2)
    pretrain(recipe, tmp_path / "run")
    with pytest.raises(HeadstartError, match="there is a run in this folder already"):
        pretrain(recipe, tmp_path / "run")


def test_resuming_with_another_recipe_says_both_values(tmp_path):
    recipe = small_recipe(tmp_path, steps=2)
    pretrain(recipe, tmp_path / "run")
    with pytest.raises(HeadstartError, match=r"learning_rate: 0\.005 in the run, 0\.1 now"):
        pretrain(replace(recipe, learning_rate=0.1), tmp_path / "run", resume=True)


def test_resuming_with_another_corpus_is_refused(tmp_path):
    recipe = small_recipe(tmp_path, steps=2)
    pretrain(recipe, tmp_path / "run")
    (tmp_path / "corpus.txt").open("a").write("one more text about nothing at all\n")
    with pytest.raises(HeadstartError, match="the corpus is not the one"):
        pretrain(recipe, tmp_path / "run", resume=True)


def test_a_corpus_too_small_to_train_on_is_refused(tmp_path):
    (tmp_path / "corpus.txt").write_text("too little\n")
    with pytest.raises(HeadstartError, match="too small"):
        pretrain(small_recipe(tmp_path, steps=2), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_recipe_survives_the_trip_through_its_file(tmp_path):
    recipe = PretrainRecipe(corpus=['a "quoted" näme.txt', "b\\c"], minutes=2.5, learning_rate=1e-4)
    write_recipe(recipe, tmp_path)
    assert read_recipe(tmp_path) == recipe


def test_an_unknown_setting_in_a_recipe_is_an_error(tmp_path):
    write_recipe(PretrainRecipe(corpus=["a"]), tmp_path)
    (tmp_path / "recipe.toml").open("a").write("speed = 9\n")
    with pytest.raises(HeadstartError, match="unknown setting speed"):
        read_recipe(tmp_path)
