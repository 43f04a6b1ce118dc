"""Creation of studies from YAML files, forms and API requests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import sqlalchemy as sa

from pairseek.core.types import JSON
from pairseek.errors import InvalidParameter
from pairseek.model.items import Items
from pairseek.store import media, studies
from pairseek.store.database import Database
from pairseek.store.media import StoredPicture
from pairseek.store.studies import StudyRow
from pairseek.web.errors import Problem
from pairseek.web.studies.configuration import StudyConfiguration, check, configured, pack_items, read_items, read_yaml
from pairseek.web.studies.media import Files, copies, from_folder, with_pictures

__all__ = ["create_study", "from_file", "from_record", "read_items", "set_open"]


def from_file(path: Path) -> tuple[StudyConfiguration, Items, bool, Files]:
    """Read configuration, items, open state and pictures from a YAML file."""
    try:
        record = read_yaml(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidParameter(f"the study's file {path} cannot be read: {error}") from None
    if isinstance(record, dict) and "space" in record:
        from_record(record)  # raises an error that explains it
    if not isinstance(record, dict) or "items" not in record:
        raise InvalidParameter(f"{path} names no items: add items: FILE.csv, a path beside the study's file")
    place = path.parent / str(record["items"])
    configuration, is_open = from_record(record)
    items = read_items(
        place,
        scaled=configuration.scaled,
        standardize=configuration.standardize,
        placed=not configuration.is_similarity,
    )
    return configuration, items, is_open, from_folder(items, place.parent)


def from_record(record: JSON) -> tuple[StudyConfiguration, bool]:
    """Return configuration and open state from the settings of a study file."""
    settings = {name: value for name, value in record.items() if name != "items"}
    is_open = settings.pop("open", True)
    if not isinstance(is_open, bool):
        raise InvalidParameter(f"the setting 'open' is {is_open!r}: give true or false")
    return configured(settings), is_open


def create_study(
    database: Database,
    configuration: StudyConfiguration,
    items: Items,
    *,
    is_open: bool,
    who: str,
    files: Files | None = None,
) -> str:
    """Store a study with its pictures and return its slug."""
    check(configuration, items)
    items, readers = with_pictures(items, files or {})
    slug = configuration.named()
    record: JSON = configuration.model_dump(mode="json") | {"slug": slug}
    packed = pack_items(items)

    def add(connection: sa.Connection) -> int:
        # Closed until its pictures are stored, which takes too long for one transaction.
        ready = is_open and not readers
        number = studies.add(connection, slug, record, packed, is_open=ready, who=who)
        studies.note(connection, who, "create_study", slug, items=items.n)
        return number

    try:
        number = database.write(add)
    except sa.exc.IntegrityError:
        raise Problem(
            409,
            "slug_taken",
            f"there is a study {slug!r} already",
            received=slug,
            hint="Give another slug.",
            field="slug",
        ) from None
    if readers:
        try:
            _add_pictures(database, number, readers)
        except BaseException:
            database.write(lambda connection: studies.discard(connection, number))
            raise
        if is_open:
            database.write(lambda connection: studies.set_open(connection, number, is_open=True))
    return slug


def _add_pictures(database: Database, number: int, readers: dict[str, Callable[[], bytes]]) -> None:
    for name, read in readers.items():
        made = list(copies(number, name, read()))

        def add(connection: sa.Connection, made: list[StoredPicture] = made) -> None:
            for picture in made:
                media.add(connection, picture)

        database.write(add)


def set_open(database: Database, row: StudyRow, *, is_open: bool, who: str) -> None:
    """Open or close a study and record it in the audit log."""

    def change(connection: sa.Connection) -> None:
        studies.set_open(connection, row.id, is_open=is_open)
        studies.note(connection, who, "open" if is_open else "close", row.slug)

    if row.is_open != is_open:
        database.write(change)
