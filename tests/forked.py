"""Commands in forks of this process, which has loaded everything: a kill hits their work."""

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from tests.conftest import run_here


class Fork:
    """`headstart WORDS…` in a process of its own, that costs no start of Python."""

    def __init__(self, words: Sequence[str]) -> None:
        self._code: int | None = None
        self.pid = os.fork()
        if not self.pid:
            code = 1
            try:
                result = run_here(list(words))
                code = result.returncode
                if code:
                    os.write(2, result.stderr.encode())
            finally:
                os._exit(code)

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
        return self._code
