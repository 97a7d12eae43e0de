"""`headstart params`: how many parameters a network has, part by part."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from headstart.cli.options import Size
from headstart.cli.output import Debug, Json, messages, print_json, results, styled
from headstart.errors import HeadstartError
from headstart.model.counts import (
    SYMBOLS,
    CountLine,
    Counts,
    check_counts,
    common_mistakes,
    count_parameters,
    counts_document,
    multiplications,
    training_memory,
)
from headstart.model.presets import PRESETS, Preset, preset

HEADS = {"language_modeling": "language modelling", "classification": "classification"}


def params(
    preset_name: Annotated[
        str, typer.Option("--preset", help=f"One of {', '.join(PRESETS)}.")
    ] = "small",
    objective: Annotated[
        str | None,
        typer.Option(help="causal or masked; by default the preset's own.", show_default=False),
    ] = None,
    vocab_size: Size = None,
    width: Size = None,
    layers: Size = None,
    heads: Size = None,
    feed_forward: Size = None,
    classes: Annotated[int, typer.Option(help="Classes of the classification head.")] = 2,
    check: Annotated[
        bool, typer.Option("--check", help="Compare every line with the real module.")
    ] = False,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Show common mistakes in counting and how far off they are."
        ),
    ] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Count a network's parameters, part by part, with the formula of each.

    --preset lab --vocab-size 100 is the exercise of the lab.
    """
    if objective not in (None, "causal", "masked"):
        raise HeadstartError(
            f"unknown objective {objective!r}", fix="use --objective causal or masked"
        )
    chosen = preset(
        preset_name,
        objective=objective,  # type: ignore[arg-type]
        vocab_size=vocab_size,
        width=width,
        layers=layers,
        heads=heads,
        feed_forward_width=feed_forward,
    )
    counts = count_parameters(chosen.base, chosen.language_modeling, chosen.classification(classes))
    differences = check_counts(counts) if check else None
    if json:
        document = counts_document(counts, chosen)
        if explain:
            document["common_mistakes"] = [vars(one) for one in common_mistakes(counts)]
        if differences is not None:
            document["check"] = {"equal": not differences, "differences": differences}
        print_json(document)
    else:
        console = results()
        _print_parts(console, counts, chosen)
        _print_costs(console, counts, chosen)
        if explain:
            _print_mistakes(console, counts)
        if check and not differences:
            console.print(styled("\n[green]✓[/] every line equals the real module's count"))
    if differences:
        found = styled("[red]the formulas and the module differ:[/] {what}", what=str(differences))
        messages().print(found)
        raise typer.Exit(1)


def _print_parts(console: Console, counts: Counts, chosen: Preset) -> None:
    base = chosen.base
    console.print(
        styled("[bold]{name}[/]: ", name=chosen.name)
        + f"vocabulary {base.vocab_size:,}, width {base.width}, "
        f"{base.layers} layers, {base.heads} heads, feed-forward {base.feed_forward_width}, "
        f"{base.positions} positions, {base.attention}"
    )
    _print_lines(console, counts, counts.base, counts.total("language_modeling"))
    console.print(styled("[bold]base {count:,}[/]\n", count=counts.base_count))
    for head, title in HEADS.items():
        total = counts.total(head)
        _print_lines(console, counts, counts.heads[head], total)
        console.print(styled("[bold]base + {title} head [cyan]{n:,}[/][/]\n", title=title, n=total))
    layer = counts.layer
    console.print(
        f"one layer: {sum(line.count for line in layer):,} = "
        + " + ".join(f"{line.name} {line.count:,}" for line in layer)
    )
    used = [f"{s} {name}" for s, name in SYMBOLS.items() if _uses(counts, s)]
    console.print(f"{' · '.join(used)}; the base's shares are of language modelling", style="dim")


def _print_lines(console: Console, counts: Counts, lines: list[CountLine], whole: int) -> None:
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("part", no_wrap=True, width=14)
    table.add_column("formula", no_wrap=True, width=17)
    table.add_column("in numbers", min_width=14, max_width=25, ratio=1)
    table.add_column("count", justify="right", no_wrap=True, width=11)
    table.add_column("share", justify="right", no_wrap=True, width=6)
    table.add_column("trained", no_wrap=True, width=8)
    for line in lines:
        table.add_row(
            line.name,
            line.formula,
            counts.in_numbers(line.formula) if line.count else "",
            f"{line.count:,}",
            f"{line.count / whole:.1%}",
            "yes" if line.trainable else line.note,
        )
    console.print(table)


def _uses(counts: Counts, symbol: str) -> bool:
    lines = [*counts.base, *(line for head in counts.heads.values() for line in head)]
    return any(symbol in line.formula for line in lines)


def _print_costs(console: Console, counts: Counts, chosen: Preset) -> None:
    console.print(styled("\n[bold]Memory to train it[/] (fp32, Adam), without activations:"))
    for head, title in HEADS.items():
        memory = training_memory(counts.total(head))
        console.print(
            f"  {title}: {memory.total / 1e6:,.0f} MB = weights {memory.weights / 1e6:,.0f} "
            f"+ gradients {memory.gradients / 1e6:,.0f} + optimizer {memory.optimizer / 1e6:,.0f}"
        )
    products = multiplications(chosen.base, chosen.language_modeling)
    console.print(
        styled(
            "[bold]Multiplications per token[/] in language modelling: layers {layers:,} + output "
            "layer {output_layer:,} ([bold]{share:.0%}[/]), and {attended:,} more for every token "
            "attended to",
            layers=products.layers,
            output_layer=products.output_layer,
            share=products.output_share,
            attended=products.per_token_attended,
        )
    )


def _print_mistakes(console: Console, counts: Counts) -> None:
    console.print(styled("\n[bold]Common mistakes[/]"))
    for mistake in common_mistakes(counts):
        direction = "too many" if mistake.off_by > 0 else "too few"
        off = f"{abs(mistake.off_by):,} {direction}"
        console.print(styled("  [bold]{name}[/]: {off}", name=mistake.name, off=off))
        console.print(f"    {mistake.why}", style="dim")
