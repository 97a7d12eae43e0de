"""Questions about texts, in the form of SQuAD's JSON files.

`{"data": [{"paragraphs": [{"context": "…", "qas": [{"question": "…", "answers": [{"text": "…",
"answer_start": 17}]}]}]}]}`. A question without answers has none in its text. `read_questions` is
strict, for training; `LenientQuestions` returns every question, with its problem, for prediction.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from headstart.errors import HeadstartError
from headstart.text.checking.checks import checked_text
from headstart.text.checking.splits import FileParts, cut_parts, given_parts
from headstart.text.reading.dataset import Dataset
from headstart.text.reading.lenient_rows import checked_row
from headstart.text.reading.part_files import find_part_files
from headstart.text.reading.sources import kind_by_suffix, open_file
from headstart.text.reading.stream import read_checked

FORM = 'the form is SQuAD\'s: {"data": [{"paragraphs": [{"context": …, "qas": [{"question": …, '
FORM += '"answers": [{"text": …, "answer_start": …}]}]}]}]}'


@dataclass(frozen=True)
class Questions:
    """Questions, the texts that hold the answers, and where: (start, text), none or several."""

    name: str
    questions: list[str]
    contexts: list[str]
    answers: list[list[tuple[int, str]]]
    dropped: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.questions)

    def pick(self, rows: Sequence[int]) -> "Questions":
        return Questions(
            self.name,
            [self.questions[row] for row in rows],
            [self.contexts[row] for row in rows],
            [self.answers[row] for row in rows],
        )


def read_questions(
    sources: Sequence[str],
    *,
    validation: str | None = None,
    test: str | None = None,
    encoding: str = "utf-8",
    seed: int = 0,
    **other: Any,
) -> FileParts[Questions]:
    """Questions and their parts; a part that has no file is cut off, whole texts at a time."""
    files = find_part_files(sources, validation=validation, test=test, suits=_is_json)
    read = [read_question_file(source, encoding=encoding) for source in files.train]
    whole = Questions(
        ", ".join(Path(source).name for source in sources),
        [question for part in read for question in part.questions],
        [context for part in read for context in part.contexts],
        [answers for part in read for answers in part.answers],
    )
    return given_parts(
        whole,
        lambda path: read_question_file(path, encoding=encoding),
        validation=files.validation,
        test=files.test,
        notes=files.notes,
        cut=lambda with_test: _split(whole, seed, with_test=with_test),
    )


def _is_json(path: Path) -> bool:
    return kind_by_suffix(path)[0] == "json"


def read_question_file(source: str, *, encoding: str = "utf-8") -> Questions:
    """All questions of a file, checked."""
    found = Questions(Path(source).name, [], [], [])
    for number, paragraph, entry in raw_questions(source, encoding):
        _add(found, paragraph, entry, f"{source}, question {number}")
    if not len(found):
        raise HeadstartError("the file holds no questions", where=source, fix=FORM)
    return found


def raw_questions(source: str, encoding: str) -> Iterator[tuple[int, Any, Any]]:
    """Every question of a file with its number and its paragraph, both as they are in the JSON."""
    opened = open_file(source, "json", fix="name a file in SQuAD's form")
    number = 0
    try:
        document = json.loads(b"".join(read_checked(opened, encoding, lines=False)))
        for article in document["data"]:
            for paragraph in article.get("paragraphs", []):
                for entry in paragraph.get("qas", []):
                    number += 1
                    yield number, paragraph, entry
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise HeadstartError(
            f"this is not SQuAD's JSON: {error!r}", where=source, fix=FORM
        ) from None


def _add(found: Questions, paragraph: Any, entry: Any, where: str) -> None:
    try:
        context, question = str(paragraph["context"]), str(entry["question"])
        listed = [] if entry.get("is_impossible") else entry.get("answers", [])
        answers = [(int(one["answer_start"]), str(one["text"])) for one in listed]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise HeadstartError(
            f"the question is incomplete: {error!r}", where=where, fix=FORM
        ) from None
    for start, text in answers:
        if context[start : start + len(text)] != text or not text:
            raise HeadstartError(
                f"the answer {text[:40]!r} is not at character {start} of its text "
                f"({context[start : start + len(text)][:40]!r} is)",
                where=where,
                fix="answer_start counts characters from 0",
            )
    found.questions.append(question)
    found.contexts.append(context)
    found.answers.append(answers)


def _split(whole: Questions, seed: int, *, with_test: bool) -> FileParts[Questions]:
    """All questions about a text go to the same part."""
    texts = sorted(set(whole.contexts))

    def picked(part: Dataset) -> Questions:
        inside = set(part.texts)
        return whole.pick([row for row, text in enumerate(whole.contexts) if text in inside])

    return cut_parts(whole.name, texts, picked, seed=seed, with_test=with_test, of="texts")


class LenientQuestion(NamedTuple):
    """A question about a text; `problem` says why it cannot be answered."""

    number: int
    text: str
    problem: str | None
    id: str
    question: str


class LenientQuestions:
    """The questions of a file, in order. A JSON file is read whole."""

    def __init__(self, given: str | Path, encoding: str) -> None:
        self._entries = list(raw_questions(str(given), encoding))
        self._done = 0

    @property
    def share(self) -> float | None:
        return self._done / len(self._entries) if self._done else None

    def __iter__(self) -> Iterator[LenientQuestion]:
        for number, paragraph, entry in self._entries:
            self._done = number
            yield _question(number, paragraph, entry)


def _question(number: int, paragraph: Any, entry: Any) -> LenientQuestion:
    if not isinstance(entry, dict):
        return LenientQuestion(
            number, "", "an object with a question was expected", str(number), ""
        )
    row = checked_row(number, paragraph.get("context"))
    problem, question = row.problem, ""
    try:
        question = checked_text(entry.get("question"), lambda: "")
        if not question:
            problem = "the question is empty"
    except HeadstartError as error:
        problem = f"in the question: {error.what}"
    name = entry.get("id")
    return LenientQuestion(
        number, row.text, problem, str(number if name is None else name), question
    )
