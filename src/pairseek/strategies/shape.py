"""What a utility is as a function of the few numbers of a pair: all that a search over all pairs needs to know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from pairseek.strategies.features import TableName

Shape: TypeAlias = Literal["table", "trace", "chance", "distance", "even"]
# The order is that of the constants in `_bounds`.
SHAPES: tuple[Shape, ...] = ("table", "trace", "chance", "distance")


@dataclass(frozen=True)
class Surface:
    """A utility that grows with the deviation s of the logit and falls with the size of its mean m.

    A strategy whose class defines `score` may define ``surface()`` beside it: the promise that the score is this
    function. Then `AllPairs` can bound it over many pairs at once; without, it must look at each.

    Parameters
    ----------
    shape
        ``"table"``: a table of `pairseek.numerics.tables` at (m, s), log_volume with its sign turned.
        ``"trace"``: the table times |Σa|²/(a'Σa).
        ``"chance"``: s - penalty |P - 1/2|, P from the table of probabilities.
        ``"distance"``: s - penalty |m|/(k_pq |a|), the distance of μ from the plane of even odds.
        ``"even"``: every pair is worth the same.
    table
        Which table.
    penalty
        At least 0.
    """

    shape: Shape
    table: TableName = "information"
    penalty: float = 0.0

    @property
    def signed(self) -> bool:
        """Whether values may be negative: then a gap is measured against the spread of the values."""
        return self.shape in ("chance", "distance")


def surface_of(strategy: object) -> Surface | None:
    """The surface that is declared beside the strategy's `score`; None if there is none.

    A subclass with a score of its own does not inherit its parent's promise.
    """
    owner = next((kind for kind in type(strategy).__mro__ if "score" in vars(kind)), None)
    declared = vars(owner).get("surface") if owner is not None else None
    surface = declared(strategy) if callable(declared) else None
    return surface if isinstance(surface, Surface) else None
