"""How a training gets its processes: started here, or by torchrun, or only this one.

`--processes N` starts N − 1 beside this one, which is rank 0. Under `torchrun … -m headstart
pretrain …` all have been started already, on one machine or on many, and are known by the
environment variables that torchrun sets.
"""

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from multiprocessing import parent_process
from typing import TYPE_CHECKING, Any

import psutil

from headstart.training.loop import Interrupted
from headstart.training.processes.ranks import ONE, Ranks

if TYPE_CHECKING:
    from headstart.training.processes.group import ProcessGroup
    from headstart.training.processes.store_ranks import LostProcessError

Work = Callable[..., None]  # what the processes beside rank 0 do: called with their ranks first
STUCK_SECONDS = 300.0  # without an answer; that a process has died is noticed within seconds
PATIENCE = 10.0  # seconds that a process is given to end
DYING = 5.0  # seconds that the end of a process may take after its connections have ended
LOOPBACK = "127.0.0.1"
LOST = 3  # the exit code of a process that ends because another one did


def under_torchrun() -> bool:
    """Whether torchrun (or what sets the same variables) has started this process."""
    return all(name in os.environ for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"))


def is_follower() -> bool:
    """Whether this process was started by torchrun beside the one that prints and writes."""
    return under_torchrun() and int(os.environ["RANK"]) > 0


def is_restarted() -> bool:
    """Whether torchrun has started this command again after a failure (`--max-restarts`)."""
    return under_torchrun() and _restarts() > 0


def _restarts() -> int:
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def process_count(wanted: int) -> int:
    """How many processes there will be: as many as torchrun has started, else as wanted."""
    return int(os.environ["WORLD_SIZE"]) if under_torchrun() else wanted


@contextmanager
def joined(
    count: int, work: Work, arguments: tuple[Any, ...], *, stuck_seconds: float
) -> Iterator[Ranks]:
    """The ranks of a training whose rank 0 is this process; they end with the block.

    Parameters
    ----------
    count : how many processes there are.
    work, arguments : what those do that are started here: `work(ranks, *arguments)`.
    stuck_seconds : how long an exchange waits for a process that lives but does not answer.
    """
    if count == 1:
        yield ONE
    elif under_torchrun():
        with _torchrun_group(stuck_seconds) as group:
            yield group
    else:
        with _started_here(count, work, arguments, stuck_seconds) as group:
            yield group


def follow_first(work: Work, *, stuck_seconds: float) -> None:
    """Do the work of a process that torchrun has started beside rank 0.

    Rank 0 says what happens; if it is lost, the first of those that are left does.
    """
    from headstart.training.processes.store_ranks import Ended, LostProcessError

    with _torchrun_group(stuck_seconds) as group:
        try:
            work(group)
        except Ended as ended:
            if ended.failed:  # a launcher must not take this process for one that has finished
                raise SystemExit(LOST) from None
        except Interrupted:
            raise SystemExit(130) from None
        except LostProcessError as lost:
            if group.speaks_for(lost):
                raise
            raise SystemExit(LOST) from None
        except BaseException as error:
            group.report(error)
            raise


@contextmanager
def _torchrun_group(stuck_seconds: float) -> Iterator["ProcessGroup"]:
    from torch.distributed import PrefixStore  # type: ignore[attr-defined]
    from torch.distributed.rendezvous import rendezvous

    from headstart.training.processes.group import ProcessGroup
    from headstart.training.processes.store_ranks import Place

    limit = timedelta(seconds=stuck_seconds)
    store, rank, count = next(iter(rendezvous("env://", timeout=limit)))
    # The launcher's store outlives a restart, and what was agreed on before it holds no more.
    store = PrefixStore(f"headstart/{_restarts()} of {count}", store)
    number = {name: int(os.environ.get(name, "0")) for name in ("LOCAL_RANK", "GROUP_RANK")}
    local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    place = Place(rank, count, number["LOCAL_RANK"], local, number["GROUP_RANK"])
    group = ProcessGroup(store, place, stuck_seconds=stuck_seconds)
    failed = True
    try:
        yield group
        failed = False
    finally:
        group.close(0.0 if failed else PATIENCE, failed=failed)


@contextmanager
def _started_here(
    count: int, work: Work, arguments: tuple[Any, ...], stuck_seconds: float
) -> Iterator["ProcessGroup"]:
    from torch.multiprocessing.spawn import start_processes

    from headstart.training.processes.group import ProcessGroup
    from headstart.training.processes.store_ranks import Place

    store = _local_store(timedelta(seconds=stuck_seconds))
    with _local_environment():
        with _ctrl_c_ignored():  # until a process has begun to train: rank 0 ends it
            processes = start_processes(
                _work,
                (store.port, count, work, arguments, stuck_seconds),
                nprocs=count - 1,
                join=False,
                daemon=True,
                start_method="spawn",  # forked PyTorch threads would hang
            ).processes

        def exit_codes() -> dict[int, int]:
            codes = {rank: process.exitcode for rank, process in enumerate(processes, start=1)}
            return {n: code for n, code in codes.items() if code is not None and code != LOST}

        group = ProcessGroup(
            store, Place(0, count, 0, count), stuck_seconds=stuck_seconds, exit_codes=exit_codes
        )
        patience = 0.0
        try:
            yield group
            patience = PATIENCE
        finally:
            group.close()
            for process in processes:
                process.join(patience)
                process.kill()  # it writes nothing, and one that is stuck hears nothing else
                process.join()


def _local_store(limit: timedelta) -> Any:
    """A store that only this machine reaches; by itself, PyTorch's listens at every address."""
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

    listening = socket.socket()
    listening.bind((LOOPBACK, 0))
    listening.listen()
    port = listening.getsockname()[1]
    return TCPStore(
        LOOPBACK,
        port,
        is_master=True,
        wait_for_workers=False,
        timeout=limit,
        master_listen_fd=listening.detach(),
    )


@contextmanager
def _ctrl_c_ignored() -> Iterator[None]:
    """Let processes that are started here ignore Ctrl-C; this one does so for a moment."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may decide about signals
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _local_environment() -> Iterator[None]:
    """Let gloo use the loopback interface, and let PyTorch's C++ leave messages to us."""
    loopback = [
        name
        for name, addresses in psutil.net_if_addrs().items()
        if any(one.family == socket.AF_INET and one.address == LOOPBACK for one in addresses)
    ]
    wanted = {"TORCH_CPP_LOG_LEVEL": "ERROR"}
    if loopback:
        wanted["GLOO_SOCKET_IFNAME"] = loopback[0]
    added = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def _work(
    index: int,
    port: int,
    count: int,
    work: Work,
    arguments: tuple[Any, ...],
    stuck_seconds: float,
) -> None:
    """The life of a process that was started here."""
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

    from headstart.training.processes.group import ProcessGroup
    from headstart.training.processes.store_ranks import Ended, LostProcessError, Place

    rank, limit = index + 1, timedelta(seconds=stuck_seconds)
    store = TCPStore(LOOPBACK, port, is_master=False, timeout=limit)
    group = ProcessGroup(store, Place(rank, count, rank, count), stuck_seconds=stuck_seconds)
    try:
        work(group, *arguments)
        group.close()
    except (Ended, Interrupted):
        sys.exit(0)
    except KeyboardInterrupt:
        # PyTorch has the system send it to those whose parent has died, sometimes twice.
        sys.exit(_last_words(group.lost([0], "has ended"), rank) if _is_orphan() else 0)
    except LostProcessError as lost:
        parent = parent_process()
        if parent is not None and 0 in lost.ranks:
            parent.join(DYING)
        sys.exit(_last_words(lost, rank))
    except BaseException as error:  # silence would look like a lack of memory
        group.report(error)
        sys.exit(1)


def _is_orphan() -> bool:
    parent = parent_process()
    return parent is not None and not parent.is_alive()


def _last_words(lost: "LostProcessError", rank: int) -> str | int:
    """What to exit with: rank 0 says what has happened; if it is dead, this message does."""
    return str(lost) if _is_orphan() and rank == 1 else LOST
