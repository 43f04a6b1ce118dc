"""Making a study: from a YAML file and the items beside it, or from what a form or a program sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy as sa

from pairseek.errors import InvalidParameter
from pairseek.items import Items
from pairseek.store import studies
from pairseek.store.database import Database
from pairseek.store.studies import StudyRow
from pairseek.web.problems import Problem
from pairseek.web.study import StudyConfiguration, check, configured, pack_items, read_items, read_yaml


def from_file(path: Path) -> tuple[StudyConfiguration, Items, bool]:
    """Configuration, items, and whether the study is to be open, as a YAML file says."""
    try:
        record = read_yaml(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidParameter(f"the study's file {path} cannot be read: {error}") from None
    if not isinstance(record, dict) or "items" not in record:
        raise InvalidParameter(f"{path} names no items: add items: FILE.csv, a path beside the study's file")
    settings = dict(record)
    place, is_open = path.parent / str(settings.pop("items")), settings.pop("open", True)
    if not isinstance(is_open, bool):
        raise InvalidParameter(f"the setting 'open' is {is_open!r}: give true or false")
    configuration = configured(settings)
    return configuration, read_items(place, scaled=configuration.scaled), is_open


def create(database: Database, configuration: StudyConfiguration, items: Items, *, is_open: bool, who: str) -> str:
    """Store a study; its slug."""
    check(configuration, items)
    slug = configuration.named()
    record: dict[str, Any] = configuration.model_dump(mode="json") | {"slug": slug}

    def add(connection: sa.Connection) -> None:
        studies.add(connection, slug, record, pack_items(items), is_open=is_open, who=who)
        studies.note(connection, who, "create", slug, items=items.n)

    try:
        database.write(add)
    except sa.exc.IntegrityError:
        raise Problem(
            409, "slug_taken", f"there is a study {slug!r} already", received=slug, hint="Give another slug."
        ) from None
    return slug


def set_open(database: Database, row: StudyRow, *, is_open: bool, who: str) -> None:
    """Open or close a study, on record."""

    def change(connection: sa.Connection) -> None:
        studies.set_open(connection, row.id, is_open=is_open)
        studies.note(connection, who, "open" if is_open else "close", row.slug)

    if row.is_open != is_open:
        database.write(change)
