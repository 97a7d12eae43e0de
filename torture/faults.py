"""Every fault at every operation: `python -m torture.faults --minutes 30`, part of `make torture`.

For each command and each of its operations on the disk (new file, write, sync, rename, new
folder): the operation fails once, it fails and the disk stays full, or the process is killed
there. Afterwards nothing half-written may be left (but by a kill), and the same command must
come to the same bits. Operations are taken in an order that covers the whole command early, so
that a limit in time leaves no part of it out.
"""

import argparse
import shutil
import tempfile
import time
import traceback
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.conftest import Result
from tests.fault_cases import (
    CASES,
    Case,
    attempt,
    check_finishes,
    survive,
    uninterrupted,
    write_inputs,
)
from tests.faulty_disk import KILLED
from tests.forked import Fork

HOW = ("fails once", "stays full", "killed")
WEIGHTS = {"pretrain": 3, "finetune": 3, "compare": 2, "predict": 1}  # of the time


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--only", nargs="*", default=list(CASES))
    words = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="headstart-faults-"))
    broken = 0
    try:
        inputs = write_inputs(folder / "inputs")
        weights = sum(WEIGHTS[name] for name in words.only)
        for name in words.only:
            limit = 60 * words.minutes * WEIGHTS[name] / weights
            broken += _torture(CASES[name], inputs, folder, limit)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if broken else 0


def _torture(case: Case, inputs: Path, folder: Path, limit: float) -> int:
    began = time.monotonic()
    expected, disk = uninterrupted(case, inputs, folder / f"whole-{case.name}")
    total = len(disk.log)
    done, broken = dict.fromkeys(HOW, 0), 0
    for nth in _spread(total):
        if time.monotonic() - began > limit:
            break
        for how in HOW:
            trial = folder / f"{case.name}-{nth}"
            shutil.rmtree(trial, ignore_errors=True)
            try:
                if how == "killed":
                    _kill(case, inputs, trial, expected, nth)
                else:
                    survive(case, inputs, trial, expected, nth, stays=how == "stays full")
                done[how] += 1
            except Exception:
                broken += 1
                print(f"BROKEN: {case.name}, operation {nth} ({disk.log[nth - 1]}), {how}")
                traceback.print_exc()
    counts = ", ".join(f"{how}: {count:,} of {total:,}" for how, count in done.items())
    end = "all to the same bits" if not broken else f"{broken:,} BROKEN"
    print(f"{case.name}: {counts}; {end}; {time.monotonic() - began:.0f} s", flush=True)
    return broken


def _kill(case: Case, inputs: Path, trial: Path, expected: Any, nth: int) -> None:
    """Run the command in a process that ends at its n-th operation, then again to its end.

    Not in a fork of this process, which has worked: its thread pools would not be there.
    """
    trial.mkdir()
    assert Fork(partial(_attempt, case.name, inputs, trial, nth)).wait() == KILLED
    where = f"{case.name}, killed at operation {nth}"
    check_finishes(case, inputs, trial, expected, where, after_kill=True)


def _attempt(name: str, inputs: Path, trial: Path, nth: int) -> Result:
    result, _ = attempt(CASES[name], inputs, trial, nth, kill=True)
    return result


def _spread(total: int) -> Iterator[int]:
    """1 to `total`, each once, so that every beginning of it covers the whole range."""
    step = next(s for s in (89, 97, 101, 103) if total % s)
    return (1 + number * step % total for number in range(total))


if __name__ == "__main__":
    raise SystemExit(main())
