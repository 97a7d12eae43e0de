"""Measure the time and memory of computing PPMI-SVD vectors.

Each case runs in a separate process, so that peak memory is measured separately. The tokens are
those of the IMDb reviews (byte-level BPE); larger corpora repeat them with random changes. The
steps are measured in seconds of processor time (nearly all on one core), which other programs on
the machine hardly change; the total is also measured as elapsed time.

    python bench/cooccurrence.py [--cache FOLDER]
"""

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from headstart.data.cooccurrence import count_pairs, positive_pmi, truncated_svd
from reviews import byte_level_bpe, encode, read_reviews

# Vocabulary, tokens in millions, window.
CASES = [(8_192, 1, 5), (8_192, 8, 5), (8_192, 8, 10), (50_001, 8, 5), (50_001, 64, 5)]
WIDTH = 256


def documents(tokens: np.ndarray, total: int, vocab_size: int) -> Iterator[np.ndarray]:
    """Yield documents of 300 tokens; in repetitions, a tenth of the tokens is replaced."""
    draw = np.random.default_rng(0)
    for place in range(0, total, 300):
        begin = place % (len(tokens) - 300)
        document = tokens[begin : begin + 300].astype(np.int64)
        if place >= len(tokens):
            other = draw.random(300) < 0.1
            document[other] = draw.integers(0, vocab_size, other.sum())
        yield document


def peak_memory() -> int:
    """Return the peak memory in bytes; the value of `resource` would include the parent's peak."""
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) * 1024


def measure(tokens: np.ndarray, vocab_size: int, millions: int, window: int) -> None:
    before = peak_memory()
    started, times = time.perf_counter(), [time.process_time()]
    stream = documents(tokens, millions * 1_000_000, vocab_size)
    pairs, totals = count_pairs(stream, vocab_size=vocab_size, window=window)
    times.append(time.process_time())
    information = positive_pmi(pairs, totals, smoothing=0.75)
    times.append(time.process_time())
    truncated_svd(information, width=WIDTH, seed=0)
    times.append(time.process_time())
    peak = peak_memory()
    dropped = (totals.sum() - pairs.sum()) / 2e6
    clock, (count, pmi, svd) = time.perf_counter() - started, np.diff(times)
    print(
        f"{vocab_size:>10,}{millions:>8} M{window:>8}{pairs.nnz / 1e6:>9.1f} M"
        f"{dropped:>9.1f} M{count:>9.1f}{pmi:>7.1f}{svd:>7.1f}{clock:>9.1f}"
        f"{millions * 1e6 / (count + pmi + svd):>12,.0f}{(peak - before) / 1e9:>9.2f} GB",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, default=Path("runs/bench-cache"))
    parser.add_argument("--case", type=int, help="run only this case, in this process")
    options = parser.parse_args()
    if options.case is not None:
        vocab_size, millions, window = CASES[options.case]
        measure(np.load(options.cache / f"{vocab_size}.npy"), vocab_size, millions, window)
        return
    imdb, _ = read_reviews()
    for vocab_size in sorted({case[0] for case in CASES}):
        path = options.cache / f"{vocab_size}.npy"
        if not path.is_file():
            tokenizer = byte_level_bpe(imdb.texts, vocab_size, options.cache)
            np.save(path, np.concatenate(encode(tokenizer, imdb.texts)).astype(np.uint16))
    print(
        f"{'vocabulary':>10}{'tokens':>10}{'window':>8}{'pairs':>11}{'dropped':>11}{'count, s':>9}"
        f"{'PMI':>7}{'SVD':>7}{'clock':>9}{'tokens/s':>12}{'peak':>12}"
    )
    for case in range(len(CASES)):
        command = [sys.executable, __file__, "--cache", str(options.cache), "--case", str(case)]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
