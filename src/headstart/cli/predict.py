"""`headstart predict` and `evaluate`, and how predictions and evaluations look."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from headstart.cli.console import (
    interval,
    messages,
    metric_name,
    note,
    plain_table,
    print_json,
    progress_bar,
    record_table,
    results,
    styled,
)
from headstart.cli.options import Baselines, Debug, Json, Threads, from_config, option
from headstart.cli.training import baseline_table, find_baselines
from headstart.config import DatasetSettings, FinetuneConfig, is_run
from headstart.errors import HeadstartError

if TYPE_CHECKING:
    from headstart.run import Run

COLOURS = ("green", "cyan", "magenta", "yellow", "blue", "red")
CONTEXT = 60  # characters of a text before and after an answer
METHODS = {
    "occlusion": "Each word is removed in turn; the numbers are what the label's log-odds lose.",
    "contributions": "The label's log-odds are a sum; the numbers are each word's part of it.",
}
COLOURS_MEAN = "Green words raise the label's probability, red ones lower it."
TOO_LONG = "longer than this run reads (set with finetune's --length, or --long windows)"
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
            help="The file to write: .csv, .jsonl or .parquet; .jsonl or .conll for tags; .jsonl "
            "or .json (SQuAD's form) for answers in texts. It has the columns of the input and "
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
    if texts and input_file is not None:
        raise HeadstartError("give either texts or --input FILE", fix='headstart predict RUN "…"')
    if (input_file is None) != (output is None):
        raise HeadstartError(
            "--input and --output belong together",
            fix="headstart predict RUN --input texts.csv --output predictions.csv",
        )
    if input_file is not None and explain:
        raise HeadstartError(
            "--explain is for texts on the command line, not for files", fix="leave it out"
        )
    if input_file is None and texts in (None, [], ["-"]):
        texts = read_standard_input()
    opened = open_run(run, threads)
    task = opened.require_task()
    if explain and not opened.explains:
        raise HeadstartError(
            "--explain shows which words changed the prediction of a class; the task "
            f"{task.name} has no classes of whole texts",
            where=run,
            fix="leave --explain out",
        )
    if input_file is not None and output is not None:
        _predict_file(opened, input_file, output, given, json=json)
        return
    from headstart.predictions import group_texts, input_columns

    inputs = group_texts(task, texts or [])
    found = opened.predict(inputs)
    explanations = [opened.explain(one) for one in inputs] if explain else []
    rows = [input_columns(task, one) for one in inputs]
    if json:
        documents = [row | one for row, one in zip(rows, found, strict=True)]
        for document, explanation in zip(documents, explanations, strict=False):
            document["explanation"] = asdict(explanation)
        print_json({"run": str(opened.folder), "predictions": documents})
    elif "tags" in task.prediction_fields:
        print_tags(results(), opened, found)
    elif "answer" in task.prediction_fields:
        print_spans(results(), rows, found)
    else:
        print_classes(results(), rows, found, explanations)


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


def open_run(folder: Path, threads: int | None) -> "Run":
    """Open a run that has a task, and compute with so many threads."""
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
    from headstart.run import Run

    opened = Run.open(folder)
    opened.require_task()
    return opened


def _predict_file(
    run: "Run", source: str, output: Path, given: dict[str, Any], *, json: bool
) -> None:
    from headstart.text.reading.rows import ReadOptions

    options = ReadOptions(**given)
    with progress_bar("predicting", "rows") as show:
        summary = run.predict_file(source, output, options=options, progress=show)
    if json:
        print_json(summary)
        return
    console = messages()
    if summary["cut_rows"]:
        console.print(note(f"{summary['cut_rows']:,} rows are {TOO_LONG}"))
    if summary["bad_rows"]:
        bad = f"{summary['bad_rows']:,} rows could not be predicted; the output has them without"
        console.print(note(f"{bad} a prediction:"))
        for row in summary["bad"][:5]:
            console.print(f"  row {row['row']:,}: {row['error']}")
    line = styled("[bold]{output}[/]: {rows:,} rows", output=str(output), rows=summary["rows"])
    results().print(line + f", in the order of {source}", soft_wrap=True)


def print_classes(
    console: Console,
    rows: Sequence[dict[str, str]],
    found: Sequence[dict[str, Any]],
    explanations: Sequence[Any] = (),
) -> None:
    """Print a line per text; with `explanations`, the words that changed the prediction."""
    table = plain_table("label", "probability", "text")
    for place, (row, one) in enumerate(zip(rows, found, strict=True)):
        text = Text(" | ".join(row.values()))
        names = one["labels"] if "labels" in one else [one["label"]]
        shares = ", ".join(f"{one['probabilities'][name]:.1%}" for name in names)
        table.add_row(", ".join(names) or "none", shares, text)
        if explanations:
            effects = sorted(explanations[place].effects, key=lambda effect: -abs(effect.effect))
            _mark(text, effects)
            words = "  ".join(f"{effect.text} {effect.effect:+.2f}" for effect in effects[:5])
            table.add_row("", "", Text(words, style="dim"))
    console.print(table)
    if explanations:
        method = explanations[0].method
        console.print(f"method: {method}. {METHODS[method]} {COLOURS_MEAN}", style="dim")


def _mark(text: Text, effects: Sequence[Any]) -> None:
    """Colour the words with at least 15 % of the strongest effect, which is the first."""
    for one in effects:
        share = abs(one.effect) / (abs(effects[0].effect) or 1.0)
        if share >= 0.15:
            style = "green" if one.effect > 0 else "red"
            text.stylize(f"bold {style}" if share >= 0.5 else style, one.start, one.end)


def print_tags(console: Console, run: "Run", found: Sequence[dict[str, Any]]) -> None:
    """Print each word with its tag; below, the entities, or the words if tags make no entities."""
    kinds = sorted({_kind(tag) for tag in run.labels if tag != "O"})
    colours = dict(zip(kinds, cycle(COLOURS), strict=False))
    for one in found:
        columns = zip(one["words"], one["tags"], one["probabilities"], strict=True)
        words = [
            {"word": word, "tag": tag, "probability": probability}
            for word, tag, probability in columns
            if tag is not None
        ]
        line = Text()
        for row in words:
            style = colours.get(_kind(row["tag"]), "")
            line.append(row["word"], style=f"bold {style}".strip() if style else "")
            line.append(f"/{row['tag']} ", style=style or "dim")
        console.print(line, soft_wrap=True)
        if unread := len(one["words"]) - len(words):
            text = f"the last {unread:,} words were not read: the text is {TOO_LONG}"
            console.print(note(text))
        if not getattr(run.task, "entities", True):
            table = record_table(words, {"word": "", "tag": "", "probability": ".1%"})
        else:
            spec = {"text": "", "kind": "", "probability": ".1%", "start": "d", "end": "d"}
            table = record_table(one["entities"], spec)
        console.print(table if table.row_count else "no entities", "")


def _kind(tag: str) -> str:
    """Return PER of B-PER and I-PER; a tag without such a beginning is its own kind."""
    return tag[2:] if tag[:2] in ("B-", "I-") else tag


def print_spans(
    console: Console, rows: Sequence[dict[str, str]], found: Sequence[dict[str, Any]]
) -> None:
    """Print the answer to each question, and where it is in its text."""
    for row, one in zip(rows, found, strict=True):
        console.print(Text(row["question"], style="dim"), soft_wrap=True)
        if one["answer"] is None:
            console.print(f"no answer in this text, {one['probability']:.1%}", "")
            continue
        text, start, end = row["text"], one["start"], one["end"]
        where = f", {one['probability']:.1%}, characters {start} to {end}"
        console.print(Text.assemble((one["answer"], "bold green"), where), soft_wrap=True)
        before = ("…" if start > CONTEXT else "") + text[max(0, start - CONTEXT) : start]
        after = text[end : end + CONTEXT] + ("…" if len(text) > end + CONTEXT else "")
        quoted = " ".join(f"{before}[{text[start:end]}]{after}".split())
        console.print(quoted, "", style="dim", soft_wrap=True)
        if one["unread"]:
            unread = f"the last {one['unread']:,} characters were not read"
            console.print(note(f"{unread}: the text is {TOO_LONG}"))


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

    config = FinetuneConfig(task=task.name)  # type: ignore[arg-type]
    if is_run(run):
        config = FinetuneConfig.load(run)
    elif dataset is None:
        raise HeadstartError(
            "this run does not know the dataset of its training",
            where=run,
            fix=f"name one: headstart evaluate {run} DATASET",
        )
    rows, which = evaluation_rows(config, task, dataset, **given)
    with progress_bar("evaluating", "texts") as show:
        found: dict[str, Any] = {"run": str(run), "evaluated_on": which}
        found["unfinished"] = is_unfinished(run)
        found |= opened.evaluate(rows, progress=show)
    found["baselines"] = find_baselines(run, task, rows) if baselines else []
    if json:
        print_json(found)
        return
    console = results()
    line = styled("[bold]{run}[/] on {which}: ", run=str(run), which=which)
    console.print(line + f"{found['rows']:,} {task.row_name}", soft_wrap=True)
    for text in _evaluation_notes(found, run, task):
        console.print(note(text), soft_wrap=True)
    _print_metrics(console, found)
    if found["baselines"]:
        metrics = [task.metric, *found["intervals"]]
        console.print(baseline_table(found["baselines"], metrics), "")
    if classes := found.get("classes"):
        share = ".1%"
        columns = {"class": "", "precision": share, "recall": share, "f1": share}
        rows = [
            {**one, "class": one["name"], task.class_row_name: one["support"]} for one in classes
        ]
        console.print(record_table(rows, columns | {task.class_row_name: ","}))
    _print_mistakes(console, found.get("mistakes", []))


def _evaluation_notes(found: dict[str, Any], run: Path, task: Any) -> list[str]:
    notes = list(found.get("notes", []))
    if found["unfinished"]:
        resume = f"headstart finetune --resume --out {run}"
        notes.append(f"the training has not ended; these are its best weights so far ({resume})")
    if found["seen_rows"]:
        seen = f"{found['seen_rows']:,} {task.row_name} that trained the run or selected its"
        notes.append(f"dropped: {seen} weights")
    elif found["seen_rows"] is None:
        notes.append("the run does not record which rows trained it")
    if truncated := found.get("truncated"):
        share = truncated["tokens"] / truncated["of"]
        longer = f"{truncated['texts']:,} texts are longer than the run reads"
        notes.append(f"{longer}; {share:.1%} of all tokens were not read")
    return notes


def _print_metrics(console: Console, found: dict[str, Any]) -> None:
    intervals = {name: interval(one) for name, one in found["intervals"].items()}
    for name, value in found.items():
        if isinstance(value, float):
            shown = f"{value:.3f}" if "loss" in name else f"{value:.1%}"
            line = Text(f"{metric_name(name)} ")
            console.print(line.append(intervals.get(name, shown), style="bold"))
    if calibration := found.get("calibration"):
        console.print(
            f"calibration error {calibration['calibration_error_after']:.1%}; without the run's "
            f"temperature of {calibration['temperature']:.2f} (fitted on validation) log-loss "
            f"{calibration['log_loss_before']:.3f} and calibration error "
            f"{calibration['calibration_error_before']:.1%}"
        )
    labels = found.get("labels", [])
    if "confusion" in found and len(labels) <= 12:
        table = plain_table("true ↓  predicted →", *labels)
        for name, counts in zip(labels, found["confusion"], strict=True):
            table.add_row(name, *(f"{count:,}" for count in counts))
        console.print("", table, "")


def _print_mistakes(console: Console, mistakes: list[dict[str, Any]]) -> None:
    if mistakes:
        title = "\n[bold]the most confident mistakes[/]: of the model, or of the labels?"
        console.print(styled(title))
    for mistake in mistakes:
        text = " ".join(mistake["text"].split())
        shown = Text.assemble(
            f"{mistake['confidence']:.1%} ",
            (mistake["predicted"], "red"),
            f", labelled {mistake['true']}, row {mistake['row']}: ",
            (text[:160] + ("…" if len(text) > 160 else ""), "dim"),
        )
        console.print(shown)
