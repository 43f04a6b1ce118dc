"""Posteriors: inference of the user point from answers."""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from pairseek.core.lazy import LazyMembers as _LazyMembers
from pairseek.posteriors.base import Posterior
from pairseek.posteriors.ep import EP

if _TYPE_CHECKING:
    from pairseek.posteriors.grid import Grid
    from pairseek.posteriors.particles import Particles

# Modules are loaded on first use, because a default search needs only EP.
_LOCATIONS = {
    "ep": "pairseek.posteriors.ep:EP",
    "particles": "pairseek.posteriors.particles:Particles",
    "grid": "pairseek.posteriors.grid:Grid",
}
POSTERIORS = _LazyMembers[type[Posterior]](_LOCATIONS)
"""All posteriors, by name."""
_MEMBERS = _LazyMembers[_Any]({location.partition(":")[2]: location for location in _LOCATIONS.values()})

__all__ = ["EP", "POSTERIORS", "Grid", "Particles", "Posterior"]


def __getattr__(name: str) -> _Any:
    return _MEMBERS.attribute_of(__name__, name)
