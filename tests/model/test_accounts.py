"""Parameter accounts: correct to the last one."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headstart.model.account_report import check_accounts, common_mistakes
from headstart.model.accounts import (
    account,
    layer_lines,
    multiplications,
    symbol_values,
    training_memory,
)
from headstart.model.config import POOLINGS, ClassificationConfig
from headstart.model.presets import preset, preset_names


def accounts_of(chosen, classes=2, pooling=None):
    classification = chosen.classification(classes)
    if pooling:
        classification = ClassificationConfig(classes=classes, pooling=pooling, dense=chosen.dense)
    heads = {
        "language_modeling": chosen.language_modeling,
        "classification": classification,
    }
    return account(chosen.base, chosen.language_modeling, classification), heads


@pytest.mark.parametrize(
    ("vocab_size", "base", "classification", "language_modeling"),
    [(100, 988_000, 988_402, 1_008_100), (50_001, 10_968_200, 10_968_602, 21_018_401)],
)
def test_the_labs_counts(vocab_size, base, classification, language_modeling):
    accounts, _ = accounts_of(preset("lab", vocab_size=vocab_size))
    assert accounts.base_count == base
    assert accounts.total("classification") == classification
    assert accounts.total("language_modeling") == language_modeling


def test_one_layer_of_the_lab():
    counts = {line.name: line.count for line in layer_lines(preset("lab").base)}
    assert counts == {"attention": 160_800, "feed-forward": 80_400, "norms": 800}


def test_the_labs_positions_have_no_parameters():
    accounts, _ = accounts_of(preset("lab"))
    assert {line.name: line.count for line in accounts.base}["positions"] == 0


@pytest.mark.parametrize(
    ("name", "language_modeling"),
    # As published: BERT-base with its masked-language-model head, and the smallest GPT-2.
    [("bert", 109_514_298), ("gpt2", 124_439_808)],
)
def test_the_counts_of_known_models(name, language_modeling):
    accounts, _ = accounts_of(preset(name))
    assert accounts.total("language_modeling") == language_modeling


@pytest.mark.parametrize("name", preset_names())
@pytest.mark.parametrize("objective", ["causal", "masked"])
def test_every_line_of_a_preset_equals_the_real_module(name, objective):
    assert check_accounts(*accounts_of(preset(name, objective=objective))) == []


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(preset_names()),
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
    accounts, configs = accounts_of(chosen, classes, pooling)
    assert check_accounts(accounts, configs) == []


@pytest.mark.parametrize("name", preset_names())
@pytest.mark.parametrize("objective", ["causal", "masked"])
def test_every_printed_formula_works_out_to_its_count(name, objective):
    accounts, _ = accounts_of(preset(name, objective=objective))
    for line in [
        *accounts.base,
        *accounts.heads["language_modeling"],
        *accounts.heads["classification"],
    ]:
        python = accounts.in_numbers(line.formula).replace(",", "")
        python = python.replace("·", "*").replace("²", "**2")
        assert eval(python) == line.count, line


def test_every_symbol_of_a_formula_has_a_value():
    accounts, _ = accounts_of(preset("bert"))
    symbols = {s for line in accounts.base for s in re.findall("[a-z]", line.formula)}
    assert symbols <= symbol_values(accounts.base_config, 2).keys()


def test_a_wrong_line_is_caught():
    accounts, heads = accounts_of(preset("lab", vocab_size=100))
    line = accounts.base[0]
    accounts.base[0] = type(line)(line.name, line.formula, line.count + 1, line.owns)
    differences = check_accounts(accounts, {"classification": heads["classification"]})
    assert [(d.line, d.formula, d.module) for d in differences] == [("embedding", 20_001, 20_000)]


def test_a_parameter_that_no_line_counts_is_caught():
    accounts, heads = accounts_of(preset("lab", vocab_size=100))
    del accounts.base[0]
    differences = check_accounts(accounts, {"classification": heads["classification"]})
    assert [(d.line, d.module) for d in differences] == [("base.embedding.weight", 20_000)]


def test_common_mistakes_are_off_by_what_they_leave_out():
    accounts, _ = accounts_of(preset("lab"))
    missed = {mistake.name: mistake.off_by for mistake in common_mistakes(accounts)}
    assert missed == {
        "3·d² for attention": -4 * (200 * 200 + 200),
        "no biases": -4 * (800 + 200 + 200),
        "no norms": -4 * 800,
        "the two totals swapped": 21_018_401 - 10_968_602,
        "positions counted": 5_000 * 200,
    }


def test_the_output_layer_takes_most_of_the_labs_multiplications():
    chosen = preset("lab")
    products = multiplications(chosen.base, chosen.language_modeling)
    assert (products.layers, products.output_layer) == (960_000, 10_000_200)
    assert round(products.output_share, 2) == 0.91


def test_training_holds_four_numbers_a_parameter():
    assert training_memory(1_000).total == 16_000
