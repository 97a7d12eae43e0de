"""One thread or all of them: whichever takes less time, found once and written down."""

import json

from headstart.machine import choose_threads
from headstart.training.finetune import finetune
from headstart.training.plan import fastest_threads
from headstart.training.pretrain import pretrain
from headstart.training.recipe_file import read_values
from tests.labelled import recipe, splits
from tests.runs import small_recipe


def test_one_thread_is_taken_where_more_only_wait():
    assert fastest_threads(lambda count: 5.0 if count > 1 else 1.0) == 1


def test_all_threads_are_taken_where_they_share_the_work():
    assert fastest_threads(lambda count: 1 / count) == choose_threads()


def test_one_and_all_are_tried_and_no_others():
    tried = []
    fastest_threads(lambda count: tried.append(count) or 1.0)
    assert tried == sorted({1, choose_threads()})


def test_a_pretraining_keeps_the_threads_that_it_found(tmp_path):
    recipe, run = small_recipe(tmp_path, steps=2, threads=0), tmp_path / "run"
    first = pretrain(recipe, run)
    kept = read_values(run)["threads"]
    assert kept in (1, choose_threads())
    assert json.loads((run / "plan.json").read_text(encoding="utf-8"))["threads"] == kept
    assert pretrain(recipe, run, resume=True)["held_out"] == first["held_out"]
    assert read_values(run)["threads"] == kept


def test_trying_threads_changes_no_bit_of_a_pretraining(tmp_path):
    tried, given = tmp_path / "tried", tmp_path / "given"
    pretrain(small_recipe(tmp_path, steps=2, threads=0), tried)
    pretrain(small_recipe(tmp_path, steps=2, threads=read_values(tried)["threads"]), given)
    assert weights(tried) == weights(given)


def test_trying_threads_changes_no_bit_of_a_finetuning(tmp_path):
    tried, given = tmp_path / "tried", tmp_path / "given"
    finetune(recipe(threads=0, epochs=1), tried, splits=splits())
    kept = read_values(tried)["threads"]
    assert kept in (1, choose_threads())
    finetune(recipe(threads=kept, epochs=1), given, splits=splits())
    assert weights(tried) == weights(given)


def weights(run):
    return (run / "model.safetensors").read_bytes()
