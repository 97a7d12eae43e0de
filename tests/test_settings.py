"""Numbers have both bounds, and zero is zero."""

from dataclasses import fields
from typing import get_type_hints

import pytest

from headstart.cli.options import given_settings
from headstart.errors import HeadstartError
from headstart.machine import choose_threads
from headstart.model.config import BaseConfig, ClassificationConfig
from headstart.settings import LARGEST
from headstart.studies.recipe import StudyRecipe, make_study_recipe
from headstart.training.recipe import FinetuneRecipe, PretrainRecipe


def recipe_of(kind, **settings):
    if kind is StudyRecipe:
        return make_study_recipe(**settings)
    needed = {"corpus": ["a.txt"]} if kind is PretrainRecipe else {"dataset": ["a.csv"]}
    return kind(**needed, **settings)


def numbers():
    for kind in (PretrainRecipe, FinetuneRecipe, StudyRecipe):
        hints = get_type_hints(kind)
        for field in fields(kind):
            if hints[field.name] in (int, float):
                yield kind, field.name, hints[field.name]


@pytest.mark.parametrize(("kind", "name", "number"), list(numbers()))
def test_every_number_of_a_recipe_has_both_bounds(kind, name, number):
    assert name in LARGEST
    wrong = [-1, 10**16] if number is int else [-1.0, float("inf"), float("nan"), 1e16]
    for value in wrong:
        with pytest.raises(HeadstartError, match=f"{name} is .*must be"):
            recipe_of(kind, **{name: value})


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (PretrainRecipe, {"learning_rate": float("inf")}),
        (PretrainRecipe, {"learning_rate": 0.0}),
        (FinetuneRecipe, {"learning_rate": 0.0}),
        (FinetuneRecipe, {"warmup": 5.0}),
        (PretrainRecipe, {"vocab_size": 99_999_999_999}),
        (PretrainRecipe, {"batch_tokens": 99_999_999_999_999}),
        (PretrainRecipe, {"threads": 100_000}),
        (PretrainRecipe, {"threads": -3}),
    ],
)
def test_a_value_without_sense_is_refused(kind, settings):
    with pytest.raises(HeadstartError, match=next(iter(settings))):
        recipe_of(kind, **settings)


def test_a_bound_says_its_reason():
    with pytest.raises(HeadstartError, match="it must be 1 or less: it is a share"):
        recipe_of(FinetuneRecipe, warmup=5.0)


def test_a_network_from_a_file_has_the_same_bounds():
    sizes = {"width": 64, "layers": 1, "heads": 1, "feed_forward_width": 64}
    with pytest.raises(HeadstartError, match="vocab_size"):
        BaseConfig(vocab_size=10**12, **sizes)
    with pytest.raises(HeadstartError, match="classes"):
        ClassificationConfig(classes=10**9, pooling="mean")


@pytest.mark.parametrize("threads", [0, -3, 100_000])
def test_threads_that_no_machine_has_are_refused(threads):
    with pytest.raises(HeadstartError, match="threads is"):
        choose_threads(threads)


@pytest.mark.parametrize("name", ["steps", "width", "epochs", "jobs", "threads", "minutes"])
def test_zero_on_the_command_line_is_no_way_to_say_not_given(name):
    with pytest.raises(HeadstartError, match=f"--{name} is 0"):
        given_settings({name: 0, "json": False}, but=("json",))
    assert given_settings({name: None, "json": False}, but=("json",)) == {}


def test_zero_is_kept_where_it_is_a_value():
    assert given_settings({"seed": 0, "warmup": 0.0}, but=()) == {"seed": 0, "warmup": 0.0}


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -1.0])
def test_the_time_between_checkpoints_is_a_finite_number(seconds):
    with pytest.raises(HeadstartError, match="save_seconds"):
        given_settings({"save_seconds": seconds}, but=("save_seconds",))
