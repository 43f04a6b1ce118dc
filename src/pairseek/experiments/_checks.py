"""Checks of what people write into a specification: each message names the field."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from pairseek.errors import InvalidParameter


def nearest(name: object, choices: Iterable[str]) -> str:
    """A hint at the names that look like this one; empty if none does."""
    close = difflib.get_close_matches(str(name).lower(), list(choices), n=2)
    return f" (did you mean {' or '.join(map(repr, close))}?)" if close else ""


def one_of(field: str, value: object, choices: Iterable[str]) -> str:
    """A name among the choices."""
    names = list(choices)
    if not isinstance(value, str) or value not in names:
        raise InvalidParameter(f"{field} is {value!r}: use one of {', '.join(names)}{nearest(value, names)}")
    return value


def known_fields(where: str, record: Mapping[str, Any], fields: Iterable[str]) -> None:
    """No field that nobody reads."""
    names = list(fields)
    for name in record:
        if name not in names:
            raise InvalidParameter(
                f"{where} has an unknown field {name!r}: the fields are {', '.join(names)}{nearest(name, names)}"
            )


def table(where: str, value: object) -> Mapping[str, Any]:
    """A table of TOML."""
    if not isinstance(value, Mapping):
        raise InvalidParameter(f"{where} is {value!r}: give a table, such as {where} = {{ name = ... }}")
    return value


def whole(field: str, value: object, least: int) -> int:
    """A whole number."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InvalidParameter(f"{field} is {value!r}: give a whole number, at least {least}")
    return int(value)


def share(field: str, value: object) -> float:
    """A number above 0 and up to 1."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not 0 < float(value) <= 1 or not math.isfinite(float(value)):  # type: ignore[arg-type]
        raise InvalidParameter(f"{field} is {value!r}: give a share of all pairs, above 0 and up to 1")
    return float(value)  # type: ignore[arg-type]


def text(field: str, value: object) -> str:
    """A text with something in it, on one line."""
    if not isinstance(value, str) or not value.strip() or "\n" in value:
        raise InvalidParameter(f"{field} is {value!r}: give a text of one line")
    return value
