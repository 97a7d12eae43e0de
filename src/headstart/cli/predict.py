"""`headstart predict`: predict with a fine-tuned run, for texts or for a whole file of them."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headstart.cli.options import Encoding, TextColumn, Threads, use_threads
from headstart.cli.output import Debug, Json, messages, print_json, results, styled
from headstart.errors import HeadstartError

if TYPE_CHECKING:
    from headstart.inference.predict import Predictor
    from headstart.tasks.opened_run import OpenedRun
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
    from headstart.inference.predict import predictor_of
    from headstart.run_folder import open_task_run

    opened = open_task_run(run)
    predictor = predictor_of(opened)
    if explain and not predictor.explains:
        raise HeadstartError(
            "--explain says which words moved the decision for a class; the task "
            f"{predictor.task.name} has no classes of whole texts",
            where=run,
            fix="leave --explain out",
        )
    if input_file is not None and output is not None:
        from headstart.text.reading.rows import ReadOptions

        options = ReadOptions(text_column, None, encoding, second_column=second_column)
        _predict_file(opened, input_file, output, options, json=json)
    else:
        _predict_texts(predictor, texts or [], explain=explain, json=json)


def _predict_texts(predictor: "Predictor", texts: list[str], *, explain: bool, json: bool) -> None:
    rows = predictor.read_texts(texts)
    answers = predictor.predict(rows)
    effects = None
    if explain:
        from headstart.inference.explain import explain as explain_text

        effects = [explain_text(predictor.run, row.text) for row in rows]
    if not json:
        from headstart.cli.predict_display import show_classes, show_predictions

        if effects is not None:
            show_classes(results(), rows, answers, effects)
        else:
            show_predictions(results(), predictor, rows, answers)
        return
    documents: list[dict[str, Any]] = [
        {**predictor.columns(row), **predictor.document(answer)}
        for row, answer in zip(rows, answers, strict=True)
    ]
    for document, found in zip(documents, effects or [], strict=False):
        document["explanation"] = asdict(found)
    print_json({"run": str(predictor.run.folder), "predictions": documents})


def _predict_file(
    run: "OpenedRun", source: str, output: Path, options: "ReadOptions", *, json: bool
) -> None:
    from headstart.cli.display import progress_bar
    from headstart.cli.predict_display import TOO_LONG
    from headstart.inference.predict import predict_file

    with progress_bar("predicting", "rows") as show:
        summary = predict_file(run, source, output, options=options, progress=show)
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
