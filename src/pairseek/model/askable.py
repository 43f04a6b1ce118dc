"""Protocol of the catalogue or continuous space that a search asks about."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol, Self, TypeVar

from pairseek.core.types import FloatArray


class Askable(Hashable, Protocol):
    """`Items` or a `Space`; methods that derive a copy return the same type."""

    @property
    def d(self) -> int:
        """Return the number of dimensions."""
        ...

    @property
    def coordinates(self) -> FloatArray:
        """Return the (n, d) coordinates of the items."""
        ...

    @property
    def appeal(self) -> FloatArray:
        """Return the (n,) appeals of the items."""
        ...

    def scaled(self) -> Self:
        """Return a copy scaled by the paper's rule."""
        ...

    def _with_coordinates(self, coordinates: FloatArray, appeal: FloatArray) -> Self:
        """Return a copy with other coordinates and appeals."""
        ...


AskableT = TypeVar("AskableT", bound=Askable)
