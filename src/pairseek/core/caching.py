"""Results that are computed once for a catalogue's array of coordinates."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from pairseek.core.types import FloatArray

R = TypeVar("R")


def once_for_an_array(compute: Callable[[FloatArray], R]) -> Callable[[FloatArray], R]:
    """Return the function with its results kept for as long as the array lives, if that is read-only."""
    kept: dict[int, tuple[weakref.ref[FloatArray], R]] = {}

    @wraps(compute)
    def recalled(array: FloatArray) -> R:
        if array.flags.writeable:
            return compute(array)
        key = id(array)
        found = kept.get(key)
        if found is not None and found[0]() is array:
            return found[1]
        result = compute(array)
        kept[key] = weakref.ref(array, lambda _: kept.pop(key, None)), result
        return result

    return recalled
