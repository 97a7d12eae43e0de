"""`headstart predict`: ask a fine-tuned run about texts, or about a whole file of them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from headstart.cli.output import Debug, Json, messages, print_json, results
from headstart.errors import HeadstartError

if TYPE_CHECKING:
    from headstart.inference.explain import Effect
    from headstart.text.rows import Reading


def predict(
    run: Annotated[Path, typer.Argument(help="The folder of a fine-tuned run.")],
    texts: Annotated[list[str] | None, typer.Argument(help="One answer each.")] = None,
    input_file: Annotated[
        str | None, typer.Option("--input", help="A file of texts, of any size.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Where its answers go: .csv, .jsonl or .parquet.")
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
    """Predict labels with their probabilities.

    headstart predict RUN "a fine film"
    headstart predict RUN --input reviews.csv --output answers.parquet
    """
    if bool(texts) == (input_file is not None):
        raise HeadstartError("give either texts or --input FILE", fix='headstart predict RUN "…"')
    if (input_file is None) != (output is None):
        raise HeadstartError("--input and --output go together")
    if input_file is not None and explain:
        raise HeadstartError("--explain is for texts on the command line, not for files")
    from headstart.inference.predict import open_classifier

    opened = open_classifier(run)
    pairs = opened.task is not None and opened.task.name == "pairs"
    if input_file is not None and output is not None:
        from headstart.text.rows import Reading

        how = Reading(text_column, None, encoding, pairs, second_column)
        _predict_file(opened, input_file, output, how, json=json)
    else:
        given = _in_pairs(texts or []) if pairs else texts or []
        _predict_texts(opened, given, explain=explain, json=json)


def _in_pairs(texts: list[str]) -> list[str]:
    from headstart.text.rows import join_pair

    if len(texts) % 2:
        raise HeadstartError(
            f"this run judges two texts together, and {len(texts)} were given",
            fix='headstart predict RUN "first text" "second text"',
        )
    return [str(join_pair(*texts[n : n + 2])) for n in range(0, len(texts), 2)]


def _predict_texts(run: Any, texts: list[str], *, explain: bool, json: bool) -> None:
    from headstart.inference.explain import METHOD
    from headstart.inference.explain import explain as effects_of
    from headstart.inference.predict import predict as ask

    answers = ask(run, texts)
    effects = [effects_of(run, text) for text in texts] if explain else [[] for _ in texts]
    if json:
        rows = []
        for text, answer, found in zip(texts, answers, effects, strict=True):
            row: dict[str, Any] = {"text": text, **vars(answer)}
            if explain:
                row["explanation"] = {"method": METHOD, "effects": [vars(one) for one in found]}
            rows.append(row)
        print_json({"run": str(run.folder), "predictions": rows})
        return
    console = results()
    table = Table("label", "probability", "text", box=None, header_style="dim", pad_edge=False)
    for text, answer, found in zip(texts, answers, effects, strict=True):
        table.add_row(answer.label, f"{answer.probability:.1%}", _marked(text, found))
        if found:
            table.add_row("", "", Text(_strongest(found), style="dim"))
    console.print(table)
    if explain:
        console.print(
            f"[dim]method: {METHOD}. Each word is left out in turn; the numbers say how much the "
            "label's log-odds fall without it. [/][green]Green[/][dim] words speak for the label, "
            "[/][red]red[/][dim] ones against it[/]"
        )


def _strongest(effects: "list[Effect]", count: int = 5) -> str:
    largest = sorted(effects, key=lambda one: -abs(one.effect))[:count]
    return "  ".join(f"{one.text} {one.effect:+.2f}" for one in largest)


def _marked(text: str, effects: "list[Effect]") -> Text:
    marked = Text(text)
    most = max((abs(one.effect) for one in effects), default=0.0)
    for one in effects:
        share = abs(one.effect) / most if most else 0.0
        if share >= 0.15:
            style = "green" if one.effect > 0 else "red"
            marked.stylize(f"bold {style}" if share >= 0.5 else style, one.start, one.end)
    return marked


def _predict_file(run: Any, source: str, output: Path, how: "Reading", *, json: bool) -> None:
    from headstart.cli.progress import progress
    from headstart.inference.predict_file import predict_file

    with progress("predicting", "rows") as show:
        summary = predict_file(run, source, output, how=how, progress=show)
    if json:
        print_json(summary)
        return
    if summary["bad_rows"]:
        console = messages()
        console.print(
            f"[yellow]{summary['bad_rows']:,} rows could not be judged[/]; they are in the output, "
            "without a label and with the reason:"
        )
        for bad in summary["bad"][:5]:
            console.print(f"  row {bad['row']:,}: {bad['error']}", markup=False)
    results().print(f"[bold]{output}[/]: {summary['rows']:,} rows, in the order of {source}")
