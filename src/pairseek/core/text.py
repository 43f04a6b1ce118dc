"""Phrases with counts and lists, for messages."""

from __future__ import annotations

from collections.abc import Iterable


def plural(count: int, noun: str) -> str:
    """Return a count with its noun.

    Examples
    --------
    >>> plural(1, "answer"), plural(3, "answer")
    ('1 answer', '3 answers')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(texts: Iterable[object], limit: int = 5) -> str:
    """Join texts with commas; beyond the limit, say only how many more there are.

    Examples
    --------
    >>> listed("abc"), listed(range(9), 2)
    ('a, b, c', '0, 1 and 7 more')
    """
    parts = [str(text) for text in texts]
    rest = len(parts) - limit
    return ", ".join(parts[:limit]) + (f" and {rest} more" if rest > 0 else "")


def quoted(names: Iterable[object], limit: int = 5) -> str:
    """Join the representations of names, like `listed`.

    Examples
    --------
    >>> quoted(["tea", "water"])
    "'tea', 'water'"
    """
    return listed(map(repr, names), limit)
