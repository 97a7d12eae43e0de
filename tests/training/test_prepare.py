"""What a base starts from."""

import os
from pathlib import Path

import pytest
import torch

from headstart.model.attention import attend
from headstart.text.reading import stream
from headstart.text.reading.corpus import Corpus
from headstart.training.first_weights import first_model
from headstart.training.prepare import held_out_share, prepare
from tests.corpora import write_corpus
from tests.runs import small_recipe


def started(tmp_path, objective, start):
    recipe = small_recipe(tmp_path, objective, steps=1, embedding_start=start, vocab_size=500)
    prepared = prepare(recipe)
    return first_model(recipe, prepared), prepared


def test_a_small_corpus_holds_out_a_larger_share():
    assert held_out_share(100_000) == 0.1
    assert held_out_share(50_000_000) == held_out_share(None) == 0.01


@pytest.mark.parametrize("files", [1, 2])
def test_a_folder_of_few_long_files_has_a_held_out_part(tmp_path, files):
    (tmp_path / "books").mkdir()
    for number in range(files):
        write_corpus(tmp_path / "books" / f"{number}.txt", documents=60, seed=number)
    recipe = small_recipe(tmp_path, corpus=[str(tmp_path / "books")], held_out=0.01)
    data = prepare(recipe)
    assert data.train.store.tokens > data.held_out.store.tokens > recipe.length


def test_tokens_that_keep_the_same_company_start_close_to_each_other(tmp_path):
    model, prepared = started(tmp_path, "causal", "cooccurrence")
    pieces = prepared.tokenizer.encode([" cat", " mouse", " law", " judge"])
    assert [len(ids) for ids in pieces] == [1, 1, 1, 1]
    cat, mouse, law, judge = model.base.embedding.weight.detach()[[ids[0] for ids in pieces]]

    def near(a, b):
        return float(torch.cosine_similarity(a, b, dim=0))

    assert near(cat, mouse) > near(cat, law)
    assert near(law, judge) > near(mouse, judge)


def test_only_the_embedding_of_a_causal_base_is_counted(tmp_path):
    counted, _ = started(tmp_path, "causal", "cooccurrence")
    random, _ = started(tmp_path, "causal", "random")
    differing = {
        name
        for (name, a), b in zip(counted.named_parameters(), random.parameters(), strict=True)
        if not torch.equal(a, b)
    }
    assert differing == {"base.embedding.weight"}


def test_a_masked_base_starts_by_handing_on_its_neighbours(tmp_path):
    model, _ = started(tmp_path, "masked", "cooccurrence")
    attention = model.base.blocks[0].attention
    x = torch.randn(1, 5, 32, generator=torch.Generator().manual_seed(0))
    same = torch.zeros(1, 1, 5, 32)  # equal scores: everybody is looked at alike
    mean = attend(same, same, x.unsqueeze(1))[0, 0]
    with torch.no_grad():
        attention.query_key_value.weight[:64] = 0
    torch.testing.assert_close(attention(x, None, None)[0], 0.5 * mean)


@pytest.fixture
def counts(monkeypatch):
    """How often a corpus is hashed, and how often it is read to its end."""
    counts = {"hashed": 0, "read": 0}
    hash_content, read = stream._hash_content, Corpus.__iter__

    def counting_hashes(path):
        counts["hashed"] += 1
        return hash_content(path)

    def counting_passes(corpus):
        yield from read(corpus)
        counts["read"] += 1

    monkeypatch.setattr(stream, "_hash_content", counting_hashes)
    monkeypatch.setattr(Corpus, "__iter__", counting_passes)
    return counts


def test_preparing_hashes_a_corpus_once_and_reads_it_twice(counts, tmp_path, monkeypatch):
    monkeypatch.setenv("HEADSTART_CACHE", str(tmp_path / "cache"))
    recipe = small_recipe(tmp_path, "causal", steps=1, vocab_size=500)
    os.utime(Path(recipe.corpus[0]), (1_600_000_000, 1_600_000_000))
    first = prepare(recipe)
    assert counts == {"hashed": 1, "read": 2}  # once for the tokenizer, once for both stores
    again = prepare(recipe)
    assert counts == {"hashed": 1, "read": 2}
    assert again.corpus_fingerprint == first.corpus_fingerprint
