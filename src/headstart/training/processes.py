"""One pretraining in several processes, on one machine or many.

`torchrun -m headstart pretrain …` starts the processes, or `--processes`, which calls the same
launcher. Every process has the whole model, computes its share of each step's micro-batches, and
adds up the gradients with the others, so that all take the same steps. Process 0 alone prints and
writes; the others read the run's folder when a run is resumed.
"""

import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from headstart.errors import HeadstartError

T = TypeVar("T")
STUCK_SECONDS = 300.0  # so long, the others wait for a process in a step
LAUNCHER_SECONDS = 5.0  # in which the launcher ends the other processes after one has failed
PREPARATION = timedelta(days=30)  # reading and tokenizing takes as long as it takes
RESUME = "resume from the last checkpoint with --resume, with any number of processes"


@contextmanager
def _lost_process() -> Iterator[None]:
    """Turn the errors of PyTorch's process groups into one with a fix."""
    try:
        yield
    except RuntimeError as error:
        what, code = "has ended", "lost-process"
        if "timed out" in str(error).lower():
            what, code = f"has not answered for {STUCK_SECONDS:g} seconds", "stuck-process"
        raise HeadstartError(
            f"another process of this training {what}", fix=RESUME, code=code
        ) from error


class Processes:
    """The processes of a training, by the variables of torchrun's launcher; without it, one."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        launched = environment if "LOCAL_RANK" in environment else {}
        self.rank, self.count = int(launched.get("RANK", 0)), int(launched.get("WORLD_SIZE", 1))
        self._local_rank = int(launched.get("LOCAL_RANK", 0))
        self._local_count = int(launched.get("LOCAL_WORLD_SIZE", 1))
        self._stop_requested = self._stop_agreed = False
        self._patient: Any = None  # a second group, for what has no time limit

    @property
    def first(self) -> bool:
        """Whether this is the process that prints and writes."""
        return self.rank == 0

    @contextmanager
    def connected(self, device: str, threads: int) -> Iterator[None]:
        """Connect the processes, and divide a machine's threads among those that it runs."""
        if self.count == 1:
            yield
            return
        torch.set_num_threads(max(1, threads // self._local_count))
        on_gpu = torch.device(device).type == "cuda"
        if on_gpu:
            torch.cuda.set_device(self._local_rank)
        backend, timeout = "nccl" if on_gpu else "gloo", timedelta(seconds=STUCK_SECONDS)
        with _lost_process():
            dist.init_process_group(backend, timeout=timeout)
            self._patient = dist.new_group(backend="gloo", timeout=PREPARATION)
        try:
            yield
        finally:
            with suppress(RuntimeError):
                dist.destroy_process_group()

    def in_turn(self, prepare: Callable[[], T]) -> T:
        """Call it in one process of each machine first: the others find its files in the cache."""
        if self.count == 1:
            return prepare()
        # No time limit: that a process has died, the launcher notices.
        for turn in (self._local_rank == 0, self._local_rank > 0):
            if turn:
                prepared = prepare()
            with _lost_process():
                dist.barrier(self._patient)
        return prepared

    @_lost_process()
    def agree(self, value: T) -> T:
        """Return the value that process 0 has."""
        shared = [value]
        if self.count > 1:
            dist.broadcast_object_list(shared, group=self._patient)
        return shared[0]

    @_lost_process()
    @torch.no_grad()
    def copy_weights(self, model: nn.Module) -> None:
        """Give every process the weights of process 0."""
        if self.count > 1:
            for tensor in [*model.parameters(), *model.buffers()]:
                dist.broadcast(tensor, 0)

    @_lost_process()
    def sum_gradients(self, parameters: Iterable[nn.Parameter], loss: float) -> float:
        """Replace each gradient by the sum over all processes; returns the sum of the losses."""
        if self.count == 1:
            return loss
        dense: list[Tensor] = []
        for parameter in parameters:
            gradient: Any = parameter.grad
            if gradient is not None and gradient.is_sparse and gradient.device.type == "cpu":
                parameter.grad = gradient.coalesce()
                dist.all_reduce(parameter.grad)
            elif gradient is not None:
                parameter.grad = gradient.to_dense() if gradient.is_sparse else gradient
                dense.append(parameter.grad)
        numbers = torch.tensor([loss, float(self._stop_requested)], device=dense[0].device)
        flat = torch.cat([*(gradient.flatten() for gradient in dense), numbers])
        dist.all_reduce(flat)
        for gradient in dense:
            gradient.copy_(flat[: gradient.numel()].view_as(gradient))
            flat = flat[gradient.numel() :]
        total, stop = flat.tolist()
        self._stop_agreed = bool(stop)
        return total

    def share(self, items: int) -> slice:
        """Return which of some items this process computes."""
        return slice(self.rank * items // self.count, (self.rank + 1) * items // self.count)

    def join(self, mine: Tensor, items: int) -> Tensor:
        """Join the rows of all processes, of each those of `share`; mine keep their gradient."""
        if self.count == 1:
            return mine
        parts = []
        for rank in range(self.count):
            rows = (rank + 1) * items // self.count - rank * items // self.count
            part = mine.detach() if rank == self.rank else mine.new_empty(rows, *mine.shape[1:])
            with _lost_process():
                dist.broadcast(part, rank)
            parts.append(mine if rank == self.rank else part)
        return torch.cat(parts)

    def agree_to_stop(self, requested: bool) -> bool:
        """Return whether all stop after this step; requests go with the next step's gradients."""
        self._stop_requested = requested
        return requested if self.count == 1 else self._stop_agreed


@contextmanager
def reported_once() -> Iterator[None]:
    """Let process 0 report a failure, or the launcher that a process has died; it ends others."""
    try:
        yield
    except HeadstartError as error:
        if Processes().rank or error.code == "lost-process":
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            time.sleep(LAUNCHER_SECONDS)
        raise


def launch(count: int, arguments: Sequence[str]) -> int:
    """Run `headstart ARGUMENTS` in several processes of this machine; returns the exit code."""
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    logging.disable()  # the launcher's tables of failures: what follows is one message
    here: Any = {"rdzv_backend": "c10d", "rdzv_endpoint": "127.0.0.1:0", "local_addr": "127.0.0.1"}
    config = LaunchConfig(1, 1, count, run_id=str(os.getpid()), max_restarts=0, **here)
    try:
        elastic_launch(config, sys.executable)("-m", "headstart", *arguments)
    except SignalException:
        return 130
    except ChildFailedError as error:
        codes = {rank: failure.exitcode for rank, failure in error.failures.items()}
        if max(codes.values()) > 0:
            return max(codes.values())  # a process has reported its failure
        rank = min(codes, key=lambda rank: codes[rank] == -signal.SIGTERM)  # that is the launcher's
        raise HeadstartError(
            f"process {rank} of {count} (counted from 0) was ended by signal {-codes[rank]}; the "
            "system may have run out of memory",
            fix=RESUME,
            code="lost-process",
        ) from None
    return 0
