"""Tagging: one tag per word, as in CoNLL files: names, parts of speech, any label of a word.

A word may be several tokens; its tag is predicted at the last of them, where a causal base has read
the whole word too. Entities (IOB tags) are scored whole: kind, start and end must be correct. Texts
longer than the length are read in windows, or cut; a word that was not read counts as wrong.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any, ClassVar

import numpy as np
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from headstart.config import Pooling
from headstart.data.dataset import Sentences
from headstart.data.words import split_words
from headstart.evaluation import metrics
from headstart.evaluation.calibration import at_temperature, log_loss
from headstart.model.config import TaggingConfig
from headstart.model.presets import Preset
from headstart.tasks.task import (
    IGNORE_INDEX,
    Examples,
    Ids,
    LabelledBatch,
    Output,
    Prediction,
    Task,
    TextEncoding,
    word_windows,
)

TagScores = list[NDArray[np.float64]]  # of each sentence: (words that were read, tags)


class Tagging(Task[Sentences]):
    """One of the tags for each word."""

    name: ClassVar[str] = "tagging"
    prediction_fields: ClassVar[tuple[str, ...]] = ("words", "tags", "probabilities", "entities")
    file_suffixes: ClassVar[tuple[str, ...]] = (".jsonl", ".conll")
    row_name: ClassVar[str] = "sentences"
    metric_names: ClassVar[tuple[str, ...]] = ("accuracy", "f1")

    def __init__(self, labels: Sequence[str]) -> None:
        super().__init__(labels)
        self.entities = any(tag != "O" for tag in labels) and all(
            map(metrics.is_entity_tag, labels)
        )
        self.metric = "f1" if self.entities else "accuracy"

    def match_labels(self, rows: Sentences, where: str) -> Sentences:
        numbers = self.label_numbers(rows.label_names, where)
        tags = [[numbers[tag] for tag in tags] for tags in rows.tags]
        return replace(rows, tags=tags, label_names=self.labels)

    def unlabelled(self, inputs: Sequence[str | Sequence[str]]) -> Sentences:
        """Convert texts, which are split into words, or lists of words to sentences."""
        texts = [one if isinstance(one, str) else " ".join(one) for one in inputs]
        words = []
        for one in inputs:
            if isinstance(one, str):
                one = [one[start:end] for start, end in split_words(one)]
            words.append(list(one))
        tags = [[0] * len(one) for one in words]
        return Sentences("texts", words, tags, self.labels, texts=texts)

    def head(self, preset: Preset, pooling: Pooling | None) -> TaggingConfig:
        return TaggingConfig(tags=len(self.labels), dropout=preset.base.dropout)

    def encode(self, rows: Sentences, encoding: TextEncoding) -> Examples:
        tokens, owners, targets, cut = list[list[Ids]](), list[int](), list[Ids](), 0
        for row, (words, tags) in enumerate(zip(rows.words, rows.tags, strict=True)):
            encoded = encoding.encode_words([words[0], *(f" {word}" for word in words[1:])])
            sizes = [len(ids) for ids in encoded]
            windows = word_windows(sizes, encoding.room, encoding)
            cut += windows[-1][1] < len(words)
            for first, stop in windows:
                ids = np.concatenate(encoded[first:stop])[: encoding.room]
                framed = encoding.framed(ids)
                tokens.append([framed])
                target = np.full(len(framed), IGNORE_INDEX, dtype=np.int64)
                ends = np.minimum(np.cumsum(sizes[first:stop]), len(ids)) - 1
                target[len(encoding.before) + ends] = tags[first:stop]
                targets.append(target)
                owners.append(row)
        words_tagged = [np.count_nonzero(target != IGNORE_INDEX) for target in targets]
        return Examples(
            tokens=tokens,
            owners=np.array(owners),
            targets=list(targets),
            weights=np.array(words_tagged, dtype=np.float32),  # every word counts the same
            cut=cut,
        )

    def loss(self, outputs: Tensor, batch: LabelledBatch) -> Tensor:
        words = (batch.targets != IGNORE_INDEX).sum(dim=1)
        return F.cross_entropy(
            outputs.float().transpose(1, 2),  # (B, tags, T)
            batch.targets,
            reduction="none",
            ignore_index=IGNORE_INDEX,
        ).sum(dim=1) / words.clamp(min=1)

    def decode(self, outputs: Sequence[Output], examples: Examples) -> TagScores:
        scores: list[list[NDArray[np.float64]]] = [[] for _ in range(examples.owners[-1] + 1)]
        for output, target, owner in zip(outputs, examples.targets, examples.owners, strict=True):
            scores[owner].append(output[target != IGNORE_INDEX].astype(np.float64))
        return [np.concatenate(windows) for windows in scores]

    def predictions(
        self, scores: TagScores, rows: Sentences, temperature: float = 1.0
    ) -> list[Prediction]:
        """Predict tags, probabilities and entities; words that were not read have `None`."""
        found = []
        for one, text, words in zip(scores, rows.keys, rows.words, strict=True):
            chances = at_temperature(one, temperature)  # (words that were read, tags)
            tags = [self.labels[tag] for tag in chances.argmax(axis=1)]
            probabilities: list[float] = chances.max(axis=1).tolist()
            entities = _entities(text, words, tags, probabilities) if self.entities else []
            unread = [None] * (len(words) - len(tags))
            found.append(
                {
                    "words": words,
                    "tags": [*tags, *unread],
                    "probabilities": [*probabilities, *unread],
                    "entities": entities,
                }
            )
        return found

    def report(
        self, scores: TagScores, rows: Sentences, temperature: float = 1.0
    ) -> dict[str, Any]:
        found = super().report(scores, rows, temperature)
        if self.entities:
            kinds, counts = self._counts(scores, rows)
            found["classes"] = metrics.class_table(kinds, *counts.sum(axis=1))
        return found

    def row_scores(self, scores: TagScores, rows: Sentences) -> dict[str, metrics.RowScores]:
        correct = [
            np.sum(one.argmax(axis=1) == np.asarray(tags[: len(one)]))
            for one, tags in zip(scores, rows.tags, strict=True)
        ]
        found = {"accuracy": metrics.ratio_scores(correct, [len(tags) for tags in rows.tags])}
        if self.entities:
            kinds, counts = self._counts(scores, rows)
            hits, given, wanted = counts.sum(axis=2)
            found["f1"] = metrics.f1_scores(hits, given, wanted)
            found["precision"] = metrics.ratio_scores(hits, given)
            found["recall"] = metrics.ratio_scores(hits, wanted)
            if kinds:
                found["macro_f1"] = metrics.f1_scores(*counts)
        return found

    def trivial(self, train: Sentences, rows: Sentences) -> tuple[str, TagScores]:
        tags = np.concatenate([np.asarray(one, dtype=np.int64) for one in train.tags])
        counts = np.bincount(tags, minlength=len(self.labels))
        scores = np.log((counts + 1) / (counts + 1).sum())
        words = f"most frequent tag: always {self.labels[int(counts.argmax())]}"
        if self.entities:
            words = "no entity: every word is O"
            scores[self.labels.index("O") if "O" in self.labels else 0] = 0.0
        return words, [np.tile(scores, (len(one), 1)) for one in rows.words]

    def mean_loss(self, scores: TagScores, rows: Sentences, temperature: float) -> float:
        tags = [tags[: len(one)] for one, tags in zip(scores, rows.tags, strict=True)]
        probabilities = at_temperature(np.concatenate(scores), temperature)
        return log_loss(probabilities, np.concatenate(tags).astype(np.int64))

    def _counts(self, scores: TagScores, rows: Sentences) -> tuple[list[str], NDArray[np.int64]]:
        """Count entities; none is predicted in words that were not read."""
        true = [[self.labels[tag] for tag in tags] for tags in rows.tags]
        predicted = []
        for one, tags in zip(scores, rows.tags, strict=True):
            named = [self.labels[tag] for tag in one.argmax(axis=1)]
            predicted.append(named + ["O"] * (len(tags) - len(named)))
        return metrics.count_entities(true, predicted)


def _entities(
    text: str, words: Sequence[str], tags: Sequence[str], probabilities: Sequence[float]
) -> list[dict[str, Any]]:
    """List the entities of a tagged text with their places."""
    places = find_words_in(text, words)
    found = []
    for one in metrics.find_entities(tags):
        start, end = places[one.start][0], places[one.end - 1][1]
        found.append(
            {
                "kind": one.kind,
                "text": text[start:end],
                "start_word": one.start,
                "end_word": one.end,
                "start": start,
                "end": end,
                # Given the text, the network decides about each word independently.
                "probability": prod(probabilities[one.start : one.end]),
            }
        )
    return found


def find_words_in(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Find start and end of words that follow each other in a text, with blanks in between."""
    places, end = [], 0
    for word in words:
        start = text.index(word, end)
        end = start + len(word)
        places.append((start, end))
    return places
