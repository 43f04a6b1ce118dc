"""Metrics: Prometheus counters of all workers, and the recent latency of this worker."""

from __future__ import annotations

import os
import statistics
import threading
from collections import deque

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest, multiprocess

_MAX_LATENCIES = 500
_BUCKET_BOUNDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable with the directory through which workers share their metrics."""

REQUESTS = Counter("pairseek_requests", "Requests.", ["method", "route", "status"])
RESPONSE_SECONDS = Histogram("pairseek_request_seconds", "Response time.", ["route"], buckets=_BUCKET_BOUNDS)
ANSWERS = Counter("pairseek_answers", "Stored answers.", ["outcome"])
NEXT_PAIRS = Counter("pairseek_next_pairs", "Next pairs, by whether they were prefetched.", ["prefetched"])
STORE_UNAVAILABLE = Counter("pairseek_store_unavailable", "Requests that failed because the database was unavailable.")
BACKGROUND_FAILURES = Counter("pairseek_background_failures", "Failed rounds of background work.", ["work"])

CLOSED_CONNECTIONS = Counter(
    "pairseek_connections_closed", "Connections that the server closed, by reason.", ["reason"]
)


def exposition() -> tuple[bytes, str]:
    """Return the metrics of all workers in the Prometheus text format, and the content type."""
    if os.environ.get(FOLDER_VARIABLE):
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry), CONTENT_TYPE_LATEST
    return generate_latest(), CONTENT_TYPE_LATEST


class Latency:
    """Recent response times of this worker, from the arrival of an answer to the next pair."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seconds: deque[float] = deque(maxlen=_MAX_LATENCIES)

    def add(self, seconds: float) -> None:
        """Add one response time in seconds."""
        with self._lock:
            self._seconds.append(seconds)

    def median_ms(self) -> float | None:
        """Return the median in milliseconds; None before the first response."""
        with self._lock:
            return 1000 * statistics.median(self._seconds) if self._seconds else None
