"""Command group ``pairseek db``: schema migrations of the database."""

from __future__ import annotations

import typer

from pairseek.cli.database import open_database
from pairseek.cli.options import DatabaseOption

app = typer.Typer(help="Upgrade the tables of the database, or show their version.", no_args_is_help=True)


@app.command()
def upgrade(*, database: DatabaseOption = None) -> None:
    """Upgrade the tables to the version that this pairseek requires."""
    with open_database(database, prepare=False) as opened:
        from pairseek.store import migrate

        before = migrate.current_version(opened)
        after = migrate.upgrade(opened)
        # Remove deleted content that earlier versions left in the file.
        opened.scrub()
    typer.echo(f"The tables have version {after} (before: {before or 'none'}).")


@app.command()
def version(*, database: DatabaseOption = None) -> None:
    """Show the version of the tables, and the version that this pairseek requires."""
    with open_database(database, create=False, prepare=False) as opened:
        from pairseek.store import migrate

        typer.echo(f"tables {migrate.current_version(opened) or 'none'}, needed {migrate.newest_version()}")
