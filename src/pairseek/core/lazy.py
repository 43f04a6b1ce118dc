"""What is computed or loaded at first use: `cached_property`, `once_for_an_array`, and `LazyMembers` of a package.

On Python 3.11 `functools.cached_property` holds one lock for all objects while it computes a value, so that the answers
of two people would wait for each other. Later versions hold none, and neither does this one: two threads may compute
the same value, and the last one stays.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["LazyMembers", "cached_property", "once_for_an_array"]

T = TypeVar("T")


class _CachedProperty(Generic[T]):
    """Descriptor that stores the result of a function in the object, under the function's name."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if instance is None:
            return self
        value = self._function(instance)
        # Not by setattr, which frozen dataclasses refuse. The next access finds it there and does not come here.
        instance.__dict__[self._name] = value
        return value


if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:
    cached_property = _CachedProperty


def once_for_an_array(compute: Callable[[npt.NDArray[np.float64]], T]) -> Callable[[npt.NDArray[np.float64]], T]:
    """Return the function with its results kept for as long as the array lives, if that is read-only."""
    kept: dict[int, tuple[weakref.ref[npt.NDArray[np.float64]], T]] = {}

    @wraps(compute)
    def recalled(array: npt.NDArray[np.float64]) -> T:
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


class LazyMembers(Mapping[str, T]):
    """Members by name, each in a module that is loaded when the member is looked up.

    Parameters
    ----------
    places
        For each name ``"module:member"``, or a module alone.
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = dict(places)

    def __getitem__(self, name: str) -> T:
        module, _, member = self._places[name].partition(":")
        loaded: Any = import_module(module)
        found: T = getattr(loaded, member) if member else loaded
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def attribute_of(self, package: str, name: str) -> T:
        """Return a member as ``__getattr__`` of the package does."""
        if name not in self:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return self[name]
