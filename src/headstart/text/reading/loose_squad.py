"""Questions to be answered, one by one, in the form of SQuAD's JSON files.

Answers that stand there are not looked at. A question that cannot be asked keeps its place and
says what is wrong, as in `loose_rows`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from headstart.errors import HeadstartError
from headstart.text.checking.checks import checked_text
from headstart.text.reading.loose_rows import checked_row
from headstart.text.reading.squad import asked_in


class LooseQuestion(NamedTuple):
    """A question about a text; `problem` says why it cannot be asked."""

    number: int
    text: str
    problem: str | None
    id: str
    question: str


class LooseQuestions:
    """The questions of a file, in order. A JSON file is read whole."""

    def __init__(self, given: str | Path, encoding: str) -> None:
        self.asked = list(asked_in(str(given), encoding))
        self._done = 0

    @property
    def share(self) -> float | None:
        return self._done / len(self.asked) if self._done else None

    def __iter__(self) -> Iterator[LooseQuestion]:
        for number, paragraph, asked in self.asked:
            self._done = number
            yield _question(number, paragraph, asked)


def _question(number: int, paragraph: Any, asked: Any) -> LooseQuestion:
    if not isinstance(asked, dict):
        return LooseQuestion(number, "", "an object with a question was expected", str(number), "")
    row = checked_row(number, paragraph.get("context"))
    problem, question = row.problem, ""
    try:
        question = checked_text(asked.get("question"), lambda: "")
        if not question:
            problem = "the question is empty"
    except HeadstartError as error:
        problem = f"in the question: {error.what}"
    name = asked.get("id")
    return LooseQuestion(number, row.text, problem, str(number if name is None else name), question)
