"""Measure the time and peak memory of a study without training, with a corpus of 300 MB.

The study of rotten-tomatoes has two linear arms and no network: the time is that of reading,
hashing, tokenizing, overlap detection, PPMI-SVD vectors and the report. The corpus repeats IMDb's
texts; in each repetition the words are shuffled, so that no two documents are equal.

    python bench/overhead.py --megabytes 300
"""

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from reviews import read_reviews


def write_corpus(path: Path, megabytes: int) -> None:
    """Write documents with the lengths and words of IMDb's reviews, up to the size."""
    corpus, _ = read_reviews()
    generator = random.Random(0)
    written = 0
    with path.open("w", encoding="utf-8") as file:
        while written < megabytes * 1_000_000:
            for text in corpus.texts:
                words = text.split()
                if written:
                    generator.shuffle(words)
                written += file.write(" ".join(words) + "\n")
                if written >= megabytes * 1_000_000:
                    return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=300)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_corpus(folder / "corpus.txt", given.megabytes)
        command = ["compare", "rotten-tomatoes", "--corpus", str(folder / "corpus.txt")]
        command += ["--arms", "tfidf,cooc-lr", "--labels", "100", "--seeds", "2"]
        command += ["--vocab-size", "8192", "--out", str(folder / "study")]
        start = time.monotonic()
        subprocess.run(
            [sys.executable, "-m", "headstart", *command],
            check=True,
            env={**os.environ, "HEADSTART_CACHE": str(folder / "cache")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
        print(
            f"{given.megabytes} MB of corpus: {time.monotonic() - start:.0f} s, peak {peak:.2f} GB"
        )


if __name__ == "__main__":
    main()
