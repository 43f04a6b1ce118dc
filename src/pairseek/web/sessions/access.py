"""Access to sessions: closed studies, expired sessions and repeated participation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pairseek.store.database import stamp
from pairseek.store.sessions import SessionRow
from pairseek.web.errors import Problem
from pairseek.web.studies.catalogue import Study


def closed(slug: str) -> Problem:
    """Return the problem for a closed study."""
    return Problem(
        409,
        "study_closed",
        "this study is closed and accepts no more answers",
        received=slug,
        hint="Thank you for your interest.",
    )


def taken() -> Problem:
    """Return the problem for repeated participation."""
    return Problem(
        403,
        "already_taken_part",
        "you have already taken part in this study, which can be taken only once",
        hint="If you think that this is a mistake, contact the person who sent you the link.",
    )


def expired(row: SessionRow, study: Study) -> bool:
    """Return whether a session began longer ago than the study allows."""
    if row.finished_at is not None and study.configuration.resume.policy == "resume":
        return False
    earliest = datetime.now(UTC) - timedelta(hours=study.configuration.resume.hours)
    return row.created_at < stamp(earliest)


def too_old() -> Problem:
    """Return the problem for an expired session."""
    return Problem(410, "session_expired", "this session has expired", hint="Open the link of the study again.")
