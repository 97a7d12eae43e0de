"""The time of a training on many machines, from measured pieces; nothing here is random.

A step is computing, waiting for the slowest process, and two all-reduces: a short one that agrees
on what is exchanged, and the gradients.

- Ring all-reduce of S bytes among R: 2(R - 1) messages of S/R bytes, the least that any algorithm
  can send (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
  workstations", J. Parallel Distrib. Comput. 69, 2009). gloo's own.
- Halving and doubling: as many bytes in 2 log2(R) messages (Thakur, Rabenseifner and Gropp,
  "Optimization of collective communication operations in MPICH", IJHPCA 19, 2005).
- The largest of R normal times: Blom's approximation of its expectation (1958).
- The best time between two checkpoints: sqrt(2 × checkpoint × time between failures) (Young,
  CACM 17, 1974; Daly, FGCS 22, 2006).
"""

from dataclasses import dataclass
from math import ceil, log2, sqrt
from statistics import NormalDist
from typing import Literal

from scaling.pieces import Pieces

Algorithm = Literal["ring", "hierarchical", "halving-doubling"]
PAYLOAD = 0.94  # of a network's bits that are not headers of Ethernet, IP and TCP
BACKWARD = 2 / 3  # of computing: during it, gradients that are ready could already travel


@dataclass(frozen=True)
class Network:
    """What connects machines."""

    gigabits: float  # per second, each way
    microseconds: float  # that a message takes longer than within a machine

    @property
    def bytes_per_second(self) -> float:
        return self.gigabits * 1e9 / 8 * PAYLOAD


@dataclass(frozen=True)
class Cluster:
    """Machines like the one that was measured, each with one process per core."""

    machines: int
    network: Network
    cores: int = 2
    algorithm: Algorithm = "ring"
    overlap: bool = False  # exchange while gradients are still being computed
    sharded: bool = False  # `fully_shard`: weights and moments are cut among the processes
    own_rows: bool = False  # draw only the rows that a process computes (not there yet)
    speedup: float = 1.0  # of computing, as if every core were an accelerator

    @property
    def processes(self) -> int:
        return self.machines * self.cores


@dataclass(frozen=True)
class Step:
    """Where the seconds of a step go."""

    compute: float
    wait: float
    exchange: float  # that computing does not hide

    @property
    def seconds(self) -> float:
        return self.compute + self.wait + self.exchange


def step(pieces: Pieces, cluster: Cluster, tokens: int) -> Step | None:
    """A step of so many tokens; None if it has fewer rows than there are processes."""
    rows = tokens / pieces.row_tokens
    if rows < cluster.processes:
        return None
    each = ceil(rows / cluster.processes) * pieces.row_tokens
    update = pieces.seconds_per_step
    if cluster.sharded:
        update /= cluster.processes  # each updates its own part
    gradients = each * pieces.seconds_per_token / cluster.speedup
    # Drawing is the processor's work, also beside an accelerator.
    drawing = (each if cluster.own_rows else tokens) * pieces.drawn_seconds_per_token
    compute = gradients + update / cluster.speedup + drawing
    wait = compute * pieces.jitter * slowest_of(cluster.processes)
    if cluster.processes == 1:
        return Step(compute, 0.0, 0.0)
    if cluster.sharded:  # gathered for both passes and scattered, instead of reduced: 3 for 2
        exchange = 1.5 * all_reduce(pieces, cluster, pieces.weight_bytes)
    else:
        exchange = all_reduce(pieces, cluster, pieces.exchanged(tokens))
        exchange += all_reduce(pieces, cluster, pieces.agreed_bytes)
    hidden = BACKWARD * gradients if cluster.overlap else 0.0
    return Step(compute, wait, max(0.0, exchange - hidden))


def all_reduce(pieces: Pieces, cluster: Cluster, size: float) -> float:
    """Seconds until all processes have the sum of `size` bytes."""
    # Within a machine each process adds up all parts, in memory that they share.
    inside = 2 * pieces.message_seconds + cluster.cores * size / pieces.added_bytes_per_second
    inside = inside if cluster.cores > 1 else 0.0
    if cluster.machines == 1:
        return inside
    beyond = _between_machines(pieces, cluster)
    if cluster.algorithm == "hierarchical":  # one process of each machine talks to the others
        return inside + _doubling(cluster.machines, size, *beyond)
    call = _ring if cluster.algorithm == "ring" else _doubling
    return call(cluster.processes, size, *beyond)


def _between_machines(pieces: Pieces, cluster: Cluster) -> tuple[float, float]:
    """Seconds of a message, and bytes per second."""
    message = pieces.message_seconds + cluster.network.microseconds * 1e-6
    return message, min(cluster.network.bytes_per_second, pieces.loopback_bytes_per_second)


def _ring(count: int, size: float, message: float, speed: float) -> float:
    return 2 * (count - 1) * (message + size / count / speed)


def _doubling(count: int, size: float, message: float, speed: float) -> float:
    return 2 * ceil(log2(count)) * message + 2 * (count - 1) / count * size / speed


def slowest_of(count: int) -> float:
    """How many standard deviations the slowest of `count` lies above the mean."""
    if count == 1:
        return 0.0
    return NormalDist().inv_cdf((count - 0.375) / (count + 0.25))


def tokens_per_second(pieces: Pieces, cluster: Cluster, tokens: int) -> float:
    """0 where such a step is not possible."""
    found = step(pieces, cluster, tokens)
    return tokens / found.seconds if found else 0.0


def efficiency(pieces: Pieces, cluster: Cluster, tokens: int) -> float:
    """Speed against that of one machine times the number of machines, with the same steps."""
    one = Cluster(**{**vars(cluster), "machines": 1})
    alone = tokens_per_second(pieces, one, tokens)
    if not alone:
        return 0.0
    return tokens_per_second(pieces, cluster, tokens) / (cluster.machines * alone)


def checkpoint_every(pieces: Pieces, machines: int, hours: float) -> float:
    """The best seconds between two checkpoints, if a machine fails every `hours` hours."""
    return sqrt(2 * pieces.checkpoint_seconds * hours * 3600 / machines)


def time_kept(
    pieces: Pieces, machines: int, hours: float, *, every: float, noticed: float
) -> float:
    """The share of time that is neither lost to failures nor spent on checkpoints.

    A failure costs what came after the last checkpoint, `noticed` seconds until it is seen, and a
    restart.
    """
    between = hours * 3600 / machines
    lost = (every / 2 + noticed + pieces.restart_seconds) / between
    return max(0.0, 1 - lost) * every / (every + pieces.checkpoint_seconds)
