"""Access to sessions: closed studies, expired sessions and returning people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from pairseek.store.database import stamp
from pairseek.store.sessions import SessionRow
from pairseek.web.access.tokens import derived_token, hash_token, new_token
from pairseek.web.errors import Problem
from pairseek.web.studies.catalogue import Study


@dataclass(frozen=True, slots=True)
class Visitor:
    """Person who opens a study.

    Attributes
    ----------
    identity
        Known ids of the person.
    signed
        Whether a signed link proves these ids.
    nonce
        Random text that only this browser has; empty if unknown.
    variables
        Further variables of the link.
    """

    identity: Mapping[str, str | None] = field(default_factory=dict)
    signed: bool = False
    nonce: str = field(default="", repr=False)
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def browser(self) -> str | None:
        """Hash of the nonce; None if unknown."""
        return hash_token(self.nonce) if self.nonce else None

    def token(self, session_id: str) -> str:
        """Return the token of a session for this visitor.

        A browser always gets the same token, so that both replies to a repeated request are valid. The nonce is not
        stored, so nobody can derive the token from the database.
        """
        return derived_token(self.nonce, session_id) if self.nonce else new_token()


def check_return(row: SessionRow, study: Study, visitor: Visitor) -> None:
    """Raise a `Problem` unless the visitor may continue this session, which has their ids and has not expired."""
    is_same_browser = visitor.browser is not None and visitor.browser == row.browser
    resume = study.configuration.resume
    if resume.policy == "block":
        # A double click, or a retry after a lost reply, does not count as returning.
        if not (is_same_browser and row.version == 0):
            raise already_took_part()
        return
    id_suffices = resume.by_id == "always" or (resume.by_id == "unfinished" and row.finished_at is None)
    if not (is_same_browser or visitor.signed or id_suffices):
        raise begun_elsewhere()


def study_closed(slug: str) -> Problem:
    """Return the problem for a closed study."""
    return Problem(
        409,
        "study_closed",
        "this study is closed and accepts no more answers",
        received=slug,
        hint="Thank you for your interest.",
    )


def already_took_part() -> Problem:
    """Return the problem for taking part again."""
    return Problem(
        403,
        "already_taken_part",
        "you have already taken part in this study, which can be taken only once",
        hint="If you think that this is a mistake, contact the person who sent you the link.",
    )


def begun_elsewhere() -> Problem:
    """Return the problem for an id whose session began in another browser."""
    return Problem(
        403,
        "begun_elsewhere",
        "this study was begun with the same id in another browser",
        hint="Continue in that browser, or open your personal link if you were sent one.",
    )


def study_full() -> Problem:
    """Return the problem for a study that has reached its maximum number of sessions."""
    return Problem(
        409,
        "study_full",
        "this study has as many participants as it can take",
        hint="Thank you for your interest.",
    )


def too_many_events() -> Problem:
    """Return the problem for a session that has reached its maximum number of events."""
    return Problem(
        409,
        "session_full",
        "this session has as many answers, undos or losses of focus as it can take",
        hint="Thank you. Your answers are stored.",
    )


def result_confirmed() -> Problem:
    """Return the problem for an undo after the result was opened."""
    return Problem(
        409,
        "session_finished",
        "this session is finished, and its answers can no longer be changed",
        hint="Open the result.",
    )


def is_expired(row: SessionRow, study: Study) -> bool:
    """Return whether a session began longer ago than the study allows."""
    if row.finished_at is not None and study.configuration.resume.policy == "resume":
        return False
    earliest = datetime.now(UTC) - timedelta(hours=study.configuration.resume.hours)
    return row.created_at < stamp(earliest)


def session_expired() -> Problem:
    """Return the problem for an expired session."""
    return Problem(410, "session_expired", "this session has expired", hint="Open the link of the study again.")


def session_deleted() -> Problem:
    """Return the problem for a session that was deleted while in use."""
    return Problem(410, "session_deleted", "this session was deleted", hint="Open the link of the study again.")


def session_busy() -> Problem:
    """Return the problem for a session that is being changed concurrently."""
    return Problem(503, "busy", "another worker is updating this session", hint="Try again in a moment.")
