"""What a recipe of pretraining takes from its preset."""

from headstart.training.recipe import make_pretrain_recipe


def test_the_lab_network_learns_at_a_rate_of_its_own():
    usual = make_pretrain_recipe(corpus=["x"])
    lab = make_pretrain_recipe(corpus=["x"], preset="lab")
    assert lab.learning_rate < usual.learning_rate


def test_a_rate_that_was_given_wins_over_the_preset():
    given = make_pretrain_recipe(corpus=["x"], preset="lab", learning_rate=1e-4)
    assert given.learning_rate == 1e-4
