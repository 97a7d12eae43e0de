"""Predictions for a file of any size: a chunk of rows at a time, each answered in its place."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from headstart.errors import HeadstartError
from headstart.files import replacing
from headstart.inference.answer_files import FileForm, Rows, Writer
from headstart.inference.class_files import class_files
from headstart.inference.span_files import span_files
from headstart.inference.tag_files import tag_files
from headstart.progress import ProgressCallback
from headstart.run_folder import Run
from headstart.text.reading.rows import ReadOptions

CHUNK_ROWS = 1_024
CHUNK_CHARACTERS = 4_000_000
SHOWN = 20  # of the rows with a problem


def predict_file(
    run: Run,
    source: str | Path,
    output: Path,
    *,
    how: ReadOptions | None = None,
    progress: ProgressCallback | None = None,
) -> dict[str, Any]:
    """Write an answer for every row of `source`, in its order; returns what happened.

    What a row is, the task says: a text, a pair of texts, a sentence, a question about a text. A
    row that cannot be judged has no answer but the reason (SQuAD's own form has no place for it).
    Of tags and answers it is also counted how many rows are longer than what the run reads. Memory
    does not grow with the file, but for SQuAD's JSON, which is read and written as one document.
    """
    form = _form_of(run)
    _check_ending(run.task.name if run.task else "", form, output)
    rows = form.rows(source, how or ReadOptions())
    done, cut, bad, shown = 0, 0, 0, list[dict[str, Any]]()
    with _writer(form, output) as writer:
        for chunk in _chunks(rows):
            answers = form.answer([row for row in chunk if row.problem is None])
            found = iter(answers)
            writer.write([(row, next(found) if row.problem is None else None) for row in chunk])
            cut += sum(form.unread(answer) > 0 for answer in answers)
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
        "cut_rows": cut,  # not read to the end, and so not answered for all of it
        "output": str(output),
    }


def _form_of(run: Run) -> FileForm:
    if run.task is None:
        raise HeadstartError(
            "this run is a base: it has no head that answers",
            where=run.folder,
            fix="headstart finetune DATASET --base RUN makes one",
        )
    return {"tagging": tag_files, "spans": span_files}.get(run.task.name, class_files)(run)


def _check_ending(task: str, form: FileForm, output: Path) -> None:
    if output.suffix not in form.writers:
        raise HeadstartError(
            f"answers of the task {task} cannot be written as '{output.suffix}'",
            where=output,
            fix=f"let the name end in {' or '.join(form.writers)}",
        )


@contextmanager
def _writer(form: FileForm, output: Path) -> Iterator[Writer]:
    """A file that is whole or absent; its kind is in its name."""
    with (
        replacing(output) as temporary,
        closing(form.writers[output.suffix](temporary)) as writer,
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
