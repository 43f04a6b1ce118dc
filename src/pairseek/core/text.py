"""Text helpers."""

from __future__ import annotations


def plural(count: int, noun: str) -> str:
    """Return a count with its noun.

    Examples
    --------
    >>> plural(1, "answer"), plural(3, "answer")
    ('1 answer', '3 answers')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
