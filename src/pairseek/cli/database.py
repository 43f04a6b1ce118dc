"""Access to the service's database."""

from __future__ import annotations

import contextlib
import getpass
import importlib.util
from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from pairseek.errors import InvalidParameter, MissingExtra

if TYPE_CHECKING:
    from pairseek.store.database import Database
    from pairseek.web.studies.catalogue import Study

_EXTRA_PACKAGES = (
    "fastapi",
    "sqlalchemy",
    "alembic",
    "yaml",
    "uvicorn",
    "argon2",
    "nh3",
    "markdown_it",
    "PIL",
    "prometheus_client",
)


def require_web() -> None:
    """Raise `MissingExtra` if a package of the extra ``web`` is not installed."""
    for name in _EXTRA_PACKAGES:
        if importlib.util.find_spec(name) is None:
            raise MissingExtra("the service", "web")


@contextlib.contextmanager
def open_database(
    url: str | None, *, create: bool = True, prepare: bool = True, announce: bool = True
) -> Iterator[Database]:
    """Open the database that the option or the environment names, and close it at the end.

    Parameters
    ----------
    url
        Value of the option ``--database``; None for the setting in the environment.
    create
        Whether to create a missing SQLite file; if false, a missing file is an error.
    prepare
        Whether to create the tables of an empty database, and require tables of the current version otherwise.
    announce
        Whether to print a note if a SQLite file was created.
    """
    require_web()
    from pairseek.store import migrate
    from pairseek.store.database import Database
    from pairseek.web.settings import Settings

    chosen = Settings.of(database=url).database
    database = Database(chosen)
    is_new = database.path is not None and not database.path.exists()
    try:
        if not create and is_new:
            raise InvalidParameter(
                f"there is no database {database.path}: give another with --database, or create a study with pairseek "
                f"study create"
            )
        if prepare:
            migrate.prepare(database)
        yield database
    finally:
        database.close()
        if announce and is_new and database.path is not None and database.path.exists():
            note = f"Note: created the database {database.path.absolute()}, which did not exist."
            if chosen == Settings.database:
                note += (
                    " A server started in another folder uses another database; to use that one, give --database or "
                    "set PAIRSEEK_DATABASE."
                )
            typer.echo(note, err=True)


def place_of(database: Database) -> str:
    """Return the path or address of a database, without passwords."""
    if database.path is not None:
        return str(database.path.absolute())
    query = {name: "hidden" if "password" in name.lower() else value for name, value in database.url.query.items()}
    return database.url.set(query=query).render_as_string()


def find_study(database: Database, slug: str) -> Study:
    """Return the study with this slug."""
    from pairseek.web.errors import Problem
    from pairseek.web.studies.catalogue import Catalogue

    try:
        return Catalogue(database).by_slug(slug)
    except Problem as problem:
        if problem.status != 404:
            raise
        raise InvalidParameter(
            f"there is no study {slug!r} in the database: see pairseek study list, or give another database with "
            f"--database"
        ) from None


def confirm(name: str, consequence: str, *, yes: bool) -> None:
    """Ask the user to type a name before a deletion, unless ``yes``; raise `InvalidParameter` for another reply."""
    if yes:
        return
    typer.echo(f"{consequence} This cannot be undone.")
    if typer.prompt(f"Type {name} to confirm", default="", show_default=False) != name:
        raise InvalidParameter("the name was not confirmed: nothing was deleted; type the name, or give --yes")


def current_user() -> str:
    """Return the name of the user who runs the command, for the audit log."""
    try:
        return f"{getpass.getuser()} (command line)"
    except (KeyError, OSError):
        return "command line"
