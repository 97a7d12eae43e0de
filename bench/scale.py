"""What 10, 100 and 1,000 machines would do, from what one was measured to do.

    python bench/scale.py                 # tables from bench/scaling/pieces.json; nothing is run
    python bench/scale.py --measure       # measure the pieces here first, about two minutes
    python bench/scale.py --write         # put the tables into research/scale.md
    python bench/scale.py --speedup 100   # as if every core were an accelerator

The model is in `bench/scaling/model.py`, what it says in research/scale.md.
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from scaling.model import (
    Cluster,
    Network,
    all_reduce,
    checkpoint_every,
    efficiency,
    step,
    time_kept,
    tokens_per_second,
)
from scaling.pieces import FILE, Check, Pieces, read_pieces, write_pieces

PAGE = Path(__file__).parents[1] / "research" / "scale.md"
BEGIN, END = "<!-- tables: python bench/scale.py --write -->", "<!-- end of tables -->"
MACHINES = (1, 10, 100, 1_000)
STEPS = (1_024, 8_192, 131_072, 1_048_576)  # tokens
NETWORKS = {"1 Gbit/s": Network(1, 50), "10 Gbit/s": Network(10, 20), "100 Gbit/s": Network(100, 5)}
USUAL = NETWORKS["10 Gbit/s"]
ENGINES = {
    "ring (today)": {},
    "hierarchical": {"algorithm": "hierarchical"},
    "halving-doubling": {"algorithm": "halving-doubling"},
    "the same, overlapped": {"algorithm": "halving-doubling", "overlap": True},
    "the same, and every process draws its own rows only": {
        "algorithm": "halving-doubling",
        "overlap": True,
        "own_rows": True,
    },
    "fully_shard, halving-doubling": {"algorithm": "halving-doubling", "sharded": True},
}
HOURS = 6_300  # between two failures of a machine: 419 in 54 days of 2,048 (Llama 3, 2024)
DIED, STUCK = 5.0, 300.0  # seconds until a process that died or that hangs is noticed
SAVE_SECONDS = 60.0  # the default of --save-seconds
TERABYTE = 1e12
HELD_OUT = 0.01  # of the text
HALF = 0.5
PARAMETER_BYTES = 24  # weight, gradient, two moments, the part that is shared, and the sum
GIGABYTES = (8, 80)  # of memory, for one process


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--measure", action="store_true", help="measure the pieces on this machine")
    parser.add_argument("--speedup", type=float, default=1.0, help="of computing")
    parser.add_argument("--cores", type=int, default=2, help="of each machine")
    parser.add_argument("--write", action="store_true", help="into research/scale.md")
    given = parser.parse_args()
    if given.measure:
        measure_pieces()
    like = Cluster(1, USUAL, cores=given.cores, speedup=given.speedup)
    tables = all_tables(like)
    if given.write:
        page = PAGE.read_text(encoding="utf-8")
        before, rest = page.split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{tables}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    print(tables)


def all_tables(like: Cluster) -> str:
    """What research/scale.md shows, for machines like this one."""
    pieces, sources, checks = read_pieces()
    return "\n\n".join(
        [
            pieces_table(pieces, sources),
            checks_table(pieces, checks),
            steps_table(pieces, like),
            engines_table(pieces, like),
            breaks_table(pieces, like),
            failures_table(pieces),
            terabyte_table(pieces, like),
            memory_table(),
        ]
    )


def measure_pieces() -> None:
    from headstart.machine import look_up
    from scaling.measure import measure

    before, sources, _ = read_pieces()
    pieces, new, checks = measure(before)
    here = f"bench/scale.py --measure, {look_up().cpu}"
    write_pieces(pieces, sources | dict.fromkeys(new, here), checks, FILE)


def pieces_table(pieces: Pieces, sources: dict[str, str]) -> str:
    rows = [(name, f"{value:.4g}", sources[name]) for name, value in vars(pieces).items()]
    return table("Measured on one machine", ("piece", "value", "from"), rows)


def checks_table(pieces: Pieces, checks: list[Check]) -> str:
    rows = []
    for one in checks:
        modelled = modelled_seconds(pieces, one)
        what = f"{one.what}, {one.size:,.0f} {'bytes' if one.what == 'all-reduce' else 'tokens'}"
        where = f"{one.gigabits:g} Gbit/s" if one.gigabits else "one machine"
        times = f"{1e3 * one.seconds:,.0f} ms", f"{1e3 * modelled:,.0f} ms"
        rows.append((what, where, *times, f"{modelled / one.seconds:.2f} ×"))
    return table(
        "The model beside what was measured", ("two processes", "", "measured", "model", ""), rows
    )


def modelled_seconds(pieces: Pieces, check: Check) -> float:
    """What the model says where something was measured."""
    if check.what == "step":
        found = step(pieces, Cluster(1, USUAL), int(check.size))
        assert found is not None
        return found.seconds
    two = Cluster(2, Network(check.gigabits, 0), cores=1)
    return all_reduce(pieces, two, check.size)


def steps_table(pieces: Pieces, like: Cluster) -> str:
    rows = []
    for tokens in STEPS:
        found = []
        for machines in MACHINES:
            cluster = replace(like, machines=machines)
            speed = tokens_per_second(pieces, cluster, tokens)
            share = efficiency(pieces, cluster, tokens)
            found.append(f"{speed:,.0f} ({share:.0%})" if speed else "too few rows")
        rows.append((f"{tokens:,}", *found))
    columns = ("tokens per step", *(_machines(machines) for machines in MACHINES))
    return table("Tokens per second (efficiency), 10 Gbit/s, today's exchange", columns, rows)


def engines_table(pieces: Pieces, like: Cluster) -> str:
    rows = []
    for network_name, network in NETWORKS.items():
        for engine, settings in ENGINES.items():
            cluster = replace(like, network=network, **settings)
            clusters = [replace(cluster, machines=machines) for machines in MACHINES]
            shares = [f"{efficiency(pieces, one, STEPS[-1]):.0%}" for one in clusters]
            rows.append((network_name, engine, *shares))
    columns = ("network", "engine", *(f"{machines:,}" for machines in MACHINES))
    return table(f"Efficiency by network and engine, {STEPS[-1]:,} tokens per step", columns, rows)


def breaks_table(pieces: Pieces, like: Cluster) -> str:
    rows = []
    for tokens in STEPS:
        found = [
            str(last_good(pieces, replace(like, network=network, **settings), tokens))
            for network in NETWORKS.values()
            for settings in ({}, ENGINES["halving-doubling"])
        ]
        rows.append((f"{tokens:,}", *found))
    names = [f"{name}, {way}" for name in NETWORKS for way in ("ring", "halving-doubling")]
    return table("The most machines with an efficiency of half", ("tokens per step", *names), rows)


def last_good(pieces: Pieces, like: Cluster, tokens: int, *, share: float = HALF) -> int:
    """The most machines, in powers of two, that keep at least this efficiency."""
    machines = 1
    while efficiency(pieces, replace(like, machines=2 * machines), tokens) >= share:
        machines *= 2
    return machines


def failures_table(pieces: Pieces) -> str:
    rows = []
    for machines in MACHINES:
        best = checkpoint_every(pieces, machines, HOURS)
        kept = [
            f"{time_kept(pieces, machines, HOURS, every=every, noticed=noticed):.2%}"
            for every in (SAVE_SECONDS, best)
            for noticed in (DIED, STUCK)
        ]
        rows.append((f"{machines:,}", f"{HOURS / machines:,.0f} h", f"{best:,.0f} s", *kept))
    columns = ("machines", "between failures", "best --save-seconds", "60 s, died", "60 s, hangs")
    return table("Time kept in spite of failures", (*columns, "best, died", "best, hangs"), rows)


def terabyte_table(pieces: Pieces, like: Cluster) -> str:
    """What every machine, or rank 0 alone, does before the first step, and one pass over it."""
    tokens = TERABYTE / pieces.bytes_per_token
    table_rows = tokens / pieces.row_tokens
    hours = {
        "fingerprint, on every machine": TERABYTE / pieces.hashed_bytes_per_second,
        "tokenize, on every machine (two cores)": TERABYTE / pieces.stored_bytes_per_second,
        "the same, cut among 100 machines": TERABYTE / pieces.stored_bytes_per_second / 100,
        "decode the held-out hundredth": HELD_OUT * TERABYTE / pieces.decoded_bytes_per_second,
        "count co-occurrences, on rank 0": tokens / pieces.counted_tokens_per_second,
    }
    rows = [(name, f"{seconds / 3600:,.1f} h") for name, seconds in hours.items()]
    rows.append(("the store on disk, two bytes per token", f"{2 * tokens / 1e9:,.0f} GB"))
    rows.append(("order of the rows, in every process", f"{4 * table_rows / 1e9:,.1f} GB"))
    for machines in MACHINES:
        cluster = replace(like, machines=machines, **ENGINES["hierarchical"])
        speed = tokens_per_second(pieces, cluster, STEPS[-1])
        days = tokens / speed / 86_400
        rows.append((f"train on all of it once, {_machines(machines)}", f"{days:,.1f} days"))
    return table(f"A terabyte of text, {tokens / 1e9:,.0f} billion tokens", ("", ""), rows)


def memory_table() -> str:
    rows = [
        (f"{size} GB", f"{size * 1e9 / PARAMETER_BYTES / 1e6:,.0f} million") for size in GIGABYTES
    ]
    return table(
        "The largest base without fully_shard, activations aside", ("a process has", ""), rows
    )


def _machines(count: int) -> str:
    return f"{count:,} machine{'s' if count > 1 else ''}"


def table(title: str, columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table in Markdown."""
    lines = [f"| {' | '.join(row)} |" for row in (columns, *rows)]
    return "\n".join([f"**{title}**", "", lines[0], "|---" * len(columns) + "|", *lines[1:]])


if __name__ == "__main__":
    main()
