"""The output layer over candidates in pretraining: it learns, it resumes, it is chosen by pace."""

import os
import signal

import pytest
import torch

from headstart.model.checkpoint import load_model
from headstart.training.listener import Listener
from headstart.training.loop import Interrupted
from headstart.training.plan import choose_output
from headstart.training.pretrain import plan_pretraining, pretrain
from headstart.training.pretrain_loop import make_loop
from headstart.training.pretrain_prepare import prepare_pretraining
from headstart.training.recipe import PretrainRecipe, read_recipe
from tests.runs import small_recipe

OBJECTIVES = ["causal", "masked", "masked+next-sentence"]
FEW = {"output": "candidates", "frequent": 40, "drawn": 40}


@pytest.mark.parametrize("objective", ["causal", "masked"])
def test_over_candidates_an_objective_learns_more_than_the_frequencies_of_tokens(
    tmp_path, objective
):
    recipe = small_recipe(tmp_path, objective, steps=400, **FEW)
    summary = pretrain(recipe, tmp_path / "run")
    assert summary["held_out"]["perplexity"] < 0.6 * summary["unigram_perplexity"]


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("preset", ["small", "lab"])
def test_no_gradient_of_the_vocabulary_is_dense(tmp_path, objective, preset):
    recipe = small_recipe(tmp_path, objective, preset=preset, steps=1, **FEW)
    planned = plan_pretraining(prepare_pretraining(recipe, tmp_path / "run"))
    loop = make_loop(planned.setup, planned.model)
    loop.gradients(0)
    for parameter in planned.model.vocabulary_rows:
        assert parameter.grad.is_sparse


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_micro_batches_of_a_step_share_their_candidates_and_add_up(tmp_path, objective):
    settings = {"steps": 4, **FEW}
    whole = pretrain(small_recipe(tmp_path, objective, **settings), tmp_path / "whole")
    parts = small_recipe(tmp_path, objective, micro_batch_tokens=64, **settings)
    found = pretrain(parts, tmp_path / "parts")
    assert found["held_out"]["loss"] == pytest.approx(whole["held_out"]["loss"], abs=1e-4)


@pytest.mark.parametrize("preset", ["small", "lab"])
def test_an_interrupted_run_over_candidates_goes_on_to_the_same_bits(tmp_path, preset):
    recipe = small_recipe(tmp_path, preset=preset, steps=12, **FEW)
    pretrain(recipe, tmp_path / "whole")

    class StopAt5(Listener):
        def on_step(self, progress):
            if progress.step == 5:
                os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Interrupted):
        pretrain(recipe, tmp_path / "parts", listener=StopAt5())
    pretrain(recipe, tmp_path / "parts", resume=True)
    one, two = (load_model(tmp_path / name).state_dict() for name in ("whole", "parts"))
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_the_held_out_loss_is_exact_whatever_the_steps_score(tmp_path):
    planned = {}
    for output in ("full", "candidates"):
        recipe = small_recipe(tmp_path, steps=1, **{**FEW, "output": output})
        planned[output] = plan_pretraining(prepare_pretraining(recipe, tmp_path / output))
    losses = [make_loop(one.setup, one.model).evaluation() for one in planned.values()]
    assert losses[0] == losses[1]  # the first weights are the same


@pytest.mark.parametrize(
    ("vocab_size", "full", "candidates", "expected"),
    [(32_768, 1.0, 0.2, "candidates"), (32_768, 1.0, 0.95, "full"), (4_096, 1.0, 0.2, "full")],
)
def test_candidates_are_taken_where_they_are_clearly_faster_and_save_much(
    tmp_path, vocab_size, full, candidates, expected
):
    seconds = {"full": full, "candidates": candidates}
    recipe = PretrainRecipe(corpus=["none"])
    assert choose_output(recipe, vocab_size, seconds.__getitem__) == expected


def test_what_was_measured_stands_in_the_recipe_and_is_resumed_with(tmp_path):
    recipe = small_recipe(tmp_path, steps=3, output="auto")
    pretrain(recipe, tmp_path / "run")
    assert read_recipe(tmp_path / "run").output in ("full", "candidates")
    pretrain(recipe, tmp_path / "run", resume=True)


def test_the_rows_of_the_vocabulary_have_a_learning_rate_of_their_own(tmp_path):
    recipe = small_recipe(
        tmp_path, preset="lab", steps=1, embedding_learning_rate=2e-2, learning_rate=1e-2, **FEW
    )
    planned = plan_pretraining(prepare_pretraining(recipe, tmp_path / "run"))
    loop = make_loop(planned.setup, planned.model)
    rows = {id(parameter) for parameter in planned.model.vocabulary_rows}
    for group in loop.optimizer.param_groups:
        for parameter in group["params"]:
            assert group["scale"] == (2 if id(parameter) in rows else 1)
