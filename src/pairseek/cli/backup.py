"""Commands ``pairseek backup`` and ``pairseek restore``: a copy of the whole database in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pairseek.cli.database import open_database
from pairseek.cli.options import DatabaseOption


def backup(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Path of the new backup file.")],
    *,
    database: DatabaseOption = None,
) -> None:
    """Back up all studies and answers to one file. The service may keep running."""
    with open_database(database, create=False) as opened:
        from pairseek.store import backups

        rows = backups.write(opened, path)
    typer.echo(f"Wrote {rows:,} rows to {path}")


def restore(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Backup file written by pairseek backup.")],
    *,
    database: DatabaseOption = None,
) -> None:
    """Restore a backup into an empty database. SQLite and PostgreSQL backups are interchangeable."""
    with open_database(database, prepare=False) as opened:
        from pairseek.store import backups

        rows = backups.read(opened, path)
    typer.echo(f"Read {rows:,} rows from {path}")
