"""Run functions in forks of a process with all imports, which start quickly and can be killed.

That process is multiprocessing's fork server, which has only imported modules. A fork of a test's
own process would inherit thread pools (of Rust's rayon, of OpenMP) without their threads, and wait
for them forever.
"""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property, partial
from multiprocessing.connection import Connection
from pathlib import Path

from tests.conftest import Result, run_here

MOST = 10_000  # characters of messages: what a pipe holds without a reader
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "tests.conftest",
        "torch",
        "torch._dynamo",  # the first step of an optimizer imports it, for a second or two
        "sklearn.linear_model",
        "headstart.cli.app",
        "headstart.study.study",
        "headstart.data.inspect",
        "headstart.training.finetune",
        "headstart.training.pretrain",
    ]
)


class Fork:
    """A process that calls a function and ends with the exit code of what it returns.

    Parameters
    ----------
    call : is pickled, so it is a function of a module, or a `partial` of one.
    """

    def __init__(self, call: Callable[[], Result]) -> None:
        self._pipe, there = FORKS.Pipe(duplex=False)
        arguments = (call, dict(os.environ), Path.cwd(), there)
        self._process = FORKS.Process(target=_call, args=arguments)
        self._process.start()
        there.close()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @cached_property
    def messages(self) -> str:
        """Its standard error after its end; empty if it was killed."""
        with suppress(EOFError):
            return self._pipe.recv_bytes().decode()
        return ""

    def poll(self) -> int | None:
        """The exit code, negative for a signal; `None` while it runs."""
        return self._process.exitcode

    def wait(self) -> int:
        """Wait for the end; returns the exit code."""
        self._process.join()
        assert self._process.exitcode is not None
        return self._process.exitcode

    def kill(self, after: float = 0.0) -> bool:
        """Kill it as `kill -9` does after some seconds; returns False if it had already ended."""
        time.sleep(after)
        self._process.kill()
        return self.wait() == -signal.SIGKILL

    def wait_for_lines(self, path: Path, lines: int) -> None:
        """Wait until the file has a number of lines, or the process has ended."""
        while self.poll() is None:
            if path.is_file() and path.read_bytes().count(b"\n") >= lines:
                return
            time.sleep(0.01)


def start(words: Sequence[object], *, first: Callable[[], None] | None = None) -> Fork:
    """Run `headstart WORDS…` in a fork, which first calls `first`."""
    return Fork(partial(_run, list(map(str, words)), first))


def _run(words: list[str], first: Callable[[], None] | None) -> Result:
    if first is not None:
        first()
    return run_here(words)


def _call(
    call: Callable[[], Result], environment: dict[str, str], folder: Path, there: Connection
) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    result = call()
    there.send_bytes(result.stderr[-MOST:].encode())
    os._exit(result.returncode)
