"""Backups: the database as one file of compressed JSON lines, independent of the database system."""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import json
import os
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, TextIO

import sqlalchemy as sa

from pairseek.core.types import JSON
from pairseek.errors import InvalidFile
from pairseek.store import migrate
from pairseek.store.capacity import RESTORES_OPTION
from pairseek.store.database import Database, now
from pairseek.store.schema import findings, logins, metadata, rates

FORMAT = "pairseek backup"
# Tables that backups leave out: findings are computed again, rates soon expire, and logins must not be restored.
_EXCLUDED_TABLES = {findings.name, rates.name, logins.name}
# Rows read or written at a time.
_BATCH_SIZE = 500
# Rows of tables that hold files.
_FILE_BATCH_SIZE = 20


def write(database: Database, path: Path) -> int:
    """Write all rows of one snapshot to a file and return their number."""
    if path.exists():
        raise InvalidFile(f"{path} already exists and was not overwritten: give another name")
    if not path.parent.is_dir():
        raise InvalidFile(f"cannot write {path}: there is no folder {str(path.parent)!r}; create it first")
    with _new_file(path) as file:
        with gzip.open(file, "wt", encoding="utf-8", compresslevel=5) as lines:
            count = database.read(lambda connection: _dump(connection, lines, source_of(database)))
        file.flush()
        os.fsync(file.fileno())
    return count


@contextlib.contextmanager
def _new_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a private file that gets its name once the block has ended without an error.

    On Linux the file has no name until then if the file system allows it, so even a killed process leaves nothing
    behind.
    """
    try:
        handle = os.open(path.parent, os.O_WRONLY | os.O_TMPFILE, 0o600)
        nameless = Path(f"/proc/self/fd/{handle}")
        nameless.stat()
    except (AttributeError, OSError):
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
            Path(temporary).replace(path)
        finally:
            Path(temporary).unlink(missing_ok=True)
    else:
        with os.fdopen(handle, "wb") as file:
            yield file
            # Python follows the link to the open file only if it is given a directory descriptor.
            os.link(nameless, path, src_dir_fd=handle, follow_symlinks=True)


def source_of(database: Database) -> str:
    """Return an opaque text that identifies the database in all of its backups."""
    location = str(database.path.resolve()) if database.path else database.url.set(password=None).render_as_string()
    return hashlib.sha256(location.encode()).hexdigest()[:16]


def _dump(connection: sa.Connection, lines: TextIO, source: str) -> int:
    head = {"format": FORMAT, "version": migrate.newest_version(), "made_at": now(), "source": source}
    lines.write(json.dumps(head) + "\n")
    count = 0
    for table in metadata.sorted_tables:
        if table.name in _EXCLUDED_TABLES:
            continue
        streamed = connection.execution_options(yield_per=_batch_size(table)).execute(sa.select(table))
        for row in streamed.mappings():
            lines.write(json.dumps({"table": table.name, "row": {k: _json_value(v) for k, v in row.items()}}) + "\n")
            count += 1
    lines.write(json.dumps({"rows": count}) + "\n")
    return count


def read(database: Database, path: Path) -> int:
    """Restore a backup into an empty database and return the number of rows.

    The rows of an older backup go into tables of its version, which are then upgraded. Tables and rows are written in
    one transaction, so that a restore that fails or is killed leaves nothing behind.
    """
    is_new = database.path is not None and not database.path.exists()
    try:
        if database.read(lambda connection: sa.inspect(connection).get_table_names()):
            raise InvalidFile("the database is not empty: restore into a new one; nothing was changed")
        version, count = _verified(path)
        database.write(lambda connection: _restore(connection, path, version))
    except BaseException:
        if is_new:
            _discard(database)
        raise
    return count


def _restore(connection: sa.Connection, path: Path, version: str) -> None:
    migrate.upgrade_within(connection, version)
    try:
        _fill(connection.execution_options(**{RESTORES_OPTION: True}), path)
        migrate.upgrade_within(connection)
    except (LookupError, TypeError, ValueError, AttributeError, sa.exc.SQLAlchemyError) as error:
        if isinstance(error, InvalidFile) or (isinstance(error, sa.exc.DBAPIError) and not _is_caused_by_rows(error)):
            raise
        lines = str(getattr(error, "orig", None) or error).strip().splitlines()
        cause = lines[0] if lines else type(error).__name__
        raise InvalidFile(f"{path} has rows that do not fit the tables ({cause}); nothing was restored") from None


def _is_caused_by_rows(error: sa.exc.DBAPIError) -> bool:
    """Return whether an error was caused by the rows, and not by the connection or the disk."""
    return isinstance(error, sa.exc.IntegrityError | sa.exc.DataError | sa.exc.ProgrammingError | sa.exc.InterfaceError)


def _discard(database: Database) -> None:
    """Delete the files that a failed restore has created."""
    database.close()
    for ending in ("", "-wal", "-shm", "-turns.lock"):
        Path(f"{database.path}{ending}").unlink(missing_ok=True)


def _verified(path: Path) -> tuple[str, int]:
    """Return the schema version and the number of rows; raise `InvalidFile` for a backup that cannot be restored."""
    version, count, last = "", 0, None
    for record in _records(path):
        if not isinstance(record, dict):
            raise InvalidFile(f"{path} is damaged after {count:,} rows: a line is not an object; nothing was restored")
        version, last = version or str(record["version"]), record
        count += "table" in record
    if last is None or last.get("rows") != count:
        raise InvalidFile(f"{path} is truncated after {count:,} rows; nothing was restored")
    return version, count


def _fill(connection: sa.Connection, path: Path) -> None:
    tables = _tables_of(connection)
    batch: list[JSON] = []
    current = ""
    for record in _records(path):
        name = record.get("table", "")
        if batch and (name != current or len(batch) >= _batch_size(tables[name])):
            connection.execute(tables[current].insert(), batch)
            batch = []
        current = name
        if name:
            unknown = set(record["row"]) - set(tables[name].c.keys())
            if unknown:
                # The database would silently ignore the column.
                raise LookupError(f"table {name} has no column {min(unknown)!r}")
            binary = {column.name for column in tables[name].c if isinstance(column.type, sa.LargeBinary)}
            batch.append({k: base64.b64decode(v) if k in binary else v for k, v in record["row"].items()})
    if connection.dialect.name == "postgresql":
        # The rows were inserted with their ids, so the id sequences must continue after them.
        for table in tables.values():
            if "id" in table.c and isinstance(table.c["id"].type, sa.Integer):
                next_id = f"(SELECT COALESCE(MAX(id), 0) + 1 FROM {table.name})"
                sequence = f"pg_get_serial_sequence('{table.name}', 'id')"
                connection.execute(sa.text(f"SELECT setval({sequence}, {next_id}, false)"))


def _records(path: Path) -> Iterator[JSON]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            head = json.loads(next(lines, "{}"))
            if not isinstance(head, dict) or head.get("format") != FORMAT:
                raise InvalidFile(f"{path} is not a pairseek backup")
            version = str(head.get("version"))
            if version not in migrate.upgradable_versions():
                raise InvalidFile(
                    f"{path} has tables of version {version}, but this pairseek needs {migrate.newest_version()}: "
                    f"{migrate.advice(version, backup=True)}; nothing was restored"
                )
            yield head
            for line in lines:
                yield json.loads(line)
    except FileNotFoundError:
        raise InvalidFile(f"there is no file {path}") from None
    except (OSError, EOFError, ValueError, RecursionError, zlib.error) as error:
        if isinstance(error, InvalidFile):
            raise
        raise InvalidFile(f"{path} is damaged or truncated ({error}); nothing was restored") from None


def _batch_size(table: sa.Table) -> int:
    has_files = any(isinstance(column.type, sa.LargeBinary) for column in table.c)
    return _FILE_BATCH_SIZE if has_files else _BATCH_SIZE


def _tables_of(connection: sa.Connection) -> dict[str, sa.Table]:
    """Return the tables of the database by name; they may be older than the schema."""
    reflected = sa.MetaData()
    reflected.reflect(connection)
    for table in reflected.tables.values():
        for column in table.c:
            if isinstance(column.type, sa.JSON):
                # Reflection does not report how a column stores None.
                column.type = sa.JSON(none_as_null=True)
    return {
        name: table for name, table in reflected.tables.items() if name not in {*_EXCLUDED_TABLES, "alembic_version"}
    }


def _json_value(value: object) -> object:
    return base64.b64encode(value).decode() if isinstance(value, bytes | memoryview) else value
