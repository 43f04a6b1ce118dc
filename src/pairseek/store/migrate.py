"""The version of the tables: brought up to date, or checked."""

from __future__ import annotations

from importlib import resources

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from pairseek.errors import StoreOutdated
from pairseek.store.database import Database


def upgrade(database: Database) -> str:
    """Bring the tables to the newest version, which is given back."""
    config = _config()
    # Alembic holds its own transaction; SQLite's lock keeps a second process out until it is done.
    with database.engine.connect() as connection, connection.begin():
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    return newest()


def newest() -> str:
    """The version that this pairseek works with."""
    return str(ScriptDirectory.from_config(_config()).get_current_head())


def current(database: Database) -> str | None:
    """The version of the tables; None for an empty database."""
    return database.read(lambda connection: MigrationContext.configure(connection).get_current_revision())


def ready(database: Database) -> None:
    """Make the tables in an empty database; refuse one of another version."""
    version = current(database)
    if version is None and not database.read(lambda connection: sa.inspect(connection).get_table_names()):
        upgrade(database)
        return
    if version != newest():
        raise StoreOutdated(
            f"the database has tables of version {version or 'unknown'}, this pairseek needs {newest()}: "
            f"make a backup, then run pairseek db upgrade"
        )


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(resources.files("pairseek.store") / "migrations"))
    return config
