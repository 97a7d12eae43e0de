"""Tagging: every word has one tag, however it is tokenized."""

import numpy as np
import pytest

from headstart.config import FinetuneConfig
from headstart.data.dataset import Sentences
from headstart.data.splits import read_dataset
from headstart.data.tokenizers import train_tokenizer
from headstart.errors import HeadstartError
from headstart.run import NetworkRun, evaluation_rows
from headstart.tasks.tagging import Tagging
from headstart.tasks.task import IGNORE_INDEX, TextEncoding, word_windows


def test_it_learns_entities(tagger):
    run = NetworkRun.open(tagger)
    assert run.labels == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
    part, _ = evaluation_rows(FinetuneConfig.load(tagger), run.task, None)
    found = run.evaluate(part)
    assert found["f1"] > 0.9
    assert [row["name"] for row in found["classes"]] == ["LOC", "PER"]


def test_a_word_is_asked_for_once_at_its_last_token():
    tokenizer = train_tokenizer(["a b c"], vocab_size=262)  # bytes: a token a letter
    part = Sentences("x", [["cat", "is"]], [[1, 0]], ("O", "B-X"))
    examples = Tagging(("O", "B-X")).encode(part, TextEncoding(tokenizer, 64))
    asked = examples.targets[0]
    assert len(asked) == len(examples.tokens[0][0])
    assert asked[asked != IGNORE_INDEX].tolist() == [1, 0]
    assert np.flatnonzero(asked != IGNORE_INDEX).tolist() == [3, 6]  # begin c a t ␣ i s end
    assert examples.weights.tolist() == [2]


@pytest.mark.parametrize("long", ["truncate", "windows"])
def test_long_sentences_keep_a_tag_for_every_word(long):
    tokenizer = train_tokenizer(["a b c"], vocab_size=262)
    part = Sentences("x", [["cat"] * 30, ["dog"]], [[1] * 30, [0]], ("O", "B-X"))
    task = Tagging(("O", "B-X"))
    examples = task.encode(part, TextEncoding(tokenizer, 20, long))
    assert max(examples.lengths) <= 20
    outputs = [np.tile([0.0, 1.0], (length, 1)) for length in examples.lengths]
    answers = task.decode(outputs, examples)
    assert len(answers[0]) == (30 if long == "windows" else 4)
    assert bool(examples.cut) == (long == "truncate")
    found = task.metrics(answers, part)
    assert found["accuracy"] == pytest.approx((30 if long == "windows" else 4) / 31)


def test_windows_cover_every_word_once_or_overlap_by_half():
    encoding = TextEncoding(train_tokenizer(["a b c"], vocab_size=262), 64, "windows")
    assert word_windows([3, 3, 3, 9, 1], 6, encoding) == [(0, 2), (2, 3), (3, 4), (4, 5)]
    halves = word_windows([2] * 8, 8, encoding, overlap=True)
    assert halves == [(0, 4), (2, 6), (4, 8)]
    assert word_windows([], 6, encoding) == [(0, 0)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("word\n\n", "a word and its tag were expected"),
        ("\n\n", "no row with text"),
        ("a O\n\nb O\n", "one class only"),
    ],
)
def test_a_file_that_is_not_conll_is_an_error(tmp_path, content, message):
    (tmp_path / "a.conll").write_text(content)
    with pytest.raises(HeadstartError, match=message):
        read_dataset([str(tmp_path / "a.conll")], task="tagging")


def test_the_loss_is_over_the_words_that_were_read():
    """Half of the words are not read; the loss of the others does not change."""
    task = Tagging(("N", "V"))
    scores = np.zeros((2, 2))
    whole = Sentences("x", [["a", "b"]], [[0, 1]], task.labels)
    longer = Sentences("x", [["a", "b", "c", "d"]], [[0, 1, 0, 1]], task.labels)
    assert task.metrics([scores], whole)["loss"] == pytest.approx(np.log(2))
    assert task.metrics([scores], longer)["loss"] == pytest.approx(np.log(2))


def test_a_word_that_was_not_read_counts_as_wrong():
    """The last two words were cut off; their tag is the first one of the task."""
    task = Tagging(("N", "V"))
    rows = Sentences("x", [["a", "b", "c", "d"]], [[0, 1, 0, 0]], task.labels)
    scores = [np.array([[5.0, 0.0], [0.0, 5.0]])]
    assert task.metric == "accuracy"  # tags that are no entities
    assert task.metrics(scores, rows)["accuracy"] == 0.5
    assert task.report(scores, rows)["intervals"]["accuracy"]["value"] == 0.5


def test_no_entity_is_predicted_in_words_that_were_not_read():
    task = Tagging(("B-X", "O"))
    rows = Sentences("x", [["a", "b"]], [[1, 0]], task.labels)
    found = task.report([np.array([[0.0, 5.0]])], rows)
    assert (found["recall"], found["f1"], found["accuracy"]) == (0.0, 0.0, 0.5)
