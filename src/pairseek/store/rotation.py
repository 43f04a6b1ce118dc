"""Dated backups in a folder, of which the oldest are removed."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pairseek.core.types import JSON
from pairseek.errors import InvalidFile
from pairseek.store import backups
from pairseek.store.database import Database

_NAME = re.compile(r"pairseek-\d{8}T\d{6}Z\.backup\.gz")
# Longest first line of a backup.
_MAX_HEAD_LENGTH = 1000


@dataclass(frozen=True, slots=True)
class DatedBackup:
    """New backup, its number of rows, and the older backups that were removed."""

    path: Path
    rows: int
    removed: tuple[Path, ...]


def write(database: Database, folder: Path, *, keep: int) -> DatedBackup:
    """Write a backup named after the time into a folder, and remove the oldest, so that ``keep`` of them remain.

    Only backups that this function has made of the same database are removed, and only after the new one is complete.
    """
    if not folder.is_dir():
        raise InvalidFile(f"{folder} is not a folder: with --keep, give the folder of the backups, and create it first")
    path = folder / f"pairseek-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.backup.gz"
    rows = backups.write(database, path)
    source = backups.source_of(database)
    others = [other for other in folder.iterdir() if other != path and _is_of(other, source)]
    removed = tuple(sorted(others, key=lambda other: other.name)[: max(0, len(others) - (keep - 1))])
    for old in removed:
        try:
            old.unlink(missing_ok=True)
        except OSError as error:
            raise InvalidFile(f"{path} is complete, but the older backup {old} cannot be removed: {error}") from None
    return DatedBackup(path, rows, removed)


def _is_of(path: Path, source: str) -> bool:
    """Return whether a file is a dated backup of this database, by its name and its first line."""
    if not _NAME.fullmatch(path.name) or path.is_symlink() or not path.is_file():
        return False
    head: JSON = {}
    with (
        contextlib.suppress(OSError, EOFError, ValueError, zlib.error),
        gzip.open(path, "rt", encoding="utf-8") as lines,
    ):
        head = json.loads(lines.readline(_MAX_HEAD_LENGTH))
    return isinstance(head, dict) and head.get("format") == backups.FORMAT and head.get("source") == source
