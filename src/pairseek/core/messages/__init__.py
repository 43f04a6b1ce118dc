"""Message catalogue: the texts of pages, reports, findings and codebooks by key, one JSON file per language.

A message is a string with ``{names}``, or ``{"one": ..., "other": ...}`` chosen by the value ``count``. The English
catalogue is complete by definition. What another language lacks is said in English, and named by `Words.missing`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pairseek.errors import InvalidParameter

FOLDER = Path(__file__).parent
DEFAULT = "en"

Message = str | Mapping[str, str]


@dataclass(frozen=True)
class Words:
    """Messages of one language.

    Attributes
    ----------
    language
        Code of the language.
    messages
        Messages by key; English where the language lacks one.
    missing
        Keys that the language lacks.
    """

    language: str
    messages: Mapping[str, Message]
    missing: frozenset[str] = frozenset()

    def say(self, key: str, **values: object) -> str:
        """Return the message of a key with its values inserted; numbers are formatted for the language."""
        message = self.messages[key]
        if not isinstance(message, str):
            message = message["one" if values.get("count") == 1 else "other"]
        return message.format(**{name: self.number(value) for name, value in values.items()})

    def number(self, value: object, digits: int | None = None) -> str:
        """Format a number with the separators of the language; return anything else as text.

        By default it has two decimals, or below 0.1 three significant digits.
        """
        if isinstance(value, bool) or not isinstance(value, int | float):
            return str(value)
        if not isinstance(value, float):
            text = f"{value:,}"
        elif digits is None and abs(value) < 0.1:
            text = f"{value:.3g}"
        else:
            text = f"{value:,.{2 if digits is None else digits}f}"
        if "." in text and "e" not in text:
            text = text.rstrip("0").rstrip(".")
        point, group = str(self.messages["number.point"]), str(self.messages["number.group"])
        return text.translate({ord(","): group, ord("."): point})

    def knows(self, key: str) -> bool:
        """Return whether the catalogue has this key."""
        return key in self.messages

    def starting(self, *prefixes: str) -> dict[str, Message]:
        """Return the messages whose keys have one of these prefixes."""
        return {key: message for key, message in self.messages.items() if key.startswith(prefixes)}


@cache
def languages() -> tuple[str, ...]:
    """Return all languages that have a catalogue, the default first."""
    return tuple(sorted((path.stem for path in FOLDER.glob("*.json")), key=lambda name: (name != DEFAULT, name)))


@cache
def words(language: str = DEFAULT) -> Words:
    """Return the catalogue of a language."""
    if language not in languages():
        raise InvalidParameter(f"there is no language {language!r}; there are {', '.join(languages())}")
    english, own = _read(DEFAULT), _read(language)
    return Words(language, english | own, frozenset(english.keys() - own.keys()))


def _read(language: str) -> dict[str, Message]:
    found: dict[str, Message] = json.loads((FOLDER / f"{language}.json").read_text(encoding="utf-8"))
    return found


def preferred_language(accepted: str | None) -> str:
    """Return the available language that an ``Accept-Language`` header ranks highest."""
    wishes: list[tuple[float, str]] = []
    for wish in (accepted or "")[:500].split(","):
        name, _, quality = wish.partition(";q=")
        try:
            wishes.append((-float(quality or 1), name.strip().lower().split("-")[0]))
        except ValueError:
            continue
    # The sort is stable, so the first of equal weights is preferred.
    for weight, name in sorted(wishes, key=lambda each: each[0]):
        if weight < 0 and name in languages():
            return name
    return DEFAULT
