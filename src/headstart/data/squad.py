"""Questions about texts, in the form of SQuAD's JSON files.

`{"data": [{"paragraphs": [{"context": "…", "qas": [{"question": "…", "answers": [{"text": "…",
"answer_start": 17}]}]}]}]}`. A question without answers has none in its text.
"""

import json
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from headstart.data.dataset import Part, Splits
from headstart.data.sources import Given, Source, find_parts, find_source
from headstart.data.splits import make_splits
from headstart.data.stream import Lines, check_text
from headstart.errors import HeadstartError

FORM = (
    'the form is SQuAD\'s: {"data": [{"paragraphs": [{"context": …, "qas": [{"question": …, '
    '"answers": [{"text": …, "answer_start": …}]}]}]}]}'
)
Answer = tuple[int, str]  # the first character in the text, and the text


@dataclass(frozen=True)
class Questions(Part):
    """Questions, the texts that hold the answers, and where: (start, text), none or several."""

    questions: list[str]
    contexts: list[str]
    answers: list[list[Answer]]

    def __len__(self) -> int:
        return len(self.questions)

    @property
    def keys(self) -> Sequence[Any]:
        return list(zip(self.questions, self.contexts, strict=True))

    @property
    def groups(self) -> Sequence[Any]:
        return self.contexts

    @property
    def targets(self) -> Sequence[Hashable]:
        return [tuple(answers) for answers in self.answers]

    def label_counts(self) -> dict[str, int]:
        answered = sum(map(bool, self.answers))
        return {"answer": answered, "no answer": len(self) - answered}


class QuestionRow(NamedTuple):
    """One question about a text; `problem` says why it cannot be used, with its place."""

    number: int
    question: str
    context: str
    answers: list[Answer]
    problem: HeadstartError | None
    id: str


class QuestionRows:
    """The questions of a file, in order. A JSON file is read whole.

    Parameters
    ----------
    answered : whether answers are read and checked.
    """

    def __init__(self, source: Given | Source, encoding: str, *, answered: bool = False) -> None:
        self.source = source if isinstance(source, Source) else find_source(source, "squad")
        self.answered = answered
        self._done = 0
        try:
            document = json.loads(Lines(self.source, encoding).text())
            self._entries = [
                (paragraph, entry)
                for article in document["data"]
                for paragraph in article.get("paragraphs", [])
                for entry in paragraph.get("qas", [])
            ]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise HeadstartError(
                f"this is not SQuAD's JSON: {error!r}"[:300], where=self.source.name, fix=FORM
            ) from None

    @property
    def share(self) -> float | None:
        """How many of the questions were read so far."""
        return self._done / len(self._entries) if self._done else None

    def __iter__(self) -> Iterator[QuestionRow]:
        for number, (paragraph, entry) in enumerate(self._entries, start=1):
            self._done = number
            row = self._row(number, paragraph, entry)
            if row.problem is not None:
                row.problem.where = self.source.row(number)
            yield row

    def _row(self, number: int, paragraph: Any, entry: Any) -> QuestionRow:
        if not isinstance(entry, dict):
            wrong = HeadstartError("an object with a question was expected", fix=FORM)
            return QuestionRow(number, "", "", [], wrong, str(number))
        name = str(number if entry.get("id") is None else entry["id"])
        context, problem = check_text(paragraph.get("context"))
        question, asked = check_text(entry.get("question"))
        if asked is not None:
            problem = HeadstartError(f"in the question: {asked.what}", fix=FORM)
        answers: list[Answer] = []
        if self.answered and problem is None:
            answers, problem = _read_answers(context, entry)
        return QuestionRow(number, question, context, answers, problem, name)


def _read_answers(
    context: str, entry: dict[str, Any]
) -> tuple[list[Answer], HeadstartError | None]:
    try:
        listed = [] if entry.get("is_impossible") else entry.get("answers", [])
        answers = [(int(one["answer_start"]), str(one["text"])) for one in listed]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return [], HeadstartError(f"the question is incomplete: {error!r}", fix=FORM)
    for start, text in answers:
        found = context[start : start + len(text)]
        if found != text or not text:
            return [], HeadstartError(
                f"the answer {text[:40]!r} is not at character {start} of its text "
                f"({found[:40]!r} is)",
                fix="answer_start counts characters from 0",
            )
    return answers, None


def read_questions(
    sources: Sequence[Given],
    *,
    validation: Given | None = None,
    test: Given | None = None,
    encoding: str = "utf-8",
    seed: int = 0,
    drop_overlap: bool = False,
    **other: Any,
) -> Splits[Questions]:
    """Read questions and their splits; all questions about a text go to the same part.

    `other` settings of tables are not used.
    """
    files = find_parts(sources, validation=validation, test=test, kind="squad")
    name = ", ".join(Path(source).name for source in sources)
    train, later = _read_files(name, files.train, encoding), (files.validation, files.test)
    held_out = [None if one is None else _read_files(name, [one], encoding) for one in later]
    return make_splits(
        train,
        *held_out,
        seed=seed,
        drops_overlap=drop_overlap,
        found=[f"{file.name}: questions in SQuAD's JSON" for file in files.train],
        notes=files.notes,
        unit="texts",
    )


def read_question_file(source: Given, *, encoding: str = "utf-8") -> Questions:
    """Read all questions of a file, checked."""
    return _read_files(Path(source).name, [find_source(source, "squad")], encoding)


def _read_files(name: str, sources: Sequence[Source], encoding: str) -> Questions:
    rows: list[tuple[Source, QuestionRow]] = []
    for source in sources:
        found = [(source, row) for row in QuestionRows(source, encoding, answered=True)]
        problem = next((row.problem for _, row in found if row.problem is not None), None)
        if problem is not None:
            raise problem
        if not found:
            raise HeadstartError("the file holds no questions", where=source.name, fix=FORM)
        rows += found
    return Questions(
        name,
        [row.question for _, row in rows],
        [row.context for _, row in rows],
        [row.answers for _, row in rows],
        rows=[row.number for _, row in rows],
        files=[source.name for source, _ in rows] if len(sources) > 1 else [],
    )
