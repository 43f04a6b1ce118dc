"""Protocol of what a search can ask about."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol, Self, TypeVar

from pairseek.core.types import FloatArray


class Askable(Hashable, Protocol):
    """Something to ask about, `Items` or a `Space`, with methods that return the same type."""

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

    def _placed(self, coordinates: FloatArray, appeal: FloatArray) -> Self:
        """Return a copy with other coordinates and appeals."""
        ...


Asked = TypeVar("Asked", bound=Askable)
