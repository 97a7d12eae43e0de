"""Work in forks of this process, which has loaded everything: they start quickly, to be killed."""

import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.conftest import Result, run_here

MOST = 10_000  # characters of messages: what a pipe holds without a reader


class Fork:
    """A process that calls a function and ends with the exit code of what it returns."""

    def __init__(self, call: Callable[[], Result]) -> None:
        self.messages = ""  # on standard error, once it has ended
        self._code: int | None = None
        self._pipe, there = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            code = 1
            try:
                result = call()
                code = result.returncode
                os.write(there, result.stderr[-MOST:].encode())
            finally:
                os._exit(code)
        os.close(there)

    def poll(self) -> int | None:
        """The exit code, negative for a signal; `None` while it runs."""
        return self._code if self._code is not None else self._wait(os.WNOHANG)

    def wait(self) -> int:
        """Wait for the end; the exit code."""
        code = self._code if self._code is not None else self._wait(0)
        assert code is not None
        return code

    def kill(self, after: float = 0.0) -> bool:
        """End it as `kill -9` does, after so many seconds; false if it had ended by itself."""
        time.sleep(after)
        if self._code is None:
            os.kill(self.pid, signal.SIGKILL)  # one that has ended waits for us until here
        return self.wait() == -signal.SIGKILL

    def wait_for_lines(self, path: Path, lines: int) -> None:
        """Wait until the file has so many lines, or the process has ended."""
        while self.poll() is None:
            if path.is_file() and path.read_bytes().count(b"\n") >= lines:
                return
            time.sleep(0.01)

    def _wait(self, options: int) -> int | None:
        pid, status = os.waitpid(self.pid, options)
        if pid:
            self._code = os.waitstatus_to_exitcode(status)
            with os.fdopen(self._pipe, encoding="utf-8", errors="replace") as pipe:
                self.messages = pipe.read()
        return self._code


def start(words: Sequence[object], *, first: Callable[[], None] | None = None) -> Fork:
    """`headstart WORDS…` in a fork, which calls `first` before anything else."""

    def call() -> Result:
        if first is not None:
            first()
        return run_here(list(map(str, words)))

    return Fork(call)
