"""What the server counts, in the form that Prometheus reads."""

import os
import tempfile

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
)

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
TEXTS = (1, 2, 4, 8, 16, 32, 64, 128)
SHARED = "PROMETHEUS_MULTIPROC_DIR"  # where several processes keep their numbers
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class ServerMetrics:
    """Counters and histograms of one server; with several workers, of all of them together."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        self.registry = registry
        self.requests = Counter(
            "headstart_requests_total",
            "Requests by path and status.",
            ("path", "status"),
            registry=registry,
        )
        self.seconds = Histogram(
            "headstart_request_seconds",
            "From a request's head to the end of its answer.",
            ("path",),
            buckets=SECONDS,
            registry=registry,
        )
        self.refused = Counter(
            "headstart_refused_total",
            "Requests without an answer, by reason.",
            ("reason",),
            registry=registry,
        )
        self.queue = Gauge(
            "headstart_queue_texts",
            "Texts that wait for the model.",
            multiprocess_mode="livesum",
            registry=registry,
        )
        self.batches = Histogram(
            "headstart_batch_texts", "Texts in a batch.", buckets=TEXTS, registry=registry
        )
        self.model_seconds = Histogram(
            "headstart_batch_seconds",
            "How long the model takes for a batch.",
            buckets=SECONDS,
            registry=registry,
        )
        self.reloads = Counter(
            "headstart_reloads_total",
            "Newer runs that were taken, and those that were refused.",
            ("result",),
            registry=registry,
        )

    def waiting(self, texts: int) -> None:
        """The queue has another length now."""
        self.queue.set(texts)

    def batch(self, texts: int, seconds: float) -> None:
        """A batch was answered."""
        self.batches.observe(texts)
        self.model_seconds.observe(seconds)

    def page(self) -> bytes:
        """The numbers of all workers as Prometheus reads them."""
        if SHARED not in os.environ:
            return generate_latest(self.registry)
        together = CollectorRegistry()
        multiprocess.MultiProcessCollector(together)
        return generate_latest(together)


def share_between_processes() -> tempfile.TemporaryDirectory[str]:
    """Let the processes that are started from here count together; the folder is theirs."""
    folder = tempfile.TemporaryDirectory(prefix="headstart-metrics-")
    os.environ[SHARED] = folder.name
    return folder


def forget_process(pid: int) -> None:
    """A worker has ended: its share of the queue is none."""
    multiprocess.mark_process_dead(pid)
