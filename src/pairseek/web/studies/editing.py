"""Changes of a study after its creation: texts and appearance at any time, items until somebody has answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypedDict

import sqlalchemy as sa

from pairseek.core.media import loaded_media
from pairseek.errors import InvalidItems, InvalidParameter
from pairseek.model.items import Items
from pairseek.store import media, studies, unanswered
from pairseek.store.database import Database
from pairseek.web.errors import Problem
from pairseek.web.studies.catalogue import Study
from pairseek.web.studies.checks import check
from pairseek.web.studies.configuration import StudyConfiguration, stored_configuration
from pairseek.web.studies.creation import items_changed
from pairseek.web.studies.face import LOGO_PREFIX, logo_copies
from pairseek.web.studies.items import pack_items, study_items
from pairseek.web.studies.media import PictureCopies, with_pictures
from pairseek.web.studies.recordings import UploadedRecordings, with_recordings
from pairseek.web.studies.strict import check_texts_storable
from pairseek.web.studies.uploads import Files

EDITABLE = ("title", "instructions", "consent", "debrief", "names", "accent")
"""Settings that can change at any time; each change is recorded."""
EDIT_ACTION = "edit"
"""Action of a change in the audit log."""


class Change(TypedDict):
    """Setting before and after a change."""

    field: str
    before: str | bool | None
    after: str | bool | None


class TextsVersion(TypedDict):
    """Editable settings of a study, and the time from which people saw them."""

    since: str
    by: str
    settings: dict[str, str | bool | None]


def edit_settings(
    database: Database,
    study: Study,
    settings: Mapping[str, object],
    *,
    who: str,
    logo: Callable[[], bytes] | None = None,
    without_logo: bool = False,
) -> list[Change]:
    """Change editable settings of a study, and record who changed what; return what has changed.

    Parameters
    ----------
    database, study
        Database, and the study to change.
    settings
        New values of settings named in `EDITABLE`.
    who
        Name of the person or token that changes them.
    logo, without_logo
        Function that reads a new logo, and whether to remove the present one.
    """
    unknown = sorted(set(settings) - set(EDITABLE))
    if unknown:
        raise InvalidParameter(
            f"the setting {unknown[0]!r} of a study cannot change: only {', '.join(EDITABLE)} can; duplicate the study",
            field=unknown[0],
        )
    check_texts_storable(settings)
    new = _values(stored_configuration({**study.row.configuration, **settings}))
    pictures = [] if logo is None else logo_copies(logo())

    def change(connection: sa.Connection) -> list[Change]:
        row = studies.lock(connection, study.row.id)
        if row is None:
            raise items_changed(study.row.slug)
        present = _values(stored_configuration(row.configuration))
        changes: list[Change] = [
            {"field": name, "before": present[name], "after": new[name]}
            for name in EDITABLE
            if name in settings and present[name] != new[name]
        ]
        record = {**row.configuration, **{changed["field"]: changed["after"] for changed in changes}}
        if pictures or without_logo:
            before = media.replace_kind(connection, row, LOGO_PREFIX, pictures)
            after = pictures[0].name if pictures else None
            if before != after:
                changes.append({"field": "logo", "before": before, "after": after})
        if changes:
            studies.put_configuration(connection, row.id, record)
            names = ", ".join(changed["field"] for changed in changes)
            studies.log_action(connection, who, EDIT_ACTION, row.slug, name=names, changes=changes)
        return changes

    return database.write(change)


def _values(configuration: StudyConfiguration) -> dict[str, Any]:
    return configuration.model_dump(mode="json", include=set(EDITABLE))


def versions_of(database: Database, study: Study) -> list[TextsVersion]:
    """Return all versions of a study's editable settings, oldest first; a logo is the name of its stored picture.

    People saw a version from its time until the time of the next one.
    """
    edits = database.read(lambda c: studies.actions_of(c, study.row.slug, EDIT_ACTION, study.row.created_at))
    settings = {**_values(study.configuration), "logo": study.logo_name}
    versions: list[TextsVersion] = []
    for edit in reversed(edits):
        versions.append({"since": edit["at"], "by": edit["who"], "settings": dict(settings)})
        settings |= {changed["field"]: changed["before"] for changed in edit["details"]["changes"]}
    versions.append({"since": study.row.created_at, "by": study.row.created_by, "settings": settings})
    return versions[::-1]


def relabelled(items: Items, labels: Mapping[int, str], removed: set[int]) -> Items:
    """Return items with new labels, by row, and without some rows."""
    blank = next((row for row, label in labels.items() if row not in removed and not label.strip()), None)
    if blank is not None:
        raise InvalidItems(f"the label of item {items.ids[blank]!r} is blank: write one, or remove the item")
    kept = [row for row in range(items.n) if row not in removed]
    return Items._without_warnings(
        items.coordinates[kept] if items.d else None,
        [items.ids[row] for row in kept],
        [labels.get(row, items.labels[row]) for row in kept],
        items.appeal[kept],
        {name: [values[row] for row in kept] for name, values in items.data.items()},
        items.columns,
        least=1,
    )


def change_items(database: Database, study: Study, items: Items, *, who: str, files: Files | None = None) -> int:
    """Replace all items of a study that nobody has answered; return their number.

    Sessions that have begun without an answer, previews and simulated people are deleted. ``files`` are the pictures
    and recordings of new items; without them, items name files that the study already has.
    """
    check(study.configuration, items)
    readers: Files = {}
    uploaded = UploadedRecordings()
    if files is not None:
        items, readers = with_pictures(items, files)
        items, uploaded = with_recordings(items, files)
    items = study_items(items, scaled=False)
    packed = pack_items(items)
    used = {str(name) for medium in loaded_media() for name in items.data.get(medium, ())}

    with PictureCopies(items, readers) as copies:

        def change(connection: sa.Connection) -> None:
            if not unanswered.put_items(connection, study.row, packed, (items.n, items.d)):
                if unanswered.count_answers(connection, study.row.id):
                    raise already_answered(study.row.slug)
                raise items_changed(study.row.slug)
            unanswered.drop_files(connection, study.row.id, kept=used | {study.logo_name or ""})
            copies.store(connection, study.row.id)
            uploaded.store(connection, study.row.id)
            studies.log_action(connection, who, "change_items", study.row.slug, count=items.n)

        database.write(change)
    return items.n


def already_answered(slug: str) -> Problem:
    """Return the problem of items that can no longer change."""
    return Problem(
        409,
        "already_answered",
        f"people have answered the study {slug!r}, so its items can no longer change",
        received=slug,
        hint="Duplicate the study and change the items of the copy.",
    )
