"""The measured pieces of the model: numbers of one machine, kept in `pieces.json`.

Each has its provenance beside it. `python bench/scale.py --measure` writes them anew.
"""

import json
from dataclasses import dataclass, fields
from math import log2
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("pieces.json")


@dataclass(frozen=True)
class Pieces:
    """What a step, a checkpoint and a byte of text cost on the machine that was measured.

    All of `small` with 8,192 pieces, one thread in each process, fp32.
    """

    seconds_per_token: float  # gradients, on one core
    drawn_seconds_per_token: float  # every process draws the whole batch, to know its targets
    seconds_per_step: float  # what every process does alike: updating and clipping
    jitter: float  # standard deviation of a process's time for a step, as a share of it
    row_tokens: float  # a batch is cut among processes in rows of so many tokens
    weight_bytes: float
    exchanged_bytes: float  # of a step of `exchanged_tokens`: dense gradients and touched rows
    exchanged_tokens: float
    exchanged_per_doubling: float  # bytes more for twice the tokens: more rows are touched
    agreed_bytes: float  # of the short message before it
    message_seconds: float  # one message of gloo between two processes of one machine
    loopback_bytes_per_second: float  # what one process's gloo sends and receives, at most
    added_bytes_per_second: float  # that a process adds up in shared memory
    checkpoint_seconds: float
    restart_seconds: float  # from the command to the first step, with everything in the cache
    stored_bytes_per_second: float  # text to tokens on disk, two cores
    counted_tokens_per_second: float  # co-occurrences for the start, one core
    decoded_bytes_per_second: float  # held-out tokens back to text, one core
    hashed_bytes_per_second: float  # the corpus's fingerprint, one core
    bytes_per_token: float  # of text

    def exchanged(self, tokens: float) -> float:
        """Bytes of the gradients of a step: rows that no process touched are left out."""
        more = log2(max(tokens, 1) / self.exchanged_tokens) * self.exchanged_per_doubling
        return min(self.weight_bytes, max(0.0, self.exchanged_bytes + more))


@dataclass(frozen=True)
class Check:
    """Something that the model says, and that was also measured."""

    what: str  # "all-reduce" or "step"
    size: float  # bytes, or tokens
    gigabits: float  # of the network between two machines; 0 within one
    seconds: float


def read_pieces(path: Path = FILE) -> tuple[Pieces, dict[str, str], list[Check]]:
    """The numbers, where each is from, and what the model can be checked with."""
    kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    found = {one.name: kept["pieces"][one.name] for one in fields(Pieces)}
    pieces = Pieces(**{name: float(value) for name, (value, _) in found.items()})
    sources = {name: source for name, (_, source) in found.items()}
    return pieces, sources, [Check(**one) for one in kept["checks"]]


def write_pieces(
    pieces: Pieces, sources: dict[str, str], checks: list[Check], path: Path = FILE
) -> None:
    kept = {name: [_rounded(value), sources[name]] for name, value in vars(pieces).items()}
    lines = [f"  {json.dumps(name)}: {json.dumps(one)}" for name, one in kept.items()]
    measured = [{**vars(one), "seconds": _rounded(one.seconds)} for one in checks]
    text = '{"pieces": {\n' + ",\n".join(lines) + '\n},\n"checks": [\n'
    text += ",\n".join(f"  {json.dumps(one)}" for one in measured) + "\n]}\n"
    path.write_text(text, encoding="utf-8")


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
