"""Commands ``pairseek backup`` and ``pairseek restore``: a copy of the whole database in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pairseek.cli.database import open_database
from pairseek.cli.options import DatabaseOption


def backup(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="New backup file, or with --keep the folder for it.")],
    *,
    keep: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Name the file after the time, and keep the newest N in the folder."),
    ] = None,
    database: DatabaseOption = None,
) -> None:
    """Back up all studies and answers to one file. The service may keep running.

    With --keep, only older backups that were made with --keep of the same database
    are removed, and only once the new one is complete.
    """
    with open_database(database, create=False) as opened:
        from pairseek.store import backups, rotation

        if keep is None:
            rows = backups.write(opened, path)
            typer.echo(f"Wrote {rows:,} rows to {path}")
            return
        made = rotation.write(opened, path, keep=keep)
    typer.echo(f"Wrote {made.rows:,} rows to {made.path}")
    for old in made.removed:
        typer.echo(f"Removed {old}")


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
