"""A base without a task generates text, fills gaps and measures perplexity."""

import math

import pytest
import torch

from headstart.errors import HeadstartError
from headstart.language_model import (
    fill,
    generate,
    open_language_model,
    perplexity,
    pick,
)
from headstart.run import NetworkRun
from tests.model.networks import tiny, tokens
from tests.runs import small_run


@pytest.fixture(scope="module")
def causal(tmp_path_factory):
    return small_run(tmp_path_factory.mktemp("causal"), "causal")


@pytest.fixture(scope="module")
def masked(tmp_path_factory):
    return small_run(tmp_path_factory.mktemp("masked"), "masked", steps=300)


@pytest.mark.parametrize(("name", "cut"), [("lab", 1), ("small", 4), ("gpt2", 6)])
def test_with_a_cache_the_hidden_states_are_those_without_it(name, cut):
    base = tiny(name, "causal").base
    ids = tokens(2, 8)
    cache = {}
    parts = [base(ids[:, :cut], cache=cache)]
    parts += [base(ids[:, cut : cut + 1], cache=cache), base(ids[:, cut + 1 :], cache=cache)]
    torch.testing.assert_close(torch.cat(parts, dim=1), base(ids), atol=1e-5, rtol=1e-5)


def written(run, prompt, **options):
    return list(generate(run, prompt, **{"tokens": 30, **options}))


def test_the_same_seed_writes_the_same_text(causal):
    run = NetworkRun.open(causal)
    assert written(run, "the", seed=1) == written(run, "the", seed=1)
    assert written(run, "the", seed=1) != written(run, "the", seed=2)


def test_writing_stops_at_the_end_of_the_text(causal):
    run = NetworkRun.open(causal)
    tokens = written(run, "the old cat", tokens=2_000, temperature=1.0)
    assert tokens.index(run.tokenizer.end_id) == len(tokens) - 1


def test_top_p_leaves_only_the_probable():
    scores = torch.tensor([0.5, 0.3, 0.15, 0.05]).log()
    draw = torch.Generator().manual_seed(0)

    def drawn(**options):
        return {pick(scores, draw, 1.0, **options) for _ in range(300)}

    assert drawn(top_p=0.6) == {0, 1}
    assert drawn(top_p=0.01) == {0}
    assert drawn() == {0, 1, 2, 3}


def test_a_masked_base_fills_a_gap_from_both_sides(masked):
    run = open_language_model(masked, causal=False, to="fill a gap")
    text = "the old judge reads the [MASK] . the old judge reads the law ."
    best = fill(run, text)[0][0][0]
    assert best.strip() == "law"
    assert len(fill(run, "the [MASK] cat [MASK] the mouse .")) == 2
    with pytest.raises(HeadstartError, match=r"has no \[MASK\]"):
        fill(run, "nothing is missing")


def test_a_masked_base_says_why_it_cannot_write(masked):
    with pytest.raises(HeadstartError, match="both sides") as error:
        open_language_model(masked, causal=True, to="generate text")
    assert "--objective causal" in error.value.fix


def test_a_text_of_the_language_is_less_surprising_than_its_words_shuffled(causal):
    run = NetworkRun.open(causal)
    known = perplexity(run, ["the old cat chases the mouse ."])
    odd = perplexity(run, ["mouse the the . chases cat old"])
    assert known["perplexity"] < odd["perplexity"] / 5
    bits = known["loss"] * known["tokens"] / math.log(2)
    assert known["bits_per_byte"] == pytest.approx(bits / 30)


def test_many_texts_at_once_have_the_loss_of_each_by_itself(causal):
    run = NetworkRun.open(causal)
    texts = ["the old cat", "the quiet bird builds the nest . " * 9, "a", "the dog guards"] * 5
    each = [perplexity(run, [text], length=16) for text in texts]
    together = perplexity(run, texts, length=16)
    assert together["tokens"] == sum(one["tokens"] for one in each)
    total = sum(one["loss"] * one["tokens"] for one in each)
    assert together["loss"] * together["tokens"] == pytest.approx(total, rel=1e-5)
    assert perplexity(run, texts, length=999)["tokens"] == together["tokens"]
    with pytest.raises(HeadstartError, match="no text"):
        perplexity(run, [])
