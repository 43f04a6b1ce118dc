"""Adapters for user-defined parts, in the only module that checks which members of a protocol a part defines.

Each protocol has a base class that declares every optional member with its default, and the package's parts derive from
it. A user's part need not: where it enters the package, an adapter takes the members that the part defines and the
base's defaults for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self


class Part:
    """Base of the base classes of all protocols."""

    @property
    def own(self) -> object:
        """The part as its author wrote it, without any adapter."""
        return self


class OwnPart(Part):
    """Adapter of a part that does not derive from its protocol's base class; adapters derive from both."""

    _members: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        bases = (kind for kind in cls.__mro__ if kind not in (*OwnPart.__mro__, cls))
        names = {name: None for kind in bases for name in (*kind.__annotations__, *vars(kind))}
        cls._members = tuple(name for name in names if not name.startswith("_"))

    def __init__(self, part: object) -> None:
        self._own = part
        for name in self._members:
            value = getattr(part, name, None)
            if value is not None:
                setattr(self, name, value)

    @property
    def own(self) -> object:
        """The part as its author wrote it."""
        return self._own

    # A source of pairs may read further members of a strategy by the same author.
    def __getattr__(self, name: str) -> object:
        return getattr(self._own, name)

    def __repr__(self) -> str:
        return repr(self._own)

    def __reduce__(self) -> tuple[type[Self], tuple[object]]:
        return type(self), (self._own,)


def missing_members(part: object, members: Sequence[str]) -> tuple[str, ...]:
    """Return the members that a part lacks: ``name`` must be text, all others methods."""
    return tuple(member for member in members if not _has(part, member))


def name_of(part: object) -> str:
    """Return the name of a part in records: its ``name``, or its class name in lower case."""
    return type(part).__name__.lower() if missing_members(part, ("name",)) else part.name  # type: ignore[attr-defined]


def _has(part: object, member: str) -> bool:
    value = getattr(part, member, None)
    return isinstance(value, str) if member == "name" else callable(value)
