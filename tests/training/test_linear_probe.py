"""The initialisation of a head as a linear probe."""

import numpy as np
import pytest
import torch

from headstart.folds import make_folds
from headstart.linear import POOLED_CS, FoldFeatures, fit_regression, select_C
from headstart.model.config import ClassificationConfig
from headstart.model.model import build_model
from headstart.model.presets import preset
from headstart.tasks.task import Examples, run_network
from headstart.training.initialization import fit_head, probe_features

SIZES = {"vocab_size": 12, "width": 8, "layers": 1, "heads": 2, "feed_forward_width": 16}


def network(classes=2, pooling="mean+max", bias=True):
    base = preset("small", **SIZES).base
    head = ClassificationConfig(classes=classes, pooling=pooling, bias=bias)
    return build_model(base, head, seed=1)


def examples(targets, seed=0):
    """Texts of random tokens, with the token 9 + target among them."""
    generator = np.random.default_rng(seed)
    tokens = []
    for target in targets:
        marks = np.flatnonzero(target) if np.ndim(target) else [target]
        tokens.append([np.array([*generator.integers(0, 8, 4), *(9 + mark for mark in marks)])])
    count = len(targets)
    return Examples(tokens, np.arange(count), list(targets), np.ones(count, dtype=np.float32))


def fitted(model, train, validation):
    fit_head(model, train, train.weights)
    return np.asarray(run_network(model, validation))


@pytest.mark.parametrize("pooling", ["mean+max", "last"])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_layer_answers_as_the_regression_does(classes, pooling):
    train, validation = examples(np.arange(60) % classes), examples(np.arange(30) % classes, 1)
    model = network(classes, pooling)
    known, other = probe_features(model, train), probe_features(model, validation)
    center = known.mean(axis=0)
    width = known.shape[1]
    scale = np.full(width, 1 / (known - center).std())
    if pooling == "mean+max":
        mean, maximum = np.split(known - center, 2, axis=1)
        scale = np.repeat([1 / mean.std(), 0.2 / maximum.std()], width // 2)
    known, targets = (known - center) * scale, np.asarray(train.targets)
    folds = [
        FoldFeatures(known[one.train], targets[one.train], known[one.held], targets[one.held])
        for one in make_folds(targets)
    ]
    best, _ = select_C(folds, POOLED_CS)
    wanted = fit_regression(known, targets, best)
    probabilities = torch.from_numpy(fitted(model, train, validation)).softmax(dim=1).numpy()
    expected = wanted.predict_proba((other - center) * scale)
    np.testing.assert_allclose(probabilities, expected, atol=1e-4)


@pytest.mark.parametrize("rare", [2, 20])
def test_a_class_without_a_training_text_scores_below_the_others(rare):
    model = network(classes=3)
    train, validation = np.arange(100) % rare == 0, np.arange(40) % rare == 0
    scores = fitted(model, examples(train.astype(int)), examples(validation.astype(int), 1))
    assert (scores[:, 2] < scores[:, :2].min(axis=1)).all()


def test_training_texts_of_one_class_leave_the_head_as_it_was_drawn():
    model = network()
    before = model.head.output.weight.clone()
    fitted(model, examples(np.zeros(20, dtype=int)), examples(np.arange(10) % 2, 1))
    assert torch.equal(model.head.output.weight, before)


def test_labels_that_do_not_exclude_each_other_are_fitted_one_by_one():
    generator = np.random.default_rng(3)
    train, held_out = generator.random((80, 3)) < 0.5, generator.random((40, 3)) < 0.5
    train[:, 2] = True  # nothing to learn about this one
    model = network(classes=3)
    drawn = model.head.output.weight[2].clone()
    scores = fitted(
        model, examples(train.astype(np.float32)), examples(held_out.astype(np.float32), 1)
    )
    right = (scores[:, :2] > 0) == held_out[:, :2]
    assert right.mean() > 0.7  # by chance it would be a half
    assert torch.equal(model.head.output.weight[2], drawn)
