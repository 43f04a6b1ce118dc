"""Adapters for parts that users define.

Each protocol has a base class that declares every optional member with its default, and the package's parts derive from
it. A user's part need not: where it enters the package, an adapter takes the members that the part defines and the
base's defaults for the others. Only this module checks which members a part defines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self


class Part:
    """Common base of all protocols' base classes."""

    @property
    def original(self) -> object:
        """The part as its author wrote it, without an adapter."""
        return self


class PartAdapter(Part):
    """Adapter of a part that does not derive from its protocol's base class; each adapter class derives from both."""

    _members: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        bases = (kind for kind in cls.__mro__ if kind not in (*PartAdapter.__mro__, cls))
        names = {name: None for kind in bases for name in (*kind.__annotations__, *vars(kind))}
        cls._members = tuple(name for name in names if not name.startswith("_"))

    def __init__(self, part: object) -> None:
        self._original = part
        for name in self._members:
            value = getattr(part, name, None)
            if value is not None:
                setattr(self, name, value)

    @property
    def original(self) -> object:
        """The part as its author wrote it."""
        return self._original

    # A user's source of pairs may read further members of the same user's strategy.
    def __getattr__(self, name: str) -> object:
        return getattr(self._original, name)

    def __repr__(self) -> str:
        return repr(self._original)

    def __reduce__(self) -> tuple[type[Self], tuple[object]]:
        return type(self), (self._original,)


def missing_members(part: object, members: Sequence[str]) -> tuple[str, ...]:
    """Return the members that a part lacks: ``name`` must be text, all others methods."""
    return tuple(member for member in members if not _has(part, member))


def name_of(part: object) -> str:
    """Return the name of a part in records: its ``name``, or its class name in lower case."""
    return type(part).__name__.lower() if missing_members(part, ("name",)) else part.name  # type: ignore[attr-defined]


def _has(part: object, member: str) -> bool:
    value = getattr(part, member, None)
    return isinstance(value, str) if member == "name" else callable(value)
