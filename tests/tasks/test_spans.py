"""Spans: answers are exact parts of the text."""

import numpy as np
import pytest

from headstart.config import FinetuneConfig
from headstart.data.dataset import Questions
from headstart.data.tokenizers import train_tokenizer
from headstart.run import NetworkRun, evaluation_rows
from headstart.tasks.spans import Spans
from headstart.tasks.task import TextEncoding


def test_it_learns_to_find_answers_and_to_find_none(answerer):
    run = NetworkRun.open(answerer)
    assert run.labels == ("no answer",)
    assert run.summary["validation"]["f1"] > 0.9
    part, _ = evaluation_rows(FinetuneConfig.load(answerer), run.task, None)
    assert run.evaluate(part)["exact_match"] > 0.8
    answered = Questions("x", ["who?"], ["Ada"], [[(0, "Ada")]])
    assert Spans.from_rows(answered).labels == ()


def perfect(examples):
    """Outputs that are certain of the targets."""
    outputs = []
    for (ids,), target in zip(examples.tokens, examples.targets, strict=True):
        scores = np.zeros((len(ids), 2))
        scores[target[0], 0] = scores[target[1], 1] = 9
        outputs.append(scores)
    return outputs


@pytest.mark.parametrize("long", ["truncate", "windows"])
def test_a_certain_network_gives_the_answers_as_they_are_written(long):
    context = "Le chat « Félix » dort. " * 3 + "猫は東京にいる。 End."
    answers = [[(8, "« Félix »")], [(context.index("東京"), "東京")], []]
    part = Questions("x", ["qui?", "どこ?", "why?"], [context] * 3, answers)
    tokenizer = train_tokenizer([context], vocab_size=300)
    task = Spans(("no answer",))
    examples = task.encode(part, TextEncoding(tokenizer, 26, long))
    assert max(examples.lengths) <= 26
    found = [answer.text for answer in task.decode(perfect(examples), examples)]
    # 東京 lies behind the cut; windows find it.
    assert found == ["« Félix »", "東京" if long == "windows" else "", ""]
    assert bool(examples.cut) == (long == "truncate")


def test_an_answer_that_two_windows_hold_is_one_answer():
    context = "one two three four five six seven eight nine ten eleven twelve " * 2
    part = Questions("x", ["?"], [context], [[(context.index("eight"), "eight")]])
    task = Spans(())
    tokenizer = train_tokenizer([context], vocab_size=320)
    examples = task.encode(part, TextEncoding(tokenizer, 16, "windows"))
    assert sum(target[0] > 0 for target in examples.targets) > 1
    (found,) = task.decode(perfect(examples), examples)
    assert context[found.start : found.end] == found.text == "eight"
    assert 0.9 < found.probability <= 1
