"""`headstart doctor`: what this machine can do, what Headstart uses of it, and its cache."""

from typing import Annotated, Any

from headstart.cli.console import print_json, print_sections, record_table, results, write
from headstart.cli.options import Debug, Json, from_config, option
from headstart.config import MachineSettings


@from_config(MachineSettings, only=("device", "threads"))
def doctor(
    given: dict[str, Any],
    cache: Annotated[
        bool, option("--cache", help="List the cache instead, with its size and last use.")
    ] = False,
    prune: Annotated[
        float | None,
        option(
            min=0,
            metavar="DAYS",
            help="Remove from the cache what was not used for so many days.",
        ),
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Look at this machine, measure it, and report what Headstart uses of it."""
    if cache or prune is not None:
        _show_cache(prune, json=json)
        return
    import torch

    from headstart.machine import choose_precision, choose_threads, look_up, pick_device

    facts = look_up()
    threads = choose_threads(given.get("threads"))
    torch.set_num_threads(threads)
    device = pick_device(given.get("device"))
    precision = choose_precision(device)
    if json:
        choices = {"device": str(device), "threads": threads, "precision": precision}
        print_json({"machine": facts, "choices": choices})
        return
    machine = facts | {
        "instruction_sets": ", ".join(facts["instruction_sets"]) or "none of the relevant ones",
        "memory_bytes": f"{facts['memory_bytes'] / 1e9:.1f} GB",
        "free_memory_bytes": f"{facts['free_memory_bytes'] / 1e9:.1f} GB",
        "accelerators": ", ".join(facts["accelerators"]) or "none",
    }
    used = {
        "device": str(device),
        "threads": str(threads),
        "precision": f"{precision['precision']}: {precision['why']}",
        "measured": f"fp32 {precision['fp32_gflops']:,.0f}, bf16 {precision['bf16_gflops']:,.0f} "
        "billion operations per second on a small product",
    }
    for title, found in {"This machine": machine, "What Headstart uses": used}.items():
        rows = [{"": name.replace("_", " "), " ": str(fact)} for name, fact in found.items()]
        print_sections({title: [record_table(rows, {"": "", " ": ""})]})


def _show_cache(prune: float | None, *, json: bool) -> None:
    from headstart.data.cache import list_cache, prune_cache
    from headstart.files import cache_folder

    folder = cache_folder()
    removed = [] if prune is None else prune_cache(folder, days=prune)
    found, gone = (
        [vars(one) | {"path": str(one.path)} for one in group]
        for group in (list_cache(folder), removed)
    )
    if json:
        print_json({"cache": str(folder), "found": found, "removed": gone})
        return
    total = sum(one["bytes"] for one in found) / 1e6
    write("[bold]{folder}[/]: {total:,.1f} MB", folder=folder, total=total)
    columns = {"path": "", "bytes": ",d", "days": ".0f"}
    results().print(record_table(found, columns))
    if gone:
        freed = sum(one["bytes"] for one in gone) / 1e6
        line = "removed {count:,} files and folders, {freed:,.1f} MB"
        write(line, count=len(gone), freed=freed)
