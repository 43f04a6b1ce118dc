"""Error messages in other languages, recognized by their English templates.

Errors are raised in English, and programs receive them in English. The messages ``refusal.*`` of the English catalogue
are templates of these errors. A page in another language shows an error that fits a template with its own message of
that key.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from dataclasses import dataclass

from pairseek.core.messages.reading import Message

PREFIX = "refusal."
"""Beginning of the keys of these messages."""
MESSAGE_PLACEHOLDERS = frozenset({"problem", "advice", "thing"})
"""Placeholders for texts that are messages themselves; a template fits only if they can be translated."""
MAX_LENGTH = 2000
"""Largest number of characters of a message that is translated."""
MAX_DEPTH = 4
"""Largest depth of messages within messages."""
_WHOLE_NUMBER = re.compile(r"[0-9]{1,3}(,[0-9]{3})+|[0-9]{1,15}")


@dataclass(frozen=True)
class Template:
    """English error message with placeholders.

    Attributes
    ----------
    key
        Key of the message.
    start
        Text before the first placeholder.
    placeholders
        Name of each placeholder, and the text between it and the next one.
    """

    key: str
    start: str
    placeholders: tuple[tuple[str, str], ...]

    @classmethod
    def parsed(cls, key: str, message: str) -> Template:
        """Return the template of a message."""
        start, placeholders = "", list[tuple[str, str]]()
        for literal, name, _, _ in string.Formatter().parse(message):
            if placeholders:
                last, text = placeholders[-1]
                placeholders[-1] = (last, text + literal)
            else:
                start += literal
            if name is not None:
                placeholders.append((name, ""))
        return cls(key, start, tuple(placeholders))

    @property
    def literal_length(self) -> int:
        """Number of characters outside the placeholders."""
        return len(self.start) + sum(len(text) for _, text in self.placeholders)

    def values(self, text: str) -> dict[str, str] | None:
        """Return what a text has in place of the placeholders; None if it does not fit.

        Each placeholder ends at the first place where the following text occurs, outside a quoted name.
        """
        if not text.startswith(self.start):
            return None
        values: dict[str, str] = {}
        position = len(self.start)
        for number, (name, following) in enumerate(self.placeholders, 1):
            if number == len(self.placeholders):
                end = len(text) - len(following) if text.endswith(following) else -1
            else:
                end = text.find(following, _after_quoted(text, position))
            if end <= position:
                return None
            values[name] = text[position:end]
            position = end + len(following)
        return values if position == len(text) else None


def templates(english: Mapping[str, Message]) -> list[Template]:
    """Return the templates of a catalogue, those with the longest fixed text first."""
    parsed = [
        Template.parsed(key, message)
        for key, message in english.items()
        if key.startswith(PREFIX) and isinstance(message, str)
    ]
    return sorted(parsed, key=lambda template: -template.literal_length)


def number_in(text: str) -> int | None:
    """Return the whole number that a text consists of; None for other texts."""
    return int(text.replace(",", "")) if _WHOLE_NUMBER.fullmatch(text) else None


def _after_quoted(text: str, position: int) -> int:
    """Return the end of the quoted name at a position; the position itself if there is none."""
    quote = text[position : position + 1]
    return text.find(quote, position + 1) + 1 or position if quote in ("'", '"') else position
