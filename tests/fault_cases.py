"""Small commands into which faults are injected, and their expected results."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from headstart.study.results import read_results
from tests.conftest import Result, run_here
from tests.corpora import write_corpus
from tests.faulty_disk import Disk, refusing
from tests.labelled import dataset, write_csv

SIZES = {
    "vocab-size": 300,
    "width": 16,
    "layers": 1,
    "heads": 1,
    "feed-forward-width": 16,
    "threads": 1,
}
TINY = SIZES | {"precision": "fp32", "save-seconds": 0}


@dataclass(frozen=True)
class Case:
    """A command, and the bytes or values that are compared between two runs of it."""

    name: str
    words: Callable[[Path, Path], list[str]]  # of the folder of inputs and of the outputs
    outcome: Callable[[Path], Any]


def named(options: dict[str, object]) -> list[str]:
    return [str(word) for name, value in options.items() for word in (f"--{name}", value)]


def pretrain_words(inputs: Path, out: Path) -> list[str]:
    sizes = TINY | {"steps": 3, "length": 16, "batch-tokens": 32, "held-out": 0.2}
    return ["pretrain", str(inputs / "c.txt"), "--out", str(out), "--resume", *named(sizes)]


def finetune_words(inputs: Path, out: Path) -> list[str]:
    sizes = TINY | {"epochs": 2, "batch-size": 32, "length": 16}
    return ["finetune", str(inputs / "d.csv"), "--out", str(out), "--resume", *named(sizes)]


def compare_words(inputs: Path, out: Path) -> list[str]:
    options = SIZES | {"labels": 20, "seeds": 2, "folds": 1, "epochs": 1, "tokens": 4096, "jobs": 1}
    arms = {"arms": "scratch,pretrained,cooc-lr,tfidf", "corpus": inputs / "c.txt"}
    return ["compare", str(inputs / "d.csv"), "--out", str(out), *named(options | arms)]


def predict_words(inputs: Path, out: Path) -> list[str]:
    files = {"input": inputs / "d.csv", "output": out / "answers.csv"}
    return ["predict", str(inputs / "cls"), *named(files)]


def _files(*names: str) -> Callable[[Path], list[bytes]]:
    return lambda out: [(out / name).read_bytes() for name in names]


def _study(out: Path) -> Any:
    lines = read_results(out).values.drop_columns(["seconds"]).to_pylist()
    kept = sorted((out / "best").rglob("*.safetensors"))
    weights = [(path.name, path.read_bytes()) for path in kept]
    tables = _files("predictions.parquet", "rows.parquet")(out)
    return lines, tables, weights, (out / "report.html").is_file()


CASES = {
    case.name: case
    for case in (
        Case("pretrain", pretrain_words, _files("model.safetensors", "tokenizer.json")),
        Case("finetune", finetune_words, _files("model.safetensors", "task.json")),
        Case("compare", compare_words, _study),
        Case("predict", predict_words, _files("answers.csv")),
    )
}


def write_inputs(folder: Path) -> Path:
    """A corpus, a dataset and a fine-tuned run."""
    folder.mkdir(parents=True, exist_ok=True)
    write_corpus(folder / "c.txt", 60)
    write_csv(folder / "d.csv", dataset(80, sentences=1))
    with cache_in(folder / "cache"):
        result = run_here(finetune_words(folder, folder / "cls"))
    assert result.returncode == 0, result.stderr
    return folder


@contextmanager
def cache_in(folder: Path) -> Iterator[None]:
    with mock.patch.dict(os.environ, {"HEADSTART_CACHE": str(folder)}):
        yield


def attempt(case: Case, inputs: Path, trial: Path, nth: int | None, **how: bool) -> Any:
    """Run the command on a faulty disk; returns its output and the disk."""
    with cache_in(trial / "cache"), refusing(nth, trial, **how) as disk:
        return run_here(case.words(inputs, trial / "out")), disk


def uninterrupted(case: Case, inputs: Path, folder: Path) -> tuple[Any, Disk]:
    """Run the command without faults; returns its results and the number of disk operations."""
    folder.mkdir()
    result, disk = attempt(case, inputs, folder, None)
    assert result.returncode == 0, result.stderr
    return case.outcome(folder / "out"), disk


def parts(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.name.endswith(".part")]


def check_refused(result: Result, trial: Path, where: str) -> None:
    """Check that there is one message and no incomplete file."""
    assert result.returncode in (0, 2), f"{where}: {result.stderr}"
    assert "Traceback" not in result.stderr, where
    assert result.stderr.count("where:") <= 1, f"{where}: {result.stderr}"
    assert parts(trial) == [], where


def check_finishes(case: Case, inputs: Path, trial: Path, expected: Any, where: str) -> None:
    """Check that the same command gives the same results when the disk works again."""
    again, _ = attempt(case, inputs, trial, None)
    assert again.returncode == 0, f"{where}: {again.stderr}"
    assert case.outcome(trial / "out") == expected, where
    assert parts(trial) == [], where
    shutil.rmtree(trial)


def survive(case: Case, inputs: Path, trial: Path, expected: Any, nth: int, **how: bool) -> str:
    """Let the n-th operation fail, then run the command again; returns the failed operation."""
    trial.mkdir()
    result, disk = attempt(case, inputs, trial, nth, **how)
    where = f"{case.name}, operation {nth} ({disk.log[nth - 1]})"
    check_refused(result, trial, where)
    check_finishes(case, inputs, trial, expected, where)
    return where
