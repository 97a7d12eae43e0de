"""`headstart doctor`: what this machine can do, what Headstart uses of it, and its cache."""

from typing import Any

from headstart.cli.console import print_json, print_sections, record_table
from headstart.cli.options import Debug, Json, from_config
from headstart.config import MachineSettings


@from_config(MachineSettings, only=("device", "threads"))
def doctor(
    given: dict[str, Any],
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Look at this machine, measure it, and report what Headstart uses of it."""
    import torch

    from headstart.files import cache_folder
    from headstart.machine import choose_precision, choose_threads, look_up, pick_device

    facts = look_up()
    threads = choose_threads(given.get("threads"))
    torch.set_num_threads(threads)
    device = pick_device(given.get("device"))
    precision = choose_precision(device)
    cached = sum(path.stat().st_size for path in cache_folder().rglob("*") if path.is_file())
    cache = {"folder": str(cache_folder()), "bytes": cached}
    if json:
        choices = {"device": str(device), "threads": threads, "precision": precision}
        print_json({"machine": facts, "choices": choices, "cache": cache})
        return
    machine = facts | {
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
        "cache": f"{cache['folder']}, {cached / 1e6:,.1f} MB; it can be deleted at any time",
    }
    for title, found in {"This machine": machine, "What Headstart uses": used}.items():
        rows = [{"": name.replace("_", " "), " ": str(fact)} for name, fact in found.items()]
        print_sections({title: [record_table(rows, {"": "", " ": ""})]})
