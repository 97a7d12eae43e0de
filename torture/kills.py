"""Kills at random moments: `python -m torture.kills --minutes 30`, part of `make torture`.

A pretraining, a fine-tuning and a study are ended with `kill -9` at random moments, again and
again, until one process comes to the end. Its weights and results must be the bits of an
undisturbed run. The processes are forks of one that has loaded everything already, so that kills
hit the work and not the start of Python.
"""

import argparse
import os
import random
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.conftest import run_here
from tests.fault_cases import CASES, cache_in, uninterrupted, write_inputs

NAMES = ("pretrain", "finetune", "compare")
MOST = 12  # kills of one run


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
            outcome, seconds = expected[name]
            trial = folder / "trial"
            shutil.rmtree(trial, ignore_errors=True)
            while _killed(name, inputs, trial, generator.uniform(0, 0.6) * seconds):
                kills[name] += 1
                if kills[name] % MOST == 0:
                    break
            assert not _killed(name, inputs, trial, None)
            runs[name] += 1
            if CASES[name].outcome(trial / "out") != outcome:
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


def _undisturbed(name: str, inputs: Path, folder: Path) -> tuple[Any, float]:
    """What the command comes to, and how long it takes when everything is loaded."""
    uninterrupted(CASES[name], inputs, folder / f"first-{name}")
    began = time.monotonic()
    outcome, _ = uninterrupted(CASES[name], inputs, folder / f"whole-{name}")
    return outcome, time.monotonic() - began


def _killed(name: str, inputs: Path, trial: Path, after: float | None) -> bool:
    """Run the command in a process of its own; whether it was killed before its end."""
    trial.mkdir(exist_ok=True)
    child = os.fork()
    if not child:
        code = 1
        try:
            with cache_in(trial / "cache"):
                code = run_here(CASES[name].words(inputs, trial / "out")).returncode
        finally:
            os._exit(code)
    if after is not None:
        time.sleep(after)
        os.kill(child, signal.SIGKILL)  # a process that has ended waits for us until here
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert ended in (0, -signal.SIGKILL), f"{name}: exit code {ended}"
    return ended == -signal.SIGKILL


if __name__ == "__main__":
    raise SystemExit(main())
