"""`headstart predict` and `evaluate`, and how predictions and evaluations look."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from headstart.cli.console import (
    interval,
    messages,
    metric_name,
    note,
    print_json,
    progress_bar,
    record_table,
    results,
    shortened,
    write,
)
from headstart.cli.options import Baselines, Debug, Json, Threads, from_config, option
from headstart.cli.training import baseline_table, find_baselines
from headstart.config import DatasetSettings, FinetuneConfig, is_run
from headstart.errors import HeadstartError

CONTEXT = 60  # characters of a text before and after an answer
BETWEEN = " | "  # the texts of a pair
MOST_LABELS = 12  # of a confusion matrix that is printed; --json has all
METHODS = {
    "occlusion": "Each word is removed in turn; the numbers are what the label's log-odds lose.",
    "contributions": "The label's log-odds are a sum; the numbers are each word's part of it.",
}
EXPLAINED = (
    "[dim]method: {method}. {about} Green words raise the label's probability, red ones lower "
    "it.[/]"
)
TOO_LONG = "longer than this run reads (set with finetune's --length, or --long windows)"
WORD_COLUMNS = {"word": "", "tag": "", "probability": ".1%"}
ENTITY_COLUMNS = {"text": "", "kind": "", "probability": ".1%", "start": "d", "end": "d"}
SPAN = (
    "[dim]{question}[/]\n[bold green]{answer}[/], {probability:.1%}, characters {start} to {end}\n"
    "[dim]…{context}…[/]\n"
)
NO_SPAN = "[dim]{question}[/]\nno answer in this text, {probability:.1%}\n"
CALIBRATION = (
    "calibration error {calibration_error_after:.1%}; without the run's temperature of "
    "{temperature:.2f} (fitted on validation) log-loss {log_loss_before:.3f} and calibration error "
    "{calibration_error_before:.1%}"
)
CLASS_COLUMNS = {"name": "", "precision": ".1%", "recall": ".1%", "f1": ".1%"}
MISTAKE = "{confidence:.1%} [red]{predicted}[/], labelled {true}, row {row}: [dim]{text}[/]"
RunFolder = Annotated[
    Path, typer.Argument(help="The folder of a fine-tuned run, or of its export to ONNX.")
]


@from_config(DatasetSettings, only=("text_column", "second_column", "encoding"))
def predict(
    given: dict[str, Any],
    run: RunFolder,
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            help="The texts; for the tasks pairs and spans two texts per prediction. By default, "
            "or for -, the lines of standard input.",
            show_default=False,
        ),
    ] = None,
    input_file: Annotated[
        str | None, option("--input", help="A file of texts, of any size.", panel="Data")
    ] = None,
    output: Annotated[
        Path | None,
        option(
            help="The file to write; its suffix is the format: .csv, .jsonl, .parquet, … "
            "It has the columns of the input and "
            "those of the predictions: label, probabilities, …; one that the input has already is "
            "called predicted_label, predicted_…"
        ),
    ] = None,
    explain: Annotated[
        bool, option("--explain", help="Mark the words that changed the prediction most.")
    ] = False,
    threads: Threads = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Predict labels with their probabilities, tags of words, or answers in a text.

    headstart predict RUN "a fine film"
    headstart predict RUN --input reviews.csv --output predictions.parquet
    headstart predict RUN "Who lives here?" "In 1970, Ada lived here."
    headstart predict RUN --input sentences.conll --output tagged.conll
    """
    if input_file is not None and (texts or explain):
        raise HeadstartError(
            "--input FILE takes neither texts nor --explain", fix='headstart predict RUN "…"'
        )
    if (input_file is None) != (output is None):
        raise HeadstartError(
            "--input and --output belong together",
            fix="headstart predict RUN --input texts.csv --output predictions.csv",
        )
    if input_file is None and texts in (None, [], ["-"]):
        texts = read_standard_input()
    opened = open_run(run, threads)
    if input_file is not None:
        _predict_file(opened, input_file, output, given, json=json)
        return
    task = opened.require_task()
    if explain and not opened.explains:
        raise HeadstartError(
            "--explain shows which words changed the prediction of a class; the task "
            f"{task.name} has no classes of whole texts",
            where=run,
            fix="leave --explain out",
        )
    from headstart.predictions import group_texts, input_columns

    inputs = group_texts(task, texts or [])
    found = [
        input_columns(task, one) | prediction
        for one, prediction in zip(inputs, opened.predict(inputs), strict=True)
    ]
    explanations = [opened.explain(one) for one in inputs] if explain else []
    for one, explanation in zip(found, explanations, strict=False):
        one["explanation"] = asdict(explanation)
    if json:
        print_json({"run": str(opened.folder), "predictions": found})
    elif "tags" in task.prediction_fields:
        print_tags(found, entities=getattr(task, "entities", True))
    elif "answer" in task.prediction_fields:
        print_spans(found)
    else:
        print_classes(found, list(input_columns(task, inputs[0])))


def read_standard_input() -> list[str]:
    """Read texts from standard input, one per line."""
    if sys.stdin is None or sys.stdin.isatty():
        raise HeadstartError(
            "no text was given",
            fix='headstart predict RUN "…", or --input FILE, or texts on standard input',
        )
    lines = [line for line in sys.stdin.read().splitlines() if line.strip()]
    if not lines:
        raise HeadstartError("standard input has no text", fix="write one text per line")
    return lines


def open_run(folder: Path, threads: int | None) -> Any:
    """Open a run that has a task, and compute with so many threads."""
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
    from headstart.run import Run

    opened = Run.open(folder)
    opened.require_task()
    return opened


def _predict_file(
    run: Any, source: str, output: Path | None, given: dict[str, Any], *, json: bool
) -> None:
    from headstart.data.readers import ReadOptions

    options = ReadOptions(**given)
    with progress_bar("predicting", "rows") as show:
        summary = run.predict_file(source, output, options=options, progress=show)
    if json:
        print_json(summary)
        return
    if summary["cut_rows"]:
        note(f"{summary['cut_rows']:,} rows are {TOO_LONG}")
    if summary["bad_rows"]:
        bad = f"{summary['bad_rows']:,} rows could not be predicted"
        note(f"{bad}; the output has them without a prediction:")
        for row in summary["bad"][:5]:
            messages().print(f"  row {row['row']:,}: {row['error']}")
    line = "[bold]{output}[/]: {rows:,} rows, in the order of {source}"
    write(line, output=output, rows=summary["rows"], source=source)


def print_classes(found: list[dict[str, Any]], columns: list[str]) -> None:
    """Print the labels of each text and, if explained, the words that changed the prediction."""
    rows: list[dict[str, Any]] = []
    for one in found:
        names = one["labels"] if "labels" in one else [one["label"]]
        shares = ", ".join(f"{one['probabilities'][name]:.1%}" for name in names)
        text = Text(BETWEEN.join(one[column] for column in columns))
        rows.append({"label": ", ".join(names) or "none", "probability": shares, "text": text})
        if "explanation" in one:
            effects = sorted(one["explanation"]["effects"], key=lambda word: -abs(word["effect"]))
            for word in effects:
                if abs(word["effect"]) > 0.15 * abs(effects[0]["effect"]):
                    before = sum(len(one[name]) + len(BETWEEN) for name in columns[: word["part"]])
                    style = "green" if word["effect"] > 0 else "red"
                    text.stylize(style, before + word["start"], before + word["end"])
            strongest = "  ".join(f"{word['text']} {word['effect']:+.2f}" for word in effects[:5])
            rows.append({"text": Text(strongest, style="dim")})
    results().print(record_table(rows, {"label": "", "probability": "", "text": ""}))
    if "explanation" in found[0]:
        method = found[0]["explanation"]["method"]
        write(EXPLAINED, method=method, about=METHODS[method])


def print_tags(found: list[dict[str, Any]], *, entities: bool) -> None:
    """Print each word with its tag; below, the entities, or the words if tags make no entities."""
    for one in found:
        every = zip(one["words"], one["tags"], one["probabilities"], strict=True)
        words = [
            dict(zip(WORD_COLUMNS, word, strict=True)) for word in every if word[1] is not None
        ]
        line = Text()
        for word in words:
            style = "dim" if word["tag"] == "O" else "bold green"
            line.append("{word}/{tag} ".format(**word), style=style)
        results().print(line, soft_wrap=True)
        if unread := len(one["words"]) - len(words):
            note(f"the last {unread:,} words were not read: the text is {TOO_LONG}")
        if not entities:
            results().print(record_table(words, WORD_COLUMNS), "")
        elif one["entities"]:
            results().print(record_table(one["entities"], ENTITY_COLUMNS), "")
        else:
            results().print("no entities", "")


def print_spans(found: list[dict[str, Any]]) -> None:
    """Print the answer to each question, and where it is in its text."""
    for one in found:
        if one["answer"] is None:
            write(NO_SPAN, **one)
        else:
            before = one["text"][max(0, one["start"] - CONTEXT) : one["start"]]
            after = one["text"][one["end"] : one["end"] + CONTEXT]
            write(SPAN, context=f"{before}[{one['answer']}]{after}".replace("\n", " "), **one)
        if one["unread"]:
            note(f"the last {one['unread']:,} characters were not read: the text is {TOO_LONG}")


@from_config(DatasetSettings, only=("text_column", "label_column"))
def evaluate(
    given: dict[str, Any],
    run: RunFolder,
    dataset: Annotated[
        str | None,
        typer.Argument(
            help="Labelled texts; by default the test part of the run's dataset.",
            show_default=False,
        ),
    ] = None,
    baselines: Baselines = True,
    threads: Threads = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Evaluate a run: accuracy with its interval, F1, calibration, confusion, the worst mistakes.

    Tags are evaluated by whole entities, answers in texts by exact match and F1. The most frequent
    label and a linear model, fitted to the rows that trained the run, are compared with it.

    Of a dataset with splits the test part is used, of any other file all rows.
    """
    opened = open_run(run, threads)
    task = opened.require_task()
    from headstart.run import evaluation_rows, is_unfinished

    config = FinetuneConfig(task=task.name)
    if is_run(run):
        config = FinetuneConfig.load(run)
    elif dataset is None:
        raise HeadstartError(
            "this run does not know the dataset of its training",
            where=run,
            fix=f"name one: headstart evaluate {run} DATASET",
        )
    rows, which = evaluation_rows(config, task, dataset, **given)
    found: dict[str, Any] = {"run": str(run), "evaluated_on": which}
    with progress_bar("evaluating", "texts") as show:
        found |= {"unfinished": is_unfinished(run), **opened.evaluate(rows, progress=show)}
    found["baselines"] = find_baselines(run, opened, rows) if baselines else []
    if json:
        print_json(found)
    else:
        print_evaluation(found, task)


def print_evaluation(found: dict[str, Any], task: Any) -> None:
    """Print the metrics, the confusion, the baselines, the classes and the worst mistakes."""
    line = "[bold]{run}[/] on {evaluated_on}: {rows:,} {row_name}"
    write(line, row_name=task.row_name, **found)
    for text in _evaluation_notes(found, task):
        write("[yellow]note:[/] {text}", text=text)
    intervals = {name: interval(one) for name, one in found["intervals"].items()}
    for name, value in found.items():
        if isinstance(value, float):
            plain = f"{value:.3f}" if "loss" in name else f"{value:.1%}"
            shown = intervals.get(name, plain)
            write("{name} [bold]{shown}[/]", name=metric_name(name), shown=shown)
    if calibration := found.get("calibration"):
        write(CALIBRATION, **calibration)
    labels = found.get("labels", [])
    if "confusion" in found and len(labels) <= MOST_LABELS:
        corner = "true ↓  predicted →"
        lines = zip(labels, found["confusion"], strict=True)
        confusion = [{corner: name, **dict(zip(labels, line, strict=True))} for name, line in lines]
        columns = {corner: "", **dict.fromkeys(labels, ",")}
        results().print("", record_table(confusion, columns), "")
    if found["baselines"]:
        results().print(baseline_table(found["baselines"], [task.metric, *intervals]), "")
    if classes := found.get("classes"):
        rows = [one | {task.class_row_name: one["support"]} for one in classes]
        results().print(record_table(rows, {**CLASS_COLUMNS, task.class_row_name: ","}))
    if mistakes := found.get("mistakes"):
        write("\n[bold]the most confident mistakes[/], of the model or of the labels")
        for mistake in mistakes:
            write(MISTAKE, **mistake | {"text": shortened(mistake["text"])})


def _evaluation_notes(found: dict[str, Any], task: Any) -> list[str]:
    notes = list(found.get("notes", []))
    if found["unfinished"]:
        resume = f"headstart finetune --resume --out {found['run']}"
        notes.append(f"the training has not ended; these are its best weights so far ({resume})")
    if found["seen_rows"]:
        seen = f"{found['seen_rows']:,} {task.row_name}"
        notes.append(f"dropped: {seen} that trained the run or selected its weights")
    elif found["seen_rows"] is None:
        notes.append("the run does not record which rows trained it")
    if truncated := found.get("truncated"):
        share = truncated["tokens"] / truncated["of"]
        longer = f"{truncated['texts']:,} texts are longer than the run reads"
        notes.append(f"{longer}; {share:.1%} of all tokens were not read")
    return notes
