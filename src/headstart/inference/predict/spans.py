"""Answers in a text: questions and texts in, spans of the texts out; JSON Lines or SQuAD's JSON."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from headstart.errors import HeadstartError
from headstart.inference.predict.predictor import Predictor, Rows, check_texts, in_pairs, task_of
from headstart.inference.predict.writers import Answered, JsonLines, TextWriter, Writer
from headstart.progress import ProgressCallback
from headstart.tasks.opened_run import OpenedRun
from headstart.tasks.spans import Answer, Spans
from headstart.text.reading.lenient_rows import LenientRows
from headstart.text.reading.rows import ReadOptions, split_pair
from headstart.text.reading.sources import kind_by_suffix
from headstart.text.reading.squad import LenientQuestions


@dataclass(frozen=True)
class SpanPrediction:
    """Characters `start` up to `end` of the text; all three are `None` where it has no answer.

    The probability is that among all spans of the text (and "no answer", where the run was trained
    with such questions). `unread` characters lie beyond the length that the run reads.
    """

    answer: str | None
    probability: float
    start: int | None
    end: int | None
    unread: int


class QuestionRow(NamedTuple):
    """A question about a text."""

    number: int
    text: str
    problem: str | None
    id: str
    question: str
    columns: Mapping[str, object]


class SpanPredictor(Predictor):
    """Answers questions from texts; files are SQuAD's JSON or tables of questions and contexts."""

    def read_file(self, source: str | Path, options: ReadOptions) -> Rows:
        """JSON is SQuAD's; any table has a question and a context (or other names) in each row."""
        if kind_by_suffix(Path(source))[0] == "json":
            return LenientQuestions(source, options.encoding)
        question, context = options.text_column or "question", options.second_column or "context"
        columns = {"text_column": question, "second_column": context}
        return _Pairs(source, replace(options, pairs=True, **columns))  # type: ignore[arg-type]

    def read_texts(self, texts: Sequence[str]) -> list[QuestionRow]:
        example = '"the question" "the text"'
        pairs = in_pairs(texts, "answers a question from a text", example)
        return self._rows([one for one, _ in pairs], [text for _, text in pairs])

    def _rows(self, questions: Sequence[str], texts: Sequence[str]) -> list[QuestionRow]:
        check_texts(questions, "question")
        check_texts(texts)
        rows = enumerate(zip(questions, texts, strict=True), start=1)
        return [
            QuestionRow(n, text, None, str(n), question, {"question": question, "text": text})
            for n, (question, text) in rows
        ]

    def columns(self, row: Any) -> Mapping[str, Any]:
        """Of SQuAD's files the id and the question; the texts stand in many rows."""
        kept: Mapping[str, Any] = getattr(row, "columns", {})
        return kept or {"id": row.id, "question": row.question}

    def predict(
        self, rows: Sequence[Any], *, progress: ProgressCallback | None = None
    ) -> list[SpanPrediction]:
        if not len(rows):
            return []
        texts = [row.text for row in rows]
        part = self.task.unlabelled([row.question for row in rows], texts)
        found = self.run_network(part, progress)
        return [_prediction(one, text) for one, text in zip(found, texts, strict=True)]

    def document(self, answer: SpanPrediction | None) -> dict[str, Any]:
        names = ("answer", "probability", "start", "end", "unread")
        return dict.fromkeys(names) if answer is None else dict(vars(answer))

    @property
    def writers(self) -> Mapping[str, Callable[[Path], Writer]]:
        jsonl = partial(JsonLines, kept=self.columns, fields=self.document)
        return {".jsonl": jsonl, ".json": _SquadAnswers}

    def unread(self, answer: SpanPrediction) -> int:
        return answer.unread


def predict_spans(
    run: OpenedRun,
    questions: Sequence[str],
    texts: Sequence[str],
    *,
    progress: ProgressCallback | None = None,
) -> list[SpanPrediction]:
    """Answer each question from the text at the same place. Neither may be empty."""
    task_of(run, Spans)
    if len(questions) != len(texts):
        raise HeadstartError(f"{len(questions)} questions were given for {len(texts)} texts")
    predictor = SpanPredictor(run)
    return predictor.predict(predictor._rows(questions, texts), progress=progress)


def _prediction(found: Answer, text: str) -> SpanPrediction:
    unread = len(text.rstrip()) - found.read
    if not found.text:
        return SpanPrediction(None, found.probability, None, None, unread)
    return SpanPrediction(found.text, found.probability, found.start, found.end, unread)


class _Pairs(LenientRows):
    """Questions with their texts; their ids are the rows' numbers."""

    def __iter__(self) -> Iterator[QuestionRow]:  # type: ignore[override]
        for row in super().__iter__():
            question, text = split_pair(row.text)
            problem = row.problem if row.text else "the question or its text is empty"
            name = str(row.number)
            columns = {"id": name, **row.columns}
            yield QuestionRow(row.number, text, problem, name, question, columns)


class _SquadAnswers(TextWriter):
    """The form that SQuAD's scoring script reads: `{id: answer}`, with "" for no answer."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.ids: set[str] = set()

    def write(self, answered: Sequence[Answered]) -> None:
        for row, answer in answered:
            if row.id in self.ids:
                raise HeadstartError(
                    f"two questions have the id {row.id!r}: this form has one answer per id",
                    where=f"question {row.number}",
                    fix="give each its own, or let the name of --output end in .jsonl",
                )
            text = "" if answer is None or answer.answer is None else answer.answer
            key, value = (json.dumps(part, ensure_ascii=False) for part in (row.id, text))
            self.file.write(f"{',' if self.ids else '{'}\n{key}: {value}")
            self.ids.add(row.id)

    def close(self) -> None:
        self.file.write("\n}\n")
        super().close()
