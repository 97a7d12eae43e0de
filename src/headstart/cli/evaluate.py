"""`headstart evaluate`: evaluate a fine-tuned run on rows that it has not seen."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from headstart.cli.baseline_display import interval, show_baselines, spoken
from headstart.cli.options import Baselines, LabelColumn, TextColumn, Threads, is_on, use_threads
from headstart.cli.output import Debug, Json, print_json, results, styled
from headstart.errors import HeadstartError

if TYPE_CHECKING:
    from headstart.training.recipe import FinetuneRecipe


def evaluate(
    run: Annotated[
        Path, typer.Argument(help="The folder of a fine-tuned run, or of its export to ONNX.")
    ],
    dataset: Annotated[
        str | None,
        typer.Argument(
            help="Labelled texts; by default the test part of the run's own dataset.",
            show_default=False,
        ),
    ] = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    baselines: Baselines = "on",
    threads: Threads = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Evaluate a run: accuracy with its interval, F1, calibration, confusion, the worst mistakes.

    Tags are evaluated by whole entities, answers in texts by exact match and F1. The answer without
    reading and a linear model stand beside the run, fitted to the rows that trained it.

    Of a dataset with splits the test part is used, of any other file all rows.
    """
    from headstart.cli.baseline_display import find_baselines
    from headstart.cli.display import progress_bar
    from headstart.run import Run, evaluation_rows, is_unfinished, unseen_rows

    beside = is_on("baselines", baselines)
    use_threads(threads)
    opened = Run.open(run)
    task = opened.require_task()
    part, which = evaluation_rows(
        _recipe(run, task.name, dataset),
        task,
        dataset,
        text_column=text_column,
        label_column=label_column,
    )
    with progress_bar("evaluating", "texts") as show:
        found = {
            "run": str(run),
            "evaluated_on": which,
            "unfinished": is_unfinished(run),
            **opened.evaluate(part, progress=show),
        }
    problem = ""
    if beside:
        rows = unseen_rows(task, part, run)
        part = part if rows is None else task.pick(part, rows.tolist())
        found["baselines"], problem = find_baselines(run, task, part)
    if json:
        print_json(found)
        return
    console = results()
    console.print(
        styled(
            "[bold]{run}[/] on {which}: {rows:,} {unit}",
            run=str(run),
            which=which,
            rows=found["rows"],
            unit=task.row_name,
        ),
        soft_wrap=True,
    )
    if found["unfinished"]:
        console.print(
            styled(
                "[yellow]unfinished[/]: the training has not ended; these are its best weights so "
                "far (headstart finetune --resume --out {run})",
                run=str(run),
            ),
            soft_wrap=True,
        )
    if found["seen_rows"]:
        console.print(
            styled(
                "[yellow]left out[/]: {count:,} {unit} that trained the run or chose its weights",
                count=found["seen_rows"],
                unit=task.row_name,
            )
        )
    elif found["seen_rows"] is None:
        console.print(styled("[yellow]the run does not say which rows trained it[/]"))
    if cut := found["truncated"]:
        console.print(
            styled(
                "[yellow]cut[/]: {texts:,} of them are longer than the run reads; {share:.1%} of "
                "all tokens were not read",
                texts=cut["texts"],
                share=cut["tokens"] / cut["of"],
            )
        )
    if "confusion" in found:
        _show_classification(console, found)
    else:
        _show_numbers(console, found)
    for note in found["notes"]:
        console.print(styled("[yellow]note[/]: {note}", note=note), soft_wrap=True)
    metrics = list(dict.fromkeys([task.metric, *found["intervals"]]))
    show_baselines(console, found.get("baselines", []), problem, names=metrics)
    _show_classes(console, found.get("classes", []), task.class_row_name)
    _show_mistakes(console, found.get("mistakes", []))


def _recipe(run: Path, task: str, dataset: str | None) -> "FinetuneRecipe":
    """The run's own recipe. An export has none: where a person keeps files does not go with it."""
    from headstart.run import EXPORTED
    from headstart.training.recipe import make_recipe, read_finetune_recipe

    if not (run / EXPORTED).is_file():
        return read_finetune_recipe(run)
    if dataset is None:
        raise HeadstartError(
            "an export does not know the dataset of its run",
            where=run,
            fix=f"name one: headstart evaluate {run} DATASET",
        )
    return make_recipe(dataset=["the run's own"], task=task)


def _show_classification(console: Console, found: dict[str, Any]) -> None:
    accuracy, calibration = found["intervals"]["accuracy"], found["calibration"]
    macro = found["intervals"].get("macro_f1")  # none where rows × classes are very many
    console.print(
        styled(
            "accuracy [bold]{value:.1%}[/] (95 %: {low:.1%} to {high:.1%}), macro-F1 {f1}",
            **accuracy,
            f1=interval(macro) if macro else f"{found['macro_f1']:.1%}",
        )
    )
    console.print(
        f"log-loss {calibration['log_loss_after']:.3f}, calibration error "
        f"{calibration['calibration_error_after']:.1%}; without the run's temperature of "
        f"{calibration['temperature']:.2f} (fitted on validation) "
        f"{calibration['log_loss_before']:.3f} and {calibration['calibration_error_before']:.1%}\n"
    )
    labels = found["labels"]
    if len(labels) <= 12:
        table = Table("true ↓  predicted →", *labels, box=None, header_style="dim", pad_edge=False)
        for name, counts in zip(labels, found["confusion"], strict=True):
            table.add_row(name, *(f"{count:,}" for count in counts))
        console.print(table, "")


def _show_numbers(console: Console, found: dict[str, Any]) -> None:
    for name, value in found.items():
        if name in found["intervals"]:
            line = styled(
                "{name} [bold]{value:.1%}[/] (95 %: {low:.1%} to {high:.1%})",
                name=spoken(name),
                **found["intervals"][name],
            )
            console.print(line)
        elif isinstance(value, float):
            shown = f"{value:.3f}" if "loss" in name else f"{value:.1%}"
            console.print(styled("{name} [bold]{shown}[/]", name=spoken(name), shown=shown))


def _show_classes(console: Console, classes: list[dict[str, Any]], counted: str) -> None:
    if not classes:
        return
    table = Table(
        "class", "precision", "recall", "F1", counted, box=None, header_style="dim", pad_edge=False
    )
    for row in classes:
        numbers = [f"{row[name]:.1%}" for name in ("precision", "recall", "f1")]
        table.add_row(row["name"], *numbers, f"{row['support']:,}")
    console.print(table)


def _show_mistakes(console: Console, mistakes: list[dict[str, Any]]) -> None:
    if not mistakes:
        return
    console.print(styled("\n[bold]the most confident mistakes[/]: the model's, or the labels'?"))
    for mistake in mistakes:
        text = " ".join(mistake["text"].split())
        shown = Text.assemble(
            f"{mistake['confidence']:.1%} ",
            (mistake["predicted"], "red"),
            f", labelled {mistake['true']}, row {mistake['row']}: ",
            (text[:160] + ("…" if len(text) > 160 else ""), "dim"),
        )
        console.print(shown)
