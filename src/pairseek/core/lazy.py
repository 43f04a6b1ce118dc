"""Values computed, and modules loaded, at first use: `cached_property`, `cached_by_array` and `LazyMembers`.

On Python 3.11, `functools.cached_property` holds a lock shared by all objects while it computes a value, so two
participants' answers would block each other. Later versions hold no lock, and neither does this property: two threads
may compute the same value, and the last to finish wins.
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

__all__ = ["LazyMembers", "LazyModule", "cached_by_array", "cached_property"]

T = TypeVar("T")


class _CachedProperty(Generic[T]):
    """Descriptor that stores the result of a method in the instance, under the method's name."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if instance is None:
            return self
        value = self._function(instance)
        # Frozen dataclasses refuse setattr. The next lookup finds the value in the instance, not this descriptor.
        instance.__dict__[self._name] = value
        return value


if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:
    cached_property = _CachedProperty


def cached_by_array(compute: Callable[[npt.NDArray[np.float64]], T]) -> Callable[[npt.NDArray[np.float64]], T]:
    """Cache the results of a function for as long as its argument, a read-only array, is alive."""
    cache: dict[int, tuple[weakref.ref[npt.NDArray[np.float64]], T]] = {}

    @wraps(compute)
    def cached(array: npt.NDArray[np.float64]) -> T:
        if array.flags.writeable:
            return compute(array)
        key = id(array)
        entry = cache.get(key)
        if entry is not None and entry[0]() is array:
            return entry[1]
        result = compute(array)
        cache[key] = weakref.ref(array, lambda _: cache.pop(key, None)), result
        return result

    return cached


class LazyModule:
    """A module that is imported when one of its members is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, member: str) -> Any:
        return getattr(import_module(self._name), member)


class LazyMembers(Mapping[str, T]):
    """Members by name, each imported from its module when it is looked up.

    Parameters
    ----------
    locations
        For each name, ``"module:member"`` or just a module.
    """

    def __init__(self, locations: Mapping[str, str]) -> None:
        self._locations = dict(locations)

    def __getitem__(self, name: str) -> T:
        module, _, member = self._locations[name].partition(":")
        loaded: Any = import_module(module)
        value: T = getattr(loaded, member) if member else loaded
        return value

    def __contains__(self, name: object) -> bool:
        return name in self._locations

    def __iter__(self) -> Iterator[str]:
        return iter(self._locations)

    def __len__(self) -> int:
        return len(self._locations)

    def attribute_of(self, package: str, name: str) -> T:
        """Implement ``__getattr__`` of a package."""
        if name not in self:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return self[name]
