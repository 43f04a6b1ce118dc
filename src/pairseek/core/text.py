"""Phrases with counts and lists, for messages, and the first characters of names."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

_JOINER = "\N{ZERO WIDTH JOINER}"
_SKIN_TONES = range(0x1F3FB, 0x1F400)
_FLAG_LETTERS = range(0x1F1E6, 0x1F200)


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


def initial(text: str) -> str:
    """Return the first visible character of a text, such as a letter or a whole emoji of several code points.

    Punctuation counts only if there is nothing else, so that a label with HTML shows a letter.

    Examples
    --------
    >>> initial("tea"), initial("<b>tea</b>"), initial("é tea") == "é"
    ('t', 'b', True)
    """
    visible = [position for position, character in enumerate(text) if unicodedata.category(character)[0] in "LNS"]
    preferred = [position for position in visible if text[position] not in "<>=+|~^`$"] or visible
    start = preferred[0] if preferred else 0
    end = start + 1
    while end < len(text) and _continues(text[start:end], text[end]):
        end += 1
    return text[start:end]


def visible_characters(text: str) -> list[str]:
    """Split a text into visible characters: letters with their accents, and whole emoji.

    Examples
    --------
    >>> visible_characters("ab")
    ['a', 'b']
    """
    out: list[str] = []
    for character in text:
        if out and _continues(out[-1], character):
            out[-1] += character
        else:
            out.append(character)
    return out


def _continues(before: str, character: str) -> bool:
    """Return whether a character belongs to the same visible character as those before it."""
    if unicodedata.category(character)[0] == "M" or character == _JOINER or ord(character) in _SKIN_TONES:
        return True
    is_second_flag_letter = len(before) == 1 and ord(before) in _FLAG_LETTERS and ord(character) in _FLAG_LETTERS
    return before[-1] == _JOINER or is_second_flag_letter
