"""`headstart doctor`: what this machine can do, and what Headstart will therefore do."""

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from headstart.cli.output import Debug, Json, print_json, results, styled


def doctor(
    device: Annotated[
        str | None,
        typer.Option(help="cpu, cuda or mps; by default the fastest.", show_default=False),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(min=1, help="By default one per physical core.", show_default=False),
    ] = None,
    cache: Annotated[
        bool, typer.Option("--cache", help="Look at the cache instead, and check all of it.")
    ] = False,
    prune: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="DAYS",
            help="Remove from the cache what is damaged and what was not used for DAYS days.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Look at this machine, measure it, and say what Headstart will do with it."""
    if cache or prune is not None:
        _show_cache(prune, json=json)
        return
    import torch

    from headstart.machine import choose_precision, choose_threads, look_up, pick_device

    facts = look_up()
    chosen_threads = choose_threads(threads)
    torch.set_num_threads(chosen_threads)
    chosen_device = pick_device(device)
    precision = choose_precision(chosen_device)
    if json:
        choices = {
            "device": str(chosen_device),
            "threads": chosen_threads,
            "precision": vars(precision),
            "compile": "possible" if facts.compiler else "not possible",
        }
        print_json({"machine": vars(facts), "choices": choices})
        return

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(Text("This machine", style="bold not dim"), "")
    table.add_row("system", f"{facts.system}, Python {facts.python}, PyTorch {facts.torch}")
    table.add_row("processor", f"{facts.cpu}, {facts.cores} cores, {facts.usable_cores} usable")
    table.add_row("instructions", ", ".join(facts.instruction_sets) or "none of the relevant ones")
    table.add_row(
        "memory", f"{facts.memory_bytes / 1e9:.1f} GB, {facts.free_memory_bytes / 1e9:.1f} GB free"
    )
    table.add_row("accelerators", ", ".join(facts.accelerators) or "none")
    table.add_row("compiler", facts.compiler or "none (only torch.compile would need one)")
    table.add_row("", "")
    table.add_row(Text("What Headstart will do", style="bold not dim"), "")
    table.add_row("device", str(chosen_device))
    found = threads is None and chosen_threads > 1 and chosen_device.type == "cpu"
    table.add_row(
        "threads",
        f"{chosen_threads}, or 1 where a training finds that faster"
        if found
        else str(chosen_threads),
    )
    precise = styled("[bold]{name}[/]: {why}", name=precision.precision, why=precision.why)
    table.add_row("precision", precise)
    table.add_row(
        "measured",
        f"fp32 {precision.fp32_gflops:,.0f}, bf16 {precision.bf16_gflops:,.0f} "
        "billion operations per second on a small product",
    )
    results().print(table)


def _show_cache(prune: float | None, *, json: bool) -> None:
    from headstart.files import cache_folder
    from headstart.text.store.cache import look_at_cache, prune_cache

    folder = cache_folder()
    removed = [] if prune is None else prune_cache(folder, days=prune)
    found = look_at_cache(folder)
    if json:
        documents = [
            [{**vars(one), "path": str(one.path)} for one in group] for group in (found, removed)
        ]
        print_json({"cache": str(folder), "found": documents[0], "removed": documents[1]})
        return
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    for name in ("", "size", "last used", "state"):
        table.add_column(name, justify="right" if name == "size" else "left")
    for one in found:
        state = Text(one.state, style="" if one.state == "whole" else "bold yellow")
        size, days = f"{one.bytes / 1e6:,.1f} MB", f"{one.days:.0f} days ago"
        table.add_row(Text(f"{one.kind}/{one.path.name[:12]}"), size, days, state)
    console = results()
    total = sum(one.bytes for one in found) / 1e6
    line = styled("[bold]{folder}[/]: {total:,.1f} MB", folder=str(folder), total=total)
    console.print(line, soft_wrap=True)
    if found:
        console.print(table)
    if removed:
        freed = sum(one.bytes for one in removed) / 1e6
        console.print(f"removed {len(removed):,} of its files and folders, {freed:,.1f} MB")
    elif any(one.state != "whole" for one in found):
        console.print("headstart doctor --prune 90 removes what is damaged or long unused")
