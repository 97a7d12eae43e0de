"""Predictions for a file of any size: a chunk of rows at a time, each answered in its place."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from headstart.errors import HeadstartError
from headstart.files import replacing
from headstart.inference.predict.predictor import Predictor, Rows, predictor_of
from headstart.inference.predict.writers import Writer
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
