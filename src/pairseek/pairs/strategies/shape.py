"""Shapes of utilities as functions of a pair's features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from pairseek.pairs.features import TableName

ShapeKind: TypeAlias = Literal["table", "trace", "chance", "distance", "even"]
# In the order of the constants in `pairs.sources.branch_and_bound.bounds`.
SHAPE_KINDS: tuple[ShapeKind, ...] = ("table", "trace", "chance", "distance")


@dataclass(frozen=True)
class UtilityShape:
    """A utility that increases with the logit's standard deviation s and decreases with the absolute mean |m|.

    With ties, the information of three outcomes is not monotonic, and is bounded by a table that is.

    A class that defines `score` may also define ``shape()``, which asserts that the score is this function. Branch and
    bound over all pairs requires a shape; without one every pair must be scored.

    Parameters
    ----------
    kind
        ``"table"``: a table of `pairseek.numerics.tables` at (m, s), with the sign of log_volume reversed.
        ``"trace"``: the table times |Σa|²/(a'Σa).
        ``"chance"``: s - penalty |P - 1/2|, a penalty on uneven odds, with P from the table of probabilities.
        ``"distance"``: s - penalty |margin|/|a|, the distance of μ from the plane of even odds.
        ``"even"``: every pair has the same utility, so one is drawn uniformly.
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
        """Whether values may be negative, so that gaps are measured relative to the spread of the values."""
        return self.kind in ("chance", "distance")
