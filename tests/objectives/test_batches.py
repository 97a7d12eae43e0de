"""Batches of the objectives: padding, pairs, and micro-batches that add up."""

from dataclasses import replace

import pytest
import torch

from headstart.data.batches import TokenSource, store_corpus
from headstart.data.tokenizers import train_tokenizer
from headstart.model.model import build_model
from headstart.objectives import OBJECTIVES
from headstart.training.corpus import network_preset
from tests.runs import small_config

TEXTS = [" ".join(["word"] * (2 + 5 * (number % 9))) for number in range(60)]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    tokenizer = train_tokenizer(TEXTS, vocab_size=270)
    folder = tmp_path_factory.mktemp("stores")
    store, _ = store_corpus(TEXTS, tokenizer, folder, fingerprint="texts")
    return TokenSource(store, tokenizer, length=32)


def test_a_row_with_padding_changes_nothing_for_the_other_texts_of_the_batch(source):
    """Segments only tell padding from text, in every batch."""
    masked = OBJECTIVES["masked"](mask_share=0.3)
    rows = source.num_rows()
    batches = [masked.batch(source, 4, (0, step)) for step in range(-(-rows // 4))]
    padded = [batch for batch in batches if batch.segments is not None]
    assert padded
    assert all(int(batch.segments.max()) == 1 for batch in padded)


def test_the_length_of_a_second_text_does_not_tell_whether_it_follows(source):
    pairs = source.pairs(4000, (0, 0))
    lengths = (pairs.token_types * pairs.segments).sum(dim=1).float()
    means = [float(lengths[pairs.follows == kind].mean()) for kind in (0, 1)]
    assert means[0] == pytest.approx(means[1], rel=0.05)


def test_parts_of_a_step_add_up_also_where_one_has_no_hidden_token(source, tmp_path):
    config = small_config(tmp_path, "masked+next-sentence")
    objective = OBJECTIVES[config.objective](mask_share=0.3)
    chosen = network_preset(config, vocab_size=source.tokenizer.vocab_size)
    model = build_model(chosen.base, objective.head(chosen), seed=0).eval()
    batch = objective.batch(source, 4, (0, 0))
    first = batch.positions < 3 * 32  # of the last text nothing is hidden
    positions, targets = batch.positions[first], batch.targets[first]
    share = targets.numel() / 4
    batch = replace(batch, positions=positions, targets=targets, targets_per_text=share)
    with torch.no_grad():
        whole = float(objective.loss(model, batch).total)
        parts = [float(objective.loss(model, part).total) for part in batch.split(1)]
    assert len(parts) == 4
    assert sum(parts) == pytest.approx(whole, rel=1e-5)
