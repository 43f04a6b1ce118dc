"""ActRank-Q: the active ranking of Jamieson and Nowak (NIPS 2011), as run in the paper.

Items are placed into a ranking by binary insertion, in random order. Each comparison is a plane, and the user points
consistent with all answers form a region, initially a box. If the plane of a comparison does not divide the region, its
outcome is inferred without a question. Otherwise it is asked Q times in a row, the majority decides, and the region is
cut. The estimate is the Chebyshev centre of the region (section 4 of the paper). Appeal is not used.

Cases the paper leaves open: a tie counts as half a vote each way. A skipped comparison is decided by its votes so far
or, without a majority, inferred from the side on which the estimate lies, without cutting the region. An answer to a
pair that was not asked only cuts the region. Such answers can contradict each other: the region is then empty, every
comparison is asked, and the estimate keeps its value from before the contradiction.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

import numpy as np

from pairseek.core.lazy import cached_property
from pairseek.core.limits import COORDINATE, Limit
from pairseek.core.types import Event, FloatArray
from pairseek.errors import InvalidParameter
from pairseek.model.items import Items
from pairseek.model.priors import Prior
from pairseek.model.spaces import Space
from pairseek.pairs.strategies.base import BaseProcedure
from pairseek.pairs.strategies.baselines.ballots import Ballot, Decision, tally
from pairseek.pairs.strategies.baselines.box import BoxLimits, box_bounds, checked_box, prior_box
from pairseek.pairs.strategies.baselines.cache import FoldCache
from pairseek.pairs.strategies.baselines.insertion import Insertion
from pairseek.pairs.strategies.baselines.planes import bisector
from pairseek.pairs.strategies.baselines.region import Region


@dataclass(frozen=True, slots=True)
class _AnswerState:
    """State after a history: the region, the open ballot, and the decisions reached by the latest event."""

    region: Region
    ballot: Ballot | None = None
    decisions: tuple[Decision, ...] = ()


@dataclass(frozen=True, slots=True)
class _RankingState:
    answers: _AnswerState
    insertion: Insertion


@dataclass(frozen=True)
class ActRank(BaseProcedure):
    """Ranking by binary insertion that only asks comparisons not implied by earlier answers.

    Parameters
    ----------
    votes
        Q: number of times each comparison is asked.
    box
        (low, high): bounds of the user point, one number for all dimensions or one for each. None: a search uses the
        prior's box (four standard deviations of a Gaussian); outside a search, the bounding box of the items.

    Examples
    --------
    >>> import pairseek as ps
    >>> items = ps.Items([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> box = ps.UniformBox(-1.0, 2.0)
    >>> search = ps.Search(items, prior=box, strategy=ps.ActRank(votes=1), rng=7)
    >>> search.ask().info.strategy
    'actrank'
    """

    votes: Annotated[int, Limit(1, 100)] = 1
    box: Annotated[BoxLimits | None, COORDINATE] = None
    name: ClassVar[str] = "actrank"

    def __post_init__(self) -> None:
        if isinstance(self.votes, bool) or not isinstance(self.votes, int | np.integer) or self.votes < 1:
            raise InvalidParameter(
                f"votes of ActRank is {self.votes!r}: give a whole number, at least 1", field="votes"
            )
        object.__setattr__(self, "votes", int(self.votes))
        object.__setattr__(self, "box", checked_box(self.box, "ActRank"))

    @cached_property
    def _answer_states(self) -> FoldCache[_AnswerState]:
        return FoldCache()

    @cached_property
    def _rankings(self) -> FoldCache[_RankingState]:
        return FoldCache()

    @property
    def label_number(self) -> int:  # type: ignore[override]
        """Q, the number of votes per pair."""
        return self.votes

    def resolved(self, items: Items | Space, prior: Prior) -> Self:
        """Return the strategy with the prior's box filled in, if none was given."""
        return self if self.box is not None else dataclasses.replace(self, box=prior_box(prior, items.d))

    def next(self, items: Items, history: Sequence[Event], rng: np.random.Generator) -> tuple[int, int] | None:
        """Return the open comparison; None once the ranking is complete."""
        return self._ranking(items, history, rng).insertion.pending

    def ranking(self, items: Items, history: Sequence[Event], rng: np.random.Generator) -> list[int]:
        """Return the rows of the items placed so far, most preferred first."""
        return self._ranking(items, history, rng).insertion.ranking.copy()

    def estimate(self, items: Items, history: Sequence[Event]) -> FloatArray:
        """Return the (d,) Chebyshev centre of the region."""
        return self._answer_state(items, history).region.chebyshev_centre.copy()

    def status(self, items: Items, history: Sequence[Event], rng: np.random.Generator | None = None) -> str | None:
        """Return a note for the user, or None. Whether the ranking is complete is reported only if `rng` is given."""
        notes = []
        if rng is not None and self.next(items, history, rng) is None:
            notes.append(f"the ranking of all {items.n} items is complete")
        if self._answer_state(items, history).region.is_empty:
            notes.append(
                "the answers contradict each other: no user point agrees with all of them, so every comparison "
                "is asked and the estimate is the one from before the contradiction"
            )
        return "; ".join(notes) or None

    def _answer_state(self, items: Items, history: Sequence[Event]) -> _AnswerState:
        def step(state: _AnswerState, event: Event, position: int) -> _AnswerState:
            return self._advance(items, state, event, position)

        return self._answer_states.fold(items.hash, history, lambda: self._initial_state(items), step)

    def _initial_state(self, items: Items) -> _AnswerState:
        return _AnswerState(Region(*box_bounds(self.box, items, "ActRank")))

    def _advance(self, items: Items, state: _AnswerState, event: Event, position: int) -> _AnswerState:
        """Return the state after one more event: count its vote, and cut the region by the decisions reached."""
        if event.query is None:
            if event.winner is None:
                return dataclasses.replace(state, decisions=())
            winner, loser = items.index(event.winner), items.index(event.loser)
            return _AnswerState(_cut(state.region, items, winner, loser), state.ballot)
        ballot, decisions = tally(items, state.ballot, event, needed=self.votes, position=position)
        region = state.region
        for decision in decisions:
            if decision.winner is not None and decision.loser is not None:
                region = _cut(region, items, decision.winner, decision.loser)
        return _AnswerState(region, ballot, tuple(decisions))

    def _ranking(self, items: Items, history: Sequence[Event], rng: np.random.Generator) -> _RankingState:
        """Return the region and the insertion after a history, from the cache if possible."""
        seed = tuple(rng.integers(2**63, size=2).tolist())

        def start() -> _RankingState:
            order = tuple(np.random.default_rng(seed).permutation(items.n).tolist())
            answers = self._initial_state(items)
            insertion = Insertion(order, [order[0]])
            return _RankingState(answers, insertion.infer(answers.region, items.coordinates))

        def step(state: _RankingState, event: Event, position: int) -> _RankingState:
            answers = self._advance(items, state.answers, event, position)
            return _RankingState(answers, _insert(state.insertion, answers, items.coordinates))

        return self._rankings.fold((items.hash, seed), history, start, step)


def _cut(region: Region, items: Items, winner: int, loser: int) -> Region:
    plane = bisector(items.coordinates[winner], items.coordinates[loser])
    return region if plane is None else region.cut(*plane)


def _insert(insertion: Insertion, answers: _AnswerState, points: FloatArray) -> Insertion:
    """Return the insertion after the latest decisions and all comparisons implied by the region."""
    for decision in answers.decisions:
        pending = insertion.pending
        if pending is None or set(pending) != set(decision.pair):
            continue
        item, other = pending
        if decision.winner is None:
            estimate = answers.region.chebyshev_centre
            nearer = bool(np.sum((points[item] - estimate) ** 2) < np.sum((points[other] - estimate) ** 2))
        else:
            nearer = decision.winner == item
        insertion = insertion.decide(nearer=nearer).infer(answers.region, points)
    voting = answers.ballot is not None and set(answers.ballot.pair) == set(insertion.pending or ())
    return insertion if voting else insertion.infer(answers.region, points)
