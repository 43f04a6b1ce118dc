"""Schedule of learning, by the number of finished sessions."""

from __future__ import annotations

MIN_SESSIONS = 10
"""Number of finished sessions after which a study first learns."""
RANDOM_SHARE = 0.1
"""Share of random pairs in the sessions of a learning study: they test its predictions, and reach new items."""
# A study learns again when its number of finished sessions has grown by this share.
_GROWTH = 0.25


def next_due(learned: int | None) -> int:
    """Return the number of finished sessions at which a study learns next.

    Parameters
    ----------
    learned
        Number of sessions from which the newest version was learned; None before the first version.
    """
    if learned is None or learned < MIN_SESSIONS:
        return MIN_SESSIONS
    return learned + max(1, -int(-_GROWTH * learned // 1))


def is_due(finished: int, learned: int | None) -> bool:
    """Return whether a study with this number of finished sessions learns now.

    Voiding sessions can reduce the number below that of the newest version, which then rests on answers that no longer
    count. The study learns again once the two numbers differ by a quarter.
    """
    if finished < MIN_SESSIONS:
        return False
    if learned is None:
        return True
    return finished >= next_due(learned) or learned >= next_due(finished)
