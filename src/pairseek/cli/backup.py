"""``pairseek backup`` and ``pairseek restore``: the whole database as one file, for SQLite and PostgreSQL."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pairseek.cli.service import DatabaseOption, need_web, opened


def backup(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A new file.")], *, database: DatabaseOption = None
) -> None:
    """Write all studies and answers to one file, while the service runs."""
    found = opened(database, new=False)
    try:
        from pairseek.store import backups

        rows = backups.write(found, path)
    finally:
        found.close()
    typer.echo(f"Wrote {rows:,} rows to {path}")


def restore(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A file from pairseek backup.")],
    *,
    database: DatabaseOption = None,
) -> None:
    """Fill an empty database from a backup, of the same kind or the other."""
    need_web()
    from pairseek.store import backups
    from pairseek.store.database import Database
    from pairseek.web.settings import Settings

    found = Database(Settings.of(database=database).database)
    try:
        rows = backups.read(found, path)
    finally:
        found.close()
    typer.echo(f"Read {rows:,} rows from {path}")
