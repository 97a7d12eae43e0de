"""Tagging: one tag per word, as in CoNLL files: names, parts of speech, any label of a word.

A word may be several tokens; its tag is predicted at the last of them, where also a causal base
has read the whole word. Entities (IOB tags) are scored whole: kind, start and end must be right.
Sentences longer than the length are read in windows, or cut: then the words behind count as `O`.
"""

from collections.abc import Sequence
from dataclasses import asdict, replace
from operator import eq
from typing import Any, ClassVar

import numpy as np
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy.special import log_softmax
from torch import Tensor

from headstart.errors import HeadstartError
from headstart.evaluation.row_scores import RowScores, f1_scores
from headstart.evaluation.tagging import count_entities, entity_metrics
from headstart.model.config import Pooling, TaggingConfig
from headstart.model.presets import Preset
from headstart.progress import ProgressCallback
from headstart.tasks.examples import (
    IGNORE_INDEX,
    Examples,
    Ids,
    LabelledBatch,
    TextEncoding,
    read_windows,
)
from headstart.tasks.task import Output, Task
from headstart.text.checking.splits import FileParts
from headstart.text.reading.conll import Sentences, read_sentences, read_tagged
from headstart.text.reading.dataset import Dataset

Answers = list[NDArray[np.float64]]  # of each sentence: (words, tags), as far as it was read


class Tagging(Task[Sentences]):
    """One of the tags for each word."""

    name: ClassVar[str] = "tagging"
    predictor = "headstart.inference.predict.tags:TagPredictor"
    row_name = "sentences"
    class_row_name = "entities"
    linear = "headstart.baselines.word_tagger:fit_tagger"

    def __init__(self, labels: Sequence[str]) -> None:
        super().__init__(labels)
        self.entities = any(tag != "O" for tag in labels) and all(map(_is_iob, labels))

    @property
    def metric(self) -> str:  # type: ignore[override]
        return "f1" if self.entities else "accuracy"

    @classmethod
    def read(cls, sources: Sequence[str], **how: Any) -> FileParts[Sentences]:
        return read_sentences(sources, **how)

    def read_all(self, source: str, **how: Any) -> Sentences:
        return read_tagged(source, self.labels, encoding=how.get("encoding", "utf-8"))

    def fitted(self, part: Sentences, where: str) -> Sentences:
        if unknown := [tag for tag in part.label_names if tag not in self.labels]:
            raise HeadstartError(
                f"the dataset has other tags than the run: {', '.join(unknown[:10])}; the run "
                f"knows {', '.join(self.labels[:20])}",
                where=where,
            )
        numbers = [self.labels.index(tag) for tag in part.label_names]
        tags = [[numbers[tag] for tag in tags] for tags in part.tags]
        return replace(part, tags=tags, label_names=self.labels)

    @classmethod
    def of(cls, train: Sentences) -> "Tagging":
        return cls(train.label_names)

    def texts(self, part: Sentences) -> Sequence[str]:
        return [" ".join(words) for words in part.words]

    def inspected(self, part: Sentences) -> Dataset:
        nothing = self.labels.index("O") if "O" in self.labels else -1
        some = [int(any(tag != nothing for tag in tags)) for tags in part.tags]
        names = ("no entity", "entities") if self.entities else ("no tag", "tagged")
        return Dataset(part.name, list(self.texts(part)), some, names, part.dropped)

    def unlabelled(self, words: Sequence[Sequence[str]]) -> Sentences:
        """Words to be tagged, in the form of tagged sentences."""
        tags = [[0] * len(one) for one in words]
        return Sentences("texts", [list(one) for one in words], tags, self.labels)

    def head(self, preset: Preset, pooling: Pooling | None) -> TaggingConfig:
        return TaggingConfig(tags=len(self.labels), dropout=preset.base.dropout)

    def encode(
        self, part: Sentences, encoding: TextEncoding, *, progress: ProgressCallback | None = None
    ) -> Examples:
        tokens, owners, targets = list[Ids](), list[int](), list[Ids]()
        cut = {"texts": 0, "tokens": 0, "of": 0}
        for row, (words, tags) in enumerate(zip(part.words, part.tags, strict=True)):
            pieces = word_pieces(words, encoding)
            windows = fill_windows([len(piece) for piece in pieces], encoding.room)
            for first, stop in read_windows(windows, pieces, encoding, cut):
                ids = np.concatenate(pieces[first:stop])[: encoding.room]
                target = np.full(len(ids), IGNORE_INDEX, dtype=np.int64)
                ends = np.cumsum([len(piece) for piece in pieces[first:stop]]) - 1
                target[np.minimum(ends, len(ids) - 1)] = tags[first:stop]
                before = np.full(len(encoding.before), IGNORE_INDEX)
                after = np.full(len(encoding.after), IGNORE_INDEX)
                tokens.append(encoding.framed(ids))
                targets.append(np.concatenate([before, target, after]))
                owners.append(row)
            if progress is not None and row % 1_000 == 0:
                progress(row, len(part))
        words_tagged = [np.count_nonzero(target != IGNORE_INDEX) for target in targets]
        return Examples(
            tokens=tokens,
            owners=np.array(owners),
            targets=list(targets),
            weights=np.array(words_tagged, dtype=np.float32),  # every word counts the same
            cut=cut if cut["texts"] else {},
        )

    def losses(self, outputs: Tensor, batch: LabelledBatch, *, smoothing: float = 0.0) -> Tensor:
        words = (batch.targets != IGNORE_INDEX).sum(dim=1)
        total = F.cross_entropy(
            outputs.float().transpose(1, 2),  # (B, tags, T)
            batch.targets,
            reduction="none",
            ignore_index=IGNORE_INDEX,
            label_smoothing=smoothing,
        ).sum(dim=1)
        return total / words.clamp(min=1)

    def join(self, outputs: Sequence[Output], examples: Examples) -> Answers:
        answers: list[list[NDArray[np.float64]]] = [[] for _ in range(examples.owners[-1] + 1)]
        for output, target, owner in zip(outputs, examples.targets, examples.owners, strict=True):
            answers[owner].append(output[target != IGNORE_INDEX].astype(np.float64))
        return [np.concatenate(windows) for windows in answers]

    def metrics(self, answers: Answers, part: Sentences) -> dict[str, float]:
        losses, right, words = 0.0, 0, 0
        for scores, tags in zip(answers, part.tags, strict=True):
            read = np.array(tags[: len(scores)])
            losses -= float(log_softmax(scores, axis=1)[np.arange(len(read)), read].sum())
            right += int((np.array(self._tagged(scores, len(tags))) == np.array(tags)).sum())
            words += len(tags)
        found = {"loss": losses / words, "accuracy": right / words}
        if self.entities:
            found["f1"] = entity_metrics(*self._named(answers, part)).f1
        return found

    def evaluation(
        self, answers: Answers, part: Sentences, *, temperature: float = 1.0
    ) -> dict[str, Any]:
        found: dict[str, Any] = dict(self.metrics(answers, part))
        found["labels"] = list(self.labels)
        if self.entities:
            entities = asdict(entity_metrics(*self._named(answers, part)))
            found |= {**entities, "classes": entities.pop("kinds")}
            found.pop("kinds")
        return found | self.intervals(answers, part)

    def row_scores(self, answers: Answers, part: Sentences) -> dict[str, RowScores]:
        tagged = [
            self._tagged(one, len(tags)) for one, tags in zip(answers, part.tags, strict=True)
        ]
        words = np.array([[len(tags)] for tags in part.tags], dtype=np.float64)
        right = [[sum(map(eq, one, tags))] for one, tags in zip(tagged, part.tags, strict=True)]
        found = {"accuracy": RowScores(np.array(right, dtype=np.float64), words)}
        if self.entities:
            counts = count_entities(*self._named(answers, part))
            sums = [one.sum(1) for one in (counts.right, counts.predicted, counts.true)]
            hits, given, wanted = (one.reshape(-1, 1).astype(np.float64) for one in sums)
            found["f1"] = f1_scores(*sums)
            found["precision"], found["recall"] = RowScores(hits, given), RowScores(hits, wanted)
            if counts.kinds:
                found["macro_f1"] = f1_scores(counts.right, counts.predicted, counts.true)
        return found

    def trivial(self, train: Sentences, part: Sentences) -> tuple[str, Answers]:
        tags = np.concatenate([np.asarray(one, dtype=np.int64) for one in train.tags])
        counts = np.bincount(tags, minlength=len(self.labels))
        scores = np.log((counts + 1) / (counts + 1).sum())
        words = "no entity: every word is O"
        if (
            self.entities
        ):  # whatever the most frequent tag is, to mark nothing is the trivial answer
            scores[self.labels.index("O") if "O" in self.labels else 0] = 0.0
        else:
            words = f"most frequent tag: always {self.labels[int(counts.argmax())]}"
        return words, [np.tile(scores, (len(one), 1)) for one in part.words]

    def kept(self, answers: Answers, part: Sentences) -> dict[str, NDArray[Any]]:
        tags = [tags[: len(scores)] for scores, tags in zip(answers, part.tags, strict=True)]
        return {"logits": np.concatenate(answers), "labels": np.concatenate(tags).astype(np.int64)}

    def balanced(self, part: Sentences, examples: Examples) -> NDArray[np.float32]:
        raise HeadstartError("--balance is for classes of whole texts, not for tags of words")

    def _tagged(self, scores: NDArray[np.float64], words: int) -> list[int]:
        """The best tag of each word; words that were not read have the first one (`O`)."""
        tags: list[int] = scores.argmax(axis=1).tolist()
        return tags + [0] * (words - len(tags))

    def _named(self, answers: Answers, part: Sentences) -> tuple[list[list[str]], list[list[str]]]:
        true = [[self.labels[tag] for tag in tags] for tags in part.tags]
        predicted = [
            [self.labels[tag] for tag in self._tagged(scores, len(tags))]
            for scores, tags in zip(answers, part.tags, strict=True)
        ]
        return true, predicted


def word_pieces(words: Sequence[str], encoding: TextEncoding) -> list[Ids]:
    """The ids of each word, at least one; words behind the first carry the blank before them."""
    spaced = [word if place == 0 else f" {word}" for place, word in enumerate(words)]
    unknown = encoding.tokenizer.unknown_id or 0
    return [
        ids.astype(np.int64) if len(ids) else np.array([unknown])
        for ids in encoding.tokenizer.encode_arrays(spaced)
    ]


def fill_windows(lengths: Sequence[int], room: int) -> list[tuple[int, int]]:
    """Cut words into windows of at most `room` tokens: first word, and the one behind the last."""
    windows, first, used = [], 0, 0
    for place, length in enumerate(lengths):
        if used + length > room and place > first:
            windows.append((first, place))
            first, used = place, 0
        used += length
    return [*windows, (first, len(lengths))]


def _is_iob(tag: str) -> bool:
    return tag == "O" or (tag[:2] in ("B-", "I-") and len(tag) > 2)
