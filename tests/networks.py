"""Two machines and the network between them, made of Linux's network namespaces.

A virtual cable leads from the second namespace to a bridge in the first. Cut, in both directions or
in one, what is sent arrives at nobody, and neither side is told: no connection is closed, as when a
switch fails.
"""

import ctypes
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import ClassVar

CARD = "net0"  # the interface of each machine
CABLE = "cable0"  # where it ends at the first machine's bridge
ADDRESSES = ("10.77.0.1", "10.77.0.2")
NOBODY = "02:00:00:00:00:99"  # a card that there is not
SECONDS = 10.0  # that making a namespace may take


class Network:
    """Two machines, numbered 0 and 1.

    Parameters
    ----------
    holders : the pids of processes that do nothing but keep a namespace each.
    """

    address: ClassVar = {"MASTER_ADDR": ADDRESSES[0], "GLOO_SOCKET_IFNAME": CARD}

    def __init__(self, holders: tuple[int, int]) -> None:
        self.holders = holders
        self.enter = [partial(_enter, pid) for pid in holders]
        self._cut: list[int] = []

    def on_machine(self, number: int, *command: str) -> list[str]:
        """The command line that runs a command there."""
        return ["nsenter", *_namespaces(self.holders[number]), *command]

    def limit(self, gigabits: float) -> None:
        """Let only so much through in each direction, per second."""
        for number, card in ((0, CABLE), (1, CARD)):
            shape = f"tbf rate {round(gigabits * 1000)}mbit burst 512kb latency 20ms"
            words = f"tc qdisc replace dev {card} root {shape}".split()
            subprocess.run(self.on_machine(number, *words), check=True)

    def cut(self, *senders: int) -> None:
        """Let nothing through any more, or nothing that these machines send."""
        self._cut = list(senders or (0, 1))
        for number in self._cut:
            other = ADDRESSES[1 - number]
            words = f"neighbour replace {other} lladdr {NOBODY} dev {CARD} nud permanent"
            _ip(self.holders[number], words)

    def mend(self) -> None:
        """Let everything through again."""
        for number in self._cut:
            _ip(self.holders[number], f"neighbour del {ADDRESSES[1 - number]} dev {CARD}")
        self._cut = []


@contextmanager
def two_machines() -> Iterator[Network]:
    """Make both and their network; raises `OSError` with the reason where that is not allowed."""
    for tool in ("unshare", "nsenter", "ip"):
        if shutil.which(tool) is None:
            raise OSError(f"there is no command {tool}")
    holders: list[subprocess.Popen[str]] = []
    try:
        # A user namespace, in which this user may do as root does.
        holders.append(_hold(["unshare", "--map-root-user", "--net"]))
        inside = ["nsenter", *_namespaces(holders[0].pid), "unshare", "--net"]
        holders.append(_hold(inside))
        first, second = (holder.pid for holder in holders)
        _ip(first, f"link add {CARD} type bridge forward_delay 0")
        _ip(first, f"link add {CABLE} type veth peer name {CARD} netns {second}")
        _ip(first, f"link set {CABLE} master {CARD} up")
        for pid, address in zip((first, second), ADDRESSES, strict=True):
            _ip(pid, f"address add {address}/24 dev {CARD}")
            _ip(pid, f"link set {CARD} up")
            _ip(pid, "link set lo up")
        yield Network((first, second))
    finally:
        for holder in reversed(holders):
            holder.kill()
            holder.communicate()


def _hold(how: list[str]) -> subprocess.Popen[str]:
    """A process in a network namespace of its own, once it is there."""
    holder = subprocess.Popen([*how, "sleep", "infinity"], stderr=subprocess.PIPE, text=True)
    name = Path(f"/proc/{holder.pid}/comm")
    until = time.monotonic() + SECONDS
    while holder.poll() is None and time.monotonic() < until:
        if name.read_text().strip() == "sleep":  # what comes before it is done
            return holder
        time.sleep(0.01)
    holder.kill()
    raise OSError(holder.communicate()[1].strip() or "no namespace was made")


def _namespaces(pid: int) -> list[str]:
    return ["--target", str(pid), "--user", "--net", "--preserve-credentials"]


def _ip(pid: int, words: str) -> None:
    command = ["nsenter", *_namespaces(pid), "ip", *words.split()]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise OSError(f"ip {words}: {result.stderr.strip()}")


def _enter(pid: int) -> None:
    """Move this process, which has one thread only, to a machine."""
    library = ctypes.CDLL(None, use_errno=True)
    files = [os.open(Path(f"/proc/{pid}/ns/{kind}"), os.O_RDONLY) for kind in ("user", "net")]
    for file in files:
        if library.setns(file, 0):
            raise OSError(ctypes.get_errno(), "setns")
        os.close(file)
