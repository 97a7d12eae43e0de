"""An objective from outside the package is used like ours."""

import pytest

from headstart.errors import HeadstartError
from headstart.objectives import find_objective, objectives, register, unregister
from headstart.objectives.causal import Causal
from headstart.objectives.objective import Loss
from headstart.training.pretrain import pretrain
from tests.runs import small_recipe


class Halved(Causal):
    """The causal objective, with half of its loss."""

    name = "halved"

    def loss(self, model, batch):
        found = super().loss(model, batch)
        return Loss(found.total / 2, found.targets)


@pytest.fixture
def halved():
    register(Halved)
    yield
    unregister("halved")


def test_it_is_found_by_its_name_and_pretrains(halved, tmp_path):
    assert find_objective("halved") is Halved
    summary = pretrain(small_recipe(tmp_path, "halved", steps=3), tmp_path / "run")
    assert (summary["objective"], summary["steps"]) == ("halved", 3)


def test_a_name_that_is_taken_is_an_error(halved):
    with pytest.raises(HeadstartError, match="the objective 'halved' exists already"):
        register(Halved)


def test_what_is_no_objective_is_refused():
    with pytest.raises(HeadstartError, match="has no `name`, which every objective has"):
        register(Loss)
    assert list(objectives()) == ["causal", "masked", "masked+next-sentence"]
