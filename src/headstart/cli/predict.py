"""What a run computes: `headstart predict`, `evaluate`, `generate`, `fill`, `perplexity`."""

import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from headstart.cli import console
from headstart.cli.options import Baselines, Debug, Json, from_config, option
from headstart.cli.training import baseline_table, find_baselines
from headstart.config import DatasetSettings, FinetuneConfig, PretrainConfig, is_run
from headstart.errors import HeadstartError
from headstart.evaluation import metric_name

CALIBRATED = (
    "; without the run's temperature ({temperature:.2f}, fitted on validation rows): loss "
    "{log_loss_before:.3f}, calibration error {calibration_error_before:.1%}"
)
MOST_CLASSES = 12  # in tables for people
MOST_NOTES = 5  # about single texts
UNLIKE = (
    "unlike the texts that the run was trained on (most of the words are rare or absent there): do "
    "not rely on the label, whatever its probability"
)
PERPLEXITY = (
    "perplexity [bold]{perplexity:,.1f}[/] per token, {bits_per_byte:.3f} bits per byte, "
    "over {tokens:,} tokens of {documents:,} documents"
)
CausalRun = Annotated[
    Path, typer.Argument(help="The folder of a run pretrained with the causal objective.")
]
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
            help="The file to write; its suffix is the format: .csv, .jsonl or .conll. It has the "
            "columns of the input and those of the predictions: label, probabilities, …; if the "
            "input already has a column label, the new one is called predicted_label."
        ),
    ] = None,
    explain: Annotated[
        bool, option("--explain", help="Show the words that changed the prediction most.")
    ] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Predict labels with their probabilities, tags of words, or answers in a text.

    headstart predict RUN "a fine film"
    headstart predict RUN --input reviews.csv --output predictions.csv
    headstart predict RUN "Who lives here?" "In 1970, Ada lived here."
    headstart predict RUN --input sentences.conll --output tagged.conll
    """
    if (input_file is None) != (output is None) or (input_file and (texts or explain)):
        raise HeadstartError(
            "--input needs --output, and neither goes with other texts or --explain",
            fix="headstart predict RUN --input texts.csv --output predictions.csv",
        )
    if input_file is None and texts in (None, [], ["-"]):
        texts = read_standard_input()
    from headstart.run import Run

    opened = Run.open(run)
    task = opened.require_task()
    if input_file is not None:
        _predict_file(opened, input_file, output, given, json=json)
        return
    if explain and not opened.explains:
        raise HeadstartError(
            "--explain shows which words changed the prediction of a class; the task "
            f"{task.name} does not predict a class for a whole text",
            where=run,
            fix="omit --explain",
        )
    from headstart.predictions import group_texts, input_columns

    inputs = group_texts(task, texts or [])
    found = [
        input_columns(task, one) | prediction
        for one, prediction in zip(inputs, opened.predict(inputs), strict=True)
    ]
    for one, given_texts in zip(found, inputs if explain else [], strict=False):
        effects = [asdict(word) for word in opened.explain(given_texts)]
        one["explanation"] = {"method": "occlusion", "effects": effects}
    if json:
        console.print_json({"run": str(opened.folder), "predictions": found})
    elif "tags" in task.prediction_fields:
        print_tags(found)
    elif "answer" in task.prediction_fields:
        print_spans(found)
    else:
        print_classes(found, list(input_columns(task, inputs[0])))


def read_standard_input() -> list[str]:
    """Read texts from standard input, one per line."""
    piped = sys.stdin is not None and not sys.stdin.isatty()
    lines = [line for line in sys.stdin.read().splitlines() if line.strip()] if piped else []
    if not lines:
        raise HeadstartError(
            "no text was given",
            fix='headstart predict RUN "…", or --input FILE, or lines on standard input',
        )
    return lines


def _predict_file(
    run: Any, source: str, output: Path | None, given: dict[str, Any], *, json: bool
) -> None:
    from headstart.data.columns import ReadOptions

    with console.Display() as display:
        summary = run.predict_file(
            source, output, options=ReadOptions(**given), progress=display.stage("predicting")
        )
    if json:
        console.print_json(summary)
        return
    if summary["bad_rows"]:
        reasons = "; ".join(f"row {row['row']:,}: {row['error']}" for row in summary["bad"][:5])
        reasons += "; …" if summary["bad_rows"] > 5 else ""
        console.note(f"{summary['bad_rows']:,} rows could not be predicted ({reasons})")
    if summary.get("unlike_training"):
        console.note(
            f"{summary['unlike_training']:,} of {summary['rows']:,} texts are {UNLIKE}; the column "
            "unlike_training names them"
        )
    console.write(
        "[bold]{output}[/]: {rows:,} rows, in the order of {source}",
        output=output,
        rows=summary["rows"],
        source=source,
    )


def print_classes(found: list[dict[str, Any]], columns: list[str]) -> None:
    """Print the labels of each text and, if explained, the words that changed the prediction."""
    rows: list[dict[str, Any]] = []
    for one in found:
        names = one["labels"] if "labels" in one else [one["label"]]
        shares = ", ".join(f"{one['probabilities'][name]:.1%}" for name in names)
        text = " | ".join(one[column] for column in columns)
        rows.append({"label": ", ".join(names) or "none", "probability": shares, "text": text})
        if "explanation" in one:
            effects = sorted(one["explanation"]["effects"], key=lambda word: -abs(word["effect"]))
            strongest = "  ".join(f"{word['text']} {word['effect']:+.2f}" for word in effects[:8])
            rows.append({"text": Text(strongest, style="dim")})
    console.show(console.record_table(rows, {"label": "", "probability": "", "text": ""}))
    unlike = [one for one in found if one.get("unlike_training")]
    for one in unlike[:MOST_NOTES]:
        text = console.shortened(" | ".join(one[column] for column in columns))
        console.note(f"'{text}' is {UNLIKE}")
    if len(unlike) > MOST_NOTES:
        console.note(f"so are {len(unlike) - MOST_NOTES:,} other texts (--json names them)")
    if "explanation" in found[0]:
        console.write(
            "[dim]Each number is how much the log-odds of the label fall without this word.[/]"
        )


def print_tags(found: list[dict[str, Any]]) -> None:
    """Print each word with its tag, and below the entities, if the tags make some."""
    columns = {"text": "", "kind": "", "probability": ".1%", "start": "d", "end": "d"}
    for one in found:
        tagged = zip(one["words"], one["tags"], strict=True)
        words = [f"{word}/{tag}" for word, tag in tagged if tag is not None]
        console.write("{words}", words=" ".join(words))
        if unread := len(one["words"]) - len(words):
            console.note(
                f"the last {unread:,} words were not read: the text is longer than this run reads "
                "(set with finetune's --length, or --long windows)"
            )
        if one["entities"]:
            console.show(console.record_table(one["entities"], columns), "")


def print_spans(found: list[dict[str, Any]]) -> None:
    """Print the answer to each question, and where it is in its text."""
    for one in found:
        if one["answer"] is None:
            console.write("[dim]{question}[/] no answer in this text, {probability:.1%}", **one)
        else:
            console.write(
                "[dim]{question}[/] [bold green]{answer}[/], {probability:.1%}, characters {start} "
                "to {end}",
                **one,
            )


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
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Evaluate a run: accuracy with its interval, F1, calibration, confusion, the worst mistakes.

    Tags are evaluated by whole entities, answers in texts by exact match and F1. The run is
    compared with the most frequent label and with a linear model, fitted to the same training rows.

    A dataset with several parts is evaluated on its test part, any other file on all rows.
    """
    from headstart.run import Run, evaluation_rows

    opened = Run.open(run)
    task = opened.require_task()

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
    with console.Display() as display:
        found |= opened.evaluate(rows, progress=display.stage("evaluating"))
    found["unfinished"] = is_run(run) and not opened.summary
    # An export does not know the rows that trained it, so it has nothing to be compared with.
    found["baselines"] = find_baselines(run, opened, rows) if baselines and is_run(run) else []
    console.print_result(found, partial(print_evaluation, task), json=json)


def print_evaluation(task: Any, found: dict[str, Any]) -> None:
    """Print the metrics, the confusion, the baselines, the classes and the worst mistakes."""
    console.write(
        "[bold]{run}[/] on {evaluated_on}: {rows:,} {row_name}", row_name=task.row_name, **found
    )
    notes = list(found.get("notes", []))
    if found["unfinished"]:
        notes.append(
            "the training has not ended; these are its best weights so far "
            f"({console.program()} finetune --resume --out {found['run']})"
        )
    if found["seen_rows"]:
        notes.append(
            f"dropped: {found['seen_rows']:,} {task.row_name} that were used to train the run or "
            "to select its weights"
        )
    if truncated := found.get("truncated"):
        notes.append(f"{truncated['texts']:,} texts are longer than the run reads and were cut")
    for text in notes:
        console.write("[yellow]note:[/] {text}", text=text)
    intervals = {name: console.interval(one) for name, one in found["intervals"].items()}
    for name, value in found.items():
        if isinstance(value, float):
            plain = f"{value:.3f}" if "loss" in name else f"{value:.1%}"
            console.write(
                "{name} [bold]{shown}[/]", name=metric_name(name), shown=intervals.get(name, plain)
            )
    if calibration := found.get("calibration"):
        line = "calibration error {calibration_error_after:.1%}"
        if calibration["temperature"] != 1:
            line += CALIBRATED
        console.write(line, **calibration)
    if "confusion" in found:
        console.show("", confusion_table(found["confusion"], found["labels"]), "")
    if found["baselines"]:
        console.show(baseline_table(found["baselines"], [task.metric, *intervals]), "")
    if classes := found.get("classes"):
        if len(classes) > MOST_CLASSES:
            classes = sorted(classes, key=lambda one: one["f1"])[:MOST_CLASSES]
            console.write(
                "the lowest F1 of {count:,} classes (--json has all):", count=len(found["classes"])
            )
        shares = dict.fromkeys(("precision", "recall", "f1"), ".1%")
        console.show(console.record_table(classes, {"name": "", **shares, "support": ","}))
    if mistakes := found.get("mistakes"):
        console.write("\n[bold]the most confident mistakes[/], of the model or of the labels")
        for mistake in mistakes:
            console.write(
                "{confidence:.1%} [red]{predicted}[/], labelled {true}, row {row}: [dim]{text}[/]",
                **mistake | {"text": console.shortened(mistake["text"])},
            )


def confusion_table(confusion: list[list[int]], labels: list[str]) -> Table:
    """Make the table of true and predicted classes; of many classes, list the frequent mistakes."""
    if len(labels) <= MOST_CLASSES:
        columns = {
            label: dict(zip(labels, counts, strict=True))
            for label, counts in zip(labels, zip(*confusion, strict=True), strict=True)
        }
        return console.facts_table(columns, corner="true ↓  predicted →")
    mistakes: list[dict[str, Any]] = [
        {"labelled": true, "predicted": predicted, "rows": count}
        for true, counts in zip(labels, confusion, strict=True)
        for predicted, count in zip(labels, counts, strict=True)
        if count and true != predicted
    ]
    frequent = sorted(mistakes, key=lambda one: -one["rows"])[:MOST_CLASSES]
    return console.record_table(frequent, {"labelled": "", "predicted": "", "rows": ","})


def generate(
    run: CausalRun,
    prompt: Annotated[str, typer.Argument(help="The text to continue.")] = "",
    tokens: Annotated[int, typer.Option(min=1, help="The largest number of new tokens.")] = 60,
    temperature: Annotated[
        float,
        typer.Option(
            min=0, help="Temperature of the sampling; 0 always takes the most probable token."
        ),
    ] = 0.8,
    top_p: Annotated[
        float,
        typer.Option(
            min=1e-9,
            max=1,
            help="Sample from the fewest tokens whose probabilities reach this sum.",
        ),
    ] = 0.95,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="The seed of the sampling.")] = 0,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Continue a prompt, with a base pretrained by the causal objective.

    headstart generate runs/base "This film is"
    """
    from headstart import language_model

    opened = language_model.open_language_model(run, causal=True, to="generate text")
    ids = list(
        language_model.generate(
            opened, prompt, tokens=tokens, temperature=temperature, top_p=top_p, seed=seed
        )
    )
    ended = bool(ids) and ids[-1] == opened.tokenizer.end_id
    document = {"prompt": prompt, "text": opened.tokenizer.decode(ids), "ended": ended}
    console.print_result(document, "{prompt}{text}", json=json)


def fill(
    run: Annotated[
        Path, typer.Argument(help="The folder of a run pretrained with a masked objective.")
    ],
    text: Annotated[str, typer.Argument(help="A text with [MASK] where a token is missing.")],
    candidates: Annotated[
        int, typer.Option(min=1, help="How many candidates to show for each [MASK].")
    ] = 5,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Fill each [MASK] of a text, with a base pretrained by a masked objective.

    headstart fill runs/masked "a [MASK] film"
    """
    from headstart import language_model

    opened = language_model.open_language_model(run, causal=False, to="fill a gap")
    gaps = [
        [{"token": token, "probability": probability} for token, probability in gap]
        for gap in language_model.fill(opened, text, candidates=candidates)
    ]
    if json:
        console.print_json({"text": text, "gaps": gaps})
    else:
        for gap in gaps:
            console.show(console.record_table(gap, {"token": "", "probability": ".1%"}), "")


@from_config(PretrainConfig, only=("text_column", "encoding"))
def perplexity(
    given: dict[str, Any],
    run: CausalRun,
    files: Annotated[
        list[str], typer.Argument(help="Text files, folders or built-in names, such as imdb.")
    ],
    length: Annotated[int, typer.Option(min=2, help="Tokens per window.")] = 256,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Measure how well a base predicts texts that it was not trained on.

    headstart perplexity runs/base other-text.txt
    """
    from headstart import language_model
    from headstart.data.corpus import read_corpus

    opened = language_model.open_language_model(run, causal=True, to="measure a perplexity")
    with console.Display() as display:
        show = display.stage("reading")
        found = language_model.perplexity(
            opened, read_corpus(files, **given), length=length, progress=show
        )
    console.print_result(found, PERPLEXITY, json=json)
