"""`headstart predict` and `evaluate`, and how predictions and evaluations look."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from headstart.cli.console import (
    facts_table,
    interval,
    messages,
    metric_name,
    note,
    print_json,
    progress_bar,
    record_table,
    results,
    write,
)
from headstart.cli.options import Baselines, Debug, Json, Threads, from_config, option
from headstart.cli.training import baseline_table, find_baselines
from headstart.config import DatasetSettings, FinetuneConfig, is_run
from headstart.errors import HeadstartError

COLOURS = ("green", "cyan", "magenta", "yellow", "blue", "red")
CONTEXT = 60  # characters of a text before and after an answer
METHODS = {
    "occlusion": "Each word is removed in turn; the numbers are what the label's log-odds lose.",
    "contributions": "The label's log-odds are a sum; the numbers are each word's part of it.",
}
COLOURS_MEAN = "Green words raise the label's probability, red ones lower it."
CLASS_COLUMNS = {"label": "", "probability": "", "text": ""}
WORD_COLUMNS = {"word": "", "tag": "", "probability": ".1%"}
ENTITY_COLUMNS = {"text": "", "kind": "", "probability": ".1%", "start": "d", "end": "d"}
CALIBRATION = (
    "calibration error {calibration_error_after:.1%}; without the run's temperature of "
    "{temperature:.2f} (fitted on validation) log-loss {log_loss_before:.3f} and calibration error "
    "{calibration_error_before:.1%}"
)
MISTAKE = "{confidence:.1%} [red]{predicted}[/], labelled {true}, row {row}: [dim]{text}[/]"
MOST_LABELS = 12  # of a confusion matrix that is printed; --json has all
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
        print_tags(opened, found)
    elif "answer" in task.prediction_fields:
        print_spans(rows, found)
    else:
        print_classes(rows, found, explanations)


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
    run: Any, source: str, output: Path, given: dict[str, Any], *, json: bool
) -> None:
    from headstart.text.reading.rows import ReadOptions

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


def print_classes(rows: list[Any], found: list[Any], explanations: list[Any]) -> None:
    """Print a line per text; with `explanations`, the words that changed the prediction."""
    shown: list[dict[str, Any]] = []
    for place, (row, one) in enumerate(zip(rows, found, strict=True)):
        text = Text(" | ".join(row.values()))
        names = one["labels"] if "labels" in one else [one["label"]]
        shares = ", ".join(f"{one['probabilities'][name]:.1%}" for name in names)
        shown.append({"label": ", ".join(names) or "none", "probability": shares, "text": text})
        if explanations:
            effects = sorted(explanations[place].effects, key=lambda effect: -abs(effect.effect))
            _mark(text, effects)
            words = "  ".join(f"{effect.text} {effect.effect:+.2f}" for effect in effects[:5])
            shown.append({"text": Text(words, style="dim")})
    results().print(record_table(shown, CLASS_COLUMNS))
    if explanations:
        method = explanations[0].method
        results().print(f"method: {method}. {METHODS[method]} {COLOURS_MEAN}", style="dim")


def _mark(text: Text, effects: list[Any]) -> None:
    """Colour the words with at least 15 % of the strongest effect, which is the first."""
    for one in effects:
        share = abs(one.effect) / (abs(effects[0].effect) or 1.0)
        if share >= 0.15:
            style = "green" if one.effect > 0 else "red"
            text.stylize(f"bold {style}" if share >= 0.5 else style, one.start, one.end)


def print_tags(run: Any, found: list[Any]) -> None:
    """Print each word with its tag; below, the entities, or the words if tags make no entities."""
    kinds = sorted({tag.removeprefix("B-").removeprefix("I-") for tag in run.labels})
    for one in found:
        columns = zip(one["words"], one["tags"], one["probabilities"], strict=True)
        words = [dict(zip(WORD_COLUMNS, values, strict=True)) for values in columns]
        read = [word for word in words if word["tag"] is not None]
        line = Text()
        for word in read:
            kind = word["tag"].removeprefix("B-").removeprefix("I-")
            style = "dim" if kind == "O" else COLOURS[kinds.index(kind) % len(COLOURS)]
            line.append(f"{word['word']}/{word['tag']} ", style=style)
        results().print(line, soft_wrap=True)
        if len(read) < len(words):
            unread = f"the last {len(words) - len(read):,} words were not read"
            note(f"{unread}: the text is {TOO_LONG}")
        if not getattr(run.task, "entities", True):
            results().print(record_table(read, WORD_COLUMNS), "")
        elif one["entities"]:
            results().print(record_table(one["entities"], ENTITY_COLUMNS), "")
        else:
            results().print("no entities", "")


def print_spans(rows: list[Any], found: list[Any]) -> None:
    """Print the answer to each question, and where it is in its text."""
    for row, one in zip(rows, found, strict=True):
        write("[dim]{question}[/]", **row)
        if one["answer"] is None:
            write("no answer in this text, {probability:.1%}\n", **one)
            continue
        line = "[bold green]{answer}[/], {probability:.1%}, characters {start} to {end}"
        write(line, **one)
        text, start, end = row["text"], one["start"], one["end"]
        before = ("…" if start > CONTEXT else "") + text[max(0, start - CONTEXT) : start]
        after = text[end : end + CONTEXT] + ("…" if len(text) > end + CONTEXT else "")
        quoted = " ".join(f"{before}[{text[start:end]}]{after}".split())
        write("[dim]{quoted}[/]\n", quoted=quoted)
        if one["unread"]:
            unread = f"the last {one['unread']:,} characters were not read"
            note(f"{unread}: the text is {TOO_LONG}")


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
    found["baselines"] = find_baselines(run, opened, rows) if baselines else []
    if json:
        print_json(found)
    else:
        print_evaluation(found, task)


def print_evaluation(found: dict[str, Any], task: Any) -> None:
    """Print the metrics, the baselines, the confusion, the classes and the worst mistakes."""
    line = "[bold]{run}[/] on {evaluated_on}: {rows:,} {row_name}"
    write(line, row_name=task.row_name, **found)
    for text in _evaluation_notes(found, task):
        write("[yellow]note:[/] {text}", text=text)
    intervals = {name: interval(one) for name, one in found["intervals"].items()}
    for name, value in found.items():
        if isinstance(value, float):
            shown = f"{value:.3f}" if "loss" in name else f"{value:.1%}"
            write(
                "{name} [bold]{value}[/]", name=metric_name(name), value=intervals.get(name, shown)
            )
    if calibration := found.get("calibration"):
        write(CALIBRATION, **calibration)
    labels = found.get("labels", [])
    if "confusion" in found and len(labels) <= MOST_LABELS:
        columns = zip(*found["confusion"], strict=True)
        counts = [dict(zip(labels, column, strict=True)) for column in columns]
        confusion = dict(zip(labels, counts, strict=True))
        results().print("", facts_table(confusion, corner="true ↓  predicted →"), "")
    if found["baselines"]:
        results().print(baseline_table(found["baselines"], [task.metric, *intervals]), "")
    if classes := found.get("classes"):
        shares = dict.fromkeys(("precision", "recall", "f1"), ".1%")
        rows = [one | {task.class_row_name: one["support"]} for one in classes]
        results().print(record_table(rows, {"name": "", **shares, task.class_row_name: ","}))
    if mistakes := found.get("mistakes"):
        write("\n[bold]the most confident mistakes[/]: of the model, or of the labels?")
        for mistake in mistakes:
            text = " ".join(mistake["text"].split())
            shortened = text if len(text) <= 160 else f"{text[:160]}…"
            write(MISTAKE, **mistake | {"text": shortened})


def _evaluation_notes(found: dict[str, Any], task: Any) -> list[str]:
    notes = list(found.get("notes", []))
    if found["unfinished"]:
        resume = f"headstart finetune --resume --out {found['run']}"
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
