"""Run the tasks of a benchmark in separate processes, taking turns, and print a table."""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

Task = dict[str, Any]
Found = dict[str, dict[str, float]]

SIZES = {
    "lab": {
        "vocab_size": 50_001,
        "width": 200,
        "layers": 4,
        "heads": 2,
        "feed_forward_width": 200,
    },
    "small": {
        "vocab_size": 8_192,
        "width": 256,
        "layers": 4,
        "heads": 4,
        "feed_forward_width": 704,
    },
}
WARM_STEPS = 2


def pace(steps: Iterable[int], seconds: float) -> float:
    """Measure tokens (or what the steps count) per second, after a few warm-up steps."""
    done, start, now = 0, 0.0, 0.0
    for number, count in enumerate(steps, start=1):
        now = time.perf_counter()
        if number <= WARM_STEPS:
            start = now
            continue
        done += count
        if now - start >= seconds:
            break
    return done / (now - start)


def pace_of(ends: Sequence[tuple[int, float]]) -> float:
    """Compute the same from the count and the end time of each step."""
    timed = ends[WARM_STEPS:]
    return sum(count for count, _ in timed) / (timed[-1][1] - ends[WARM_STEPS - 1][1])


def peak_memory() -> float:
    """Return the peak memory of this process in GB; ru_maxrss would include the parent's peak."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1e6
    return float("nan")


def cpu_times() -> tuple[float, float]:
    """Return the CPU ticks that this machine needed, and those that its host took away (steal).

    On a virtual machine, steal is the only sign of other load on the host. Both are zero where the
    system does not report them.
    """
    try:
        ticks = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
        user, nice, system, _, _, irq, softirq, stolen = map(float, ticks)
    except (OSError, ValueError):
        return 0.0, 0.0
    return user + nice + system + irq + softirq + stolen, stolen


def measure(task: Task) -> dict[str, float]:
    """Run one task of this benchmark in a separate process."""
    command = [sys.executable, sys.argv[0], "--child", json.dumps(task)]
    before = cpu_times()
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(result.stderr)
    found: dict[str, float] = json.loads(result.stdout.splitlines()[-1])
    wanted, stolen = (now - then for now, then in zip(cpu_times(), before, strict=True))
    return {**found, "stolen": stolen / wanted if wanted else 0.0}


def in_turn(tasks: dict[str, Task], repetitions: int) -> Found:
    """Run the tasks several times, taking turns, so that other load affects all of them."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in tasks}
    for _ in range(repetitions):
        for name, task in tasks.items():
            found[name].append(measure(task))
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return {
        name: {
            "speed": statistics.median(one["speed"] for one in values),
            "low": min(one["speed"] for one in values),
            "high": max(one["speed"] for one in values),
            "memory": max(one["memory"] for one in values),
            "stolen": max(one["stolen"] for one in values),
        }
        for name, values in found.items()
    }


def best_of(choices: Sequence[Task], **trial: Any) -> Task:
    """Return the fastest of several settings, each tried once for a short time."""
    return max(choices, key=lambda task: measure({**task, **trial})["speed"])


def trainer_choices(task: Task) -> list[Task]:
    """Return the settings of `Trainer` to try: with and without bf16, fused and eager attention."""
    return [
        {**task, "who": "Trainer", "bf16": bf16, "attention": attention}
        for bf16 in ((False, True) if task["precision"] == "bf16" else (False,))
        for attention in ("sdpa", "eager")
    ]


def trainer_title(task: Task, peer: str) -> str:
    return f"Trainer, {peer}, {task['attention']}{', bf16' if task['bf16'] else ''}"


def ratio(found: Found, ours: str, theirs: str) -> float:
    return found[ours]["speed"] / found[theirs]["speed"]


def show(title: str, found: Found, goals: list[str], unit: str = "tokens/s") -> None:
    """Print the table; `stolen` is the largest share of CPU time that the host took away."""
    print(f"\n{title}")
    print(f"  {'':34}{unit:>10}{'(lowest to highest)':>24}{'peak GB':>10}{'stolen':>8}")
    for name, row in found.items():
        digits = 0 if row["speed"] >= 1_000 else 1
        spread = f"({row['low']:,.{digits}f} to {row['high']:,.{digits}f})"
        figures = f"{row['speed']:>10,.{digits}f}{spread:>24}{row['memory']:>10.2f}"
        print(f"  {name:34}{figures}{row['stolen']:>8.0%}")
    for goal in goals:
        print(f"  {goal}")


def describe_machine() -> Task:
    """Print the CPU; return the threads and the precision to use."""
    import torch

    from headstart.machine import choose_precision, choose_threads, look_up

    threads = choose_threads()
    torch.set_num_threads(threads)
    precision = choose_precision(torch.device("cpu"))["precision"]
    facts = look_up()
    print(f"{facts['cpu']}, {threads} threads, {precision}")
    return {"threads": threads, "precision": precision}


def start(
    about: str,
    main: Callable[..., None],
    speed: Callable[[Task], float],
    parts: Sequence[str] = (),
) -> None:
    """Run the command line of a benchmark; its processes call it again, each with one task.

    `main` is called with the value of `--quick` and, if the benchmark has parts, with those to run.
    """
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="shorter, fewer repetitions")
    if parts:
        parser.add_argument("--only", nargs="+", choices=parts, default=parts, help="some parts")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child is None:
        main(given.quick, *([given.only] if parts else []))
        return
    import torch

    task = json.loads(given.child)
    torch.set_num_threads(task["threads"])
    print(json.dumps({"speed": speed(task), "memory": peak_memory()}))
