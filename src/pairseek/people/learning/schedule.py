"""Schedule of learning, by the number of finished sessions."""

from __future__ import annotations

MIN_SESSIONS = 10
"""Number of finished sessions after which a study first learns."""
RANDOM_SHARE = 0.1
"""Fraction of random pairs in the sessions of a learning study, which test predictions and reach new items."""
# A study learns again when its number of finished sessions has grown by this fraction.
_GROWTH = 0.25


def next_due(learned_sessions: int | None) -> int:
    """Return the number of finished sessions at which a study learns next.

    Parameters
    ----------
    learned_sessions
        Number of sessions from which the newest version was learned; None before the first version.
    """
    if learned_sessions is None or learned_sessions < MIN_SESSIONS:
        return MIN_SESSIONS
    return learned_sessions + max(1, -int(-_GROWTH * learned_sessions // 1))


def is_due(finished_sessions: int, learned_sessions: int | None) -> bool:
    """Return whether a study with this number of finished sessions learns now.

    Voiding sessions can reduce their number below the number from which the newest version was learned. The study
    learns again once the two numbers differ by a quarter in either direction.
    """
    if finished_sessions < MIN_SESSIONS:
        return False
    if learned_sessions is None:
        return True
    return finished_sessions >= next_due(learned_sessions) or learned_sessions >= next_due(finished_sessions)
