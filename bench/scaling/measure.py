"""Measure the pieces on this machine: about two minutes, and nothing else should run."""

import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from headstart.training.pretrain_loop import micro_batches
from headstart.training.processes.shared_memory import SharedSum
from processes import train

from headstart.text.reading.corpus import read_corpus
from headstart.text.tokenizers.train_tokenizer import train_tokenizer
from headstart.training.checkpoints import Checkpoints
from headstart.training.optimizer import clip_gradients, make_optimizer
from headstart.training.pretrain import PlannedPretraining
from peers.measure import SIZES
from scaling.pieces import Check, Pieces
from store import imdb_lines, time_store, write_corpus

ROOT = Path(__file__).resolve().parents[2]
SMALL, LARGE = 512, 2_048  # tokens of the steps that one process takes
WIDE = 8_192  # tokens of a large step
MESSAGE, BULK = 64, 14_000_000  # bytes
SHAPED = (0.1, 1.0)  # gigabits per second of the networks that the model is checked with
STORED = 20  # megabytes of text


def measure(before: Pieces) -> tuple[Pieces, set[str], list[Check]]:
    """The pieces, the names of those that are new, and what the model can be checked with."""
    found: dict[str, float] = {}
    checks: list[Check] = []
    _measure_steps(found, checks)
    _measure_all_reduce(found, checks)
    _measure_text(found)
    return replace(before, **found), set(found), checks


def _measure_steps(found: dict[str, float], checks: list[Check]) -> None:
    one = {tokens: _steps(tokens, processes=1, count=24) for tokens in (SMALL, LARGE)}
    found["drawn_seconds_per_token"] = _drawing_seconds(one[LARGE][2]) / LARGE
    update, found["checkpoint_seconds"] = _update_and_save_seconds(one[LARGE][2].model)
    gradients = statistics.median(one[SMALL][0]) - update
    found["seconds_per_token"] = gradients / SMALL - found["drawn_seconds_per_token"]
    found["seconds_per_step"] = update
    found["jitter"] = statistics.median(_spread(seconds) for seconds, _, _ in one.values())
    two = {2 * SMALL: _steps(2 * SMALL, processes=2, count=24)}
    two[WIDE] = _steps(WIDE, processes=2, count=6)
    checks += [Check("step", tokens, 0, statistics.median(two[tokens][0])) for tokens in two]
    model = one[SMALL][2].model
    rows = sum(parameter.size(0) for parameter in model.vocabulary_rows)
    found["weight_bytes"] = 4 * sum(parameter.numel() for parameter in model.parameters())
    found["agreed_bytes"] = rows + sum(1 for _ in model.parameters())
    found["exchanged_tokens"] = 2 * SMALL
    found["exchanged_bytes"] = two[2 * SMALL][1]
    doublings = (WIDE // (2 * SMALL)).bit_length() - 1
    found["exchanged_per_doubling"] = (two[WIDE][1] - two[2 * SMALL][1]) / doublings


def _steps(
    tokens: int, *, processes: int, count: int
) -> tuple[list[float], int, PlannedPretraining]:
    """Seconds of the steps but the first ones, bytes exchanged by each, and what was trained."""
    task = {"name": "small", "sizes": SIZES["small"], "steps": count, "batch_tokens": tokens}
    more = {"precision": "fp32", "threads": 1, "processes": processes}
    ends, sent, planned = train({**task, **more})
    return [late - early for (_, early), (_, late) in pairwise(ends[1:])], sent, planned


def _drawing_seconds(planned: PlannedPretraining) -> float:
    """Of the batch of one step, with its candidates."""
    draw = partial(micro_batches, planned.setup, planned.model, 10)
    return statistics.median(_timed(partial(draw, number)) for number in range(10))


def _spread(seconds: list[float]) -> float:
    """The standard deviation as a share of the median, unmoved by a few outliers."""
    median = statistics.median(seconds)
    return 1.4826 * statistics.median(abs(one - median) for one in seconds) / median


def _update_and_save_seconds(model: Any) -> tuple[float, float]:
    """Of clipping and updating all weights, and of a checkpoint."""
    optimizer = make_optimizer(model, learning_rate=1e-6, weight_decay=0.0, betas=(0.9, 0.98))
    checkpoints = Checkpoints(Path(tempfile.mkdtemp()))

    def update() -> None:
        clip_gradients(model.parameters(), 1.0)
        optimizer.step()

    updates, saves = [], []
    for number in range(1, 10):
        for parameter in model.parameters():
            parameter.grad = torch.full_like(parameter, 1e-3)
        updates.append(_timed(update))
        save = partial(checkpoints.save, number, model, optimizer, {"progress": {}})
        saves.append(_timed(save))
    return statistics.median(updates), statistics.median(saves)


def _measure_all_reduce(found: dict[str, float], checks: list[Check]) -> None:
    message, bulk = _all_reduce([[], []], "127.0.0.1", "lo", MESSAGE, BULK)
    found["message_seconds"] = message / 2  # two processes: one message to scatter, one to gather
    found["loopback_bytes_per_second"] = BULK / (bulk - message)
    parts = torch.zeros(2, BULK // 4)
    shared = SharedSum(parts, 0, lambda: None)
    seconds = statistics.median(_timed(lambda: shared.total(BULK // 4)) for _ in range(9))
    found["added_bytes_per_second"] = 2 * BULK / seconds
    sys.path.insert(0, str(ROOT))
    from tests.networks import ADDRESSES, CARD, two_machines

    try:
        with two_machines() as network:
            there = [network.on_machine(number) for number in (0, 1)]
            for gigabits in SHAPED:
                network.limit(gigabits)
                seconds = _all_reduce(there, ADDRESSES[0], CARD, BULK)[0]
                checks.append(Check("all-reduce", BULK, gigabits, seconds))
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"no network between two machines here: {error}", file=sys.stderr)


def _all_reduce(there: list[list[str]], address: str, card: str, *sizes: int) -> list[float]:
    with socket.socket() as listening:
        listening.bind(("", 0))
        port = listening.getsockname()[1]
    script = [sys.executable, str(Path(__file__).with_name("all_reduce.py"))]
    ranks = [
        subprocess.Popen(
            [*prefix, *script, str(rank), "2", address, str(port), card, *map(str, sizes)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank, prefix in enumerate(there)
    ]
    printed = [rank.communicate(timeout=120)[0] for rank in ranks]
    seconds: list[float] = json.loads(printed[0])
    return seconds


def _measure_text(found: dict[str, float]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, lines = Path(name), imdb_lines()
        corpus = folder / "corpus.txt"
        write_corpus(corpus, lines, STORED)
        size = corpus.stat().st_size
        tokenizer = train_tokenizer(lines[:5_000], vocab_size=8_192)
        tokenizer_file = tokenizer.save(folder)
        seconds, tokens = time_store(corpus, tokenizer_file, folder / "stores")
        found["stored_bytes_per_second"], found["bytes_per_token"] = size / seconds, size / tokens
        found["hashed_bytes_per_second"] = size / _timed(lambda: read_corpus([corpus]).fingerprint)
        ids = [one.tolist() for one in tokenizer.encode_arrays(lines[:2_000])]
        seconds = _timed(lambda: [tokenizer.decode(one) for one in ids])
        decoded = sum(len(line.encode()) for line in lines[:2_000])
        found["decoded_bytes_per_second"] = decoded / seconds
        found["restart_seconds"] = _restart_seconds(corpus, tokenizer_file, folder)


def _timed(call: Any) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _restart_seconds(corpus: Path, tokenizer: Path, folder: Path) -> float:
    """Two processes from the command to the end of their first step, the second time."""
    words = [sys.executable, "-m", "headstart", "pretrain", str(corpus), "--steps", "1"]
    words += ["--processes", "2", "--threads", "1", "--output", "candidates"]
    words += ["--embedding-start", "random", "--tokenizer", str(tokenizer)]
    for number in (1, 2):
        out = str(folder / f"run-{number}")
        again = _timed(
            lambda out=out: subprocess.run([*words, "--out", out], check=True, capture_output=True)
        )
    return again
