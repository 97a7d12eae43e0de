"""Ask a tagging run: texts in, a tag for each word and the entities out, in the order given."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from headstart.evaluation.tagging import entities
from headstart.inference.predict import check_texts, task_of
from headstart.progress import ProgressCallback
from headstart.run_folder import Run
from headstart.tasks.run import run_network
from headstart.tasks.tagging import Tagging
from headstart.text.tokenizers.words import Places, split_words


@dataclass(frozen=True)
class FoundEntity:
    """Words `start_word` up to `end_word` of a text, which are its characters `start` to `end`.

    Both count from 0, and both ends lie behind the entity. Its probability is the product of its
    words': given the text, the network decides about each word on its own.
    """

    kind: str
    text: str
    start_word: int
    end_word: int
    start: int
    end: int
    probability: float


@dataclass(frozen=True)
class TaggedText:
    """The words of a text, the most probable tag of each, and the entities that they make.

    Words behind the length that the run reads have neither a tag nor a probability.
    """

    text: str
    words: list[str]
    tags: list[str | None]
    probabilities: list[float | None]
    entities: list[FoundEntity]

    @property
    def unread(self) -> int:
        """How many words were not read."""
        return self.tags.count(None)


def predict_tags(
    run: Run, texts: Sequence[str], *, progress: ProgressCallback | None = None
) -> list[TaggedText]:
    """Tag some texts; their words are found as CoNLL files have them. No text may be empty."""
    task_of(run, Tagging)
    check_texts(texts)
    return tag_words(run, texts, [split_words(text) for text in texts], progress=progress)


def tag_words(
    run: Run,
    texts: Sequence[str],
    words: Sequence[Places],
    *,
    progress: ProgressCallback | None = None,
) -> list[TaggedText]:
    """Tag texts whose words are known: where each of them starts and ends."""
    task = task_of(run, Tagging)
    if not len(texts):
        return []
    asked = [
        [text[start:end] for start, end in places]
        for text, places in zip(texts, words, strict=True)
    ]
    examples = task.encode(task.unlabelled(asked), run.reading)
    answers = task.join(run_network(run.model, examples, progress=progress), examples)
    return [
        _tagged(task, text, places, scores)
        for text, places, scores in zip(texts, words, answers, strict=True)
    ]


def _tagged(task: Tagging, text: str, places: Places, scores: NDArray[np.float64]) -> TaggedText:
    chances = softmax(scores, axis=1)  # (words read, tags)
    tags = [task.labels[tag] for tag in chances.argmax(axis=1)]
    probabilities: list[float] = chances.max(axis=1).tolist()
    found = [
        FoundEntity(
            kind=one.kind,
            text=text[places[one.start][0] : places[one.end - 1][1]],
            start_word=one.start,
            end_word=one.end,
            start=places[one.start][0],
            end=places[one.end - 1][1],
            probability=prod(probabilities[one.start : one.end]),
        )
        for one in (entities(tags) if task.entities else [])
    ]
    unread = [None] * (len(places) - len(tags))
    return TaggedText(
        text=text,
        words=[text[start:end] for start, end in places],
        tags=[*tags, *unread],
        probabilities=[*probabilities, *unread],
        entities=found,
    )
