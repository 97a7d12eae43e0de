"""The properties that fuzzing checks: exit code 0 or 2, no traceback, no lost row or changed file.

Each property draws its case from Hypothesis. `tests/test_fuzz.py` tries some cases of each, `make
fuzz` as many as the time allows.
"""

import atexit
import contextlib
import csv
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from hypothesis import strategies as st

from headstart.config import Config, FinetuneConfig, PretrainConfig, StudyConfig
from tests.conftest import Result, run_here
from tests.corpora import write_corpus
from tests.fault_cases import cache_in, compare_words, finetune_words, pretrain_words
from tests.fuzz_strategies import (
    FILES,
    WILD,
    cells,
    damaged_bytes,
    damaged_json,
    damaged_safetensors,
)
from tests.labelled import dataset, write_csv


@cache
def workshop() -> Path:
    """A corpus, a dataset, a base, a classifier and a study, made once."""
    folder = Path(tempfile.mkdtemp(prefix="headstart-fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    write_corpus(folder / "c.txt", 60)
    write_csv(folder / "d.csv", dataset(80, sentences=1))
    with cache_in(folder / "cache"):
        for name, words in (
            ("base", pretrain_words),
            ("run", finetune_words),
            ("study", compare_words),
        ):
            result = run_here(words(folder, folder / name))
            assert result.returncode == 0, result.stderr
    return folder


@contextlib.contextmanager
def own_folder() -> Iterator[Path]:
    """Make a temporary folder the current one."""
    workshop()
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="headstart-fuzz-") as name:
        os.chdir(name)
        try:
            with cache_in(workshop() / "cache"):
                yield Path(name)
        finally:
            os.chdir(before)


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def run_promised(*words: object) -> Result:
    """Run a command and check that it succeeds or prints one message."""
    result = run_here([str(word) for word in words])
    assert result.returncode in (0, 2), f"{words}: exit {result.returncode}\n{result.stderr}"
    assert "Traceback" not in result.stderr, result.stderr
    if result.returncode == 2:
        assert result.stderr.strip(), f"{words}: no message"
    return result


def any_file(data: st.DataObject, suffixes: list[str]) -> tuple[str, bytes]:
    suffix = data.draw(st.sampled_from(suffixes))
    content = data.draw(FILES[suffix])
    if data.draw(st.integers(0, 3)) == 0:
        content = data.draw(damaged_bytes(content))
    return f"d{suffix}", content


def reading_any_file(data: st.DataObject) -> None:
    """Every reader succeeds or prints one message, and writes nothing."""
    name, content = any_file(data, list(FILES))
    with own_folder() as folder:
        (folder / name).write_bytes(content)
        kind = data.draw(st.sampled_from([[], ["--corpus"]]))
        run_promised("inspect", *kind, name, "--json")
        assert contents(folder) == {name: content}


def predicting_any_file(data: st.DataObject) -> None:
    """Every input row has a row in the output, in order, or there is no output file."""
    name, content = any_file(data, [".csv", ".tsv", ".jsonl", ".json", ".txt"])
    output = data.draw(st.sampled_from(["o.jsonl", "o.csv"]))
    with own_folder() as folder:
        (folder / name).write_bytes(content)
        run = workshop() / "run"
        result = run_promised("predict", run, "--input", name, "--output", output, "--json")
        left = contents(folder)
        assert left.pop(name) == content
        if result.returncode == 2:
            assert left == {}
            return
        assert set(left) == {output}
        summary = json.loads(result.stdout)
        rows = _rows(folder / output)
        assert len(rows) == summary["rows"]
        numbers = [int(row["row"]) for row in rows]
        assert numbers == sorted(set(numbers))
        assert sum(bool(row["error"]) for row in rows) == summary["bad_rows"]


def _rows(path: Path) -> list[dict[str, object]]:
    if path.suffix == ".jsonl":
        lines = path.read_text(encoding="utf-8").split("\n")
        return [_named(json.loads(line)) for line in lines if line]
    with path.open(encoding="utf-8", newline="") as file:
        return [_named(row) for row in csv.DictReader(file)]


def _named(row: dict[str, object]) -> dict[str, object]:
    """Find the columns `row` and `error`, which are renamed if the input has such columns."""
    found = {name: row.get(f"predicted_{name}", row.get(name)) for name in ("row", "error")}
    return row | found


DAMAGED = (".json", ".jsonl", ".toml", ".safetensors", ".csv", ".parquet")


def opening_a_damaged_run(data: st.DataObject) -> None:
    """A run with a damaged file predicts or reports the damage; a resume does, too."""
    command, source = data.draw(
        st.sampled_from(
            [
                ("predict", "run"),
                ("evaluate", "run"),
                ("finetune", "run"),
                ("generate", "base"),
                ("pretrain", "base"),
                ("report", "study"),
                ("compare", "study"),
            ]
        )
    )
    with own_folder() as folder:
        shutil.copytree(workshop() / source, folder / "r")
        files = sorted(path for path in (folder / "r").rglob("*") if path.suffix in DAMAGED)
        path = data.draw(st.sampled_from(files))
        damage(path, data)
        words: dict[str, list[object]] = {
            "predict": ["predict", "r", "the old cat"],
            "evaluate": ["evaluate", "r"],
            "finetune": [*finetune_words(workshop(), Path("r"))],
            "generate": ["generate", "r", "the cat", "--tokens", 2],
            "pretrain": [*pretrain_words(workshop(), Path("r"))],
            "report": ["report", "r"],
            "compare": [*compare_words(workshop(), Path("r"))],
        }
        run_promised(*words[command])


def damage(path: Path, data: st.DataObject) -> None:
    """Replace the content of the file, possibly by a valid document of the same format."""
    content = path.read_bytes()
    if path.suffix == ".json" and data.draw(st.booleans()):
        path.write_bytes(data.draw(damaged_json(content)))
    elif path.suffix == ".safetensors" and data.draw(st.booleans()):
        path.write_bytes(data.draw(damaged_safetensors(content)))
    else:
        path.write_bytes(data.draw(damaged_bytes(content)))


def options_of(config: type[Config]) -> str:
    """Every option of a command's settings."""
    return " ".join(one.option[2:] for one in config.settings() if not one.argument)


OPTIONS = {
    "inspect": "corpus validation test text-column second-column label-column encoding documents "
    "tokenizer split-seed task",
    "predict": "input output text-column second-column encoding",
    "evaluate": "text-column label-column",
    "finetune": options_of(FinetuneConfig),
    "pretrain": options_of(PretrainConfig),
    "compare": options_of(StudyConfig),
    "generate": "seed temperature tokens top-p",
    "params": "classes feed-forward-width heads layers objective preset vocab-size width",
}


def giving_wild_options(data: st.DataObject) -> None:
    """Any value of any option is used or rejected; the user's files are not changed."""
    command = data.draw(st.sampled_from(list(OPTIONS)))
    option = data.draw(st.sampled_from(OPTIONS[command].split()))
    value = data.draw(st.sampled_from(WILD) | cells.filter(lambda text: "\0" not in text))
    with own_folder() as folder:
        for name in ("c.txt", "d.csv"):
            shutil.copy(workshop() / name, folder / name)
        before = contents(folder)
        starts: dict[str, list[object]] = {
            "inspect": ["inspect", "d.csv"],
            "predict": ["predict", workshop() / "run", "--input", "d.csv", "--output", "o.csv"],
            "evaluate": ["evaluate", workshop() / "run"],
            "finetune": [*finetune_words(folder, Path("r"))],
            "pretrain": [*pretrain_words(folder, Path("r")), "--dry-run"],
            "compare": [*compare_words(folder, Path("r")), "--dry-run"],
            "generate": ["generate", workshop() / "base", "the cat", "--tokens", 2],
            "params": ["params"],
        }
        run_promised(*starts[command], f"--{option}", value)
        left = contents(folder)
        assert {name: left.get(name) for name in before} == before


PROPERTIES: dict[str, Callable[[st.DataObject], None]] = {
    check.__name__: check
    for check in (
        reading_any_file,
        predicting_any_file,
        opening_a_damaged_run,
        giving_wild_options,
    )
}
