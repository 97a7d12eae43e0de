"""A load generator on raw sockets: many clients in one process, each with one connection.

In a closed loop, a client sends its next request when it has the response to the last one. In an
open loop, requests are sent at a fixed rate, whether or not earlier ones were answered.
"""

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Load:
    """The results of a load test: the latency of each response and the counts of each status."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    wrong: int = 0
    failed: int = 0

    @property
    def pace(self) -> float:
        """Responses with status 200 per second."""
        return self.statuses[200] / self.seconds

    def percentile(self, share: float) -> float:
        """In milliseconds."""
        return float(np.percentile(self.latencies, share)) * 1_000 if self.latencies else 0.0


def sum_of(loads: Sequence[Load]) -> Load:
    """Join loads that followed each other."""
    whole = Load()
    for load in loads:
        whole.seconds += load.seconds
        whole.latencies += load.latencies
        whole.statuses += load.statuses
        whole.wrong += load.wrong
        whole.failed += load.failed
    return whole


def request(text: str, path: str = "/predict") -> bytes:
    """Return the bytes of a request for one text."""
    body = json.dumps({"inputs": text}).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


class Client(asyncio.Protocol):
    """One connection; `ask` sends a request and returns the status and body of its response."""

    def __init__(self) -> None:
        self.buffer = b""
        self.waiter: asyncio.Future[tuple[int, bytes]] | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer = self.buffer + data if self.buffer else data
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        place = self.buffer.lower().find(b"content-length:", 0, end)
        stop = self.buffer.find(b"\r\n", place)
        length = int(self.buffer[place + 15 : stop])
        whole = end + 4 + length
        if len(self.buffer) < whole:
            return
        status, body = int(self.buffer[9:12]), self.buffer[end + 4 : whole]
        self.buffer = self.buffer[whole:]
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result((status, body))

    def connection_lost(self, error: Exception | None) -> None:
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_exception(ConnectionError("closed"))

    async def ask(self, data: bytes) -> tuple[int, bytes]:
        assert self.transport is not None
        self.waiter = asyncio.get_running_loop().create_future()
        self.transport.write(data)
        return await self.waiter


async def connect(port: int) -> Client:
    _, client = await asyncio.get_running_loop().create_connection(Client, "127.0.0.1", port)
    return client


async def closed_loop(
    port: int, texts: Sequence[str], clients: int, seconds: float, expected: dict[str, float]
) -> Load:
    """Run `clients` clients, each of which waits for its response before its next request.

    Predictions of texts in `expected` are compared with its scores of the first label.
    """
    load = Load()
    requests = [request(text) for text in texts]
    end = time.perf_counter() + seconds
    start = time.perf_counter()

    async def run(number: int) -> None:
        client = await connect(port)
        generator = random.Random(number)
        while time.perf_counter() < end:
            place = generator.randrange(len(requests))
            before = time.perf_counter()
            try:
                status, body = await client.ask(requests[place])
            except ConnectionError:
                load.failed += 1
                client = await connect(port)
                continue
            load.latencies.append(time.perf_counter() - before)
            load.statuses[status] += 1
            check(load, status, body, expected.get(texts[place]))
        assert client.transport is not None
        client.transport.close()

    await asyncio.gather(*(run(number) for number in range(clients)))
    load.seconds = time.perf_counter() - start
    return load


def check(load: Load, status: int, body: bytes, wanted: float | None) -> None:
    """Count a prediction that differs from the one of the same text alone."""
    if status == 200 and wanted is not None:
        found = {one["label"]: one["score"] for one in json.loads(body)}
        load.wrong += abs(max(found.values()) - wanted) > TOLERANCE


TOLERANCE = 1e-4


async def open_loop(
    port: int, texts: Sequence[str], rate: float, seconds: float, expected: dict[str, float]
) -> Load:
    """Send `rate` requests per second, over as many connections as needed."""
    load = Load()
    requests = [request(text) for text in texts]
    free: list[Client] = []
    tasks: set[asyncio.Task[None]] = set()
    generator = random.Random(0)
    start = time.perf_counter()

    async def one(place: int) -> None:
        client = free.pop() if free else await connect(port)
        before = time.perf_counter()
        try:
            status, body = await client.ask(requests[place])
        except ConnectionError:
            load.failed += 1
            return
        load.latencies.append(time.perf_counter() - before)
        load.statuses[status] += 1
        check(load, status, body, expected.get(texts[place]))
        free.append(client)

    sent = 0
    while (now := time.perf_counter() - start) < seconds:
        for _ in range(min(200, int(now * rate) - sent)):
            task = asyncio.create_task(one(generator.randrange(len(requests))))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            sent += 1
        await asyncio.sleep(0.002)
    await asyncio.wait_for(asyncio.gather(*tasks), timeout=60)
    load.seconds = time.perf_counter() - start
    for client in free:
        assert client.transport is not None
        client.transport.close()
    return load
