"""Another vocabulary: shared pieces keep their vectors, new ones start from their mean."""

import pytest
import torch

from headstart.errors import HeadstartError
from headstart.lab.files import LabTokenizer
from headstart.model.swap import match_vocabulary, shared_tokens
from headstart.run import NetworkRun
from headstart.text.tokenizers.train_tokenizer import train_tokenizer
from headstart.training.finetune import finetune
from tests.labelled import config, splits
from tests.runs import small_run


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return small_run(tmp_path_factory.mktemp("base"), steps=20)


@pytest.fixture(scope="module")
def other():
    texts = ["the old cat chases a zebra", "the judge likes zebras", "a quick zebra"] * 10
    return train_tokenizer(texts, vocab_size=290)


def test_rows_of_shared_pieces_are_carried_over_and_the_rest_is_their_mean(base, other):
    run = NetworkRun.open(base)
    old = run.model.base.embedding.weight
    new = match_vocabulary(run.model, run.tokenizer, other).base.embedding.weight
    shared = shared_tokens(run.tokenizer, other)
    assert 256 < len(shared) < other.vocab_size
    for number, before in shared.items():
        assert torch.equal(new[number], old[before])
        assert other.vocabulary()[number] == run.tokenizer.vocabulary()[before]
    mean = old[list(shared.values())].mean(dim=0)
    for number in set(range(other.vocab_size)) - set(shared):
        torch.testing.assert_close(new[number], mean)


def test_everything_but_the_embedding_stays_bit_for_bit(base, other):
    run = NetworkRun.open(base)
    matched = match_vocabulary(run.model, run.tokenizer, other).base.state_dict()
    for name, value in run.model.base.state_dict().items():
        if name != "embedding.weight":
            assert torch.equal(value, matched[name])


def test_the_same_vocabulary_changes_nothing(base):
    run = NetworkRun.open(base)
    matched = match_vocabulary(run.model, run.tokenizer, run.tokenizer)
    assert torch.equal(matched.base.embedding.weight, run.model.base.embedding.weight)


def test_specials_go_by_their_role(base):
    run = NetworkRun.open(base)
    lab = LabTokenizer(["▁the", "▁cat"])
    shared = shared_tokens(run.tokenizer, lab)
    assert shared[lab.begin_id] == run.tokenizer.begin_id
    assert shared[lab.pad_id] == run.tokenizer.pad_id
    assert shared[4] == run.tokenizer.vocabulary().index(" the")


def test_vocabularies_without_a_common_piece_are_refused(base):
    run = NetworkRun.open(base)

    class Strange(LabTokenizer):
        begin_id = pad_id = end_id = unknown_id = None

    with pytest.raises(HeadstartError, match="no token in common"):
        match_vocabulary(run.model, run.tokenizer, Strange(["語彙"]))


def test_a_fine_tuning_goes_over_to_the_tokenizer(base, other, tmp_path):
    other.save(tmp_path / "tokenizer.json")
    settings = config(base=str(base), match_vocabulary=str(tmp_path / "tokenizer.json"))
    summary = finetune(settings, tmp_path / "run", splits=splits())
    assert summary["validation"]["accuracy"] > 0.9
    assert NetworkRun.open(tmp_path / "run").tokenizer.fingerprint == other.fingerprint
