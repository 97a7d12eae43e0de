"""What every kind of prediction defines, and predictions for a file of any size."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from headstart.errors import HeadstartError
from headstart.files import check_file, replacing
from headstart.inference.predict.writers import JsonLines, Writer
from headstart.progress import ProgressCallback
from headstart.tasks.opened_run import OpenedRun
from headstart.tasks.task import Task
from headstart.text.checking.checks import checked_text
from headstart.text.reading.rows import ReadOptions

AnyTask = TypeVar("AnyTask", bound=Task[Any])


class Rows(Protocol):
    """Rows in order, each with `number`, `text` and `problem`; `share` of them have been read."""

    @property
    def share(self) -> float | None: ...

    def __iter__(self) -> Iterator[Any]: ...


class TextRow(NamedTuple):
    """A text that was given by itself, not in a file."""

    number: int
    text: str
    columns: Mapping[str, object]
    problem: str | None = None


class Predictor(ABC):
    """How one run's task reads rows for prediction, predicts them and writes the answers.

    A task names its predictor (`Task.predictor`). A new kind of answer is a subclass with these
    methods; JSON Lines files and `headstart predict` then work with it.
    """

    explains = False  # whether `inference.explain` can say which words mattered

    def __init__(self, run: OpenedRun) -> None:
        assert run.task is not None
        self.run = run
        self.task: Any = run.task

    @abstractmethod
    def read_file(self, source: str | Path, options: ReadOptions) -> Rows:
        """The rows of a file; one that cannot be predicted says so in its `problem`."""

    @abstractmethod
    def read_texts(self, texts: Sequence[str]) -> Sequence[Any]:
        """Rows from texts, `Task.texts_per_row` each; an empty text is an error."""

    @abstractmethod
    def predict(
        self, rows: Sequence[Any], *, progress: ProgressCallback | None = None
    ) -> Sequence[Any]:
        """One answer per row, in order. No row has a problem."""

    @abstractmethod
    def document(self, answer: Any | None) -> dict[str, Any]:
        """The answer's fields as plain values; the same names with `None` for no answer."""

    def columns(self, row: Any) -> Mapping[str, Any]:
        """What is kept of a row beside its answer, by column."""
        found: Mapping[str, Any] = getattr(row, "columns", None) or {"text": row.text}
        return found

    @property
    def writers(self) -> Mapping[str, Callable[[Path], Writer]]:
        """How answers are written, by the suffix of the file."""
        return {".jsonl": lambda path: JsonLines(path, self.columns, self.document)}

    def unread(self, answer: Any) -> int:
        """How much of its text was not read because it is too long."""
        return 0

    def run_network(self, part: Any, progress: ProgressCallback | None = None) -> Any:
        """The task's answers for rows in the form that it encodes."""
        return self.run.answers(part, progress=progress).scores


def predictor_of(run: OpenedRun) -> Predictor:
    """The predictor of a run's task."""
    if run.task is None:
        raise HeadstartError(
            "this run is a base: it has no head for a task",
            where=run.folder,
            fix="headstart finetune DATASET --base RUN makes one",
        )
    kind = run.task.predictor
    if isinstance(kind, str):
        module, _, name = kind.partition(":")
        kind = getattr(import_module(module), name)
    made: Predictor = kind(run)
    return made


def task_of(run: OpenedRun, kind: type[AnyTask]) -> AnyTask:
    """The run's task if it is of this kind; else an error that says what to call instead."""
    if not isinstance(run.task, kind):
        name = "none: it has not been fine-tuned" if run.task is None else run.task.name
        raise HeadstartError(
            f"this run predicts something else: its task is {name}",
            where=run.folder,
            fix="use predict_tags for tags, predict_spans for answers in a text and predict for "
            "classes; predictor_of(run) and headstart predict RUN find the right one",
        )
    return run.task


def check_texts(texts: Sequence[str], what: str = "text") -> None:
    """Refuse a text that is empty or not text."""
    for number, text in enumerate(texts, start=1):
        where = f"{what} {number}"
        if not checked_text(text, lambda where=where: where):  # type: ignore[misc]
            raise HeadstartError(f"the {what} is empty", where=where, fix="leave it out")


def in_pairs(texts: Sequence[str], what: str, example: str) -> list[tuple[str, str]]:
    """Texts two by two, for tasks whose rows have two."""
    if len(texts) % 2:
        given = f"{len(texts)} {'was' if len(texts) == 1 else 'were'} given"
        raise HeadstartError(
            f"this run {what}: texts come in pairs, and {given}",
            fix=f"headstart predict RUN {example}",
        )
    return list(zip(texts[::2], texts[1::2], strict=True))


CHUNK_ROWS = 1_024
CHUNK_CHARACTERS = 4_000_000
SHOWN = 20  # of the rows with a problem


def predict_file(
    run: OpenedRun,
    source: str | Path,
    output: Path,
    *,
    options: ReadOptions | None = None,
    progress: ProgressCallback | None = None,
) -> dict[str, Any]:
    """Write an answer for every row of `source`, in its order.

    The task defines what a row is: a text, a pair of texts, a sentence, a question about a text.
    A row that cannot be predicted has no answer but the reason (SQuAD's own form has no place for
    it). The columns of a table are kept; see `writers` for the names. Memory does not grow with
    the file, except for SQuAD's JSON, which is read and written as one document.

    Parameters
    ----------
    run : a fine-tuned run.
    source : the file to read; `options` say how.
    output : the file to write, replaced in one step; its suffix says the format. It must not be
        the source or lie in it.

    Returns
    -------
    How many rows were read, which had a problem, and how many are longer than the run reads.
    """
    predictor = predictor_of(run)
    _check_output(predictor, source, output)
    rows = predictor.read_file(source, options or ReadOptions())
    done, cut, bad, shown = 0, 0, 0, list[dict[str, Any]]()
    with _writer(predictor, output) as writer:
        for chunk in _chunks(rows):
            answers = predictor.predict([row for row in chunk if row.problem is None])
            found = iter(answers)
            writer.write([(row, next(found) if row.problem is None else None) for row in chunk])
            cut += sum(predictor.unread(answer) > 0 for answer in answers)
            done += len(chunk)
            broken = [row for row in chunk if row.problem is not None]
            bad += len(broken)
            for row in broken[: SHOWN - len(shown)]:
                shown.append({"row": row.number, "error": row.problem})
            if progress is not None:
                share = rows.share
                progress(done, None if not share else max(done, round(done / share)))
        if not done:
            raise HeadstartError("the file holds no rows", where=source)
    return {
        "rows": done,
        "bad_rows": bad,
        "bad": shown,
        "cut_rows": cut,  # longer than the run reads
        "output": str(output),
    }


def _check_output(predictor: Predictor, source: str | Path, output: Path) -> None:
    """Refuse a format that is unknown and a place where the input would be overwritten."""
    if output.suffix not in predictor.writers:
        raise HeadstartError(
            f"answers of the task {predictor.task.name} cannot be written as '{output.suffix}'",
            where=output,
            fix=f"let the name end in {' or '.join(predictor.writers)}",
        )
    check_file(output.expanduser())
    given = Path(source).expanduser()
    if not given.exists():
        return
    real, target = given.resolve(), output.expanduser().resolve()
    same = target == real or (target.exists() and target.samefile(real))
    if same or (real.is_dir() and real in target.parents):
        raise HeadstartError(
            "the output would overwrite the input" if same else "the output lies in the input",
            where=output,
            fix="choose another file for --output",
        )


@contextmanager
def _writer(predictor: Predictor, output: Path) -> Iterator[Writer]:
    """A file that is whole or absent."""
    with (
        replacing(output) as temporary,
        closing(predictor.writers[output.suffix](temporary)) as writer,
    ):
        yield writer


def _chunks(rows: Rows) -> Iterator[list[Any]]:
    chunk: list[Any] = []
    size = 0
    for row in rows:
        chunk.append(row)
        size += len(row.text)
        if len(chunk) >= CHUNK_ROWS or size >= CHUNK_CHARACTERS:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
