"""What the server counts, as Prometheus reads it."""

import os
from pathlib import Path

import psutil
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
TEXTS = (1, 2, 4, 8, 16, 32, 64, 128)
SHARED = "PROMETHEUS_MULTIPROC_DIR"  # the folder in which several workers count together


class Metrics:
    """The counters of one server; `page` adds up those of all workers."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "headstart_requests_total",
            "Requests by path and status.",
            ("path", "status"),
            registry=registry,
        )
        self.seconds = Histogram(
            "headstart_request_seconds",
            "From the head of a request to the end of its response.",
            ("path",),
            buckets=SECONDS,
            registry=registry,
        )
        self.queue = Gauge(
            "headstart_queue_texts",
            "Texts that wait for the model.",
            multiprocess_mode="livesum",
            registry=registry,
        )
        self.batch_texts = Histogram(
            "headstart_batch_texts", "Texts per batch.", buckets=TEXTS, registry=registry
        )
        self.batch_seconds = Histogram(
            "headstart_batch_seconds", "Seconds per batch.", buckets=SECONDS, registry=registry
        )

    def page(self) -> bytes:
        """Return the numbers of all live workers in Prometheus' text format."""
        folder = os.environ.get(SHARED)
        if folder is None:
            return generate_latest(self.registry)
        for path in Path(folder).glob("gauge_live*.db"):
            pid = int(path.stem.rpartition("_")[2])
            if not psutil.pid_exists(pid):
                mark_process_dead(pid)
        together = CollectorRegistry()
        MultiProcessCollector(together)
        return generate_latest(together)
