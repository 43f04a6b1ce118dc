"""What the commands of the service share."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Annotated

import typer

from pairseek.errors import InvalidParameter, MissingExtra

if TYPE_CHECKING:
    from pairseek.store.database import Database
    from pairseek.web.studies.catalogue import Study

_EXTRA = (
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

DatabaseOption = Annotated[
    str | None,
    typer.Option(
        "--database", metavar="URL", help="A SQLite file or postgresql://USER@HOST/NAME.  [dim]\\[pairseek.db][/]"
    ),
]


def need_web() -> None:
    """Say which extra is missing, where one is."""
    import importlib.util

    for name in _EXTRA:
        if importlib.util.find_spec(name) is None:
            raise MissingExtra("the service", "web")


def opened(database: str | None, *, new: bool = True) -> Database:
    """The database that the option or the environment names, with tables of the right version.

    Without `new` one that is not there is refused, and not made.
    """
    need_web()
    from pairseek.store import migrate
    from pairseek.store.database import Database
    from pairseek.web.settings import Settings

    found = Database(Settings.of(database=database).database)
    if not new and found.path is not None and not found.path.exists():
        found.close()
        raise InvalidParameter(
            f"there is no database {found.path}: name it by --database, or make a study with pairseek study create"
        )
    migrate.ready(found)
    return found


def study_named(database: Database, slug: str) -> Study:
    """A study of the database, by its name in the link."""
    from pairseek.web.errors import Problem
    from pairseek.web.studies.catalogue import Catalogue

    try:
        return Catalogue(database).named(slug)
    except Problem as problem:
        if problem.status != 404:
            raise
        raise InvalidParameter(
            f"there is no study {slug!r} in the database: see pairseek study list, or name another by --database"
        ) from None


def me() -> str:
    """Who runs the command, for the records."""
    try:
        return f"{getpass.getuser()} (command line)"
    except (KeyError, OSError):
        return "command line"
