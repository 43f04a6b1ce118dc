"""Queue of the writers to a SQLite database, which allows one at a time.

A writer that waits inside SQLite polls at growing intervals of up to 0.1 s, and the database is free for most of that
time. So writers queue before they begin: threads on a lock, and processes on a lock file next to the database, which
they poll twice per millisecond. Only the database's user can open that file, because whoever opens a file can lock it.
If queueing fails, SQLite itself still keeps writers apart.
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

# Seconds between two polls.
_POLL_SECONDS = 0.0005
# Seconds after which a writer begins out of turn and waits inside SQLite.
_MAX_WAIT_SECONDS = 1.0


class WriteTurns:
    """Lock held by at most one writer among all threads and processes.

    Parameters
    ----------
    database
        File of the database.
    """

    def __init__(self, database: Path) -> None:
        self._path = f"{database.absolute()}-turns.lock"
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
        """Close the lock file until the next turn; it is not deleted, because other processes may have it open."""
        with self._threads:
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None

    def _wait(self) -> bool:
        """Wait for the other processes; return False if they take too long, or if the file cannot be locked."""
        with contextlib.suppress(OSError):
            if self._handle is None:
                self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            until = time.monotonic() + _MAX_WAIT_SECONDS
            while time.monotonic() < until:
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return True
                time.sleep(_POLL_SECONDS)
        return False
