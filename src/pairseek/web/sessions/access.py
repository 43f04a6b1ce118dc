"""Who may go on: studies that are closed, sessions that are over."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pairseek.store.database import stamp
from pairseek.store.sessions import SessionRow
from pairseek.web.errors import Problem
from pairseek.web.studies.catalogue import Study


def closed(slug: str) -> Problem:
    """The study takes no answers."""
    return Problem(
        409,
        "study_closed",
        "this study is closed and takes no more answers",
        received=slug,
        hint="Thank you all the same.",
    )


def taken() -> Problem:
    """The study can be taken once."""
    return Problem(
        403,
        "already_taken_part",
        "you have begun this study before, and it can be taken once only",
        hint="If you think that this is a mistake, write to those who sent you the link.",
    )


def expired(row: SessionRow, study: Study) -> bool:
    """Whether a session began longer ago than the study allows."""
    if row.finished_at is not None and study.configuration.resume.policy == "resume":
        return False
    earliest = datetime.now(UTC) - timedelta(hours=study.configuration.resume.hours)
    return row.created_at < stamp(earliest)


def too_old() -> Problem:
    """The session began longer ago than the study allows."""
    return Problem(410, "session_expired", "this session began too long ago", hint="Open the link of the study again.")
