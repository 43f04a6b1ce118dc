"""Studies: configuration, versions of the items, open or closed; and the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from pairseek.core.types import JSON
from pairseek.store import meta
from pairseek.store.database import now, stamp
from pairseek.store.schema import audit, catalogues, sessions, studies

# Key in `meta` of the highest id of a deleted study.
_LAST_STUDY_KEY = "last_study"


@dataclass(frozen=True, slots=True)
class StudyRow:
    """Study without its items."""

    id: int
    slug: str
    configuration: JSON
    is_open: bool
    created_at: str
    created_by: str
    closed_at: str | None = None
    additions: int = 0
    catalogue: int = 0
    item_count: int = 0
    dimensions: int = 0


@dataclass(frozen=True, slots=True)
class CatalogueRow:
    """Replaced catalogue without its items."""

    number: int
    hash: str
    count: int
    replaced_at: str


_IS_PAST_CLOSING = studies.c.closes_at <= sa.bindparam("present_time", callable_=now)
IS_OPEN: sa.ColumnElement[bool] = sa.and_(
    studies.c.is_open, sa.or_(studies.c.closes_at.is_(None), sa.not_(_IS_PAST_CLOSING))
).label("is_open")
"""Whether a study accepts answers: nobody has closed it, and its closing date has not passed."""
STUDY_COLUMNS: list[sa.ColumnElement[Any]] = [
    IS_OPEN if name == "is_open" else studies.c[name] for name in StudyRow.__slots__
]
"""Columns of a `StudyRow`, in its order."""


def add(
    connection: sa.Connection,
    slug: str,
    configuration: JSON,
    items: bytes,
    *,
    size: tuple[int, int],
    is_open: bool,
    who: str,
) -> int:
    """Add a study with ``size`` items and dimensions and return its id; raise `IntegrityError` if the slug exists."""
    time = now()
    values = {"configuration": configuration, "items": items, "is_open": is_open, "created_by": who}
    values |= {
        "item_count": size[0],
        "dimensions": size[1],
        "slug": slug,
        "created_at": time,
        "closed_at": None if is_open else time,
        "closes_at": _closing_time(configuration),
        **_unused_id(connection),
    }
    result = connection.execute(studies.insert().values(values))
    key = result.inserted_primary_key
    assert key is not None
    return int(key[0])


def _unused_id(connection: sa.Connection) -> dict[str, object]:
    """Return the column with an id that no study ever had, where SQLite would reuse the id of a deleted study."""
    last = meta.value(connection, _LAST_STUDY_KEY)
    if last is None or connection.dialect.name == "postgresql":
        return {}
    highest = connection.execute(sa.select(sa.func.max(studies.c.id))).scalar() or 0
    return {"id": max(int(last), highest) + 1}


def by_slug(connection: sa.Connection, slug: str) -> StudyRow | None:
    """Return the study with this slug."""
    row = connection.execute(sa.select(*STUDY_COLUMNS).where(studies.c.slug == slug)).first()
    return None if row is None else StudyRow(*row)


def by_id(connection: sa.Connection, study_id: int) -> StudyRow | None:
    """Return the study with this id."""
    row = connection.execute(sa.select(*STUDY_COLUMNS).where(studies.c.id == study_id)).first()
    return None if row is None else StudyRow(*row)


def all_studies(connection: sa.Connection) -> Sequence[StudyRow]:
    """Return all studies, newest first."""
    return [StudyRow(*row) for row in connection.execute(sa.select(*STUDY_COLUMNS).order_by(studies.c.id.desc()))]


def with_items(connection: sa.Connection, study_id: int) -> tuple[StudyRow, bytes] | None:
    """Return a study and its stored items."""
    row = connection.execute(sa.select(*STUDY_COLUMNS, studies.c["items"]).where(studies.c.id == study_id)).first()
    return None if row is None else (StudyRow(*row[:-1]), bytes(row[-1]))


def extend_items(connection: sa.Connection, study_id: int, content: bytes, *, count: int, additions: int) -> bool:
    """Store the items of a study with additional ones; return False if ``additions`` is no longer current."""
    condition = (studies.c.id == study_id) & (studies.c.additions == additions)
    values = {"items": content, "item_count": count, "additions": additions + 1}
    return connection.execute(studies.update().where(condition).values(values)).rowcount == 1


def replace_items(connection: sa.Connection, row: StudyRow, content: bytes, *, count: int, present_hash: str) -> bool:
    """Replace the items by ``count`` others, and keep the present ones as a catalogue with this hash.

    Return False if items were added or replaced since the row was read.
    """
    condition = (studies.c.id == row.id) & (studies.c.additions == row.additions)
    current_items = connection.execute(sa.select(studies.c["items"]).where(condition).with_for_update()).scalar()
    if current_items is None:
        return False
    values = {"study_id": row.id, "number": row.catalogue, "hash": present_hash, "count": row.item_count}
    connection.execute(catalogues.insert().values(items=current_items, replaced_at=now(), **values))
    changed = {"items": content, "item_count": count, "additions": row.additions + 1, "catalogue": row.catalogue + 1}
    return connection.execute(studies.update().where(condition).values(changed)).rowcount == 1


def drop_catalogues(connection: sa.Connection, study_id: int, until: str) -> None:
    """Delete the catalogues that were replaced before a time and that no session uses."""
    is_used = sa.exists().where((sessions.c.study_id == study_id) & (sessions.c.catalogue == catalogues.c.number))
    is_old = (catalogues.c.study_id == study_id) & (catalogues.c.replaced_at < until)
    connection.execute(catalogues.delete().where(is_old & ~is_used))


def replaced_catalogues(connection: sa.Connection, study_id: int) -> list[CatalogueRow]:
    """Return the replaced catalogues of a study, oldest first."""
    columns = [catalogues.c[name] for name in CatalogueRow.__slots__]
    statement = sa.select(*columns).where(catalogues.c.study_id == study_id).order_by(catalogues.c.number)
    return [CatalogueRow(*row) for row in connection.execute(statement)]


def replaced_items(connection: sa.Connection, study_id: int, number: int) -> bytes | None:
    """Return the items of a replaced catalogue; None if no catalogue has this number."""
    condition = (catalogues.c.study_id == study_id) & (catalogues.c.number == number)
    items = connection.execute(sa.select(catalogues.c["items"]).where(condition)).scalar()
    return None if items is None else bytes(items)


def lock(connection: sa.Connection, study_id: int) -> StudyRow | None:
    """Return a study, locked until the transaction ends."""
    statement = sa.select(*STUDY_COLUMNS).where(studies.c.id == study_id).with_for_update()
    row = connection.execute(statement).first()
    return None if row is None else StudyRow(*row)


def put_configuration(connection: sa.Connection, study_id: int, configuration: JSON) -> None:
    """Replace the configuration of a study."""
    values = {"configuration": configuration, "closes_at": _closing_time(configuration)}
    connection.execute(studies.update().where(studies.c.id == study_id).values(values))


def _closing_time(configuration: JSON) -> str | None:
    closes = configuration.get("closes")
    return None if closes is None else stamp(datetime.fromisoformat(closes))


def past_closing_date(connection: sa.Connection) -> list[StudyRow]:
    """Return the studies that nobody has closed although their closing date has passed."""
    statement = sa.select(*STUDY_COLUMNS).where(studies.c.is_open & _IS_PAST_CLOSING)
    return [StudyRow(*row) for row in connection.execute(statement)]


def set_open(connection: sa.Connection, study_id: int, *, is_open: bool) -> None:
    """Open or close a study."""
    values = {"is_open": is_open, "closed_at": None if is_open else now()}
    connection.execute(studies.update().where(studies.c.id == study_id).values(values))


def retire(connection: sa.Connection, study_id: int) -> None:
    """Keep the id of a deleted study from being reused, because workers cache studies by id."""
    last = int(meta.value(connection, _LAST_STUDY_KEY) or 0)
    meta.put(connection, _LAST_STUDY_KEY, str(max(last, study_id)))


def log_action(connection: sa.Connection, who: str, action: str, study: str | None = None, **details: object) -> None:
    """Add an entry to the audit log."""
    connection.execute(audit.insert().values(at=now(), who=who, action=action, study=study, details=details))


def audit_log(connection: sa.Connection, limit: int = 500) -> list[JSON]:
    """Return the audit log of all studies and users, newest first."""
    return [
        dict(row) for row in connection.execute(sa.select(audit).order_by(audit.c.id.desc()).limit(limit)).mappings()
    ]


def actions_of(connection: sa.Connection, study: str, action: str, since: str) -> list[JSON]:
    """Return all entries of one action in the audit log of a study since a time, oldest first."""
    condition = (audit.c.study == study) & (audit.c.action == action) & (audit.c.at >= since)
    return [dict(row) for row in connection.execute(sa.select(audit).where(condition).order_by(audit.c.id)).mappings()]


def audit_log_of(connection: sa.Connection, study: str, limit: int = 200) -> list[JSON]:
    """Return the audit log of a study, newest first."""
    statement = sa.select(audit).where(audit.c.study == study).order_by(audit.c.id.desc()).limit(limit)
    return [dict(row) for row in connection.execute(statement).mappings()]
