"""The shape of a utility as a function of a pair's features: `UtilityShape`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from pairseek.pairs.features import TableName

ShapeKind: TypeAlias = Literal["table", "trace", "chance", "distance", "even"]
# The order is that of the constants in `candidates.branch_and_bound.bounds`.
SHAPE_KINDS: tuple[ShapeKind, ...] = ("table", "trace", "chance", "distance")


@dataclass(frozen=True)
class UtilityShape:
    """A utility that increases with the deviation s of the logit and decreases with the absolute value of its mean m.

    The information of three outcomes, where ties are offered, does neither, and is bounded by a table that does.

    A strategy whose class defines `score` may define ``shape()`` beside it, which asserts that the score is this
    function. Branch and bound over all pairs requires it; without it every pair must be scored.

    Parameters
    ----------
    kind
        ``"table"``: a table of `pairseek.numerics.tables` at (m, s), log_volume with its sign reversed.
        ``"trace"``: the table times |Σa|²/(a'Σa).
        ``"chance"``: s - penalty |P - 1/2|, P from the table of probabilities.
        ``"distance"``: s - penalty |margin|/|a|, the distance of μ from the plane of even odds.
        ``"even"``: every pair has the same utility, so that one is drawn uniformly.
    table
        Name of the table.
    penalty
        λ, at least 0.
    """

    kind: ShapeKind
    table: TableName = "information"
    penalty: float = 0.0

    @property
    def signed(self) -> bool:
        """Whether values may be negative, so that a gap is measured against the spread of the values."""
        return self.kind in ("chance", "distance")
