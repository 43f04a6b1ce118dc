"""Learning from a study's own people: when, from which answers, and the balanced pairs that come first."""

from pairseek.people.learning.design import balanced_pair
from pairseek.people.learning.lesson import (
    MIN_SESSIONS,
    RANDOM_SHARE,
    HeldOut,
    Lesson,
    is_due,
    learn,
    learn_appeal,
    next_due,
)

__all__ = [
    "MIN_SESSIONS",
    "RANDOM_SHARE",
    "HeldOut",
    "Lesson",
    "balanced_pair",
    "is_due",
    "learn",
    "learn_appeal",
    "next_due",
]
