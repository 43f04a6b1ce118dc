"""Advisory locks for tasks that only one worker or server may run at a time.

A lock belongs to a connection in PostgreSQL, and to an open file next to the database in SQLite, so it is released at
once when its process dies. A lock does not protect rows: a task that loses its connection may overlap with the next
one, so its transactions must be correct without the lock.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from pairseek.store.database import Database, unavailable

try:
    import fcntl
except ModuleNotFoundError:  # Windows, where a server has one process
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger("pairseek.store")

_LOCK = sa.text("SELECT pg_try_advisory_lock(:key)")
_UNLOCK = sa.text("SELECT pg_advisory_unlock(:key)")
_thread_locks: dict[str, threading.Lock] = {}


@contextlib.contextmanager
def try_lock(database: Database, task: str) -> Iterator[bool]:
    """Yield whether the caller may run a task; if so, no other worker or server can until the block ends.

    Parameters
    ----------
    database
        Database that the workers and servers share.
    task
        Name of the task: letters, digits and hyphens.
    """
    with _file_lock(database, task) if database.is_sqlite else _advisory_lock(database, task) as held:
        yield held


def lock_key(task: str) -> int:
    """Return the 64-bit key of a task in PostgreSQL."""
    return int.from_bytes(hashlib.sha256(f"pairseek:{task}".encode()).digest()[:8], signed=True)


def wait_in_transaction(connection: sa.Connection, task: str) -> None:
    """Wait until no other transaction holds the lock of a task, and hold it until this transaction ends.

    SQLite needs no lock, because a write transaction excludes all others.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": lock_key(task)})


@contextlib.contextmanager
def _advisory_lock(database: Database, task: str) -> Iterator[bool]:
    parameters = {"key": lock_key(task)}
    with contextlib.ExitStack() as stack:
        try:
            # An open transaction would keep PostgreSQL from vacuuming while the task runs.
            autocommit = database.engine.execution_options(isolation_level="AUTOCOMMIT")
            connection = stack.enter_context(autocommit.connect())
            held = bool(connection.execute(_LOCK, parameters).scalar())
        except DBAPIError as error:
            raise unavailable(error) from error
        try:
            yield held
        finally:
            if held:
                try:
                    connection.execute(_UNLOCK, parameters)
                except DBAPIError:
                    # The connection was lost, and the lock with it.
                    connection.invalidate()


@contextlib.contextmanager
def _file_lock(database: Database, task: str) -> Iterator[bool]:
    path = Path(f"{database.path}-{task}.lock")
    if fcntl is None:
        with _thread_lock(str(path.resolve())) as held:
            yield held
        return
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        logger.warning("a lock file could not be opened", extra={"facts": {"task": task, "why": str(error.strerror)}})
        yield False
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        yield True
    finally:
        # Closing the file releases the lock. The file stays, because another process may have it open.
        os.close(handle)


@contextlib.contextmanager
def _thread_lock(name: str) -> Iterator[bool]:
    lock = _thread_locks.setdefault(name, threading.Lock())
    held = lock.acquire(blocking=False)
    try:
        yield held
    finally:
        if held:
            lock.release()
