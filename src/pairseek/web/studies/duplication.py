"""Copies of studies: the settings, items and pictures, without people."""

from __future__ import annotations

import sqlalchemy as sa

from pairseek.errors import InvalidParameter
from pairseek.store import media, studies
from pairseek.store.database import Database
from pairseek.web.errors import not_found
from pairseek.web.studies.catalogue import Study
from pairseek.web.studies.configuration import MAX_TITLE_LENGTH, RESERVED_SLUGS, SLUG, stored_configuration
from pairseek.web.studies.creation import slug_taken

# Largest number that is appended to the slug of a copy.
_MAX_COPIES = 1000
_MAX_SLUG_LENGTH = 64


def duplicate(database: Database, study: Study, *, who: str, slug: str | None = None) -> str:
    """Copy a study with its settings, newest items, pictures and logo, and return the copy's slug.

    The copy is closed. Its title and, unless ``slug`` is given, its slug end with the first number that is free.
    """
    if slug is not None and (not SLUG.fullmatch(slug) or slug in RESERVED_SLUGS):
        raise InvalidParameter(
            f"the slug {slug!r} is not valid in a link: use at most {_MAX_SLUG_LENGTH} of a-z, 0-9 and hyphens",
            field="slug",
        )
    taken = {row.slug for row in database.read(studies.all_studies)}
    for number in range(2, _MAX_COPIES):
        ending = f"-{number}"
        name = slug or study.row.slug[: _MAX_SLUG_LENGTH - len(ending)].rstrip("-") + ending
        if name not in taken and _add(database, study, name, number, who):
            return name
        if slug is not None:
            break
    raise slug_taken(slug or study.row.slug)


def _add(database: Database, study: Study, slug: str, number: int, who: str) -> bool:
    """Store the copy; return False if its slug is taken."""
    ending = f" ({number})"
    title = str(study.row.configuration["title"])[: MAX_TITLE_LENGTH - len(ending)] + ending
    record = {**study.row.configuration, "slug": slug, "title": title}
    # A configuration of an earlier version is stored in the present form.
    record = stored_configuration(record).model_dump(mode="json")

    def add(connection: sa.Connection) -> None:
        stored = studies.with_items(connection, study.row.id)
        if stored is None:
            raise not_found("study", study.row.slug)
        row, content = stored
        size = (row.item_count, row.dimensions)
        copy = studies.add(connection, slug, record, content, size=size, is_open=False, who=who)
        media.copy(connection, row.id, copy)
        studies.log_action(connection, who, "duplicate_study", slug, name=row.slug, items=row.item_count)

    try:
        database.write(add)
    except sa.exc.IntegrityError:
        return False
    return True
