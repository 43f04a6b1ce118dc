"""Turns of those who write to a SQLite database, which has one writer at a time.

A writer that waits within SQLite looks again after ever longer pauses, of up to 0.1 s, while the database is free most
of that time. So writers take turns before they begin: threads by a lock, and processes by a lock of the folder of the
database, at which they look twice in a millisecond. SQLite itself keeps writers apart where turns fail.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path

try:
    import fcntl
except ModuleNotFoundError:  # Windows, where a server has one process
    fcntl = None  # type: ignore[assignment]

# Seconds between two looks, and after which a writer begins without its turn and waits within SQLite.
_PAUSE = 0.0005
_PATIENCE = 1.0


class WriteTurns:
    """Lock that one writer of all threads and processes holds at a time.

    Parameters
    ----------
    database
        File of the database.
    """

    def __init__(self, database: Path) -> None:
        self._folder = database.absolute().parent
        self._threads = threading.Lock()
        self._handle: int | None = None
        self._held = False

    def __enter__(self) -> None:
        self._threads.acquire()
        try:
            self._held = fcntl is not None and self._wait()
        except BaseException:
            self._threads.release()
            raise

    def __exit__(self, *_: object) -> None:
        try:
            if self._held and self._handle is not None:
                fcntl.flock(self._handle, fcntl.LOCK_UN)
        finally:
            self._threads.release()

    def close(self) -> None:
        """Close the folder, which the next turn opens again."""
        with self._threads:
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None

    def _wait(self) -> bool:
        """Wait for the other processes; return False if they take too long, or if a folder cannot be locked."""
        with contextlib.suppress(OSError):
            if self._handle is None:
                self._handle = os.open(self._folder, os.O_RDONLY | os.O_CLOEXEC)
            until = time.monotonic() + _PATIENCE
            while time.monotonic() < until:
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return True
                time.sleep(_PAUSE)
        return False
