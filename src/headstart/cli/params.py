"""`headstart params`: how many parameters a network has, part by part."""

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from headstart.cli.console import messages, plain_table, print_json, results, styled
from headstart.cli.options import Debug, Json, from_config, option
from headstart.config import SIZES, NetworkSettings
from headstart.errors import HeadstartError

HEADS = {"language_modeling": "language modelling", "classification": "classification"}


@from_config(NetworkSettings, only=("preset", *SIZES))
def params(
    given: dict[str, Any],
    objective: Annotated[
        str | None, option(help="causal or masked; by default the preset's.", panel="Model")
    ] = None,
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
    config = NetworkSettings.from_dict(given)
    if objective not in (None, "causal", "masked"):
        raise HeadstartError(f"--objective is {objective!r}", fix="choose causal or masked")
    from headstart.model.counts import (
        check_counts,
        common_mistakes,
        count_parameters,
        counts_document,
    )
    from headstart.model.presets import preset

    chosen = preset(config.preset, objective=objective, **config.sizes())  # type: ignore[arg-type]
    counted = count_parameters(
        chosen.base, chosen.language_modeling, chosen.classification(classes)
    )
    differences = check_counts(counted) if check else []
    mistakes = common_mistakes(counted) if explain else []
    if json:
        document = counts_document(counted, chosen)
        if explain:
            document["common_mistakes"] = [vars(one) for one in mistakes]
        if check:
            document["check"] = {"equal": not differences, "differences": differences}
        print_json(document)
    else:
        console = results()
        _print_parts(console, counted, chosen)
        _print_costs(console, counted, chosen)
        _print_mistakes(console, mistakes)
        if check and not differences:
            console.print(styled("\n[green]✓[/] every line equals the real module's count"))
    if differences:
        line = styled("[red]the formulas and the module differ:[/] {what}", what=str(differences))
        messages().print(line)
        raise typer.Exit(1)


def _print_parts(console: Console, counted: Any, chosen: Any) -> None:
    from headstart.model.counts import SYMBOLS

    base = chosen.base
    console.print(
        styled("[bold]{name}[/]: ", name=chosen.name)
        + f"vocabulary {base.vocab_size:,}, width {base.width}, "
        f"{base.layers} layers, {base.heads} heads, feed-forward {base.feed_forward_width}, "
        f"{base.positions} positions, {base.attention}"
    )
    console.print(_lines(counted, counted.base, counted.total("language_modeling")))
    console.print(styled("[bold]base {count:,}[/]\n", count=counted.base_count))
    for head, title in HEADS.items():
        total = counted.total(head)
        console.print(_lines(counted, counted.heads[head], total))
        console.print(styled("[bold]base + {title} head [cyan]{n:,}[/][/]\n", title=title, n=total))
    layer = counted.layer
    parts = " + ".join(f"{line.name} {line.count:,}" for line in layer)
    console.print(f"one layer: {sum(line.count for line in layer):,} = {parts}")
    lines = [*counted.base, *(line for head in counted.heads.values() for line in head)]
    formulas = "".join(line.formula for line in lines)
    used = " · ".join(f"{symbol} {name}" for symbol, name in SYMBOLS.items() if symbol in formulas)
    console.print(f"{used}; the base's shares are of language modelling", style="dim")


def _lines(counted: Any, lines: list[Any], whole: int) -> Table:
    table = plain_table()
    table.add_column("part", no_wrap=True, width=14)
    table.add_column("formula", no_wrap=True, width=17)
    table.add_column("in numbers", min_width=14, max_width=25, ratio=1)
    table.add_column("count", justify="right", no_wrap=True, width=11)
    table.add_column("share", justify="right", no_wrap=True, width=6)
    table.add_column("trained", no_wrap=True, width=8)
    for line in lines:
        numbers = counted.in_numbers(line.formula) if line.count else ""
        trained = "yes" if line.trainable else line.note
        share = f"{line.count / whole:.1%}"
        table.add_row(line.name, line.formula, numbers, f"{line.count:,}", share, trained)
    return table


def _print_costs(console: Console, counted: Any, chosen: Any) -> None:
    from headstart.model.counts import multiplications, training_memory

    console.print(styled("\n[bold]Memory to train it[/] (fp32, Adam), without activations:"))
    for head, title in HEADS.items():
        memory = training_memory(counted.total(head))
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


def _print_mistakes(console: Console, mistakes: list[Any]) -> None:
    if mistakes:
        console.print(styled("\n[bold]Common mistakes[/]"))
    for mistake in mistakes:
        direction = "too many" if mistake.off_by > 0 else "too few"
        off = f"{abs(mistake.off_by):,} {direction}"
        console.print(styled("  [bold]{name}[/]: {off}", name=mistake.name, off=off))
        console.print(f"    {mistake.why}", style="dim")
