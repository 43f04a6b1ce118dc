"""Database connections, transactions, retries and errors."""

from __future__ import annotations

import contextlib
import logging
import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, ProgrammingError

from pairseek.errors import InvalidParameter, MissingExtra, StoreOutdated, StoreUnavailable
from pairseek.store.capacity import refuse_unstorable
from pairseek.store.write_turns import WriteTurns

T = TypeVar("T")

logger = logging.getLogger("pairseek.store")

# Attempts at a transaction that fails for a transient reason.
_MAX_ATTEMPTS = 6
# Mean pause before the first retry; it doubles with each retry.
_RETRY_SECONDS = 0.05
# Seconds that a statement waits for another writer of a SQLite file.
_BUSY_SECONDS = 20.0
# Milliseconds that scrubbing waits for the other connections to a SQLite file.
_SCRUB_MS = 2000
_POOL_SIZE = 10
# SQLSTATE prefixes after which a transaction is retried: lost connection, too many connections, server start or
# shutdown, deadlock, serialization failure.
_TRANSIENT_STATES = ("08", "53300", "57P", "40")
# Errors in the statement itself, which are passed on to the caller.
_STATEMENT_ERRORS = (IntegrityError, ProgrammingError)


def now() -> str:
    """Return the current time as text: ISO 8601, UTC, microseconds."""
    return stamp(datetime.now(UTC))


def stamp(moment: datetime) -> str:
    """Return a time in the format of the tables."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Database:
    """Open database.

    Parameters
    ----------
    url
        ``sqlite:///study.db``, the path of a SQLite file, or ``postgresql://user@host/name``.
    """

    def __init__(self, url: str) -> None:
        self.url = _url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.engine = _sqlite(self.url) if self.is_sqlite else _postgres(self.url)
        sa.event.listen(self.engine, "before_cursor_execute", refuse_unstorable)
        self.schema: str | None = None
        """Schema version that every write requires; None until it is checked."""
        # In PostgreSQL the row is locked like the target of a foreign key, so that upgrades and writers wait for each
        # other.
        self._select_version = "SELECT version_num FROM alembic_version" + ("" if self.is_sqlite else " FOR KEY SHARE")
        self._turns = None if self.path is None else WriteTurns(self.path)
        self._turn: contextlib.AbstractContextManager[object] = self._turns or contextlib.nullcontext()
        # All statements of a transaction read one snapshot: SQLite's default, and PostgreSQL's at this level.
        level = "REPEATABLE READ"
        self._read_engine = self.engine if self.is_sqlite else self.engine.execution_options(isolation_level=level)

    @property
    def path(self) -> Path | None:
        """File of a SQLite database."""
        return Path(str(self.url.database)) if self.is_sqlite else None

    def read(self, function: Callable[[sa.Connection], T]) -> T:
        """Run a function in a read transaction and return its result; all reads see one snapshot."""
        return self._attempt(function, writes=False)

    def write(self, function: Callable[[sa.Connection], T]) -> T:
        """Run a function in a write transaction and return its result once it is committed to disk.

        If the connection is lost or the database is locked, the function is called again in a new transaction, so it
        must be safe to run twice, for instance thanks to unique keys.
        """
        return self._attempt(function, writes=True)

    @contextlib.contextmanager
    def transaction(self, *, writes: bool = True) -> Iterator[sa.Connection]:
        """Run a block in a transaction, which commits at its end; unlike `read` and `write`, this never retries."""
        try:
            with self._begin(writes=writes) as connection:
                yield connection
        except (DBAPIError, sa.exc.TimeoutError) as error:
            if isinstance(error, _STATEMENT_ERRORS):
                raise
            raise unavailable(error) from error

    @contextlib.contextmanager
    def _begin(self, *, writes: bool) -> Iterator[sa.Connection]:
        with (self.engine if writes else self._read_engine).begin() as connection:
            if self.is_sqlite:
                _begin_sqlite(connection, writes=writes)
            yield connection

    def scrub(self, *, rewrite: bool = True) -> bool:
        """Remove the bytes of deleted rows from the database files; return whether that was possible.

        SQLite rewrites the file, unless ``rewrite`` is false, and empties its log once running transactions have ended.
        PostgreSQL frees the space of deleted rows, but the bytes may remain there until it is reused, and in the
        server's log.
        """
        try:
            if not self.is_sqlite:
                # Through the engine, which converts driver errors and drops lost connections.
                with self.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as vacuuming:
                    vacuuming.exec_driver_sql("VACUUM")
                return True
            with self._turn, contextlib.closing(self.engine.raw_connection()) as connection:
                driver = connection.driver_connection
                assert driver is not None
                return _scrub_sqlite(driver, rewrite=rewrite)
        except (sqlite3.Error, sa.exc.SQLAlchemyError) as error:
            logger.warning("the database could not be scrubbed", extra={"facts": {"why": str(error)[:300]}})
            return False

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()
        if self._turns is not None:
            self._turns.close()

    def _attempt(self, function: Callable[[sa.Connection], T], *, writes: bool) -> T:
        for attempt in range(_MAX_ATTEMPTS):
            try:
                with self._turn if writes else contextlib.nullcontext():
                    return self._run(function, writes=writes)
            except (DataError, UnicodeEncodeError):
                raise InvalidParameter(
                    "a text contains characters that cannot be stored, such as NUL or lone surrogates: remove them"
                ) from None
            except OverflowError:
                raise InvalidParameter("a number is too large to be stored: give a smaller one") from None
            except (DBAPIError, sa.exc.TimeoutError) as error:
                if isinstance(error, _STATEMENT_ERRORS):
                    raise
                if attempt == _MAX_ATTEMPTS - 1 or not _is_transient(error):
                    raise unavailable(error) from error
                # Jitter prevents repeated collisions.
                time.sleep(_RETRY_SECONDS * 2**attempt * (0.5 + random.random()))
        raise AssertionError("unreachable")

    def _run(self, function: Callable[[sa.Connection], T], *, writes: bool) -> T:
        with self._begin(writes=writes) as connection:
            if writes and self.schema is not None:
                self._check_schema(connection)
            return function(connection)

    def _check_schema(self, connection: sa.Connection) -> None:
        """Raise `StoreOutdated` if the tables were upgraded or replaced while this process was running."""
        version = connection.exec_driver_sql(self._select_version).scalar()
        if version != self.schema:
            raise StoreOutdated(
                f"the database now has tables of version {version}, but this server works with version {self.schema}: "
                f"nothing was stored; restart it with the pairseek that changed the tables"
            )


def _scrub_sqlite(connection: sqlite3.Connection, *, rewrite: bool) -> bool:
    # This process's writers wait meanwhile, so give up early if another connection is in the way.
    connection.execute(f"PRAGMA busy_timeout={_SCRUB_MS}")
    try:
        if rewrite:
            connection.execute("VACUUM")
        busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not busy
    finally:
        connection.execute(f"PRAGMA busy_timeout={round(1000 * _BUSY_SECONDS)}")


def unavailable(error: Exception) -> StoreUnavailable:
    """Convert a driver error to a `StoreUnavailable` for operators."""
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    text = lines[0] if lines else type(error).__name__
    descriptions = {
        "readonly": "the database is read-only",
        "read-only": "the database is read-only",
        "disk is full": "the disk of the database is full",
        "No space left": "the disk of the database is full",
        "disk I/O error": "the disk of the database has an I/O error",
        "unable to open": "the database file cannot be opened",
        "malformed": "the database file is damaged",
        "not a database": "the file is not a database",
        "is locked": "the database is locked by another process",
    }
    description = next((words for key, words in descriptions.items() if key in text), "the database cannot be reached")
    return StoreUnavailable(description, text)


def _is_transient(error: Exception) -> bool:
    if isinstance(error, sa.exc.TimeoutError):
        return False
    original = getattr(error, "orig", None)
    if isinstance(original, sqlite3.Error):
        return "locked" in str(original) or "busy" in str(original)
    state = getattr(original, "sqlstate", None)
    is_disconnected = isinstance(error, DBAPIError) and error.connection_invalidated
    return is_disconnected or state is None or str(state).startswith(_TRANSIENT_STATES)


def _url(text: str) -> sa.URL:
    if "://" not in text:
        text = f"sqlite:///{text}"
    try:
        url = sa.make_url(text)
    except sa.exc.ArgumentError:
        raise InvalidParameter(
            "the database address is not valid: give a path, sqlite:///FILE or postgresql://USER@HOST/NAME"
        ) from None
    backend = url.get_backend_name()
    if backend == "postgres":
        url = url.set(drivername="postgresql")
        backend = "postgresql"
    if backend == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    if backend != "sqlite":
        raise InvalidParameter(f"{backend!r} is not supported: use sqlite:///FILE or postgresql://USER@HOST/NAME")
    if not url.database or url.database == ":memory:":
        raise InvalidParameter(
            "a SQLite database needs a file, so that several workers can share it: give sqlite:///FILE"
        )
    return url


def _sqlite(url: sa.URL) -> sa.Engine:
    engine = sa.create_engine(
        url,
        pool_size=_POOL_SIZE,
        max_overflow=4 * _POOL_SIZE,
        # Error messages must not carry ids and answers into the log.
        hide_parameters=True,
        connect_args={"check_same_thread": False, "timeout": _BUSY_SECONDS},
    )

    @sa.event.listens_for(engine, "do_connect")
    def create_private_file(*_: object) -> None:
        # Other users of the machine must not read the answers. SQLite gives -wal and -shm the mode of the file. An
        # existing file is not opened, because closing it would release the locks of other connections.
        with contextlib.suppress(OSError):
            os.close(os.open(str(url.database), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, _: object) -> None:
        try:
            _prepare(connection)
        except sqlite3.Error:
            connection.close()
            raise

    return engine


def _begin_sqlite(connection: sa.Connection, *, writes: bool) -> None:
    """Begin a SQLite transaction through the driver, because an engine event would slow every statement down."""
    driver = connection.connection.driver_connection
    assert driver is not None
    try:
        # A writer takes the write lock immediately, because upgrading a read lock can fail.
        driver.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
    except sqlite3.Error as error:
        raise DBAPIError.instance("BEGIN", None, error, sqlite3.Error, hide_parameters=True) from error


def _prepare(connection: sqlite3.Connection) -> None:
    # `Database.transaction` begins the transactions, not the driver.
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys=ON")
    # FULL: a commit returns only after the data is flushed to disk.
    connection.execute("PRAGMA synchronous=FULL")
    # Deleted content is overwritten with zeros.
    connection.execute("PRAGMA secure_delete=ON")
    try:
        connection.execute("PRAGMA journal_mode=WAL")
    except sqlite3.OperationalError as error:
        # The journal mode of a read-only database cannot change, but the database can be read.
        if "readonly" not in str(error):
            raise


def _postgres(url: sa.URL) -> sa.Engine:
    try:
        import psycopg
    except ModuleNotFoundError:
        raise MissingExtra("a PostgreSQL database", "postgres") from None
    engine = sa.create_engine(
        url,
        # Small, because the workers of all servers share PostgreSQL's connections.
        pool_size=_POOL_SIZE,
        max_overflow=_POOL_SIZE // 2,
        # Error messages must not carry ids and answers into the log.
        hide_parameters=True,
        pool_pre_ping=False,
        connect_args={"connect_timeout": 5},
    )

    def refuse_bytes(connection: psycopg.Connection, _: object) -> None:
        # Such a database stores bytes, not characters. Checked before SQLAlchemy's first query, which would fail.
        if connection.info.parameter_status("server_encoding") == "SQL_ASCII":
            connection.close()
            raise InvalidParameter(
                "the database has the encoding SQL_ASCII, which does not store characters: create it with "
                "'createdb --encoding UTF8 --template template0'"
            )

    sa.event.listen(engine, "connect", refuse_bytes, insert=True)
    return engine
