"""Parameter counts are exact."""

import re
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headstart.model.config import POOLINGS
from headstart.model.counts import Counts, common_mistakes, count_parameters
from headstart.model.model import build_model
from headstart.model.presets import PRESETS, preset

PARTS = {
    "embedding": r"base\.embedding\.",
    "positions": r"base\.positions\.",
    "token types": r"base\.token_types\.",
    "embedding norm": r"base\.embedding_norm\.",
    "attention": r"base\.blocks\.\d+\.attention\.",
    "feed-forward": r"base\.blocks\.\d+\.feed_forward\.",
    "norms": r"base\.blocks\.\d+\.\w+_norm\.",
    "final norm": r"base\.final_norm\.",
}


def assert_equal_modules(counts: Counts, classes: int = 2) -> None:
    """The base, each head and each part of a block have as many parameters as their modules."""
    chosen = counts.preset
    for config in (chosen.language_modeling, chosen.classification(classes)):
        with torch.device("meta"):
            model = build_model(chosen.base, config)
        sizes = {name: one.numel() for name, one in model.named_parameters()}
        assert counts.total(config.kind) == sum(sizes.values())
        base = {name: size for name, size in sizes.items() if name.startswith("base.")}
        assert counts.base_count == sum(base.values())
        lines = {line.name: line.count for line in counts.base}
        for part, pattern in PARTS.items():
            found = sum(size for name, size in base.items() if re.match(pattern, name))
            assert lines.get(part, 0) == found


@pytest.mark.parametrize(
    ("vocab_size", "base", "classification", "language_modeling"),
    [(100, 988_000, 988_402, 1_008_100), (50_001, 10_968_200, 10_968_602, 21_018_401)],
)
def test_the_labs_counts(vocab_size, base, classification, language_modeling):
    counts = count_parameters(preset("lab", vocab_size=vocab_size))
    assert counts.base_count == base
    assert counts.total("classification") == classification
    assert counts.total("language_modeling") == language_modeling
    assert counts.layer == {"attention": 160_800, "feed-forward": 80_400, "norms": 800}
    assert {line.name: line.count for line in counts.base}["positions"] == 0
    assert counts.in_numbers("n·(4·d² + 4·d)") == "4·(4·200² + 4·200)"


@pytest.mark.parametrize(
    ("name", "language_modeling"),
    # As published: BERT-base with its masked-language-model head, and the smallest GPT-2.
    [("bert", 109_514_298), ("gpt2", 124_439_808)],
)
def test_the_counts_of_known_models(name, language_modeling):
    counts = count_parameters(preset(name))
    assert counts.total("language_modeling") == language_modeling
    assert_equal_modules(counts)


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(list(PRESETS)),
    objective=st.sampled_from(["causal", "masked"]),
    vocab_size=st.integers(1, 200),
    head_width=st.integers(1, 8).map(lambda half: 2 * half),
    heads=st.integers(1, 4),
    layers=st.integers(1, 5),
    feed_forward=st.integers(1, 50),
    classes=st.integers(2, 20),
    pooling=st.sampled_from(POOLINGS),
)
def test_every_line_of_any_size_equals_the_real_module(
    name, objective, vocab_size, head_width, heads, layers, feed_forward, classes, pooling
):
    chosen = preset(
        name,
        objective=objective,
        vocab_size=vocab_size,
        width=head_width * heads,
        heads=heads,
        layers=layers,
        feed_forward_width=feed_forward,
    )
    counts = count_parameters(replace(chosen, pooling=pooling), classes)
    assert_equal_modules(counts, classes)


def test_common_mistakes_are_off_by_what_they_leave_out():
    counts = count_parameters(preset("lab"))
    missed = {mistake["name"]: mistake["off_by"] for mistake in common_mistakes(counts)}
    assert missed == {
        "3·d² for attention": -4 * (200 * 200 + 200),
        "no biases": -4 * (800 + 200 + 200),
        "no norms": -4 * 800,
        "the two totals swapped": 21_018_401 - 10_968_602,
        "positions included": 5_000 * 200,
    }
