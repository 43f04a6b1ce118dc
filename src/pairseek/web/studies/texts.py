"""Texts for participants that a study replaces."""

from __future__ import annotations

from collections.abc import Mapping

from pairseek.core.messages import Message, problem_of_message, words
from pairseek.core.validation import suggestion
from pairseek.errors import InvalidParameter

PARTICIPANT_PREFIXES = (
    "start.",
    "run.",
    "play.",
    "anchor.",
    "questions.",
    "result.",
    "learned.",
    "declined.",
    "closed.",
    "problem.",
    "error.",
    "quiz.",
)
"""Beginnings of the keys of the messages that participants see."""
MAX_LENGTH = 1000
"""Largest number of characters of a text."""


def participant_messages(language: str) -> dict[str, Message]:
    """Return the messages that participants see, in a language."""
    return words(language).with_prefix(*PARTICIPANT_PREFIXES)


def check_texts(texts: Mapping[str, Message]) -> None:
    """Raise an `InvalidParameter` whose field is ``texts.KEY`` unless every text suits the message that it replaces."""
    english = words().with_prefix(*PARTICIPANT_PREFIXES)
    for key, text in texts.items():
        problem = _problem(key, text, english)
        if problem is not None:
            raise InvalidParameter(f"the text {key!r} cannot be used: {problem}", field=f"texts.{key}")


def _problem(key: str, text: Message, english: Mapping[str, Message]) -> str | None:
    if key not in english:
        return f"participants see no text of this name{suggestion(key, english)}; docs/how-to/languages.md says more"
    forms = [text] if isinstance(text, str) else list(text.values())
    if any(len(form) > MAX_LENGTH for form in forms):
        return f"it has more than {MAX_LENGTH:,} characters: shorten it"
    if any("{{" in form or "}}" in form for form in forms):
        return "it has a double brace: write braces only around placeholders"
    if not all(form.strip() for form in forms):
        return "it is empty: leave it out to keep the usual text"
    return problem_of_message(text, english[key])
