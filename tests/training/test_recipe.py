"""What a recipe takes from its preset, and what its file keeps."""

import pytest

from headstart.errors import HeadstartError
from headstart.run import NetworkRun, evaluation_rows
from headstart.tasks import find_task
from headstart.training.finetune import finetune
from headstart.training.recipe import make_pretrain_recipe, make_recipe, read_finetune_recipe
from headstart.training.recipe_file import write_recipe
from tests.labelled import dataset, recipe, write_csv


def test_the_lab_network_learns_at_a_rate_of_its_own():
    usual = make_pretrain_recipe(corpus=["x"])
    lab = make_pretrain_recipe(corpus=["x"], preset="lab")
    assert lab.learning_rate < usual.learning_rate


def test_a_rate_that_was_given_wins_over_the_preset():
    given = make_pretrain_recipe(corpus=["x"], preset="lab", learning_rate=1e-4)
    assert given.learning_rate == 1e-4


@pytest.mark.parametrize("name", ["😀.csv", 'a "quoted" näme.csv', "new\nline.csv", "b\\c.csv"])
def test_a_name_of_any_characters_survives_the_trip_through_the_file(tmp_path, name):
    recipe = make_recipe(dataset=[name], validation=name)
    write_recipe(recipe, tmp_path)
    assert read_finetune_recipe(tmp_path) == recipe


def test_a_name_that_is_not_unicode_is_refused_before_any_work():
    with pytest.raises(HeadstartError, match=r"dataset is .* not valid Unicode"):
        make_recipe(dataset=["caf\udce9.csv"])


def test_a_dataset_with_an_emoji_for_a_name_can_be_resumed_and_evaluated(tmp_path):
    path = write_csv(tmp_path / "😀.csv", dataset(60))
    settings = recipe(dataset=[str(path)], epochs=1)
    summary = finetune(settings, tmp_path / "run")
    saved = read_finetune_recipe(tmp_path / "run")
    assert finetune(saved, tmp_path / "run", resume=True) == summary
    run = NetworkRun.open(tmp_path / "run")
    part, _ = evaluation_rows(saved, run.task, None)
    assert run.evaluate(part)["rows"] == len(part)


def test_a_column_that_the_runs_own_dataset_does_not_have_is_refused(tmp_path):
    path = write_csv(tmp_path / "data.csv", dataset(60))
    settings = recipe(dataset=[str(path)], epochs=1)
    task = find_task("classification")(["neg", "pos"])
    for column in ("text_column", "label_column"):
        with pytest.raises(HeadstartError, match="squad"):
            evaluation_rows(settings, task, str(path), **{column: "squad"})
