"""ActRank-Q: the active ranking of Jamieson and Nowak (NIPS 2011), as the paper runs it.

Items, in random order, are placed into a ranking by binary insertion. Each comparison is a plane; the user points
that agree with all answers form a region, at first a box. A comparison whose plane does not divide the region is
known without asking. One that divides it is asked Q times in a row, the majority decides, and the region is cut.
The estimate is the Chebyshev centre of the region (section 4 of the paper). Appeal is not used.

Deviations, where the paper is silent: a tie is half a vote each way; a skipped comparison is decided by the votes
it has, or else inferred from the side of the estimate, and the region is left as it is; an answer to a pair that
was not asked cuts the region and no more. Such answers can contradict each other: the region is then empty, every
comparison is asked, and the estimate stays what it was.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from pairseek.core.types import Event, FloatArray
from pairseek.errors import InvalidParameter
from pairseek.model.items import Items
from pairseek.model.priors import Prior
from pairseek.strategies.baselines.ballots import Ballot, Decision, count
from pairseek.strategies.baselines.box import Box, box_bounds, checked_box, prior_box
from pairseek.strategies.baselines.insertion import Insertion
from pairseek.strategies.baselines.memo import Memo
from pairseek.strategies.baselines.planes import bisector
from pairseek.strategies.baselines.region import Region


@dataclass(frozen=True, slots=True)
class _Known:
    """What the answers say: the region, the ballot that is open, and the decisions of the newest event."""

    region: Region
    ballot: Ballot | None = None
    decisions: tuple[Decision, ...] = ()


@dataclass(frozen=True, slots=True)
class _Ranking:
    known: _Known
    insertion: Insertion


@dataclass(frozen=True)
class ActRank:
    """Rank by binary insertion, asking only what the answers so far leave open.

    Parameters
    ----------
    votes
        Q: how often each comparison is asked.
    box
        (low, high): where the user point is sought, one number for all dimensions or one for each. None: a
        search takes the prior's box (four standard deviations of a Gaussian); otherwise the box of the items.
    """

    votes: int = 1
    box: Box | None = None
    name: ClassVar[str] = "actrank"

    def __post_init__(self) -> None:
        if isinstance(self.votes, bool) or not isinstance(self.votes, int | np.integer) or self.votes < 1:
            raise InvalidParameter(f"votes of ActRank is {self.votes!r}: give a whole number, at least 1")
        object.__setattr__(self, "votes", int(self.votes))
        object.__setattr__(self, "box", checked_box(self.box, "ActRank"))

    @cached_property
    def _known(self) -> Memo[_Known]:
        return Memo()

    @cached_property
    def _rankings(self) -> Memo[_Ranking]:
        return Memo()

    def resolved(self, items: Items, prior: Prior) -> Self:
        """The same with the prior's box, if none was given."""
        return self if self.box is not None else dataclasses.replace(self, box=prior_box(prior, items.d))

    def next(self, items: Items, history: Sequence[Event], rng: np.random.Generator) -> tuple[int, int] | None:
        """The open comparison; None when the ranking is complete."""
        return self._ranking(items, history, rng).insertion.pending

    def ranking(self, items: Items, history: Sequence[Event], rng: np.random.Generator) -> list[int]:
        """Rows of the items placed so far, the most preferred first."""
        return self._ranking(items, history, rng).insertion.ranking.copy()

    def estimate(self, items: Items, history: Sequence[Event]) -> FloatArray:
        """(d,) Chebyshev centre of the region."""
        return self._learned(items, history).region.deepest.copy()

    def status(self, items: Items, history: Sequence[Event], rng: np.random.Generator | None = None) -> str | None:
        """What a person should know, in words; whether the ranking is complete only with the search's `rng`."""
        notes = []
        if rng is not None and self.next(items, history, rng) is None:
            notes.append(f"the ranking of all {items.n} items is complete")
        if self._learned(items, history).region.empty:
            notes.append(
                "the answers contradict each other: no user point agrees with all of them, so every comparison "
                "is asked and the estimate is the one from before the contradiction"
            )
        return "; ".join(notes) or None

    def _learned(self, items: Items, history: Sequence[Event]) -> _Known:
        def step(known: _Known, event: Event, position: int) -> _Known:
            return self._learn(items, known, event, position)

        return self._known.fold(items.hash, history, lambda: self._blank(items), step)

    def _blank(self, items: Items) -> _Known:
        return _Known(Region(*box_bounds(self.box, items, "ActRank")))

    def _learn(self, items: Items, known: _Known, event: Event, position: int) -> _Known:
        if event.query is None:
            if event.winner is None:
                return dataclasses.replace(known, decisions=())
            winner, loser = items.index(event.winner), items.index(event.loser)
            return _Known(_cut(known.region, items, winner, loser), known.ballot)
        ballot, decisions = count(items, known.ballot, event, needed=self.votes, position=position)
        region = known.region
        for decision in decisions:
            if decision.winner is not None and decision.loser is not None:
                region = _cut(region, items, decision.winner, decision.loser)
        return _Known(region, ballot, tuple(decisions))

    def _ranking(self, items: Items, history: Sequence[Event], rng: np.random.Generator) -> _Ranking:
        seed = tuple(rng.integers(2**63, size=2).tolist())

        def start() -> _Ranking:
            order = tuple(np.random.default_rng(seed).permutation(items.n).tolist())
            known = self._blank(items)
            insertion = Insertion(order, [order[0]])
            return _Ranking(known, insertion.infer(known.region, items.coordinates))

        def step(state: _Ranking, event: Event, position: int) -> _Ranking:
            known = self._learn(items, state.known, event, position)
            return _Ranking(known, _place(state.insertion, known, items.coordinates))

        return self._rankings.fold((items.hash, seed), history, start, step)


def _cut(region: Region, items: Items, winner: int, loser: int) -> Region:
    plane = bisector(items.coordinates[winner], items.coordinates[loser])
    return region if plane is None else region.cut(*plane)


def _place(insertion: Insertion, known: _Known, points: FloatArray) -> Insertion:
    """After the newest decisions, and all that the region infers."""
    for decision in known.decisions:
        pending = insertion.pending
        if pending is None or set(pending) != set(decision.pair):
            continue
        item, other = pending
        if decision.winner is None:
            estimate = known.region.deepest
            nearer = bool(np.sum((points[item] - estimate) ** 2) < np.sum((points[other] - estimate) ** 2))
        else:
            nearer = decision.winner == item
        insertion = insertion.decide(nearer=nearer).infer(known.region, points)
    voting = known.ballot is not None and set(known.ballot.pair) == set(insertion.pending or ())
    return insertion if voting else insertion.infer(known.region, points)
