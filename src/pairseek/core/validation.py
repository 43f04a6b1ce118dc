"""Validation of arguments."""

from __future__ import annotations

import difflib
import secrets
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from pairseek.errors import InvalidParameter

MAX_ID_LENGTH = 200
"""Largest number of characters that a database stores of the id of an item or a person."""


def is_number(value: object) -> bool:
    """Return whether a value is a real number; True and False are not."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def without_numpy(value: Any) -> Any:
    """Return a NumPy scalar as the equivalent Python value, and anything else unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def whole(value: object, what: str, least: int = 1, *, field: str = "") -> int:
    """Return an integer of at least ``least`` as a plain int; ``field`` (default ``what``) is the path in the error."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InvalidParameter(
            f"{what} is {value!r}: give a whole number, at least {least}", field=field or _path(what)
        )
    return int(value)


def _path(what: str) -> str:
    """Return the name of a setting as its path; descriptions in words have none."""
    return what if what.isidentifier() else ""


def seed_of(rng: int | np.random.Generator | None) -> int:
    """Return the given seed, or draw one from a generator or from the system."""
    if rng is None:
        return secrets.randbits(63)
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    if isinstance(rng, bool) or not isinstance(rng, int | np.integer) or rng < 0:
        raise InvalidParameter(f"rng is {rng!r}: give a whole number, at least 0, or a numpy Generator", field="rng")
    return int(rng)


def suggestion(name: object, choices: Iterable[str]) -> str:
    """Return a hint naming the choices that resemble ``name``; empty if none do."""
    close = difflib.get_close_matches(str(name).lower(), list(choices), n=2)
    return f" (did you mean {' or '.join(map(repr, close))}?)" if close else ""


def one_of(value: object, what: str, choices: Iterable[str]) -> str:
    """Return a name after checking that it is one of the choices."""
    names = list(choices)
    if not isinstance(value, str) or value not in names:
        raise InvalidParameter(
            f"{what} is {value!r}: use one of {', '.join(names)}{suggestion(value, names)}", field=_path(what)
        )
    return value


def check_known_fields(record: Mapping[str, Any], what: str, fields: Iterable[str]) -> None:
    """Reject a record with a field that is not among ``fields``."""
    names = list(fields)
    for name in record:
        if name not in names:
            raise InvalidParameter(
                f"{what} has an unknown field {name!r}: the fields are {', '.join(names)}{suggestion(name, names)}"
            )


def table(value: object, what: str) -> Mapping[str, Any]:
    """Return a mapping after checking that it is one."""
    if not isinstance(value, Mapping):
        raise InvalidParameter(f"{what} is {value!r}: give a table, such as {what} = {{ name = ... }}")
    return value


def single_line(value: object, what: str) -> str:
    """Return a non-blank single-line text after checking that it is one."""
    if not isinstance(value, str) or not value.strip() or "\n" in value:
        raise InvalidParameter(f"{what} is {value!r}: give one line of text")
    return value


def caller_level() -> int:
    """Return the ``stacklevel`` that makes a warning point to the first caller outside the package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "pairseek":
        frame, level = frame.f_back, level + 1
    return level


def obstacle_to_storing(text: str, length: int | None = MAX_ID_LENGTH) -> str | None:
    """Return the reason why a database cannot store a text in a column of this length; None if it can."""
    if "\0" in text:
        return "it contains the character NUL"
    if length is not None and len(text) > length:
        return f"it has {len(text):,} characters, and at most {length} can be stored"
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        return "it contains a lone surrogate, which is half a character"
    return None
