"""Quota of a study: how many sessions may finish, and which unfinished ones hold a place."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from pairseek.store import sessions
from pairseek.store.database import stamp
from pairseek.web.studies.catalogue import Study

HOLD_MINUTES = 60
"""Minutes for which a session under way holds its place. Later it may still finish, beyond the quota."""


def has_reached_quota(connection: sa.Connection, study: Study) -> bool:
    """Return whether finished sessions and those under way fill the quota of a study."""
    quota = study.configuration.quota
    if quota is None:
        return False
    begun_after = stamp(datetime.now(UTC) - timedelta(minutes=HOLD_MINUTES))
    finished, under_way = sessions.count_places(connection, study.row.id, begun_after)
    return finished + under_way >= quota
