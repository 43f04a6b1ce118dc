"""Schedule of learning: the numbers of finished sessions at which a study learns."""

from __future__ import annotations

FIRST = 10
"""Number of finished sessions from which a study learns for the first time."""
RANDOM_SHARE = 0.1
"""Share of random pairs in the sessions of a study that learns: they measure its predictions, and reach new items."""
# A study learns again when its number of finished sessions has grown by this share.
_GROWTH = 0.25


def next_due(learned: int | None) -> int:
    """Return the number of finished sessions at which a study learns next.

    Parameters
    ----------
    learned
        Number of sessions that the newest version was learned from; None before the first.
    """
    if learned is None or learned < FIRST:
        return FIRST
    return learned + max(1, -int(-_GROWTH * learned // 1))


def is_due(finished: int, learned: int | None) -> bool:
    """Return whether a study with this number of finished sessions learns now.

    Voiding can bring the number below that of the newest version, which then learned from answers that no longer count:
    this is a reason to learn too, as soon as the number differs by a quarter.
    """
    if finished < FIRST:
        return False
    if learned is None:
        return True
    return finished >= next_due(learned) or learned >= next_due(finished)
