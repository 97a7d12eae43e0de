"""Memory over long work: `python -m torture.memory`, part of `make torture`.

A pretraining of many steps and a prediction of many rows, with a tiny network, print the memory
that the process holds at ten places on the way. What it holds at the end may exceed what it held
after the first tenth by `ALLOWED` megabytes: caches that fill up, not something that grows.
"""

import argparse
import csv
import gc
import tempfile
import time
from pathlib import Path

import psutil
from tests.labelled import config, dataset, splits
from tests.runs import small_config

from headstart.run import NetworkRun
from headstart.training.callbacks import Callback
from headstart.training.finetune import finetune
from headstart.training.pretrain import pretrain
from headstart.training.trainer import TrainState

ALLOWED = 64.0  # megabytes: the words that a tokenizer remembers take up to 48
PLACES = 10


class Memory:
    """Prints the process's memory at ten places of a way of `total` parts."""

    def __init__(self, what: str, unit: str, total: int) -> None:
        self.what, self.unit, self.total = what, unit, total
        self.process, self.began = psutil.Process(), time.monotonic()
        self.found: list[float] = []

    def at(self, done: int) -> None:
        if done * PLACES >= (len(self.found) + 1) * self.total:
            gc.collect()
            self.found.append(self.process.memory_info().rss / 1e6)
            seconds = time.monotonic() - self.began
            line = f"{self.what}: {done:>9,} {self.unit}, {self.found[-1]:,.0f} MB, {seconds:.0f} s"
            print(line, flush=True)

    def end(self) -> bool:
        """Whether it stayed flat."""
        grown = self.found[-1] - self.found[0]
        flat = grown <= ALLOWED
        print(f"{self.what}: {grown:+.1f} MB from the first tenth to the end: ", end="")
        print("flat" if flat else f"GROWN by more than {ALLOWED:.0f} MB", flush=True)
        return flat


class Watch(Callback):
    """Looks at the memory after every step."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    def on_step(self, state: TrainState) -> None:
        self.memory.at(state.step)


def over_steps(folder: Path, steps: int) -> bool:
    memory = Memory("pretraining", "steps", steps)
    tiny = {"width": 16, "layers": 1, "heads": 1, "feed_forward_width": 16, "batch_tokens": 64}
    settings = small_config(
        folder, steps=steps, evaluations=20, length=16, save_seconds=5.0, **tiny
    )
    pretrain(settings, folder / "base", callbacks=[Watch(memory)])
    return memory.end()


def over_rows(folder: Path, rows: int) -> bool:
    finetune(config(epochs=1, layers=1), folder / "run", splits=splits())
    texts = dataset(1_000, sentences=1).texts
    with (folder / "many.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "number"])
        writer.writerows((f"{texts[n % 1_000]} {n}", n) for n in range(rows))
    size = (folder / "many.csv").stat().st_size
    memory = Memory("prediction", "rows", rows)

    def show(done: int, total: int | None) -> None:
        memory.at(done)

    summary = NetworkRun.open(folder / "run").predict_file(
        folder / "many.csv", folder / "out.jsonl", progress=show
    )
    assert (summary["rows"], summary["bad_rows"]) == (rows, 0), summary
    print(f"prediction: {size / 1e6:,.0f} MB of input, {summary['rows']:,} rows out")
    return memory.end()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=1_000_000)
    words = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headstart-memory-") as name:
        flat = [over_steps(Path(name), words.steps), over_rows(Path(name), words.rows)]
    return 0 if all(flat) else 1


if __name__ == "__main__":
    raise SystemExit(main())
