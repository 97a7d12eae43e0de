"""Compare `headstart serve` with a plain FastAPI server around a `pipeline`, on loopback.

    python bench/serve.py [--seconds 4] [--rounds 3] [--parts speed overload hostile] [--onnx]
    python bench/serve.py --parts memory --requests 100000

speed     1, 8, 64 and 256 clients, one request each at a time. Both servers run, but only one of
          them is under load at a time. Median of the rounds, lowest to highest.
overload  three times the measured requests per second, for a minute: statuses, wrong predictions,
          memory.
hostile   slow, half-closed and idle connections while eight clients send requests.
memory    the server's memory over many requests.

The classifier is the preset `small` with random weights, the same for both, and the texts are the
Rotten Tomatoes sentences. The load generator shares the machine's cores with the servers.
"""

import argparse
import asyncio
import statistics
import tempfile
from collections import defaultdict
from pathlib import Path

from headstart.run import Run
from peers.load import TOLERANCE, Load, closed_loop, connect, open_loop, request, sum_of
from peers.server_process import make_run, memory, ours, plain
from reviews import read_reviews

CLIENTS = (1, 8, 64, 256)
IDLE = 10_000
PARTS = 4  # of the overload; memory is measured after each


def ask(port: int, texts: list[str], clients: int, seconds: float) -> Load:
    return asyncio.run(closed_loop(port, texts, clients, seconds, {}))


def speed(folder: Path, texts: list[str], seconds: float, rounds: int, onnx: bool) -> float:
    """Print the table of both servers; returns Headstart's requests per second at 64 clients."""
    found: dict[tuple[str, int], list[Load]] = defaultdict(list)
    with ours(folder / "run") as (port, _), plain(folder / "huggingface") as (peer_port, _):
        servers = {"headstart serve": port, "FastAPI + pipeline": peer_port}
        for name in servers:
            ask(servers[name], texts, 8, 1.0)  # warm up
        for _ in range(rounds):
            for clients in CLIENTS:
                for name, where in servers.items():
                    found[name, clients].append(ask(where, texts, clients, seconds))
    if onnx:
        with ours(folder / "onnx") as (port, _):
            ask(port, texts, 8, 1.0)
            for _ in range(rounds):
                for clients in CLIENTS:
                    load = ask(port, texts, clients, seconds)
                    found["headstart serve, ONNX", clients].append(load)
    print(f"\n{'clients':>7}  {'':24}{'requests/s':>12} {'(lowest to highest)':>22}"
          f"{'p50 ms':>9}{'p95 ms':>9}{'p99 ms':>9}{'not 200':>9}")  # fmt: skip
    for (name, clients), loads in sorted(found.items(), key=lambda item: item[0][1]):
        paces = [load.pace for load in loads]
        spread = f"({min(paces):,.0f} to {max(paces):,.0f})"
        times = "".join(
            f"{statistics.median(load.percentile(share) for load in loads):>9,.1f}"
            for share in (50, 95, 99)
        )
        other = sum(sum(one.statuses.values()) - one.statuses[200] + one.failed for one in loads)
        pace = statistics.median(paces)
        print(f"{clients:>7}  {name:24}{pace:>12,.0f} {spread:>22}{times}{other:>9}")
    for clients in CLIENTS:
        both = [found[name, clients] for name in ("headstart serve", "FastAPI + pipeline")]
        ratios = [one.pace / other.pace for one, other in zip(*both, strict=True)]
        p99 = [one.percentile(99) / other.percentile(99) for one, other in zip(*both, strict=True)]
        print(
            f"  {clients} clients: {statistics.median(ratios):.1f} × the throughput "
            f"({min(ratios):.1f} to {max(ratios):.1f}) at {statistics.median(p99):.2f} × the p99"
        )
    return statistics.median(load.pace for load in found["headstart serve", 64])


def overload(folder: Path, texts: list[str], pace: float, seconds: float) -> None:
    """Send three times the possible rate in an open loop; check every prediction."""
    alone = Run.open(folder / "run").predict(texts)
    expected = {text: one["probability"] for text, one in zip(texts, alone, strict=True)}
    with ours(folder / "run") as (port, process):
        ask(port, texts, 64, 2.0)
        sizes, loads = [memory(process)], list[Load]()
        for _ in range(PARTS):
            loads.append(asyncio.run(open_loop(port, texts, 3 * pace, seconds / PARTS, expected)))
            sizes.append(memory(process))
        load = sum_of(loads)
        again = ask(port, texts, 8, 1.0)
    print(
        f"\noverload: {3 * pace:,.0f} requests/s for {seconds:.0f} s: "
        f"{load.statuses[200]:,} answered ({load.pace:,.0f} per second), "
        f"{load.statuses[429]:,} rejected with 429, "
        f"{sum(load.statuses.values()) - load.statuses[200] - load.statuses[429]} other, "
        f"{load.failed} connections lost, "
        f"{load.wrong} predictions wrong by more than {TOLERANCE:g}; "
        f"p99 {load.percentile(99):,.0f} ms; "
        f"memory {' → '.join(f'{size:,.0f}' for size in sizes)} MB; "
        f"afterwards {again.pace:,.0f} requests/s with 8 clients"
    )


async def _idle(port: int, texts: list[str], seconds: float) -> tuple[int, Load, int]:
    """Open idle, slow and half-closed connections while eight clients send requests."""
    silent = [await connect(port) for _ in range(IDLE)]
    whole = request(texts[0])
    half = [await connect(port) for _ in range(100)]
    for place, client in enumerate(half):
        assert client.transport is not None
        if place % 2:
            client.transport.write(whole[: 20 + place])  # the rest is never sent
        else:
            client.waiter = asyncio.get_running_loop().create_future()
            client.transport.write(whole)
            client.transport.write_eof()
    load = await closed_loop(port, texts, 8, seconds, {})
    answered = sum(
        client.waiter is not None
        and client.waiter.done()
        and client.waiter.exception() is None
        and client.waiter.result()[0] == 200
        for client in half[::2]
    )
    await asyncio.sleep(12)
    closed = sum(one.transport is not None and one.transport.is_closing() for one in silent)
    return closed, load, answered


def hostile(folder: Path, texts: list[str]) -> None:
    with ours(folder / "run") as (port, process):
        usual = ask(port, texts, 8, 3.0)
        before = memory(process)
        closed, load, answered = asyncio.run(_idle(port, texts, 4.0))
        after = memory(process)
    print(
        f"\nhostile: with {IDLE:,} idle connections {load.pace:,.0f} requests/s "
        f"(usually {usual.pace:,.0f}), p99 {load.percentile(99):,.0f} ms "
        f"(usually {usual.percentile(99):,.0f}), {load.failed} lost; {answered} of 50 half-closed "
        f"clients answered; {closed:,} idle ones closed in time; "
        f"memory {before:,.0f} → {after:,.0f} MB"
    )


def flat_memory(folder: Path, texts: list[str], requests: int) -> None:
    with ours(folder / "run") as (port, process):
        seen, done = [], 0
        while done < requests:
            load = ask(port, texts, 64, 5.0)
            done += load.statuses[200]
            seen.append((done, memory(process)))
            print(f"  {done:>9,} requests: {seen[-1][1]:,.1f} MB", flush=True)
    tenth = next(size for count, size in seen if count >= requests / 10)
    print(f"memory: {tenth:,.1f} MB after a tenth, {seen[-1][1]:,.1f} MB after {done:,} requests")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--overload-seconds", type=float, default=60.0)
    parser.add_argument("--requests", type=int, default=100_000, help="of the part memory")
    parser.add_argument("--onnx", action="store_true", help="also serve the export to ONNX")
    parser.add_argument(
        "--parts",
        nargs="+",
        default=["speed", "overload", "hostile"],
        choices=["speed", "overload", "hostile", "memory"],
    )
    given = parser.parse_args()
    _, data = read_reviews()
    texts = list(data.test.texts)[:1_000]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make_run(folder, list(data.train.texts))
        pace = 0.0
        if "speed" in given.parts:
            pace = speed(folder, texts, given.seconds, given.rounds, given.onnx)
        if "overload" in given.parts:
            if not pace:
                with ours(folder / "run") as (port, _):
                    pace = ask(port, texts, 64, given.seconds).pace
            overload(folder, texts, pace, given.overload_seconds)
        if "hostile" in given.parts:
            hostile(folder, texts)
        if "memory" in given.parts:
            flat_memory(folder, texts, given.requests)


if __name__ == "__main__":
    main()
