"""Message catalogues: the texts of pages, reports, findings and codebooks by key, in one JSON file per language.

A message is a string with ``{names}``, or two strings ``{"one": ..., "other": ...}`` of which the value ``count``
chooses one: the first for the counts that the message ``number.one`` lists. The English catalogue is complete by
definition. A message that another language lacks falls back to English, and `Words.missing` lists its key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Self

from pairseek.core.messages import refusals
from pairseek.core.messages.reading import DEFAULT, Message, catalogues, problem_of_message
from pairseek.errors import InvalidParameter

__all__ = ["DEFAULT", "Message", "Words", "languages", "preferred_language", "problem_of_message", "words"]


@dataclass(frozen=True)
class Words:
    """Messages of one language.

    Attributes
    ----------
    language
        Code of the language.
    messages
        Messages by key, in English where the language lacks one.
    missing
        Keys that the language lacks.
    unknown
        Keys of the language that name no message.
    """

    language: str
    messages: Mapping[str, Message]
    missing: frozenset[str] = frozenset()
    unknown: frozenset[str] = frozenset()

    def say(self, key: str, /, **values: object) -> str:
        """Return a message with values inserted and numbers formatted for the language."""
        message = self.messages[key]
        if not isinstance(message, str):
            message = message[
                "one" if str(values.get("count")) in str(self.messages["number.one"]).split() else "other"
            ]
        return message.format(**{name: self.number(value) for name, value in values.items()})

    def number(self, value: object, digits: int | None = None) -> str:
        """Format a number with the separators of the language; return anything else as text.

        By default, numbers have two decimals, or three significant digits below 0.1.
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

    def translated(self, error: str) -> str:
        """Return an English error message in this language; unchanged if the catalogue has no message like it."""
        if self.language == DEFAULT or len(error) > refusals.MAX_LENGTH:
            return error
        return self._translation(error, refusals.MAX_DEPTH) or error

    def _translation(self, text: str, depth: int) -> str | None:
        for template in _templates() if depth else ():
            values = template.values(text)
            if values is None:
                continue
            messages = {name: self._translation(value, depth - 1) for name, value in values.items()}
            if all(messages[name] for name in refusals.MESSAGE_PLACEHOLDERS & messages.keys()):
                data = {name: _number_or_text(value) for name, value in values.items()}
                return self.say(template.key, **data | {name: said for name, said in messages.items() if said})
        return None

    def with_texts(self, texts: Mapping[str, Message]) -> Self:
        """Return the catalogue with other texts for some messages, except those that do not suit their message."""
        english = words().messages
        usable = {
            key: text for key, text in texts.items() if key in english and not problem_of_message(text, english[key])
        }
        return replace(self, messages={**self.messages, **usable}) if usable else self

    def has(self, key: str) -> bool:
        """Return whether the catalogue has this key."""
        return key in self.messages

    def with_prefix(self, *prefixes: str) -> dict[str, Message]:
        """Return the messages whose keys have one of these prefixes."""
        return {key: message for key, message in self.messages.items() if key.startswith(prefixes)}


@cache
def languages() -> tuple[str, ...]:
    """Return all languages with a catalogue, the default first."""
    return tuple(sorted(catalogues(), key=lambda name: (name != DEFAULT, name)))


@cache
def words(language: str = DEFAULT) -> Words:
    """Return the catalogue of a language."""
    if language not in languages():
        raise InvalidParameter(f"language {language!r} has no message catalogue: use one of {', '.join(languages())}")
    english, translated = catalogues()[DEFAULT], catalogues()[language]
    return Words(
        language,
        english | translated,
        frozenset(english.keys() - translated.keys()),
        frozenset(translated.keys() - english.keys()),
    )


@cache
def _templates() -> list[refusals.Template]:
    return refusals.templates(words().messages)


def _number_or_text(value: str) -> int | str:
    number = refusals.number_in(value)
    return value if number is None else number


def preferred_language(accepted: str | None) -> str:
    """Return the available language that an ``Accept-Language`` header ranks highest."""
    qualities: list[tuple[float, str]] = []
    for entry in (accepted or "")[:500].split(","):
        name, _, quality = entry.partition(";q=")
        try:
            qualities.append((float(quality or 1), name.strip().lower().split("-")[0]))
        except ValueError:
            continue
    # The sort is stable: among equal qualities the first is preferred.
    for value, name in sorted(qualities, key=lambda entry: -entry[0]):
        if value > 0 and name in languages():
            return name
    return DEFAULT
