"""Replacement of a study's items by others in the same coordinates, such as tomorrow's catalogue.

Items are checked at once, and compressed and stored in the background. The database holds the state of each
replacement for a day, so that every worker can report it, and no worker repeats what another is doing.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from pairseek.core.media import FILE_COLUMNS, inline_media
from pairseek.core.types import JSON
from pairseek.errors import InvalidItems, PairseekError, Unsupported
from pairseek.model.catalogues import same_space
from pairseek.model.items import Items
from pairseek.store import meta, studies
from pairseek.store.database import Database, now, stamp
from pairseek.web.errors import Problem, internal_error, not_found, problem_of
from pairseek.web.studies.catalogue import Study
from pairseek.web.studies.checks import check
from pairseek.web.studies.creation import items_changed
from pairseek.web.studies.items import pack_items, study_items
from pairseek.web.studies.recordings import with_recordings

# Age at which a replaced catalogue without sessions is deleted; starting a session never takes that long.
_UNUSED_AGE = timedelta(days=1)
# Beginning of the keys of states in `meta`.
_KEY = "replacement-"
# Age at which the state of a replacement is forgotten.
_STATE_AGE = timedelta(days=1)
# Age at which a replacement counts as interrupted, for example because its worker has died.
_MAX_AGE = timedelta(minutes=10)


def replace_items(database: Database, study: Study, items: Items, *, who: str) -> bool:
    """Replace the items of a study by others in the same coordinate space; return False if nothing has changed.

    Sessions that have begun keep the items that they began with, and answers about removed items still count. Items
    that remain keep their pictures, and without new addresses their sounds and videos.
    """
    items = checked_items(study, items)
    if _digest(items) == _digest(study.items):
        return False
    _store(database, study, items, who)
    return True


def checked_items(study: Study, items: Items) -> Items:
    """Return the new items of a study; items that remain keep their uploaded files."""
    slug, present, configuration = study.row.slug, study.items, study.configuration
    if configuration.is_similarity or not present.d:
        raise Unsupported(
            f"the items of the study {slug!r} have no coordinates, and only items with coordinates can be replaced: "
            f"add items to it, or create another study"
        )
    if configuration.scaled or configuration.standardize:
        setting = "standardize" if configuration.standardize else "scaled"
        raise Unsupported(
            f"the study {slug!r} has the setting {setting!r}, which would place new items on a different scale: create "
            f"a study without it, with items that you have scaled yourself"
        )
    if items.d != present.d:
        raise InvalidItems(
            f"the new items have {items.d} coordinates, but the items of the study {slug!r} have {present.d}: place "
            f"both with the same map"
        )
    if not same_space(present, items):
        raise InvalidItems(
            f"most items that the study {slug!r} already has are at different coordinates now: place old and new items "
            f"with the same map, or create another study"
        )
    with_recordings(items, {})  # refuses files, which cannot be sent with a replacement
    items = study_items(_with_files_of(present, items), scaled=False)
    check(configuration, items)
    return items


def begin(database: Database, study: Study, items: Items) -> tuple[JSON, bool]:
    """Record that checked items are about to become a study's items; return the state, and whether it has begun now.

    It does not begin if these are the items of the study, or if they are replacing its items already. If the items have
    changed since the study was read, a `Problem` is raised.
    """
    digest = _digest(items)
    is_present = digest == _digest(study.items)
    state = _state_of(digest, "done" if is_present else "running", items.hash)

    def record(connection: sa.Connection) -> JSON | None:
        row = studies.by_id(connection, study.row.id)
        if row is None or row.additions != study.row.additions:
            raise items_changed(study.row.slug)
        meta.remove_older(connection, _KEY, stamp(datetime.now(UTC) - _STATE_AGE))
        current = _read(connection, study.row.id, digest)
        if current is not None and current["state"] == "running" and not is_present:
            return current
        _write(connection, study.row.id, state)
        return None

    running = database.write(record)
    return (state, not is_present) if running is None else (running, False)


def finish(database: Database, study: Study, items: Items, state: JSON, *, who: str) -> None:
    """Replace the items of a study by checked ones, and record the result, for the state that `begin` returned."""
    problem: Problem | None = internal_error()
    try:
        _store(database, study, items, who)
        problem = None
    except PairseekError as error:
        problem = problem_of(error)
    finally:
        database.write(lambda connection: _write(connection, study.row.id, _ended(state, problem)))


def state(database: Database, study: Study, replacement: str) -> JSON:
    """Return the state of a replacement."""
    current = database.read(lambda connection: _read(connection, study.row.id, replacement))
    if current is None:
        raise not_found("replacement", replacement)
    return current


def _state_of(digest: str, name: str, catalogue: str) -> JSON:
    return {"replacement": digest, "state": name, "catalogue": catalogue, "status": None, "error": None, "at": now()}


def _ended(state: JSON, problem: Problem | None) -> JSON:
    if problem is None:
        return state | {"state": "done"}
    return state | {"state": "failed", "status": problem.status, **problem.record()}


def _key(study_id: int, digest: str) -> str:
    return f"{_KEY}{study_id}-{digest}"


def _read(connection: sa.Connection, study_id: int, digest: str) -> JSON | None:
    """Return the state of a replacement; one that has run for too long was interrupted."""
    text = meta.value(connection, _key(study_id, digest))
    if text is None:
        return None
    current: JSON = json.loads(text)
    if current["state"] == "running" and current["at"] < stamp(datetime.now(UTC) - _MAX_AGE):
        message = "the replacement was interrupted, for example because the server was restarted"
        return _ended(current, Problem(503, "interrupted", message, hint="Send the items again."))
    return current


def _write(connection: sa.Connection, study_id: int, state: JSON) -> None:
    meta.put(connection, _key(study_id, state["replacement"]), json.dumps(state))


def _digest(items: Items) -> str:
    """Return the beginning of a hash of the items with their labels and data."""
    parts: list[Any] = [items.hash, items.labels, sorted(items.data.items())]
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:32]


def _store(database: Database, study: Study, items: Items, who: str) -> None:
    """Replace the items of a study by checked ones."""
    packed = pack_items(items)

    def change(connection: sa.Connection) -> bool:
        if not studies.replace_items(connection, study.row, packed, count=items.n, present_hash=study.items.hash):
            return False
        studies.drop_catalogues(connection, study.row.id, stamp(datetime.now(UTC) - _UNUSED_AGE))
        studies.log_action(connection, who, "replace_items", study.row.slug, count=items.n)
        return True

    try:
        changed = database.write(change)
    except sa.exc.IntegrityError:
        changed = False
    if not changed:
        raise items_changed(study.row.slug)


def _with_files_of(present: Items, items: Items) -> Items:
    """Return items with the column names of the present items, and with the uploaded files of items that remain."""
    rows = [present.find(item) for item in items.ids]
    data = dict(items.data)
    given = set(inline_media()) - {medium for medium, files in FILE_COLUMNS.items() if files in present.data}
    for name in set(present.data) - given:
        new = items.data.get(name, ("",) * items.n)
        kept = (str(present.data[name][row]) if row >= 0 else "" for row in rows)
        data[name] = tuple(value or before for value, before in zip(new, kept, strict=True))
    for medium, files in FILE_COLUMNS.items():
        if files in data and medium in items.data:
            data[files] = tuple(new or name for new, name in zip(items.data[medium], data[files], strict=True))
    return Items._without_warnings(items.coordinates, items.ids, items.labels, items.appeal, data, present.columns)
