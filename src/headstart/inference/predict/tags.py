"""Tags of words: a tag for each word of a text and the entities; JSON Lines or CoNLL files."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from headstart.evaluation.tagging import entities
from headstart.inference.predict.predictor import Predictor, Rows, check_texts, task_of
from headstart.inference.predict.writers import Answered, JsonLines, TextWriter, Writer
from headstart.progress import ProgressCallback
from headstart.tasks.opened_run import OpenedRun
from headstart.tasks.tagging import Tagging
from headstart.text.reading.conll import LenientSentences, ends_in_tags
from headstart.text.reading.lenient_rows import LenientRows
from headstart.text.reading.rows import ReadOptions
from headstart.text.reading.sources import kind_by_suffix
from headstart.text.tokenizers.words import Places, split_words

NO_TAG = "_"  # of a word that was not read, as in CoNLL


@dataclass(frozen=True)
class PredictedEntity:
    """Words `start_word` up to `end_word` of a text, which are its characters `start` to `end`.

    Both count from 0 and exclude the end. Its probability is the product of its words': given the
    text, the network decides about each word by itself.
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
    """The words of a text, the most probable tag of each, and the entities of these tags.

    Words beyond the length that the run reads have neither a tag nor a probability.
    """

    text: str
    words: list[str]
    tags: list[str | None]
    probabilities: list[float | None]
    entities: list[PredictedEntity]

    @property
    def unread(self) -> int:
        """How many words were not read."""
        return self.tags.count(None)


class WordsRow(NamedTuple):
    """A text and where its words are."""

    number: int
    text: str
    problem: str | None
    words: Places
    columns: Mapping[str, object] = {}


class TagPredictor(Predictor):
    """Predicts tags of words; files are CoNLL sentences or texts of any other kind."""

    def read_file(self, source: str | Path, options: ReadOptions) -> Rows:
        """Plain text is CoNLL if its lines end in tags that the run knows, else a text per line."""
        path = Path(source).expanduser()
        kind, _ = kind_by_suffix(path)
        conll = ".conll" in [suffix.lower() for suffix in path.suffixes[-2:]]
        if not conll and kind in ("text", None) and path.is_file():
            conll = ends_in_tags(path, options.encoding, self.run.labels)
        return LenientSentences(source, options.encoding) if conll else _Texts(source, options)

    def read_texts(self, texts: Sequence[str]) -> list[WordsRow]:
        check_texts(texts)
        rows = enumerate(texts, start=1)
        return [WordsRow(n, text, None, split_words(text)) for n, text in rows]

    def predict(
        self, rows: Sequence[Any], *, progress: ProgressCallback | None = None
    ) -> list[TaggedText]:
        if not len(rows):
            return []
        words = [[row.text[start:end] for start, end in row.words] for row in rows]
        answers = self.run_network(self.task.unlabelled(words), progress)
        return [
            _tagged(self.task, row.text, row.words, scores)
            for row, scores in zip(rows, answers, strict=True)
        ]

    def document(self, answer: TaggedText | None) -> dict[str, Any]:
        if answer is None:
            return dict.fromkeys(("words", "tags", "probabilities", "entities"))
        return {
            "words": answer.words,
            "tags": answer.tags,
            "probabilities": answer.probabilities,
            "entities": [vars(one) for one in answer.entities],
        }

    @property
    def writers(self) -> Mapping[str, Callable[[Path], Writer]]:
        jsonl = partial(JsonLines, kept=self.columns, fields=self.document)
        return {".jsonl": jsonl, ".conll": _Conll}

    def unread(self, answer: TaggedText) -> int:
        return answer.unread


def predict_tags(
    run: OpenedRun, texts: Sequence[str], *, progress: ProgressCallback | None = None
) -> list[TaggedText]:
    """Tag the words of texts, which are split as in CoNLL files. No text may be empty."""
    task_of(run, Tagging)
    predictor = TagPredictor(run)
    return predictor.predict(predictor.read_texts(texts), progress=progress)


def _tagged(task: Tagging, text: str, places: Places, scores: NDArray[np.float64]) -> TaggedText:
    chances = softmax(scores, axis=1)  # (words read, tags)
    tags = [task.labels[tag] for tag in chances.argmax(axis=1)]
    probabilities: list[float] = chances.max(axis=1).tolist()
    found = [
        PredictedEntity(
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


class _Texts(LenientRows):
    """Texts with their words."""

    def __iter__(self) -> Iterator[WordsRow]:  # type: ignore[override]
        for row in super().__iter__():
            words = split_words(row.text)
            yield WordsRow(row.number, row.text, row.problem, words, row.columns)


class _Conll(TextWriter):
    """One word and its tag per line; a comment says why a sentence has no tags."""

    def write(self, answered: Sequence[Answered]) -> None:
        for row, answer in answered:
            if answer is None:
                lines = [f"# row {row.number}: {row.problem}".replace("\n", " ")]
                words = [row.text[start:end] for start, end in row.words]
                lines += [f"{word}\t{NO_TAG}" for word in words if word.strip()]
            else:
                pairs = zip(answer.words, answer.tags, strict=True)
                lines = [f"{word}\t{tag or NO_TAG}" for word, tag in pairs]
            self.file.write("\n".join(lines) + "\n\n")
