"""What the server counts, as Prometheus reads it."""

import os
from pathlib import Path

import psutil
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)  # seconds
LABELS = ("path", "status")
REQUESTS = Counter("headstart_requests_total", "Requests by path and status.", LABELS)
SECONDS = Histogram(
    "headstart_request_seconds", "Seconds per request.", LABELS[:1], buckets=BUCKETS
)
WAITING = Gauge(
    "headstart_queue_texts", "Texts that wait for the model.", multiprocess_mode="livesum"
)
BATCH_SIZE = Histogram(
    "headstart_batch_texts", "Texts per batch.", buckets=(1, 2, 4, 8, 16, 32, 64, 128)
)
BATCH_SECONDS = Histogram("headstart_batch_seconds", "Seconds per batch.", buckets=BUCKETS)


def metrics_page() -> bytes:
    """Return the numbers in Prometheus' text format; several workers share theirs in a folder."""
    folder = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    if folder is None:
        return generate_latest()
    for path in Path(folder).glob("gauge_live*.db"):
        pid = int(path.stem.rpartition("_")[2])
        if not psutil.pid_exists(pid):
            mark_process_dead(pid)
    together = CollectorRegistry()
    MultiProcessCollector(together)
    return generate_latest(together)
