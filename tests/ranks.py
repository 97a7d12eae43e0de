"""The processes of one training, as torchrun would start them; on one machine, or on two.

Each is a fork of a process that has loaded everything (`tests.forked`), so that many can be killed.
"""

import os
import random
import socket
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import psutil
import torch
from safetensors.torch import load_file

from headstart.training.listener import Listener, Progress
from headstart.training.processes import store_ranks
from tests.forked import Fork, start
from tests.runs import options

STEPS = 40
ROUNDING = 1e-3  # of a weight, after all steps
CANDIDATES = {"output": "candidates", "frequent": 40, "drawn": 40}
TINY = {"width": 16, "layers": 1, "feed_forward_width": 16, "length": 16, "batch_tokens": 96}
LOOPBACK = {"MASTER_ADDR": "127.0.0.1", "GLOO_SOCKET_IFNAME": "lo"}
Enter = Callable[[], None]


def pretrain_words(folder: Path, out: Path, *more: object) -> list[str]:
    """`pretrain` of a corpus in `folder`, with checkpoints all the time."""
    settings = {**TINY, **CANDIDATES, "steps": STEPS, "precision": "fp32", "save_seconds": 0.1}
    words = ["pretrain", str(folder / "corpus.txt"), *options(**settings)]
    return [*words, "--out", str(out), *map(str, more)]


def start_ranks(
    words: Sequence[object],
    count: int,
    *,
    address: dict[str, str] | None = None,
    enter: Sequence[Enter | None] = (),
) -> list[Fork]:
    """Start so many processes of one command, by rank.

    Parameters
    ----------
    words : the command line, the same for all.
    count : how many.
    address : where rank 0 is found, and through which network; by default this machine's own.
    enter : what each rank calls first, to be on a machine of its own.
    """
    environment = {**(address or LOOPBACK), "WORLD_SIZE": str(count), "MASTER_PORT": str(_port())}
    alone = bool(enter)  # on its machine
    ranks = []
    for rank, one in zip(range(count), enter or [None] * count, strict=True):
        places = {
            "RANK": rank,
            "LOCAL_RANK": 0 if alone else rank,
            "GROUP_RANK": rank if alone else 0,
            "LOCAL_WORLD_SIZE": 1 if alone else count,
        }
        variables = environment | {name: str(value) for name, value in places.items()}
        ranks.append(start(words, first=partial(_begin, variables, one)))
    return ranks


def _begin(variables: dict[str, str], enter: Enter | None) -> None:
    torch.set_num_threads(1)
    store_ranks.GRACE_SECONDS = 2.0  # all are on one machine
    os.environ.update(variables, TORCH_CPP_LOG_LEVEL="ERROR")
    if enter is not None:
        enter()


def _port() -> int:
    with socket.socket() as listening:
        listening.bind(("", 0))
        return int(listening.getsockname()[1])


def last_checkpoint(run: Path) -> Path:
    return run / "checkpoints" / f"step-{STEPS:08d}"


def final_bytes(run: Path) -> list[bytes]:
    """The weights and moments after the last step."""
    names = ("model.safetensors", "optimizer.safetensors")
    return [(last_checkpoint(run) / name).read_bytes() for name in names]


def largest_difference(run: Path, other: Path) -> float:
    """Between two runs' weights after the last step."""
    one, two = (load_file(last_checkpoint(run) / "model.safetensors") for run in (run, other))
    return max(float((one[name] - two[name]).abs().max()) for name in two)


def workers() -> list[int]:
    """The pids of the processes that were started beside this one."""
    return [
        child.pid
        for child in psutil.Process().children(recursive=True)
        if "spawn_main" in " ".join(child.cmdline())
    ]


class SignalAt(Listener):
    """Sends a signal to a process beside this one, at a random moment after a step."""

    def __init__(self, step: int, number: int, generator: random.Random) -> None:
        self.step, self.number, self.generator = step, number, generator

    def on_step(self, progress: Progress) -> None:
        if progress.step == self.step:
            time.sleep(self.generator.uniform(0, 0.02))
            os.kill(workers()[0], self.number)
