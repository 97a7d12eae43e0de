"""`headstart predict`: predict with a fine-tuned run, for texts or for a whole file of them."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headstart.cli.options import Encoding, TextColumn, Threads, use_threads
from headstart.cli.output import Debug, Json, messages, print_json, results, styled
from headstart.errors import HeadstartError

if TYPE_CHECKING:
    from headstart.run import Run
    from headstart.text.reading.rows import ReadOptions


def predict(
    run: Annotated[
        Path, typer.Argument(help="The folder of a fine-tuned run, or of its export to ONNX.")
    ],
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            help="The texts; for the tasks pairs and spans two texts per prediction.",
            show_default=False,
        ),
    ] = None,
    input_file: Annotated[
        str | None, typer.Option("--input", help="A file of texts, of any size.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="The file to write: .csv, .jsonl or .parquet; .jsonl or .conll for tags; .jsonl "
            "or .json (SQuAD's form) for answers in texts. The input's columns are kept. The "
            "answer's are added: label, probabilities, …; one that the input has already is "
            "called predicted_label, predicted_…",
        ),
    ] = None,
    text_column: TextColumn = None,
    second_column: Annotated[
        str | None,
        typer.Option(
            help="The column of the second text, for the tasks pairs and spans.", show_default=False
        ),
    ] = None,
    encoding: Encoding = "utf-8",
    explain: Annotated[
        bool, typer.Option("--explain", help="Mark the words that moved the decision.")
    ] = False,
    threads: Threads = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Predict labels with their probabilities, tags of words, or answers in a text.

    headstart predict RUN "a fine film"
    headstart predict RUN --input reviews.csv --output answers.parquet
    headstart predict RUN "Who lives here?" "In 1970, Ada lived here."
    headstart predict RUN --input sentences.conll --output tagged.conll
    """
    if bool(texts) == (input_file is not None):
        raise HeadstartError("give either texts or --input FILE", fix='headstart predict RUN "…"')
    if (input_file is None) != (output is None):
        raise HeadstartError("--input and --output go together")
    if input_file is not None and explain:
        raise HeadstartError("--explain is for texts on the command line, not for files")
    use_threads(threads)
    from headstart.run import Run

    opened = Run.open(run)
    task = opened.require_task()
    if explain and not opened.explains:
        raise HeadstartError(
            "--explain says which words moved the decision for a class; the task "
            f"{task.name} has no classes of whole texts",
            where=run,
            fix="leave --explain out",
        )
    if input_file is not None and output is not None:
        from headstart.text.reading.rows import ReadOptions

        options = ReadOptions(text_column, None, encoding, second_column=second_column)
        _predict_file(opened, input_file, output, options, json=json)
    else:
        _predict_texts(opened, texts or [], explain=explain, json=json)


def _predict_texts(run: "Run", texts: list[str], *, explain: bool, json: bool) -> None:
    from headstart.predictions import group_texts, input_columns

    task = run.require_task()
    inputs = group_texts(task, texts)
    predictions = run.predict(inputs)
    effects = [run.explain(given) for given in inputs] if explain else None
    if not json:
        from headstart.cli.predict_display import show_predictions

        show_predictions(results(), task, inputs, predictions, effects)
        return
    documents: list[dict[str, Any]] = [
        {**input_columns(task, given), **found}
        for given, found in zip(inputs, predictions, strict=True)
    ]
    for document, found in zip(documents, effects or [], strict=False):
        document["explanation"] = asdict(found)
    print_json({"run": str(run.folder), "predictions": documents})


def _predict_file(
    run: "Run", source: str, output: Path, options: "ReadOptions", *, json: bool
) -> None:
    from headstart.cli.display import progress_bar
    from headstart.cli.predict_display import TOO_LONG

    with progress_bar("predicting", "rows") as show:
        summary = run.predict_file(source, output, options, progress=show)
    if json:
        print_json(summary)
        return
    console = messages()
    if summary["cut_rows"]:
        line = styled(
            "[yellow]{count:,} rows are not read to their end[/]: ", count=summary["cut_rows"]
        )
        console.print(line + f"they are {TOO_LONG}")
    if summary["bad_rows"]:
        line = styled("[yellow]{count:,} rows could not be predicted[/]", count=summary["bad_rows"])
        console.print(line + "; they keep their place in the output, without an answer:")
        for bad in summary["bad"][:5]:
            console.print(f"  row {bad['row']:,}: {bad['error']}")
    results().print(
        styled(
            "[bold]{output}[/]: {rows:,} rows, in the order of {source}",
            output=str(output),
            rows=summary["rows"],
            source=source,
        ),
        soft_wrap=True,
    )
