"""Limits on numeric settings in hosted studies, declared next to the fields of parts.

A field declares its range as ``n: Annotated[int, Limit(2, 50_000)] = 4000``. The library itself takes any number that
the part accepts; a `Limit` applies to studies only, whose settings come from other people and which share the service's
time and memory.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable, Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any, cast, get_type_hints

import numpy as np

from pairseek.core.validation import is_number
from pairseek.errors import InvalidParameter


@dataclasses.dataclass(frozen=True)
class Size:
    """Properties of a study on which a limit can depend.

    Attributes
    ----------
    items, dimensions
        Number of items, and of dimensions.
    unknown
        Whether k, the reliability, the lapse rate or the noise kind is inferred.
    """

    items: int
    dimensions: int
    unknown: bool = False

    @property
    def pairs(self) -> int:
        """Return the number of pairs of items."""
        return self.items * (self.items - 1) // 2


@dataclasses.dataclass(frozen=True)
class BySize:
    """Upper limit that depends on the size of the study.

    Parameters
    ----------
    function
        The limit as a function of the size.
    words
        The limit in words, for the table of limits.
    """

    function: Callable[[Size], float]
    words: str


@dataclasses.dataclass(frozen=True)
class Limit:
    """Closed range of a numeric setting in studies.

    Parameters
    ----------
    least, most
        Smallest and largest value of the setting or, if it is a list, of its entries.
    entries
        Largest number of entries of a list.
    """

    least: float
    most: float | BySize
    entries: int = 10_000

    def __str__(self) -> str:
        """Return the range in words, for the table of limits."""
        most = self.most.words if isinstance(self.most, BySize) else _formatted(self.most)
        return f"{_formatted(self.least)} to {most}"

    def check(self, value: object, setting: str, size: Size) -> None:
        """Raise an `InvalidParameter` for numbers outside the range in a study of this size."""
        most = self.most.function(size) if isinstance(self.most, BySize) else self.most
        for count, number in enumerate(_numbers(value), 1):
            if count > self.entries:
                raise InvalidParameter(
                    f"the setting {setting!r} has more than {self.entries:,} numbers: the maximum in a study is "
                    f"{self.entries:,}",
                    field=setting,
                )
            if not self.least <= number <= most:
                end, name = (self.least, "minimum") if number < self.least else (most, "maximum")
                raise InvalidParameter(
                    f"the setting {setting!r} is {number:.12g}: the {name} is {_formatted(end)} in a study",
                    field=setting,
                )


def check_limits(part: Any, where: str, size: Size) -> None:
    """Raise an `InvalidParameter` if a setting of a part, or of a nested part, exceeds its declared limit.

    A number in a field without a `Limit` is rejected too, because nothing bounds its cost.
    """
    declared = limits_of(part.__class__)
    for field in dataclasses.fields(part):
        value, setting = getattr(part, field.name), f"{where}.{field.name}"
        if not field.init:
            continue
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            check_limits(value, setting, size)
        elif field.name in declared:
            declared[field.name].check(value, setting, size)
        elif next(_numbers(value), None) is not None:
            raise InvalidParameter(
                f"the setting {setting!r} cannot be used in a study, because {type(part).__name__} declares no Limit "
                f"for it",
                field=setting,
            )


@cache
def limits_of(part: type) -> dict[str, Limit]:
    """Return the declared limits of a part by field name."""
    limits = {}
    for name, hint in field_hints(part).items():
        for note in getattr(hint, "__metadata__", ()):
            if isinstance(note, Limit):
                limits[name] = note
    return limits


def field_hints(part: type) -> dict[str, Any]:
    """Return the evaluated type hints of a class by name.

    A dataclass gives only the hints of its fields: its other annotations may name types that only type checkers import.
    """
    if not dataclasses.is_dataclass(part):
        return get_type_hints(part, include_extras=True)
    fields = {field.name for field in dataclasses.fields(part)}
    hints: dict[str, Any] = {}
    for kind in reversed(part.__mro__):
        annotations = {name: hint for name, hint in inspect.get_annotations(kind).items() if name in fields}
        holder, module = SimpleNamespace(__annotations__=annotations), vars(sys.modules[kind.__module__])
        hints |= get_type_hints(holder, module, dict(vars(kind)), include_extras=True)
    return hints


COORDINATE = Limit(-1e12, 1e12)
"""Limit on coordinates of the user point."""
COVARIANCE = Limit(-1e24, 1e24, entries=1_000_000)
"""Limit on the entries of a covariance."""


def _formatted(number: float) -> str:
    return f"{number:,.12g}" if abs(number) < 1e12 else f"{number:.12g}"


def _numbers(value: object) -> Iterator[float]:
    """Yield the numbers in a setting: a number, an array, or nested lists."""
    if isinstance(value, np.ndarray):
        yield from value.ravel().tolist()
    elif isinstance(value, tuple | list):
        for entry in value:
            yield from _numbers(entry)
    elif is_number(value):
        yield cast("float", value)
