"""The weights of the last epochs are averaged; training goes on with its own."""

import pytest
import torch
from torch import nn

from headstart.errors import HeadstartError
from headstart.model.checkpoint import read_safetensors
from headstart.training.averaging import WeightAverage
from headstart.training.finetune import finetune, plan_finetuning
from headstart.training.finetune_prepare import prepare_finetuning
from headstart.training.loop import Interrupted
from headstart.training.recipe import make_recipe
from tests.labelled import recipe, splits
from tests.listeners import StopAt


def steps(average, model, values):
    """Let the weights be each of these values after a step."""
    for step, value in enumerate(values, start=1):
        nn.init.constant_(model.weight, value)
        average.update(step, len(values))


def test_the_mean_is_of_the_ends_of_the_last_epochs():
    model = nn.Linear(1, 1, bias=False)
    average = WeightAverage(model, share=0.5, every=2)
    steps(average, model, [1, 2, 3, 4, 5, 6, 7, 8])  # epochs end with 2, 4, 6 and 8
    assert average.mean["weight"].item() == pytest.approx(7)


def test_of_five_epochs_half_are_two():
    model = nn.Linear(1, 1, bias=False)
    average = WeightAverage(model, share=0.5, every=1)
    steps(average, model, [1, 2, 3, 4, 5])
    assert average.mean["weight"].item() == pytest.approx(4.5)


def test_training_goes_on_with_its_own_weights():
    model = nn.Linear(1, 1, bias=False)
    average = WeightAverage(model, share=1.0, every=1)
    steps(average, model, [1, 3])
    with average.in_place():
        assert model.weight.item() == pytest.approx(2)
    assert model.weight.item() == 3


def test_without_a_share_nothing_is_averaged_and_nothing_copied():
    model = nn.Linear(1, 1, bias=False)
    average = WeightAverage(model, share=0.0, every=1)
    steps(average, model, [1, 3])
    assert average.mean == {}
    with average.in_place():
        assert model.weight.item() == 3


def test_the_kept_weights_are_the_mean_of_those_that_shorter_trainings_end_with(tmp_path):
    constant = {"schedule": "constant", "choose_by": "last", "warmup": 0.0}
    ends = []
    for epochs in (2, 3):  # at a constant rate, a longer training begins as a shorter one
        finetune(recipe(**constant, epochs=epochs), tmp_path / f"{epochs}", splits=splits())
        ends.append(read_safetensors(tmp_path / f"{epochs}" / "model.safetensors"))
    finetune(recipe(**constant, epochs=3, average=0.7), tmp_path / "mean", splits=splits())
    mean = read_safetensors(tmp_path / "mean" / "model.safetensors")
    for name, value in mean.items():
        torch.testing.assert_close(value, (ends[0][name] + ends[1][name]) / 2)


def test_an_averaged_training_that_was_stopped_resumes_to_the_same_bits(tmp_path):
    settings = recipe(epochs=4, average=0.75)
    whole = finetune(settings, tmp_path / "whole", splits=splits())
    with pytest.raises(Interrupted):
        finetune(settings, tmp_path / "run", splits=splits(), listener=StopAt(whole["steps"] - 2))
    finetune(settings, tmp_path / "run", splits=splits(), resume=True)
    one, other = (tmp_path / name / "model.safetensors" for name in ("whole", "run"))
    assert one.read_bytes() == other.read_bytes()


def test_the_plan_says_how_many_epochs_are_averaged_and_that_one_is_no_average(tmp_path):
    planned = [
        plan_finetuning(
            prepare_finetuning(
                recipe(epochs=epochs, average=0.5), tmp_path / "run", splits=splits()
            )
        ).plan.notes
        for epochs in (3, 4)
    ]
    assert planned == [
        ("--average: 0.5 of 3 epochs is less than two, so nothing is averaged",),
        ("--average: the weights of the last 2 epochs",),
    ]


def test_more_than_all_epochs_cannot_be_averaged():
    with pytest.raises(HeadstartError, match="average is 2"):
        make_recipe(dataset=["rotten-tomatoes"], average=2.0)
