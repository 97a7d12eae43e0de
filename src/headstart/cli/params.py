"""`headstart params`: how many parameters a network has, part by part."""

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from headstart.cli.options import Size
from headstart.cli.output import Debug, Json, messages, print_json, results, styled
from headstart.errors import HeadstartError
from headstart.model.account_report import account_document, check_accounts, common_mistakes
from headstart.model.accounts import (
    SYMBOLS,
    Accounts,
    Line,
    account,
    layer_lines,
    multiplications,
    training_memory,
)
from headstart.model.config import HeadConfig
from headstart.model.presets import Preset, preset, preset_names

HEADS = {"language_modeling": "language modelling", "classification": "classification"}


def params(
    preset_name: Annotated[
        str, typer.Option("--preset", help=f"One of {', '.join(preset_names())}.")
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
    accounts = account(chosen.base, chosen.language_modeling, chosen.classification(classes))
    differences = _check(accounts, chosen, classes) if check else None
    if json:
        document = account_document(accounts, chosen)
        if explain:
            document["common_mistakes"] = [vars(one) for one in common_mistakes(accounts)]
        if differences is not None:
            document["check"] = {"equal": not differences, "differences": differences}
        print_json(document)
    else:
        console = results()
        _print_parts(console, accounts, chosen)
        _print_costs(console, accounts, chosen)
        if explain:
            _print_mistakes(console, accounts)
        if check and not differences:
            console.print(styled("\n[green]✓[/] every line equals the real module's count"))
    if differences:
        found = styled("[red]the formulas and the module differ:[/] {what}", what=str(differences))
        messages().print(found)
        raise typer.Exit(1)


def _check(accounts: Accounts, chosen: Preset, classes: int) -> list[dict[str, Any]]:
    heads: dict[str, HeadConfig] = {
        "language_modeling": chosen.language_modeling,
        "classification": chosen.classification(classes),
    }
    return [vars(difference) for difference in check_accounts(accounts, heads)]


def _print_parts(console: Console, accounts: Accounts, chosen: Preset) -> None:
    base = chosen.base
    console.print(
        styled("[bold]{name}[/]: ", name=chosen.name)
        + f"vocabulary {base.vocab_size:,}, width {base.width}, "
        f"{base.layers} layers, {base.heads} heads, feed-forward {base.feed_forward_width}, "
        f"{base.positions} positions, {base.attention}"
    )
    _print_lines(console, accounts, accounts.base, accounts.total("language_modeling"))
    console.print(styled("[bold]base {count:,}[/]\n", count=accounts.base_count))
    for head, title in HEADS.items():
        total = accounts.total(head)
        _print_lines(console, accounts, accounts.heads[head], total)
        console.print(styled("[bold]base + {title} head [cyan]{n:,}[/][/]\n", title=title, n=total))
    layer = layer_lines(base)
    console.print(
        f"one layer: {sum(line.count for line in layer):,} = "
        + " + ".join(f"{line.name} {line.count:,}" for line in layer)
    )
    used = [f"{s} {name}" for s, name in SYMBOLS.items() if _uses(accounts, s)]
    console.print(f"{' · '.join(used)}; the base's shares are of language modelling", style="dim")


def _print_lines(console: Console, accounts: Accounts, lines: list[Line], whole: int) -> None:
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
            accounts.in_numbers(line.formula) if line.count else "",
            f"{line.count:,}",
            f"{line.count / whole:.1%}",
            "yes" if line.trainable else line.note,
        )
    console.print(table)


def _uses(accounts: Accounts, symbol: str) -> bool:
    lines = [*accounts.base, *(line for head in accounts.heads.values() for line in head)]
    return any(symbol in line.formula for line in lines)


def _print_costs(console: Console, accounts: Accounts, chosen: Preset) -> None:
    console.print(styled("\n[bold]Memory to train it[/] (fp32, Adam), without activations:"))
    for head, title in HEADS.items():
        memory = training_memory(accounts.total(head))
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


def _print_mistakes(console: Console, accounts: Accounts) -> None:
    console.print(styled("\n[bold]Common mistakes[/]"))
    for mistake in common_mistakes(accounts):
        direction = "too many" if mistake.off_by > 0 else "too few"
        off = f"{abs(mistake.off_by):,} {direction}"
        console.print(styled("  [bold]{name}[/]: {off}", name=mistake.name, off=off))
        console.print(f"    {mistake.why}", style="dim")
