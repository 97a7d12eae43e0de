"""Files of questions and of their answers: SQuAD's JSON or tables in, JSON Lines or SQuAD's out."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from headstart.errors import HeadstartError
from headstart.inference.answer_files import Answered, FileForm, JsonLines, Rows, TextWriter
from headstart.inference.predict_spans import FoundAnswer, predict_spans
from headstart.run_folder import Run
from headstart.text.reading.lenient_rows import LenientRows
from headstart.text.reading.rows import ReadOptions, split_pair
from headstart.text.reading.sources import kind_by_suffix
from headstart.text.reading.squad import LenientQuestion, LenientQuestions


def span_files(run: Run) -> FileForm:
    return FileForm(
        rows=_rows,
        answer=lambda rows: predict_spans(
            run, [row.question for row in rows], [row.text for row in rows]
        ),
        writers={".jsonl": partial(JsonLines, document=_document), ".json": _SquadAnswers},
        unread=lambda answer: answer.unread,
    )


def _rows(source: str | Path, how: ReadOptions) -> Rows:
    """JSON is SQuAD's; any table has a question and a context (or other names) in each row."""
    if kind_by_suffix(Path(source))[0] == "json":
        return LenientQuestions(source, how.encoding)
    question, context = how.text_column or "question", how.second_column or "context"
    return _Pairs(source, replace(how, pairs=True, text_column=question, second_column=context))


class _Pairs(LenientRows):
    """Questions with their texts; their ids are the rows' numbers."""

    def __iter__(self) -> Iterator[LenientQuestion]:  # type: ignore[override]
        for number, pair, problem in super().__iter__():
            question, text = split_pair(pair)
            if not pair:
                problem = "the question or its text is empty"
            yield LenientQuestion(number, text, problem, str(number), question)


def _document(row: LenientQuestion, answer: FoundAnswer | None) -> dict[str, Any]:
    names = ("answer", "probability", "start", "end", "unread")
    found = dict.fromkeys(names) if answer is None else vars(answer)
    return {"id": row.id, "question": row.question, **found}


class _SquadAnswers(TextWriter):
    """The form that SQuAD's own scoring reads: `{id: answer}`, with "" for no answer."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.ids: set[str] = set()

    def write(self, answered: Sequence[Answered]) -> None:
        for row, answer in answered:
            if row.id in self.ids:
                raise HeadstartError(
                    f"two questions have the id {row.id!r}: this form has one answer an id",
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
