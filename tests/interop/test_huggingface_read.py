"""A model of `transformers` computes the same here, whatever its family and its padding."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from headstart.interop.huggingface.export import export_tensors
from headstart.interop.huggingface.read import read_model
from headstart.run import NetworkRun
from tests.interop.foreign import CAUSAL, KINDS, LONGEST, language_model, make, save

pytest.importorskip("transformers")
EXACT = {"atol": 1e-5, "rtol": 1e-5}


def batch(rows, length, *lengths, left=False, seed=0):
    """Tokens and the mask of the real ones; padding holds id 1."""
    tokens = torch.randint(6, 260, (rows, length), generator=torch.Generator().manual_seed(seed))
    real = torch.arange(length) < torch.tensor(lengths or [length] * rows).unsqueeze(1)
    real = (real.flip(1) if left else real).long()
    return torch.where(real > 0, tokens, 1), real


BATCHES = {
    "one token": batch(1, 1),
    "alone": batch(1, 7),
    "long": batch(1, LONGEST - 2),
    "equal": batch(3, 9),
    "padded": batch(4, 12, 12, 5, 1, 3),
}


def same(ours, theirs, kind, name="logits"):
    cases = dict(BATCHES)
    if kind in CAUSAL:
        cases["padded on the left"] = batch(3, 8, 8, 5, 1, left=True)
    for tokens, real in cases.values():
        more = {"position_ids": (real.cumsum(1) - 1).clamp(min=0)} if kind in CAUSAL else {}
        with torch.no_grad():
            wanted = getattr(theirs(input_ids=tokens, attention_mask=real, **more), name)
            found = ours(tokens, real)
        if wanted.ndim == 3:
            wanted, found = wanted[real > 0], found[real > 0]
        torch.testing.assert_close(found, wanted, **EXACT)


@pytest.mark.parametrize("kind", KINDS)
def test_hidden_states_are_the_same(kind, tmp_path):
    theirs = make(kind)
    run = NetworkRun.open(Path(f"hf:{save(theirs, tmp_path)}"))
    same(run.model.base, theirs, kind, "last_hidden_state")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "bert-relu"])
def test_scores_of_pieces_are_the_same_and_the_tensors_go_out_bit_for_bit(kind, tmp_path):
    theirs = make(kind, language_model(kind))
    found = read_model(save(theirs, tmp_path))
    same(found.model.eval(), theirs, kind)
    there, back = (
        load_file(tmp_path / "model.safetensors"),
        export_tensors(found.family, found.model),
    )
    assert there.keys() - back.keys() <= set(found.dropped)
    assert all(torch.equal(there[name], tensor) for name, tensor in back.items())


@pytest.mark.parametrize("ending", ["ForSequenceClassification", "ForTokenClassification"])
@pytest.mark.parametrize(
    "kind", ["bert", "roberta", "distilbert", "gpt2", "llama", "modernbert-local"]
)
def test_a_classifier_or_tagger_computes_the_same(kind, ending, tmp_path):
    theirs = make(kind, ending, num_labels=3)
    run = NetworkRun.open(Path(f"hf:{save(theirs, tmp_path)}"))
    assert run.labels == ("LABEL_0", "LABEL_1", "LABEL_2")
    theirs.config.pad_token_id = 1  # what the padding here holds
    same(run.model, theirs, kind)


def test_the_mean_of_modernberts_tokens_is_the_same(tmp_path):
    theirs = make("modernbert", "ForSequenceClassification", classifier_pooling="mean")
    same(read_model(save(theirs, tmp_path)).model.eval(), theirs, "modernbert")


def test_both_of_berts_questions_are_answered_the_same_with_the_rows_swapped(tmp_path):
    theirs = make("bert", "ForPreTraining")
    found = read_model(save(theirs, tmp_path))
    same(found.model.eval(), theirs, "bert", "prediction_logits")
    tokens, real = BATCHES["padded"]
    with torch.no_grad():
        wanted = theirs(tokens, real).seq_relationship_logits
        ours = found.model.head.next_sentence(found.model.base(tokens, real), real)
    torch.testing.assert_close(ours, wanted.flip(1), **EXACT)


def test_the_second_text_of_a_pair_has_its_own_token_type(tmp_path):
    theirs = make("bert")
    found = read_model(save(theirs, tmp_path))
    tokens, real = BATCHES["padded"]
    kinds = (torch.arange(12) > 3).long().expand(4, -1)
    with torch.no_grad():
        wanted = theirs(tokens, real, token_type_ids=kinds).last_hidden_state
        ours = found.model.eval().base(tokens, real, kinds)
    torch.testing.assert_close(ours[real > 0], wanted[real > 0], **EXACT)
