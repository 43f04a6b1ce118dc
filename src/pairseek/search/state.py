"""`SearchState`: a search after some events, with the belief, the next query and the results."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np

from pairseek.core.lazy import LazyModule, cached_property
from pairseek.core.types import Belief, Event, Query, QueryInfo, Side
from pairseek.errors import InvalidAnswer, NoPairLeft, Unsupported
from pairseek.model.curvature import CurvedUtility
from pairseek.model.defaults import spread_of
from pairseek.model.items import Items
from pairseek.numerics.compilation import compilation_notice
from pairseek.pairs.context import SelectionContext
from pairseek.pairs.features import typical_response
from pairseek.pairs.selection import ChosenPair, PairMemo, choice_shares, pair_info
from pairseek.search import engine
from pairseek.search.configuration import SearchConfiguration

if TYPE_CHECKING:
    from pairseek.model.recommendations import Recommendation
    from pairseek.search import estimates, forecasts, gains, recommending
    from pairseek.search.estimates import Estimate
    from pairseek.search.recommending import RecommendOptions
else:
    # A search that only asks and infers does not need them.
    estimates, forecasts, gains, recommending = (
        LazyModule(f"pairseek.search.{name}") for name in ("estimates", "forecasts", "gains", "recommending")
    )


@dataclass(frozen=True, eq=False)
class SearchState:
    """A search after some events. Its belief and its next pair are computed on first use, and then kept.

    Attributes
    ----------
    configuration, seed
        The configuration, and the seed for sides and random draws.
    events
        The events so far.
    memo
        Cache of the pairs that other searches with this configuration have chosen after the same events.
    migrated_from
        Model version that the search was saved with, if it is an earlier one.
    """

    configuration: SearchConfiguration
    seed: int
    events: tuple[Event, ...] = ()
    memo: PairMemo | None = field(default=None, repr=False)
    migrated_from: int | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # The belief and the next pair are computed again, and each process has its own memo.
        return type(self), (self.configuration, self.seed, self.events, None, self.migrated_from)

    def with_events(self, events: Iterable[Event]) -> Self:
        """Return a search with the same configuration and seed after other events."""
        return replace(self, events=tuple(events))

    def after_answer(self, query: Query, winner: Side) -> Self:
        """Return the search after an answer to a query."""
        return self.with_events((*self.events, Event(query.left, query.right, "answer", winner, query)))

    @property
    def answers(self) -> int:
        """Number of answers and ties to queries; skips and observations do not count."""
        return sum(event.query is not None and event.outcome != "skip" for event in self.events)

    @cached_property
    def belief(self) -> Belief:
        """The posterior after all events."""
        with compilation_notice():
            return engine.infer(self.configuration, self.events)

    # The next pair

    def query(self, pending: Sequence[Query] = ()) -> Query | None:
        """Return the next query while others are pending; None once a procedure has finished."""
        pair = self._choose(pending) if pending else self._next_pair
        return None if pair is None else engine.query_of_pair(pair, len(self.events), len(pending), seed=self.seed)

    def next_query(self) -> Query | None:
        """Return the next query; None if a stop rule is met or no pair is left, which ends a session of a study."""
        try:
            return None if self.stopped() is not None else self.query()
        except NoPairLeft:
            return None

    @cached_property
    def _next_pair(self) -> ChosenPair | None:
        pair = None if self.memo is None else self.memo.recall(self.events)
        if pair is None:
            pair = self._choose(())
            if self.memo is not None and pair is not None and not pair.depends_on_seed:
                self.memo.keep(self.events, pair)
        return pair

    def _choose(self, pending: Sequence[Query]) -> ChosenPair | None:
        with compilation_notice():
            return engine.next_pair(self.configuration, self.events, pending, seed=self.seed, belief=self.belief)

    # The end

    def stopped(self, *, pending: bool = False) -> str | None:
        """Return the reason why the search has ended, or None; ``pending`` says whether a query is open."""
        for rule in self.configuration.stop:
            reason = rule.reached(self)
            if reason is not None:
                return reason
        if self.configuration.procedure is not None and not pending and self.query() is None:
            return f"{self.configuration.strategy.name} has no more pairs to ask"
        return None

    def forecast(self) -> int | None:
        """Return the expected number of answers until the first stop rule is met; None if it cannot be predicted."""
        if any(rule.reached(self) is not None for rule in self.configuration.stop):
            return 0
        counts = [rule.remaining(self) for rule in self.configuration.stop]
        predicted = [count for count in counts if count is not None]
        soonest = min(predicted, default=math.inf)
        # Any rule without a forecast may end the search before the others do.
        return int(soonest) if len(predicted) == len(counts) and math.isfinite(soonest) else None

    # Predictions and results

    def expect(self, left: object, right: object) -> QueryInfo:
        """Return the predicted answer to any pair of items, and its expected information."""
        items = self._items("expect")
        rows = items.index(left), items.index(right)
        if rows[0] == rows[1]:
            raise InvalidAnswer(f"the pair consists of {left!r} twice: give two different items")
        return pair_info(self._context, *rows)

    def choice_shares(self, ids: Iterable[object]) -> list[float]:
        """Return, for each of these items, the probability that it is chosen over another item drawn at random."""
        items = self._items("choice_shares")
        return [float(share) for share in choice_shares(self._context, [items.index(name) for name in ids])]

    def estimate(self) -> Estimate:
        """Return the estimate of the user point: the posterior mean, or the estimate of the procedure."""
        configuration, belief, d = self.configuration, self.belief, self.configuration.items.d
        reliability = estimates.reliability_estimate(belief, configuration.response, spread_of(configuration.prior, d))
        point, note = belief.mean[:d], None
        if configuration.procedure is not None:
            point = np.asarray(configuration.procedure.estimate(configuration.catalogue, self.events))
            note = configuration.procedure.status(configuration.catalogue, self.events)
        utility = CurvedUtility.of(configuration.prior, configuration.response, d)
        return estimates.Estimate(point, belief.covariance[:d, :d], belief, note, reliability, utility)

    def recommend(self, count: int, **options: Unpack[RecommendOptions]) -> list[Recommendation]:
        """Return recommended items, with the options of `Search.recommend`."""
        return recommending.recommend(self.configuration, self.estimate(), count, **options)

    # `Progress`: what stop rules read

    def radius(self, level: float) -> float:
        """Return the credible radius."""
        return self.estimate().credible_radius(level)

    def information(self) -> float:
        """Return the expected bits in the next answer, as if no query were open; 0 if no pair is left."""
        try:
            query = self.query()
        except NoPairLeft:
            return 0.0
        if query is None or query.info is None:
            return 0.0
        if self.belief.residuals is None or not self.configuration.items.d:
            return query.info.information
        # Each new pair of a large catalogue informs about two more residual utilities, so only the point counts.
        items = self.configuration.catalogue
        rows = [np.array([items.find(side)]) for side in (query.left, query.right)]
        return float(self._context.features(rows[0], rows[1]).point_information()[0])

    def best_probability(self) -> float:
        """Return the probability that the item recommended first is the best."""
        return self._best_probability

    @cached_property
    def _best_probability(self) -> float:
        return self.recommend(1)[0].probability

    def gain(self, size: int) -> float:
        """Return the expected gain of a list of this size from one more comparison, in logits."""
        return gains.expected_gain(self._resting_context(), min(size, self._modelled.n - 1))

    def gains(self, size: int) -> Iterator[float]:
        """Yield the gain now, and the smallest gain expected within 1, 2, ... further answers."""
        repeats = self.configuration.rest.pair is not None
        return gains.expected_gains(self._resting_context(), min(size, self._modelled.n - 1), repeats=repeats)

    def path(self, level: float = 0.95) -> Iterator[tuple[float, float]] | None:
        """Yield the expected credible radius and bits of the next answer after 0, 1, 2, ... further answers.

        None with residual utilities, because the answers needed then depend on how many items are worth asking about.
        """
        if self.belief.residuals is not None:
            return None
        information, radius = self.information(), self.radius(level)
        modelled = self.configuration.modelled(self.configuration.items)
        typical = typical_response(self.configuration.response, self.belief)
        return forecasts.expected_path(information, modelled, self.belief, typical, radius=radius, level=level)

    # Internals

    @property
    def _context(self) -> SelectionContext:
        return replace(engine.selection_context(self.configuration, self.belief), history=self.events)

    def _resting_context(self) -> SelectionContext:
        items = self._modelled
        shown = [(items.find(event.left), items.find(event.right)) for event in self.events]
        return replace(self._context, resting=next(iter(self.configuration.rest.after(shown, items.n))))

    @property
    def _modelled(self) -> Items:
        unsupported = Unsupported("a continuous Space has no best item: use another stop rule")
        return self.configuration.modelled(self.configuration.items._require_catalogue(unsupported))

    def _items(self, method: str) -> Items:
        return self.configuration.items._require_catalogue(
            Unsupported(f"{method} needs items: a continuous Space has none")
        )
