"""Kills at random moments: `python -m torture.kills --kills 1000`, part of `make torture`.

A pretraining, a fine-tuning and a study are ended with `kill -9` at random moments, again and
again, until one process comes to the end. Its weights and results must be the bits of an
undisturbed run. The processes are forks of one that has loaded everything, so that kills
hit the work and not the start of Python, and cost little more than the work that they undo.
"""

import argparse
import random
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.fault_cases import CASES, cache_in, uninterrupted, write_inputs
from tests.forked import start

NAMES = ("pretrain", "finetune", "compare")
LONGEST_CHAIN = 12  # kills of one run, before a process is left alone


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument("--minutes", type=float, default=30.0, help="stop earlier than that")
    parser.add_argument("--seed", type=int, default=0)
    words = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="headstart-kills-"))
    generator = random.Random(words.seed)
    kills, runs, unequal = dict.fromkeys(NAMES, 0), dict.fromkeys(NAMES, 0), 0
    began = time.monotonic()
    try:
        inputs = write_inputs(folder / "inputs")
        expected = {name: _undisturbed(name, inputs, folder) for name in NAMES}
        while sum(kills.values()) < words.kills and time.monotonic() - began < 60 * words.minutes:
            name = min(NAMES, key=lambda one: kills[one])
            outcome, seconds = expected[name]
            trial = folder / "trial"
            shutil.rmtree(trial, ignore_errors=True)
            kills[name] += _kill_until_done(name, inputs, trial, seconds, generator)
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


def _kill_until_done(
    name: str, inputs: Path, trial: Path, seconds: float, generator: random.Random
) -> int:
    """Run the command, killed again and again, to its end; how often it was killed."""
    trial.mkdir()
    words = CASES[name].words(inputs, trial / "out")
    with cache_in(trial / "cache"):
        for killed in range(LONGEST_CHAIN):
            # Early moments more often, or a chain would end after two or three kills.
            moment = generator.random() * generator.random() * seconds
            process = start(words)
            if not process.kill(after=moment):
                assert process.wait() == 0, f"{name}: {process.messages}"
                return killed
        process = start(words)
        assert process.wait() == 0, f"{name}: {process.messages}"
    return LONGEST_CHAIN


if __name__ == "__main__":
    raise SystemExit(main())
