"""Batches are padded to their longest row, or on to a length that comes again."""

import numpy as np
import pytest
import torch

from headstart.data.dataset import Dataset, Splits
from headstart.model.model import build_model
from headstart.model.presets import preset
from headstart.tasks.examples import Examples
from headstart.training.callbacks import Callback
from headstart.training.finetune import finetune
from tests.labelled import config


def examples(targets=(0, 1, 0)):
    tokens = [np.arange(2, 2 + length) for length in (5, 9, 21)]
    return Examples(tokens, np.arange(3), list(targets), np.ones(3, dtype=np.float32))


@pytest.mark.parametrize(("rows", "length"), [([0], 8), ([0, 1], 16), ([2], 21), ([0, 2], 21)])
def test_with_a_multiple_a_batch_is_padded_to_it_but_not_beyond_the_longest_row(rows, length):
    assert examples().batch(rows, multiple=8).tokens.shape == (len(rows), length)


def test_a_batch_whose_tokens_have_targets_is_as_long_as_its_longest_row():
    tagged = examples([np.zeros(length, dtype=np.int64) for length in (5, 9, 21)])
    batch = tagged.batch([0], multiple=8)
    assert batch.tokens.shape == batch.targets.shape == (1, 5)


@pytest.mark.parametrize("objective", ["causal", "masked"])
def test_padding_changes_no_score(objective):
    chosen = preset("small", objective=objective, vocab_size=64)
    model = build_model(chosen.base, chosen.classification(2)).eval()
    scores = []
    for multiple in (1, 8):
        batch = examples().batch([0, 1], multiple=multiple)
        with torch.no_grad():
            scores.append(model(batch.tokens, batch.segments))
    torch.testing.assert_close(*scores, atol=1e-5, rtol=1e-5)


class Lengths(Callback):
    """Collects how long the rows of the training batches are."""

    def on_start(self, run, step):
        self.seen = []
        run.model.base.register_forward_pre_hook(self.see)

    def see(self, base, inputs):
        if base.training:
            self.seen.append(inputs[0].shape[1])


@pytest.mark.parametrize(("precision", "shortest"), [("fp32", 3), ("bf16", 8)])
def test_fine_tuning_pads_to_lengths_that_come_again_in_bf16_alone(precision, shortest):
    rows = Dataset("made up", ["a b", "c", "a"] * 4 + ["a b " * 40] * 4, [0, 1] * 8, ("no", "yes"))
    changes = {"precision": precision, "batch_size": 4, "epochs": 1, "head_init": "random"}
    lengths = Lengths()
    parts = Splits(rows, rows.pick(range(4)), None)
    finetune(config(**changes), None, splits=parts, callbacks=[lengths])
    assert min(lengths.seen) == shortest
