"""How fast pretraining is, beside the lab's plain loop and Hugging Face `Trainer`.

Every measurement runs in a process of its own (so that its peak memory is its own), in turn, a
few times; median and spread are shown. Tokens are real ones, never padding.

    python bench/pretrain.py            # everything, about 15 minutes
    python bench/pretrain.py --quick    # shorter and fewer repetitions
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

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
LENGTH, ROWS = 128, 16


def pace(steps: Iterator[int], seconds: float) -> float:
    """Tokens a second, after a few steps to warm up."""
    tokens, start, now = 0, 0.0, 0.0
    for number, real in enumerate(steps, start=1):
        now = time.perf_counter()
        if number <= WARM_STEPS:
            start = now
            continue
        tokens += real
        if now - start >= seconds:
            break
    return tokens / (now - start)


def peak_memory() -> float:
    """Gigabytes; of this process alone (a child's ru_maxrss starts at its parent's)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1e6
    return float("nan")


def child(task: dict[str, Any]) -> None:
    import torch

    from peers.documents import make_documents

    torch.set_num_threads(task["threads"])
    sizes = task["sizes"]
    documents = make_documents(sizes["vocab_size"])
    length, rows = task.get("length", LENGTH), task.get("rows", ROWS)
    if task["who"] == "lab loop":
        from peers.lab_loop import train_steps as lab_steps

        own = {key: sizes[key] for key in ("vocab_size", "width", "layers", "heads")}
        speed = pace(lab_steps(documents, **own, batch=8), task["seconds"])
    elif task["who"] == "Trainer":
        from peers.trainer import train

        times = list(
            train(
                documents,
                kind=task["kind"],
                sizes=sizes,
                length=length,
                rows=rows,
                steps=task["steps"],
                bf16=task["bf16"],
                attention=task["attention"],
                folder=tempfile.mkdtemp(),
            )
        )
        timed = times[WARM_STEPS:]
        speed = sum(tokens for tokens, _ in timed) / (timed[-1][1] - times[WARM_STEPS - 1][1])
    elif task["who"] == "products":
        from peers.products import seconds

        dtype = torch.bfloat16 if task["precision"] == "bf16" else torch.float32
        share = 1.0 if task["kind"] == "causal" else 0.3
        took = seconds(task["name"], task["kind"], sizes, rows * length, share, dtype)
        speed = rows * length / took
    else:
        from peers.ours import train_steps as our_steps

        steps = our_steps(
            documents,
            name=task["name"],
            kind=task["kind"],
            sizes=sizes,
            length=length,
            rows=rows,
            precision=task["precision"],
        )
        speed = pace(steps, task["seconds"])
    print(json.dumps({"speed": speed, "memory": peak_memory()}))


def measure(task: dict[str, Any]) -> dict[str, float]:
    command = [sys.executable, __file__, "--child", json.dumps(task)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(result.stderr)
    return json.loads(result.stdout.splitlines()[-1])


def in_turn(tasks: dict[str, dict[str, Any]], repetitions: int) -> dict[str, dict[str, Any]]:
    """Each task several times, one after the other, so that a noisy moment hits them all."""
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
        }
        for name, values in found.items()
    }


def show(title: str, found: dict[str, dict[str, Any]], goals: list[str]) -> None:
    print(f"\n{title}")
    print(f"  {'':34}{'tokens/s':>10}{'(lowest to highest)':>24}{'peak GB':>10}")
    for name, row in found.items():
        spread = f"({row['low']:,.0f} to {row['high']:,.0f})"
        print(f"  {name:34}{row['speed']:>10,.0f}{spread:>24}{row['memory']:>10.2f}")
    for goal in goals:
        print(f"  {goal}")


def best_trainer(kind: str, common: dict[str, Any], steps: int) -> dict[str, Any]:
    """Trainer's best settings here: bf16 or not, fused or eager attention, by a short trial."""
    base = {**common, "who": "Trainer", "kind": kind}
    choices = [
        {**base, "bf16": bf16, "attention": attention, "steps": steps}
        for bf16 in ((False, True) if common["precision"] == "bf16" else (False,))
        for attention in ("sdpa", "eager")
    ]
    return max(choices, key=lambda task: measure({**task, "steps": 8})["speed"])


def ratio(found: dict[str, dict[str, Any]], ours: str, theirs: str) -> float:
    return found[ours]["speed"] / found[theirs]["speed"]


def main(quick: bool) -> None:
    import torch

    from headstart.machine.facts import choose_threads, look_up
    from headstart.machine.precision import choose_precision

    threads = choose_threads()
    torch.set_num_threads(threads)
    precision = choose_precision(torch.device("cpu")).precision
    facts = look_up()
    print(f"{facts.cpu}, {threads} threads, {', '.join(facts.instruction_sets)}, {precision}")
    seconds, repetitions, steps = (8, 2, 20) if quick else (15, 3, 40)
    common = {"threads": threads, "precision": precision, "seconds": seconds}

    lab = {**common, "name": "lab", "kind": "causal", "sizes": SIZES["lab"]}
    found = in_turn(
        {
            "the lab's plain loop": {**lab, "who": "lab loop"},
            "Headstart": {**lab, "who": "ours"},
            "its matrix products alone": {**lab, "who": "products"},
        },
        repetitions,
    )
    memory = found["the lab's plain loop"]["memory"] / found["Headstart"]["memory"]
    show(
        "the lab's model (vocabulary 50,001), causal",
        found,
        [
            f"{ratio(found, 'Headstart', next(iter(found))):.1f} × the lab's loop (goal: 25)",
            f"1/{memory:.1f} of its memory (goal: 1/5)",
            f"{ratio(found, 'Headstart', 'its matrix products alone'):.0%} of the products",
        ],
    )
    for kind, peer in (("causal", "Llama"), ("masked", "BERT")):
        small = {**common, "name": "small", "kind": kind, "sizes": SIZES["small"]}
        trainer = best_trainer(kind, small, steps)
        title = f"Trainer, {peer}, {trainer['attention']}{', bf16' if trainer['bf16'] else ''}"
        found = in_turn(
            {
                title: trainer,
                "Headstart": {**small, "who": "ours"},
                "its matrix products alone": {**small, "who": "products"},
            },
            repetitions,
        )
        show(
            f"small (vocabulary 8,192), {kind}",
            found,
            [
                f"{ratio(found, 'Headstart', title):.1f} × Trainer (goal: 4)",
                f"{ratio(found, 'Headstart', 'its matrix products alone'):.0%} of the products "
                "(goal: 40 %)",
            ],
        )
    growth({**common, "name": "small", "kind": "causal", "who": "ours"}, threads)


def growth(common: dict[str, Any], threads: int) -> None:
    """How the cost grows with vocabulary, length and threads; once each."""
    print("\nhow the cost grows (small, causal, Headstart)")
    for vocab_size in (8_192, 16_384, 32_768, 50_001):
        one = measure({**common, "sizes": {**SIZES["small"], "vocab_size": vocab_size}})
        print(
            f"  vocabulary {vocab_size:>7,}: {one['speed']:>7,.0f} tokens/s, {one['memory']:.2f} GB"
        )
    for length in (128, 256, 512, 1_024):
        rows = max(1, ROWS * LENGTH // length)
        one = measure({**common, "sizes": SIZES["small"], "length": length, "rows": rows})
        print(f"  length     {length:>7,}: {one['speed']:>7,.0f} tokens/s, {one['memory']:.2f} GB")
    for count in sorted({1, threads}):
        one = measure({**common, "sizes": SIZES["small"], "threads": count})
        print(f"  threads    {count:>7,}: {one['speed']:>7,.0f} tokens/s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(json.loads(given.child))
    else:
        main(given.quick)
