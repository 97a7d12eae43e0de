"""Compare one pretraining in one process with two threads and in two processes with one each.

    python bench/processes.py [--steps 60] [--rounds 3]

The presets `small` and `lab` are trained on the IMDb texts; one and two processes take turns.
Tokens per second are those of training alone, from the run's summary.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

KINDS = {"small, 1,024 tokens per step": ("small", 1_024), "small, 8,192": ("small", 8_192),
         "lab, 1,024": ("lab", 1_024)}  # fmt: skip


def speed(preset: str, tokens: int, steps: int, processes: int) -> float:
    """Measure the tokens per second of a pretraining."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "headstart", "pretrain", "imdb", "--preset", preset,
                   "--batch-tokens", str(tokens), "--steps", str(steps), "--evaluations", "1",
                   "--precision", "fp32", "--threads", "2", "--embedding-init", "random",
                   "--processes", str(processes), "--out", str(Path(folder) / "run")]  # fmt: skip
        done = subprocess.run([*command, "--json"], check=True, stdout=subprocess.PIPE)
        lines = (Path(folder) / "run" / "metrics.jsonl").read_text().splitlines()
        assert json.loads(done.stdout)["steps"] == steps
        at = [line for line in map(json.loads, lines) if "held_out" not in line]
        first = at[len(at) // 5]  # the first steps warm up
        return (at[-1]["tokens"] - first["tokens"]) / (at[-1]["seconds"] - first["seconds"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    for name, (preset, tokens) in KINDS.items():
        found: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(given.rounds):
            for processes, speeds in found.items():
                speeds.append(speed(preset, tokens, given.steps, processes))
        middle = {processes: statistics.median(speeds) for processes, speeds in found.items()}
        spread = {p: f"{min(s):,.0f} to {max(s):,.0f}" for p, s in found.items()}
        print(f"{name}: 1 process {middle[1]:,.0f} tokens/s ({spread[1]}), "
              f"2 processes {middle[2]:,.0f} ({spread[2]}): {middle[2] / middle[1]:.2f} x",
              flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
