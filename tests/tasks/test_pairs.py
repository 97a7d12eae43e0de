"""Pairs: both texts are read together, in order, and both are truncated fairly."""

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headstart.data.dataset import Dataset
from headstart.data.tokenizers import train_tokenizer
from headstart.run import NetworkRun, evaluation_rows
from headstart.tasks.classification import Pairs, fit_pair
from headstart.tasks.task import TextEncoding
from headstart.training.finetune import finetune
from tests.labelled import config, write_pairs


def test_it_learns_what_lies_between_two_texts(tmp_path):
    path = write_pairs(tmp_path / "pairs.csv")
    settings = config(
        dataset=[str(path)], task="pairs", objective="masked", epochs=12, width=32, batch_size=16
    )
    summary = finetune(settings, tmp_path / "run").summary
    assert summary["validation"]["accuracy"] > 0.85
    run = NetworkRun.open(tmp_path / "run")
    assert run.task.name == "pairs"
    part, _ = evaluation_rows(settings, run.task, None)
    assert run.evaluate(part)["accuracy"] > 0.8
    summary = run.predict_file(path, tmp_path / "out.jsonl")
    assert (summary["rows"], summary["bad_rows"]) == (300, 0)
    first = json.loads((tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert (first["premise"], first["hypothesis"]) == ("0 a cook", "the dog")
    assert (first["label"], first["predicted_label"] in "ny") == ("n", True)
    effects = [(one.text, one.part, one.start) for one in run.explain(("cat", "the dog"))]
    assert effects == [("cat", 0, 0), ("the", 1, 0), ("dog", 1, 4)]


def test_the_second_text_has_its_own_token_type():
    tokenizer = train_tokenizer(["a cat and a dog"], vocab_size=280)
    data = Dataset("x", [("a cat", "a dog")], [0], ("n", "y"))
    examples = Pairs(("n", "y")).encode(data, TextEncoding(tokenizer, 64))
    first, second = tokenizer.encode(["a cat", "a dog"])
    wanted = [tokenizer.begin_id, *first, tokenizer.separator_id, *second, tokenizer.end_id]
    assert examples.tokens[0][0].tolist() == wanted
    assert examples.token_types[0].tolist() == [0] * (len(first) + 2) + [1] * (len(second) + 1)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(2, 30))
def test_the_longer_text_gives_way_first(a, b, room):
    first, second = fit_pair(np.arange(a), np.arange(b), room)
    assert len(first) + len(second) == min(a + b, room)
    if len(first) < a and len(second) < b:
        assert abs(len(first) - len(second)) <= 1
    elif len(first) < a:
        assert len(first) >= len(second) - 1


def test_mistakes_show_both_texts_of_a_pair():
    task = Pairs(("no", "yes"))
    rows = Dataset("pairs", [("a cat", "a dog")], [0], ("no", "yes"))
    (mistake,) = task.report(np.array([[0.0, 4.0]]), rows)["mistakes"]
    assert mistake["text"] == "a cat ¦ a dog"
