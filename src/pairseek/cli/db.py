"""``pairseek db``: the tables of the database."""

from __future__ import annotations

import typer

from pairseek.cli.service import DatabaseOption, need_web

app = typer.Typer(help="Bring the database up to date, or look at its version.", no_args_is_help=True)


@app.command()
def upgrade(*, database: DatabaseOption = None) -> None:
    """Bring the tables to the version that this pairseek needs."""
    need_web()
    from pairseek.store import migrate
    from pairseek.store.database import Database
    from pairseek.web.settings import Settings

    found = Database(Settings.of(database=database).database)
    try:
        before = migrate.current(found)
        after = migrate.upgrade(found)
    finally:
        found.close()
    typer.echo(f"The tables have version {after}; before: {before or 'none'}.")


@app.command()
def version(*, database: DatabaseOption = None) -> None:
    """Say which version the tables have, and which this pairseek needs."""
    need_web()
    from pairseek.store import migrate
    from pairseek.store.database import Database
    from pairseek.web.settings import Settings

    found = Database(Settings.of(database=database).database)
    try:
        typer.echo(f"tables {migrate.current(found) or 'none'}, needed {migrate.newest()}")
    finally:
        found.close()
