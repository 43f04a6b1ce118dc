"""Numbers in sentences."""

from __future__ import annotations


def plural(count: int, noun: str) -> str:
    """A count with its noun.

    Examples
    --------
    >>> plural(1, "answer"), plural(3, "answer")
    ('1 answer', '3 answers')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
