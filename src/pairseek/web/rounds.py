"""Background threads that repeat a step every few seconds."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import sqlalchemy as sa

from pairseek.errors import PairseekError

logger = logging.getLogger("pairseek.web")


class Rounds:
    """Background thread that repeats a step; a step that fails is logged, and the next round tries again.

    Parameters
    ----------
    name
        Name of the thread, without the prefix of the package.
    seconds
        Pause between two rounds.
    step
        Function of one round.
    """

    def __init__(self, name: str, seconds: float, step: Callable[[], None]) -> None:
        self._name, self._seconds, self._step = name, seconds, step
        self._stopped, self._wanted = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"pairseek-{name}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Begin the next round at once."""
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

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._step()
            except (PairseekError, sa.exc.SQLAlchemyError):
                logger.warning("a round of %s failed", self._name, exc_info=True)
            self._wanted.wait(self._seconds)
            self._wanted.clear()
