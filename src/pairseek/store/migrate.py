"""Schema migrations: upgrade and version check."""

from __future__ import annotations

from importlib import resources

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from pairseek.errors import StoreOutdated
from pairseek.store import locks
from pairseek.store.database import Database


def upgrade(database: Database) -> str:
    """Upgrade the tables to the newest version and return it; raise `StoreOutdated` if they are too old or too new."""
    version = _version(database)
    if version is not None and version not in upgradable_versions():
        raise _outdated(version)
    with database.transaction() as connection:
        # A server that starts at the same time waits here, then finds the tables upgraded.
        locks.wait_in_transaction(connection, "migration")
        if version is not None and not database.is_sqlite:
            # Wait for the writers of running servers before locking tables that they need.
            connection.execute(sa.text("SELECT version_num FROM alembic_version FOR UPDATE"))
        upgrade_within(connection)
    return newest_version()


def upgrade_within(connection: sa.Connection, version: str = "head") -> None:
    """Upgrade the tables to a version, by default the newest, within the connection's transaction."""
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, version)


def newest_version() -> str:
    """Return the schema version that this pairseek needs."""
    return str(ScriptDirectory.from_config(_config()).get_current_head())


def current_version(database: Database) -> str | None:
    """Return the schema version of the database; None if it is empty."""
    return database.read(lambda connection: MigrationContext.configure(connection).get_current_revision())


def prepare(database: Database) -> None:
    """Create the tables of an empty database; raise `StoreOutdated` if existing ones have another version.

    Later writes check the version again.
    """
    version = _version(database)
    if version is None:
        upgrade(database)
    elif version != newest_version():
        raise _outdated(version)
    database.schema = newest_version()


def advice(version: str, *, backup: bool = False) -> str:
    """Return instructions for tables or a backup of another schema version."""
    if version in upgradable_versions():
        return "make a backup, then run pairseek db upgrade"
    if version > newest_version():
        return "it was written by a newer pairseek; install that version"
    oldest = min(upgradable_versions())
    export = "restore it with the pairseek that wrote it and " if backup else "with the pairseek that wrote it, "
    export += "export its studies (pairseek export)"
    return f"tables before version {oldest} cannot be upgraded; {export}, then create a new database"


def _version(database: Database) -> str | None:
    """Return the schema version; "unknown" for tables without a version, None for an empty database."""

    def read(connection: sa.Connection) -> str | None:
        version = MigrationContext.configure(connection).get_current_revision()
        return "unknown" if version is None and sa.inspect(connection).get_table_names() else version

    return database.read(read)


def _outdated(version: str) -> StoreOutdated:
    words = "they are not pairseek's tables; give another database" if version == "unknown" else advice(version)
    return StoreOutdated(
        f"the database has tables of version {version}, but this pairseek needs {newest_version()}: {words}"
    )


def upgradable_versions() -> set[str]:
    """Return the schema versions that can be upgraded to the newest."""
    return {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(resources.files("pairseek.store") / "migrations"))
    return config
