"""`headstart params`: how many parameters a network has, part by part."""

from typing import Annotated, Any

import typer

from headstart.cli.console import messages, print_json, record_table, results, write
from headstart.cli.options import Debug, Json, from_config, option
from headstart.config import SIZES, FinetuneConfig

COLUMNS = {
    **{"name": "", "formula": "", "numbers": ""},
    **{"count": ",", "share": ".1%", "trained": ""},
}


@from_config(FinetuneConfig, only=("preset", "objective", *SIZES))
def params(
    given: dict[str, Any],
    classes: Annotated[
        int,
        option(
            help="Classes of the classification head. Default: 2.",
            panel="Model",
            min=1,
            max=1_000_000,
        ),
    ] = 2,
    check: Annotated[
        bool, option("--check", help="Compare every line with the real module.")
    ] = False,
    explain: Annotated[
        bool, option("--explain", help="Show common mistakes in counting and their size.")
    ] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Count a network's parameters, part by part, with the formula of each.

    --preset lab --vocab-size 100 is the exercise of the lab.
    """
    config = FinetuneConfig(**given)
    from headstart.model.counts import check_counts, common_mistakes, count_parameters
    from headstart.model.presets import preset

    chosen = preset(config.preset, objective=config.objective, **config.sizes())
    counts = count_parameters(chosen, classes)
    document = counts.document()
    if explain:
        document["common_mistakes"] = common_mistakes(counts)
    differences = check_counts(counts) if check else []
    if check:
        document["check"] = {"equal": not differences, "differences": differences}
    if json:
        print_json(document)
    else:
        print_counts(document)
    if differences:
        messages().print(f"the formulas and the module differ: {differences}")
        raise typer.Exit(1)


def print_counts(document: dict[str, Any]) -> None:
    """Print the parts, the totals and, if asked for, common mistakes."""
    from headstart.model.counts import SYMBOLS

    write(
        "[bold]{preset}[/]: vocabulary {vocab_size:,}, width {width}, {layers} layers, {heads} "
        "heads, feed-forward {feed_forward_width}, {positions} positions, {attention}",
        preset=document["preset"],
        **document["config"],
    )
    totals = {"base": document["base"], **document["total"]}
    for part, total in totals.items():
        whole = totals["language_modeling"] if part == "base" else total
        rows = [
            row
            | {
                "share": row["count"] / whole,
                "trained": "yes" if row["trainable"] else row["note"],
            }
            for row in document["parts"]
            if row["of"] == part
        ]
        results().print(record_table(rows, COLUMNS))
        title = "base" if part == "base" else f"base + {head_name(part)} head"
        write("[bold]{title} [cyan]{total:,}[/][/]\n", title=title, total=total)
    layer = document["layer"]
    sizes = " + ".join(f"{name} {count:,}" for name, count in layer.items())
    write("one layer: {total:,} = {sizes}", total=sum(layer.values()), sizes=sizes)
    formulas = "".join(row["formula"] for row in document["parts"])
    used = " · ".join(f"{symbol} {name}" for symbol, name in SYMBOLS.items() if symbol in formulas)
    write("[dim]{used}; the base's shares are of language modelling[/]", used=used)
    if "common_mistakes" in document:
        write("\n[bold]Common mistakes[/]")
    for one in document.get("common_mistakes", []):
        off = f"{abs(one['off_by']):,} {'too many' if one['off_by'] > 0 else 'too few'}"
        write("  [bold]{name}[/]: {off}\n    [dim]{why}[/]", off=off, **one)
    if document.get("check", {}).get("equal"):
        write("\n[green]✓[/] every line equals the real module's count")


def head_name(kind: str) -> str:
    """Write the kind of a head for people."""
    return {"language_modeling": "language modelling"}.get(kind, kind)
