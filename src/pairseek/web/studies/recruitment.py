"""Quota and closing date of a study, which its owner may change at any time."""

from __future__ import annotations

from datetime import UTC, datetime

import sqlalchemy as sa

from pairseek.core.types import JSON
from pairseek.errors import InvalidParameter
from pairseek.store import studies
from pairseek.store.database import Database
from pairseek.store.studies import StudyRow
from pairseek.web.studies.configuration import configured

CLOSING_ACTOR = "pairseek (closing date)"
"""Name in the audit log of the service, when it closes a study at its date."""


def set_limits(database: Database, row: StudyRow, limits: JSON, who: str) -> None:
    """Replace the settings ``quota`` and ``closes`` of a study, and record it in the audit log."""
    # The settings are checked on their own, so that an error is about them.
    checked = configured({"title": "-", **limits})
    closes = None if checked.closes is None else checked.closes.astimezone(UTC).isoformat()
    present = {name: row.configuration.get(name) for name in ("quota", "closes")}
    if present == {"quota": checked.quota, "closes": closes}:
        return

    def change(connection: sa.Connection) -> None:
        current = studies.lock(connection, row.id)
        if current is not None:
            record = {**current.configuration, "quota": checked.quota, "closes": closes}
            studies.put_configuration(connection, row.id, record)
            studies.log_action(connection, who, "limits", row.slug, quota=checked.quota, closes=closes)

    database.write(change)


def closing_time(text: str) -> str | None:
    """Return the time in UTC that a form's field for date and time stands for; None if it is empty."""
    if not text.strip():
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidParameter(
            f"the setting 'closes' is {text[:40]!r}: give a date and a time, such as 2027-01-31T18:00", field="closes"
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()


def close_due(database: Database) -> None:
    """Close the studies whose closing date has passed; they have refused answers since that moment."""

    def close(connection: sa.Connection) -> None:
        for row in studies.past_closing_date(connection):
            studies.set_open(connection, row.id, is_open=False)
            studies.log_action(connection, CLOSING_ACTOR, "close", row.slug)

    if database.read(studies.past_closing_date):
        database.write(close)
