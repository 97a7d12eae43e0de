"""`headstart params`: how many parameters a network has, part by part."""

from typing import Annotated, Any

import typer

from headstart.cli.console import messages, print_json, record_table, results, write
from headstart.cli.options import Debug, Json, from_config, option
from headstart.config import SIZES, NetworkSettings
from headstart.errors import HeadstartError

COLUMNS = {
    **{"part": "", "formula": "", "in numbers": ""},
    **{"count": ",", "share": ".1%", "trained": ""},
}
NETWORK = (
    "[bold]{name}[/]: vocabulary {vocab_size:,}, width {width}, {layers} layers, {heads} heads, "
    "feed-forward {feed_forward_width}, {positions} positions, {attention}"
)
MEMORY = (
    "  {title}: {total:,.0f} MB = weights {weights:,.0f} + gradients {gradients:,.0f} + optimizer "
    "{optimizer:,.0f}"
)
MULTIPLICATIONS = (
    "[bold]Multiplications per token[/] in language modelling: layers {layers:,} + output layer "
    "{output_layer:,} ([bold]{output_share:.0%}[/]), and {per_token_attended:,} more for every "
    "token attended to"
)
MISTAKE = "  [bold]{name}[/]: {off}\n    [dim]{why}[/]"
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
        _print_parts(counted, chosen)
        _print_costs(counted, chosen)
        if mistakes:
            write("\n[bold]Common mistakes[/]")
        for mistake in mistakes:
            direction = "too many" if mistake.off_by > 0 else "too few"
            off = f"{abs(mistake.off_by):,} {direction}"
            write(MISTAKE, name=mistake.name, off=off, why=mistake.why)
        if check and not differences:
            write("\n[green]✓[/] every line equals the real module's count")
    if differences:
        messages().print(f"the formulas and the module differ: {differences}")
        raise typer.Exit(1)


def _print_parts(counted: Any, chosen: Any) -> None:
    from headstart.model.counts import SYMBOLS

    write(NETWORK, name=chosen.name, **vars(chosen.base))
    parts = {"base": counted.base, **counted.heads}
    for part, lines in parts.items():
        total = counted.total("language_modeling" if part == "base" else part)
        rows = [
            {
                "part": line.name,
                "formula": line.formula,
                "in numbers": counted.in_numbers(line.formula) if line.count else "",
                "count": line.count,
                "share": line.count / total,
                "trained": "yes" if line.trainable else line.note,
            }
            for line in lines
        ]
        results().print(record_table(rows, COLUMNS))
        if part == "base":
            write("[bold]base {count:,}[/]\n", count=counted.base_count)
        else:
            write("[bold]base + {title} head [cyan]{n:,}[/][/]\n", title=HEADS[part], n=total)
    layer = " + ".join(f"{line.name} {line.count:,}" for line in counted.layer)
    total = sum(line.count for line in counted.layer)
    write("one layer: {total:,} = {layer}", total=total, layer=layer)
    formulas = "".join(line.formula for lines in parts.values() for line in lines)
    used = " · ".join(f"{symbol} {name}" for symbol, name in SYMBOLS.items() if symbol in formulas)
    write("[dim]{used}; the base's shares are of language modelling[/]", used=used)


def _print_costs(counted: Any, chosen: Any) -> None:
    from headstart.model.counts import multiplications, training_memory

    write("\n[bold]Memory to train it[/] (fp32, Adam), without activations:")
    for head, title in HEADS.items():
        memory = training_memory(counted.total(head))
        parts = {"total": memory.total, **vars(memory)}
        write(MEMORY, title=title, **{name: size / 1e6 for name, size in parts.items()})
    products = multiplications(chosen.base, chosen.language_modeling)
    write(MULTIPLICATIONS, output_share=products.output_share, **vars(products))
