"""`headstart predict`: ask a fine-tuned run about texts, or about a whole file of them."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headstart.cli.output import Debug, Json, messages, print_json, results
from headstart.errors import HeadstartError

if TYPE_CHECKING:
    from headstart.run_folder import Run
    from headstart.text.reading.rows import ReadOptions


def predict(
    run: Annotated[Path, typer.Argument(help="The folder of a fine-tuned run.")],
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            help="One answer each; for the tasks pairs and spans, two texts an answer.",
            show_default=False,
        ),
    ] = None,
    input_file: Annotated[
        str | None, typer.Option("--input", help="A file of texts, of any size.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Where its answers go: .csv, .jsonl or .parquet; .jsonl or .conll for tags; "
            ".jsonl or .json (SQuAD's form) for answers in texts.",
        ),
    ] = None,
    text_column: Annotated[str | None, typer.Option(show_default=False)] = None,
    second_column: Annotated[str | None, typer.Option(show_default=False)] = None,
    encoding: Annotated[str, typer.Option()] = "utf-8",
    explain: Annotated[
        bool, typer.Option("--explain", help="Mark the words that moved the decision (occlusion).")
    ] = False,
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
    from headstart.run_folder import open_task_run

    opened = open_task_run(run)
    task = "" if opened.task is None else opened.task.name
    if explain and task in _ASK:
        raise HeadstartError(
            f"--explain says which words moved the decision for a class; the task {task} has no "
            "classes of whole texts",
            where=run,
            fix="leave --explain out",
        )
    if input_file is not None and output is not None:
        from headstart.text.reading.rows import ReadOptions

        how = ReadOptions(text_column, None, encoding, second_column=second_column)
        _predict_file(opened, input_file, output, how, json=json)
    elif task in _ASK:
        _ASK[task](opened, texts or [], json=json)
    else:
        given = _joined_pairs(texts or []) if task == "pairs" else texts or []
        _predict_classes(opened, given, explain=explain, json=json)


def _in_pairs(texts: list[str], both: str, form: str) -> list[tuple[str, str]]:
    if len(texts) % 2:
        raise HeadstartError(
            f"this run {both}, and {len(texts)} {'was' if len(texts) == 1 else 'were'} given",
            fix=f"headstart predict RUN {form}",
        )
    return list(zip(texts[::2], texts[1::2], strict=True))


def _joined_pairs(texts: list[str]) -> list[str]:
    from headstart.text.reading.rows import join_pair

    pairs = _in_pairs(texts, "judges two texts together", '"first text" "second text"')
    return [str(join_pair(*pair)) for pair in pairs]


def _predict_classes(run: "Run", texts: list[str], *, explain: bool, json: bool) -> None:
    from headstart.cli.predict_display import show_classes
    from headstart.inference.explain import METHOD
    from headstart.inference.explain import explain as effects_of
    from headstart.inference.predict import predict as ask

    answers = ask(run, texts)
    effects = [effects_of(run, text) for text in texts] if explain else [[] for _ in texts]
    if not json:
        show_classes(results(), texts, answers, effects, METHOD if explain else None)
        return
    rows = []
    for text, answer, found in zip(texts, answers, effects, strict=True):
        row: dict[str, Any] = {"text": text, **vars(answer)}
        if explain:
            row["explanation"] = {"method": METHOD, "effects": [vars(one) for one in found]}
        rows.append(row)
    print_json({"run": str(run.folder), "predictions": rows})


def _predict_tags(run: "Run", texts: list[str], *, json: bool) -> None:
    from headstart.cli.predict_display import show_tags
    from headstart.inference.predict import task_of
    from headstart.inference.predict_tags import predict_tags
    from headstart.tasks.tagging import Tagging

    answers = predict_tags(run, texts)
    if json:
        print_json({"run": str(run.folder), "predictions": [asdict(one) for one in answers]})
    else:
        show_tags(results(), answers, run.labels, entities=task_of(run, Tagging).entities)


def _predict_spans(run: "Run", texts: list[str], *, json: bool) -> None:
    from headstart.cli.predict_display import show_spans
    from headstart.inference.predict_spans import predict_spans

    both = "answers a question out of a text, so texts come in twos"
    pairs = _in_pairs(texts, both, '"the question" "the text"')
    answers = predict_spans(run, [one for one, _ in pairs], [text for _, text in pairs])
    if json:
        rows = [
            {"question": question, "text": text, **asdict(answer)}
            for (question, text), answer in zip(pairs, answers, strict=True)
        ]
        print_json({"run": str(run.folder), "predictions": rows})
    else:
        show_spans(results(), pairs, answers)


_ASK = {"tagging": _predict_tags, "spans": _predict_spans}


def _predict_file(run: "Run", source: str, output: Path, how: "ReadOptions", *, json: bool) -> None:
    from headstart.cli.progress import progress
    from headstart.inference.predict_file import predict_file

    with progress("predicting", "rows") as show:
        summary = predict_file(run, source, output, how=how, progress=show)
    if json:
        print_json(summary)
        return
    console = messages()
    if summary["cut_rows"]:
        console.print(
            f"[yellow]{summary['cut_rows']:,} rows are longer than what this run reads[/] "
            "(finetune's --length, or --long windows): what lies behind was not looked at"
        )
    if summary["bad_rows"]:
        console.print(
            f"[yellow]{summary['bad_rows']:,} rows could not be judged[/]; they keep their place "
            "in the output, without an answer:"
        )
        for bad in summary["bad"][:5]:
            console.print(f"  row {bad['row']:,}: {bad['error']}", markup=False)
    results().print(
        f"[bold]{output}[/]: {summary['rows']:,} rows, in the order of {source}", soft_wrap=True
    )
