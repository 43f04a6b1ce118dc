"""Background work of a worker: threads that repeat a step, and single tasks; neither ends by an error."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Protocol

from pairseek.web.metrics import BACKGROUND_FAILURES

# Failed rounds in a row after which the work counts as failing, and the longest pause between two rounds that fail.
_OFTEN = 3
_LONGEST = 300.0

logger = logging.getLogger("pairseek.web")


class Background(Protocol):
    """Background work, as the readiness of the worker sees it."""

    @property
    def has_died(self) -> bool:
        """Whether its thread ended although nobody stopped it."""

    @property
    def problem(self) -> str | None:
        """Description of an error that persists."""


class Rounds:
    """Background thread that repeats a step until it is stopped.

    A step that fails is logged, whatever the error, and tried again: first after the usual pause, then after twice as
    long each time, up to five minutes.

    Parameters
    ----------
    name
        Name of the work.
    seconds
        Pause between two rounds.
    step
        Function of one round.
    """

    def __init__(self, name: str, seconds: float, step: Callable[[], None]) -> None:
        self.name = name
        self._seconds, self._step = seconds, step
        self._stopped, self._wanted = threading.Event(), threading.Event()
        self._failures, self._last = 0, ""
        self._thread = threading.Thread(target=self._run, name=f"pairseek-{name}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Begin the next round at once, unless the last one failed."""
        self._wanted.set()

    def stop(self, seconds: float = 0.0) -> None:
        """End the thread after the round under way, and wait for that for at most so many seconds."""
        self._stopped.set()
        self._wanted.set()
        if seconds and self._thread.is_alive():
            self._thread.join(timeout=seconds)

    @property
    def stopped(self) -> bool:
        """Whether the thread is to end."""
        return self._stopped.is_set()

    @property
    def has_died(self) -> bool:
        """Whether the thread ended although nobody stopped it."""
        return self._thread.ident is not None and not self._thread.is_alive() and not self.stopped

    @property
    def problem(self) -> str | None:
        """Description of an error that persists."""
        if self.has_died:
            return f"{self.name} has ended"
        failures = self._failures
        return f"{self.name} failed {failures} times in a row: {self._last}" if failures >= _OFTEN else None

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._step()
            except Exception as error:  # noqa: BLE001 - whatever it is, it is logged, and the next round tries again
                self._failures, self._last = self._failures + 1, type(error).__name__
                note_failure(self.name)
                # A wake-up does not shorten the pause, as it could come with every answer.
                self._stopped.wait(min(self._seconds * 2 ** min(self._failures - 1, 30), _LONGEST))
            else:
                self._failures = 0
                self._wanted.wait(self._seconds)
            self._wanted.clear()


def attempt_all(steps: Iterable[Callable[[], object]]) -> None:
    """Run all steps, also those after one that fails; raise the first error at the end, and log the others."""
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
    """Log and count the exception that background work has raised."""
    BACKGROUND_FAILURES.labels(name).inc()
    logger.exception("background work failed", extra={"facts": {"work": name}})


def logged(name: str, task: Callable[[], None]) -> Callable[[], None]:
    """Return a task for an executor with its exceptions logged, which would otherwise be lost with its future."""

    def run() -> None:
        try:
            task()
        except Exception:  # noqa: BLE001 - it is logged
            note_failure(name)

    return run
