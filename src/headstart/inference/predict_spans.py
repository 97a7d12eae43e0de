"""Ask a run that answers out of a text: questions and texts in, stretches of the texts out."""

from collections.abc import Sequence
from dataclasses import dataclass

from headstart.errors import HeadstartError
from headstart.inference.predict import check_texts, task_of
from headstart.progress import ProgressCallback
from headstart.run_folder import Run
from headstart.tasks.run import run_network
from headstart.tasks.spans import Answer, Spans


@dataclass(frozen=True)
class FoundAnswer:
    """Characters `start` up to `end` of the text; all three are `None` where it has no answer.

    The probability is that among all stretches of the text (and "no answer", where the run has
    learned that there may be none). `unread` characters lie behind the length that the run reads.
    """

    answer: str | None
    probability: float
    start: int | None
    end: int | None
    unread: int


def predict_spans(
    run: Run,
    questions: Sequence[str],
    texts: Sequence[str],
    *,
    progress: ProgressCallback | None = None,
) -> list[FoundAnswer]:
    """Answer each question out of the text that belongs to it. Neither may be empty."""
    task = task_of(run, Spans)
    if len(questions) != len(texts):
        raise HeadstartError(f"{len(questions)} questions were given for {len(texts)} texts")
    check_texts(questions, "question")
    check_texts(texts)
    if not len(questions):
        return []
    examples = task.encode(task.unlabelled(questions, texts), run.reading)
    found = task.join(run_network(run.model, examples, progress=progress), examples)
    return [_answer(one, text) for one, text in zip(found, texts, strict=True)]


def _answer(found: Answer, text: str) -> FoundAnswer:
    unread = len(text.rstrip()) - found.read
    if not found.text:
        return FoundAnswer(None, found.probability, None, None, unread)
    return FoundAnswer(found.text, found.probability, found.start, found.end, unread)
