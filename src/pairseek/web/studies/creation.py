"""Creation of studies from YAML files, forms and API requests, and additions to their items."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, TypedDict

import numpy as np
import sqlalchemy as sa

from pairseek.core.csv import is_table
from pairseek.core.text import quoted
from pairseek.core.types import JSON
from pairseek.errors import InvalidItems, InvalidParameter, Unsupported
from pairseek.model.items import Items
from pairseek.store import media, studies
from pairseek.store.database import Database
from pairseek.store.studies import StudyRow
from pairseek.web.errors import Problem
from pairseek.web.studies.attention import set_apart, with_ids
from pairseek.web.studies.catalogue import Study
from pairseek.web.studies.checks import check
from pairseek.web.studies.configuration import RESERVED_SLUGS, StudyConfiguration, configured
from pairseek.web.studies.face import logo_copies
from pairseek.web.studies.items import pack_items, read_items, study_items
from pairseek.web.studies.media import PictureCopies, with_pictures
from pairseek.web.studies.recordings import with_recordings
from pairseek.web.studies.uploads import MAX_FILE_BYTES, Files, from_folder, from_media_folder, items_of_files
from pairseek.web.studies.yaml_reader import read_yaml

__all__ = [
    "add_items",
    "create_study",
    "from_file",
    "from_record",
    "items_changed",
    "items_in",
    "items_sent",
    "set_open",
    "slug_taken",
]


class _ItemSettings(TypedDict, total=False):
    """Arguments of `read_items` that follow from a configuration."""

    scaled: bool
    standardize: bool
    placed: bool
    coordinates: list[str] | None


class StudyFile(NamedTuple):
    """Content of a study file, and of the files that it names."""

    configuration: StudyConfiguration
    items: Items
    is_open: bool
    files: Files
    logo: bytes | None


def from_file(path: Path) -> StudyFile:
    """Read a study file with its items, media files and logo."""
    if path.is_dir() or is_table(path):
        raise InvalidParameter(
            f"{path} contains items and is not a study file: write a YAML file with title: ... and items: "
            f"{path.name or '.'}, and give that file"
        )
    try:
        record = read_yaml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidParameter(f"there is no file {path}: give the path of the study file, such as wine.yaml") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidParameter(f"the study file {path} cannot be read: {error}") from None
    if isinstance(record, dict) and "space" in record:
        from_record(record)  # raises an error about the setting
    if not isinstance(record, dict) or "items" not in record:
        raise InvalidParameter(f"{path} names no items: add items: FILE.csv, a path relative to the study file")
    items_path = path.parent / str(record["items"])
    logo = _logo_in(path.parent, record.pop("logo", None))
    configuration, is_open = from_record(record)
    items, files = items_in(items_path, configuration)
    return StudyFile(configuration, items, is_open, files, logo)


def _logo_in(folder: Path, name: object) -> bytes | None:
    if name is None:
        return None
    try:
        with (folder / str(name)).open("rb") as file:
            return file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise InvalidParameter(f"the logo {name!r} cannot be read: {error}", field="logo") from None


def items_in(path: Path, configuration: StudyConfiguration | None = None) -> tuple[Items, Files]:
    """Read items with their files from a CSV file, workbook or Parquet file, or from a folder of media files."""
    settings = _item_settings(configuration)
    if path.is_dir():
        files = from_media_folder(path)
        error = f"the folder {path} contains no pictures, sounds or videos: put some there, or name a CSV file"
        return _file_items(files, settings, error), files
    items = read_items(path, **settings)
    return items, from_folder(items, path.parent)


def items_sent(
    name: str, content: bytes | None, files: Files, configuration: StudyConfiguration | None = None
) -> Items:
    """Read the items of a form from its uploaded table, or else from its media files."""
    settings = _item_settings(configuration)
    if content is None:
        error = (
            "no items were sent: choose pictures, sounds or videos, or a table (XLSX, CSV or Parquet) with a column id "
            "or label"
        )
        return _file_items(files, settings, error)
    return read_items(Path(name[:100]), content=content, **settings)


def _item_settings(configuration: StudyConfiguration | None) -> _ItemSettings:
    if configuration is None:
        return {}
    return {
        "scaled": configuration.scaled,
        "standardize": configuration.standardize,
        "placed": not configuration.is_similarity,
        "coordinates": configuration.coordinates,
    }


def _file_items(files: Files, settings: _ItemSettings, error: str) -> Items:
    items = items_of_files(files)
    if items is None:
        raise InvalidItems(error)
    scaled, standardize = settings.get("scaled", False), settings.get("standardize", False)
    return study_items(items, scaled=scaled, standardize=standardize)


def from_record(record: JSON) -> tuple[StudyConfiguration, bool]:
    """Return the configuration and the open state from the settings of a study file."""
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
    logo: bytes | None = None,
) -> str:
    """Store a study with its logo, pictures, sounds and videos, and return its slug."""
    configuration = with_ids(configuration, items)
    check(configuration, items)
    items, readers = with_pictures(items, files or {})
    items, recordings = with_recordings(items, files or {})
    configuration, ranked = set_apart(configuration, items)
    if ranked is not items:
        check(configuration, ranked)
    slug = configuration.slug_or_default()
    if slug in RESERVED_SLUGS:
        raise InvalidParameter(
            f"the slug {slug!r} is the address of a page for researchers: give another slug", field="slug"
        )
    if database.read(lambda connection: studies.by_slug(connection, slug)) is not None:
        # Check before the pictures are converted, which may take minutes.
        raise slug_taken(slug)
    record: JSON = configuration.model_dump(mode="json") | {"slug": slug}
    packed = pack_items(ranked)
    logos = [] if logo is None else logo_copies(logo)

    with PictureCopies(items, readers) as copies:

        def add(connection: sa.Connection) -> None:
            # Use a single transaction, because other workers cache a study as soon as they see it.
            number = studies.add(connection, slug, record, packed, size=(ranked.n, ranked.d), is_open=is_open, who=who)
            copies.store(connection, number)
            media.add_all(connection, number, logos)
            recordings.store(connection, number)
            studies.log_action(connection, who, "create_study", slug, items=ranked.n)

        try:
            database.write(add)
        except sa.exc.IntegrityError:
            raise slug_taken(slug) from None
    return slug


def slug_taken(slug: str) -> Problem:
    """Return the problem of a slug that another study has."""
    return Problem(
        409,
        "slug_taken",
        f"the slug {slug!r} is taken by another study",
        received=slug,
        hint="Give another slug.",
        field="slug",
    )


def add_items(database: Database, study: Study, items: Items, *, who: str, files: Files | None = None) -> int:
    """Add items to a study whose items have no coordinates; return its new number of items.

    Sessions that have begun keep the items that they began with.
    """
    slug, current = study.row.slug, study.items
    if study.configuration.is_similarity:
        raise Unsupported(
            f"the study {slug!r} is a similarity study, whose items cannot change: create another study that includes "
            f"the new items; nothing was added"
        )
    if current.d or items.d:
        placed = f"items of the study {slug!r}" if current.d else "new items"
        raise InvalidItems(
            f"the {placed} have coordinates: items can only be added if neither they nor the study's items have "
            f"coordinates; create another study"
        )
    duplicates = [name for name in items.ids if name in set(current.ids)]
    if duplicates:
        raise InvalidItems(
            f"the study {slug!r} already has {quoted(duplicates)}: give only new items; nothing was added"
        )
    items, readers = with_pictures(items, files or {})
    items, recordings = with_recordings(items, files or {})
    columns = dict.fromkeys([*current.data, *items.data])
    empty = ("",)
    data = {
        name: (*current.data.get(name, empty * current.n), *items.data.get(name, empty * items.n)) for name in columns
    }
    appeal = np.concatenate([current.appeal, items.appeal])
    joined = study_items(
        Items._without_warnings(None, (*current.ids, *items.ids), (*current.labels, *items.labels), appeal, data),
        scaled=False,
    )
    packed = pack_items(joined)

    with PictureCopies(items, readers) as copies:

        def change(connection: sa.Connection) -> bool:
            row = study.row
            if not studies.extend_items(connection, row.id, packed, count=joined.n, additions=row.additions):
                return False
            copies.store(connection, study.row.id)
            recordings.store(connection, study.row.id)
            studies.log_action(connection, who, "add_items", slug, count=items.n)
            return True

        if not database.write(change):
            raise items_changed(slug)
    return joined.n


def items_changed(slug: str) -> Problem:
    """Return the problem of items that two people changed at the same time."""
    return Problem(
        409,
        "items_changed",
        f"the items of the study {slug!r} were changed at the same time",
        received=slug,
        hint="Look at its items, then change them again.",
    )


def set_open(database: Database, row: StudyRow, *, is_open: bool, who: str) -> None:
    """Open or close a study and record it in the audit log."""

    def change(connection: sa.Connection) -> None:
        studies.set_open(connection, row.id, is_open=is_open)
        opened = studies.by_id(connection, row.id)
        if is_open and opened is not None and not opened.is_open:
            # A closing date that has passed would close the study again.
            studies.put_configuration(connection, row.id, {**opened.configuration, "closes": None})
        studies.log_action(connection, who, "open" if is_open else "close", row.slug)

    if row.is_open != is_open:
        database.write(change)
