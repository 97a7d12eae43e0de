"""Kills at random moments: `python -m torture.kills --minutes 30`, part of `make torture`.

A pretraining, a fine-tuning and a study run as a user starts them and are ended with `kill -9` at
random moments, again and again; the last process may finish. Its weights and results must be the
bits of an undisturbed run.
"""

import argparse
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.fault_cases import CASES, write_inputs

KILLS_PER_RUN = 8
NAMES = ("pretrain", "finetune", "compare")
# More steps than in the tests with injected faults: there must be something to interrupt.
LONGER = {"pretrain": ["--steps", "150"], "finetune": ["--epochs", "30"], "compare": []}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    words = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="headstart-kills-"))
    generator = random.Random(words.seed)
    kills, runs, unequal = dict.fromkeys(NAMES, 0), dict.fromkeys(NAMES, 0), 0
    began = time.monotonic()
    try:
        inputs = write_inputs(folder / "inputs")
        expected = {name: _undisturbed(name, inputs, folder) for name in NAMES}
        while time.monotonic() - began < 60 * words.minutes:
            name = min(NAMES, key=lambda one: kills[one])
            out, seconds = folder / f"killed-{name}", expected[name][1]
            shutil.rmtree(out, ignore_errors=True)
            for _ in range(KILLS_PER_RUN):
                kills[name] += _killed(name, inputs, out, generator.uniform(0.3, 1) * seconds)
            _run(name, inputs, out)
            runs[name] += 1
            if CASES[name].outcome(out) != expected[name][0]:
                unequal += 1
                print(f"NOT EQUAL: {name}, run {runs[name]}, --seed {words.seed}", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for name in NAMES:
        print(f"{name}: {kills[name]:,} kills in {runs[name]:,} runs")
    minutes = (time.monotonic() - began) / 60
    end = "all runs bit-equal" if not unequal else f"{unequal} runs NOT bit-equal"
    print(f"{sum(kills.values()):,} kills, {end}; {minutes:.1f} minutes")
    return 1 if unequal else 0


def _command(name: str, inputs: Path, out: Path) -> list[str]:
    return [sys.executable, "-m", "headstart", *CASES[name].words(inputs, out), *LONGER[name]]


def _run(name: str, inputs: Path, out: Path) -> None:
    result = subprocess.run(_command(name, inputs, out), capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def _undisturbed(name: str, inputs: Path, folder: Path) -> tuple[Any, float]:
    """What the command comes to, and how long it takes once its caches are filled."""
    _run(name, inputs, folder / f"first-{name}")
    began = time.monotonic()
    out = folder / f"whole-{name}"
    _run(name, inputs, out)
    outcome: Callable[[Path], Any] = CASES[name].outcome
    return outcome(out), time.monotonic() - began


def _killed(name: str, inputs: Path, out: Path, after: float) -> bool:
    """Whether the process was still running when it was killed."""
    process = subprocess.Popen(
        _command(name, inputs, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


if __name__ == "__main__":
    raise SystemExit(main())
