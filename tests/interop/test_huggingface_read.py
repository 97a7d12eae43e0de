"""Models of `transformers` of every family have the same outputs here, with any padding."""

import pytest
import torch

from headstart.run import NetworkRun
from tests.interop.foreign import CAUSAL, KINDS, LONGEST, language_model, make, save

pytest.importorskip("transformers")
EXACT = {"atol": 1e-4, "rtol": 1e-4}
CLASSIFIER, TAGGER = "ForSequenceClassification", "ForTokenClassification"
CASES = [(kind, "") for kind in KINDS] + [
    *((kind, "LM") for kind in ("bert", "roberta", "distilbert", "electra", "gpt2", "llama")),
    *((kind, CLASSIFIER) for kind in ("bert", "roberta", "distilbert", "deberta", "gpt2", "qwen2")),
    *((kind, TAGGER) for kind in ("bert-relu", "distilbert", "modernbert-local")),
    ("modernbert", "LM"),
]


def batch(rows, length, *lengths, seed=0):
    """Tokens and the mask of the real ones; padding holds id 1."""
    tokens = torch.randint(6, 260, (rows, length), generator=torch.Generator().manual_seed(seed))
    real = (torch.arange(length) < torch.tensor(lengths or [length] * rows).unsqueeze(1)).long()
    return torch.where(real > 0, tokens, 1), real


BATCHES = {
    "one token": batch(1, 1),
    "long": batch(1, LONGEST - 2),
    "padded": batch(4, 12, 12, 5, 1, 3),
}


def opened(theirs, folder):
    return NetworkRun.open(f"hf:{save(theirs, folder)}")


def same(ours, theirs, name="logits"):
    for tokens, real in BATCHES.values():
        with torch.no_grad():
            wanted = getattr(theirs(input_ids=tokens, attention_mask=real), name)
            found = ours(tokens, real)
        if wanted.ndim == 3:
            wanted, found = wanted[real > 0], found[real > 0]
        torch.testing.assert_close(found, wanted, **EXACT)


@pytest.mark.parametrize(("kind", "ending"), CASES)
def test_every_family_computes_the_same_and_is_saved_in_a_run(kind, ending, tmp_path):
    labels = {"num_labels": 3} if ending.endswith("Classification") else {}
    theirs = make(kind, language_model(kind) if ending == "LM" else ending, **labels)
    theirs.config.pad_token_id = 1  # what the padding here holds
    run = opened(theirs, tmp_path / "theirs")
    assert run.causal == (kind in CAUSAL)
    assert run.labels == tuple(f"LABEL_{number}" for number in range(3 if labels else 0))
    name = "logits" if ending else "last_hidden_state"
    same(run.model, theirs, name)
    run.save(tmp_path / "run")
    same(NetworkRun.open(tmp_path / "run").model, theirs, name)


@pytest.mark.parametrize("kind", ["bert", "roberta", "modernbert-local", "llama"])
def test_packed_texts_do_not_see_each_other_and_single_positions_are_the_same(kind, tmp_path):
    base = opened(make(kind), tmp_path).model.base
    tokens = batch(2, 9)[0]
    segments = torch.tensor([[1, 1, 1, 2, 2, 2, 2, 0, 0], [0, 0, 1, 1, 1, 1, 1, 1, 1]])
    with torch.no_grad():
        packed = base(tokens, segments)
        for row, part in [(0, slice(0, 3)), (0, slice(3, 7)), (1, slice(2, 9))]:
            alone = base(tokens[row : row + 1, part])
            torch.testing.assert_close(packed[row : row + 1, part], alone, **EXACT)
        few = torch.tensor([[0, 2], [1, 8]])
        wanted = torch.stack([base(tokens)[row, few[row]] for row in range(2)])
        torch.testing.assert_close(base(tokens, only_at=few), wanted, **EXACT)


def test_the_mean_of_modernberts_tokens_is_the_same(tmp_path):
    theirs = make("modernbert", "ForSequenceClassification", classifier_pooling="mean")
    theirs.config.pad_token_id = 1
    same(opened(theirs, tmp_path).model, theirs)


def test_the_second_text_of_a_pair_has_its_own_token_type(tmp_path):
    theirs = make("bert")
    tokens, real = BATCHES["padded"]
    kinds = (torch.arange(12) > 3).long().expand(4, -1)
    with torch.no_grad():
        wanted = theirs(tokens, real, token_type_ids=kinds).last_hidden_state
        ours = opened(theirs, tmp_path).model.base(tokens, real, kinds)
    torch.testing.assert_close(ours[real > 0], wanted[real > 0], **EXACT)


@pytest.mark.parametrize(
    "settings",
    [
        {"id2label": {0: "ENTAILMENT", 1: "neutral", 2: "contradiction"}},
        {"num_labels": 1},
        {"num_labels": 2, "finetuning_task": "mrpc"},
    ],
)
def test_a_classifier_of_pairs_opens_as_one(settings, tmp_path, headstart_json):
    """Two texts are one input and have one prediction."""
    theirs = make("roberta", "ForSequenceClassification", **settings)
    folder = save(theirs, tmp_path)
    run = NetworkRun.open(f"hf:{folder}")
    assert run.task.name == "pairs"
    (found,) = run.predict([("the cat sat", "a café")])
    encoding, (one, two) = run.encoding, run.tokenizer.encode(["the cat sat", "a café"])
    separator = [run.tokenizer.separator_id] * run.tokenizer.separators
    ids = [*encoding.before, *one, *separator, *two, *encoding.after]
    with torch.no_grad():
        logits = theirs(input_ids=torch.tensor([ids])).logits[0]
    wanted = logits.sigmoid() if len(logits) == 1 else logits.softmax(0)
    probabilities = list(found["probabilities"].values())
    assert probabilities[-1] == pytest.approx(float(wanted[-1]), abs=1e-5)
    answers = headstart_json("predict", f"hf:{folder}", "the cat sat", "a café")
    assert len(answers["predictions"]) == 1


def test_a_head_that_cannot_be_separated_leaves_a_base(tmp_path):
    theirs = make("gemma2", "ForCausalLM")  # its scores are squeezed behind the output layer
    run = opened(theirs, tmp_path)
    assert run.model.head is None
    same(run.model, theirs.model, "last_hidden_state")


def test_rows_of_the_embedding_without_a_token_are_padding(tmp_path):
    run = opened(make("bert", vocab_size=320), tmp_path / "theirs")
    assert run.model.base.config.vocab_padding == 320 - run.tokenizer.vocab_size
    run.save(tmp_path / "run")
    assert NetworkRun.open(tmp_path / "run").model.base.config.vocab_size == 320
