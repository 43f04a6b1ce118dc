"""Background work of a worker that survives errors: threads that repeat a step, and single tasks."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Protocol

from pairseek.web.operations.metrics import BACKGROUND_FAILURES

# Consecutive failed rounds after which work counts as failing.
_MIN_REPORTED_FAILURES = 3
# Longest pause after a failed round.
_MAX_PAUSE_SECONDS = 300.0

logger = logging.getLogger("pairseek.web")


class Background(Protocol):
    """Background work, as the readiness of the worker sees it."""

    @property
    def has_died(self) -> bool:
        """Whether its thread has ended without being stopped."""

    @property
    def problem(self) -> str | None:
        """Description of an error that persists."""


class Rounds:
    """Background thread that repeats a step until it is stopped.

    A failed step is logged, whatever the error, and retried: first after the usual pause, then after twice as long each
    time, up to five minutes.

    Parameters
    ----------
    name
        Name of the work.
    seconds
        Pause between two rounds.
    step
        Function called in each round.
    """

    def __init__(self, name: str, seconds: float, step: Callable[[], None]) -> None:
        self.name = name
        self._seconds, self._step = seconds, step
        self._stopped, self._woken = threading.Event(), threading.Event()
        self._failures, self._last = 0, ""
        self._thread = threading.Thread(target=self._run, name=f"pairseek-{name}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Begin the next round at once, unless the last one failed."""
        self._woken.set()

    def stop(self, seconds: float = 0.0) -> None:
        """End the thread after the current round, and wait up to ``seconds`` for that."""
        self._stopped.set()
        self._woken.set()
        if seconds and self._thread.is_alive():
            self._thread.join(timeout=seconds)

    @property
    def stopped(self) -> bool:
        """Whether the thread was told to end."""
        return self._stopped.is_set()

    @property
    def has_died(self) -> bool:
        """Whether the thread has ended without being stopped."""
        return self._thread.ident is not None and not self._thread.is_alive() and not self.stopped

    @property
    def problem(self) -> str | None:
        """Description of an error that persists."""
        if self.has_died:
            return f"{self.name} has ended"
        failures = self._failures
        return (
            f"{self.name} failed {failures} times in a row: {self._last}"
            if failures >= _MIN_REPORTED_FAILURES
            else None
        )

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._step()
            except Exception as error:  # noqa: BLE001 - any error is logged, and the next round tries again
                self._failures, self._last = self._failures + 1, type(error).__name__
                note_failure(self.name)
                # A wake-up does not shorten this pause, because every answer of a participant may cause a wake-up.
                self._stopped.wait(min(self._seconds * 2 ** min(self._failures - 1, 30), _MAX_PAUSE_SECONDS))
            else:
                self._failures = 0
                self._woken.wait(self._seconds)
            self._woken.clear()


def attempt_all(steps: Iterable[Callable[[], object]]) -> None:
    """Run all steps even if some fail; raise the first error at the end, and log the others."""
    first: Exception | None = None
    for step in steps:
        try:
            step()
        except Exception as error:
            if first is None:
                first = error
            else:
                logger.exception("background work failed as well")
    if first is not None:
        raise first


def note_failure(name: str) -> None:
    """Log and count the exception being handled, which background work has raised."""
    BACKGROUND_FAILURES.labels(name).inc()
    logger.exception("background work failed", extra={"facts": {"work": name}})


def logging_errors(name: str, task: Callable[[], None]) -> Callable[[], None]:
    """Wrap a task for an executor so that its exceptions are logged instead of lost with its future."""

    def run() -> None:
        try:
            task()
        except Exception:  # noqa: BLE001 - it is logged
            note_failure(name)

    return run
