"""Parameter counts are exact."""

import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headstart.model.config import POOLINGS
from headstart.model.counts import check_counts, common_mistakes, count_parameters
from headstart.model.presets import PRESETS, preset


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
    assert check_counts(counts) == []


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
    assert check_counts(counts) == []


def test_a_wrong_line_and_a_parameter_without_a_line_are_found():
    counts = count_parameters(preset("lab", vocab_size=100))
    counts.base[0] = replace(counts.base[0], count=20_001)
    assert {"head": "classification", "line": "embedding", "formula": 20_001, "module": 20_000} in (
        check_counts(counts)
    )
    del counts.base[0]
    found = check_counts(counts)
    assert {(row["line"], row["module"]) for row in found} == {("base.embedding.weight", 20_000)}


def test_counting_does_not_import_torch():
    code = (
        "import sys; from headstart.model.counts import count_parameters; "
        "from headstart.model.presets import preset; "
        "count_parameters(preset('lab')); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_common_mistakes_are_off_by_what_they_leave_out():
    counts = count_parameters(preset("lab"))
    missed = {mistake["name"]: mistake["off_by"] for mistake in common_mistakes(counts)}
    assert missed == {
        "3·d² for attention": -4 * (200 * 200 + 200),
        "no biases": -4 * (800 + 200 + 200),
        "no norms": -4 * 800,
        "the two totals swapped": 21_018_401 - 10_968_602,
        "positions counted": 5_000 * 200,
    }
