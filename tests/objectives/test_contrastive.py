"""Contrastive learning on whole texts: two views of a document find each other."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from headstart.data.batches import TokenSource, store_corpus
from headstart.data.tokenizers import train_tokenizer
from headstart.errors import HeadstartError
from headstart.language_model import open_language_model
from headstart.model.model import add_projection, build_model
from headstart.objectives import OBJECTIVES, TEMPERATURE, contrastive_loss
from headstart.run import NetworkRun
from headstart.training.corpus import network_preset
from headstart.training.pretrain import pretrain
from tests.runs import small_config

# Document n has the words n-0, n-1, …: a view tells which one it is from, and where it begins.
LENGTHS = [3, 20, 60, 200, 1200]
SPAN = 16


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    texts = [" ".join(f"{n}-{word}" for word in range(size)) for n, size in enumerate(LENGTHS)]
    tokenizer = train_tokenizer(texts, vocab_size=2000)
    folder = tmp_path_factory.mktemp("stores")
    store, _ = store_corpus(texts, tokenizer, folder, fingerprint="texts")
    return TokenSource(store, tokenizer, length=32)


def views(source, step, *, dropout=0.0):
    batch = source.views(100, (0, step), span=SPAN, dropout=dropout)
    rows = [row[real > 0][1:-1] for row, real in zip(batch.tokens, batch.segments, strict=True)]
    return batch, rows


def test_both_views_are_of_their_document_and_do_not_overlap_where_it_is_long(source):
    for step in range(20):
        batch, rows = views(source, step)
        for pair, document in enumerate(batch.documents.tolist()):
            text = source.store[document].astype(np.int64)
            found = []
            for view in rows[2 * pair : 2 * pair + 2]:
                size = len(view)
                assert 0 < size <= SPAN
                windows = np.lib.stride_tricks.sliding_window_view(text, size)
                found.append(set(np.flatnonzero((windows == view.numpy()).all(axis=1))))
                assert found[-1]
            if len(text) >= 2 * SPAN:
                assert any(abs(a - b) >= SPAN for a in found[0] for b in found[1])


def test_a_batch_depends_on_its_key_alone(source):
    one, again, other = (views(source, step, dropout=0.3)[0] for step in (7, 7, 8))
    assert torch.equal(one.tokens, again.tokens)
    assert not torch.equal(one.tokens[:2], other.tokens[:2])


def test_dropped_tokens_leave_at_least_one(source):
    _, rows = views(source, 0, dropout=0.99)
    assert min(map(len, rows)) >= 1


def test_the_loss_is_infonce_in_both_directions():
    vectors = F.normalize(torch.randn(5, 2, 8), dim=-1)
    expected = 0.0
    for first, second in ((0, 1), (1, 0)):
        for row in range(5):
            scores = [vectors[row, first] @ vectors[other, second] for other in range(5)]
            weights = [math.exp(float(score) / TEMPERATURE) for score in scores]
            expected -= math.log(weights[row] / sum(weights)) / 2
    found = contrastive_loss(vectors, torch.arange(5))
    assert float(found.total) == pytest.approx(expected, rel=1e-5)


def test_another_section_of_a_document_is_no_negative():
    vectors = F.normalize(torch.randn(3, 2, 8), dim=-1)
    apart = contrastive_loss(vectors[:1], torch.tensor([0])).total
    apart += contrastive_loss(vectors[1:2], torch.tensor([1])).total
    together = contrastive_loss(vectors[:2], torch.tensor([4, 4])).total
    assert float(together) == pytest.approx(float(apart), abs=1e-6)


def test_the_vector_of_a_view_does_not_depend_on_its_padding(source, tmp_path):
    chosen = network_preset(small_config(tmp_path, "contrastive"), vocab_size=2000)
    model = build_model(chosen.base).eval()
    add_projection(model, seed=0)
    batch, _ = views(source, 0)
    alone = batch.tokens[:2, :5], torch.ones(2, 5, dtype=torch.long)
    padded = replace(batch, tokens=batch.tokens[:2].clone(), segments=batch.segments[:2].clone())
    padded.segments[:, 5:] = 0
    with torch.no_grad():
        difference = model.project(*alone) - model.project(padded.tokens, padded.segments)
    assert float(difference.abs().max()) < 1e-5


@pytest.mark.parametrize("objective", [one for one in OBJECTIVES if "contrastive" in one])
def test_it_learns_to_find_documents_and_the_run_has_no_projection(tmp_path, objective):
    # Sections of six documents would be negatives of documents about the same subject.
    config = small_config(tmp_path, objective, steps=60, documents="line")
    before = pretrain(config.replace(steps=1), tmp_path / "before").summary["held_out"]
    run = pretrain(config, tmp_path / "run")
    after = run.summary["held_out"]
    assert after["contrastive"] < before["contrastive"] - 0.2
    assert ("perplexity" in after) == ("+" in objective)
    opened = NetworkRun.open(run.folder)
    assert opened.model.projection is None
    assert (opened.model.head is None) == (objective == "contrastive")


def test_a_contrastive_base_cannot_generate(tmp_path):
    pretrain(small_config(tmp_path, "contrastive", steps=1), tmp_path / "run")
    with pytest.raises(HeadstartError, match="no language-modelling head"):
        open_language_model(tmp_path / "run", causal=True, to="generate text")
