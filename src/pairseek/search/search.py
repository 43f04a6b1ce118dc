"""`Search`: the interactive search for one person's point, and the only mutable object in it.

A search holds the pending queries and an immutable state, which computes the belief, the next pair and the results from
the events. A lock makes every call atomic, so threads can share a search without computing anything twice.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Self

import numpy as np

from pairseek.core.text import plural
from pairseek.core.types import Belief, Event, EventOutcome, Query, QueryInfo, Side
from pairseek.core.validation import seed_of, whole
from pairseek.errors import (
    AnswerConflict,
    InvalidAnswer,
    NoPairLeft,
    SearchFinished,
    UnknownQuery,
    Unsupported,
)
from pairseek.model.catalogues import Missing, Selected
from pairseek.model.items import Items
from pairseek.model.priors import AnyPrior
from pairseek.model.responses import Response
from pairseek.model.spaces import Space
from pairseek.pairs.context import Source
from pairseek.pairs.sources import Rest
from pairseek.pairs.strategies.base import Procedure, RandomUtility, Utility
from pairseek.posteriors import Posterior
from pairseek.search import serialization
from pairseek.search.configuration import SearchConfiguration
from pairseek.search.defaults import warn_about_default_response
from pairseek.search.goals import Goal
from pairseek.search.state import SearchState
from pairseek.search.stopping import AfterAnswers, StopRule
from pairseek.search.stored import StoredSearch, atomic

if TYPE_CHECKING:
    from pairseek.indexes import CatalogueIndex
    from pairseek.model.recommendations import Recommendation
    from pairseek.people.population import Population
    from pairseek.search.estimates import Estimate


class Search(StoredSearch):
    """A search for one person's point.

    Parameters
    ----------
    items
        The items to ask about, or a continuous `Space`.
    response
        The response model. None: logistic with constant noise, a k derived from the scale of the prior, residual
        utilities, and an unknown curvature.
    prior
        Prior of the user point. None: Gaussian around the items, or uniform on a `Space`. A density of your own has
        ``sample(n, d, rng)`` and ``log_density(points)``.
    posterior
        Method of inference. None: ``EP()``. A method that cannot infer residual utilities, such as `Grid`, also changes
        the default response to the paper's model, ``Logistic()``, with a `DefaultWarning`.
    strategy
        Rule that chooses pairs. None: the strategy that serves the goal.
    candidates
        Source of pairs. None: all pairs if they are few, otherwise a source that suits the response, the strategy and
        the number of dimensions.
    rest
        Number of questions before a pair or an item may be repeated. None: ``Rest()``.
    stop
        A stop rule, several (the first to be met ends the search), or a number of answers. None: the stop rule that
        serves the goal, if any.
    rng
        A seed (integer, at least 0), or a generator to draw one from. None: a random seed.
    population
        A model fitted to other people's choices among these items. It provides the appeal, and the prior and the
        response if you do not give your own. A saved search stores these values, not the population.
    goal
        Purpose of the search: ``"taste"``, to predict any choice of the person; ``"best"``, to find one item that the
        person loves; ``"list"``, to find a few. It provides the default strategy (`InfoGain`, `EUBO`, `Shortlist`) and,
        for the last two, the default stop rule `GainBelow`; give ``stop=()`` for none.
    askable
        The items to ask about: ids, a mask of one bool for each item, or a number of items, which are then chosen to
        cover the catalogue, preferably by items of high appeal. `recommend` may still return any item. None: all.

    Examples
    --------
    >>> items = Items([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], ids=list("abcd"))
    >>> search = Search(items, rng=7)
    >>> query = search.ask()
    >>> search.tell(query, winner=query.left)
    >>> search.answers
    1
    """

    def __init__(
        self,
        items: Items | Space,
        *,
        response: Response | None = None,
        prior: AnyPrior | None = None,
        posterior: Posterior | None = None,
        strategy: Utility | RandomUtility | Procedure | None = None,
        candidates: Source | None = None,
        rest: Rest | None = None,
        stop: StopRule | Sequence[StopRule] | int | None = None,
        rng: int | np.random.Generator | None = None,
        population: Population | None = None,
        goal: Goal = "taste",
        askable: Selected = None,
    ) -> None:
        configuration = SearchConfiguration.resolved(
            items,
            population=population,
            goal=goal,
            askable=askable,
            stop=stop,
            response=response,
            prior=prior,
            posterior=posterior,
            strategy=strategy,
            candidates=candidates,
            rest=rest,
        )
        if "response" not in configuration.given_parts:
            warn_about_default_response(configuration.items, configuration.prior, configuration.posterior)
        self._begin(SearchState(configuration, seed_of(rng)))

    def __repr__(self) -> str:
        items = self.items
        progress = f"{plural(self.answers, 'answer')}, seed {self.seed}"
        return f"<Search of {items._summary} in {plural(items.d, 'dimension')} by {self.strategy.name}: {progress}>"

    @atomic
    def _repr_html_(self) -> str:
        from pairseek.search.notebook import search_panel  # only a notebook draws it

        return search_panel(self._state, self._pending, repr(self))

    # Asking

    @atomic
    def ask(self) -> Query:
        """Return the next query. The call is idempotent until the query is answered, skipped or undone."""
        reason = self.finished
        if reason is not None:
            raise SearchFinished(reason)
        if not self._pending:
            query = self._state.query()
            assert query is not None  # `finished` covers the case of None.
            self._pending.append(query)
        return self._pending[0]

    @atomic
    def ask_many(self, count: int) -> list[Query]:
        """Return several queries without common items, to be answered in any order.

        Pending queries come first. The list is shorter than `count` if no more pairs are left, because of the items or
        `rest`, or if `AfterAnswers` allows fewer answers.
        """
        count = whole(count, "the count of ask_many", field="count")
        unsupported = Unsupported("ask_many needs items and a strategy that scores pairs: use ask()")
        self.items._require_catalogue(unsupported)
        if self._state.configuration.utility is None:
            raise unsupported
        self.ask()
        allowed = [rule.count - self.answers for rule in self.stop if isinstance(rule, AfterAnswers)]
        count = min([count, *allowed])
        while len(self._pending) < count:
            try:
                query = self._state.query(self._pending)
            except NoPairLeft:
                break
            assert query is not None  # Only procedures return None.
            self._pending.append(query)
        return self._pending[:count]

    @property
    @atomic
    def finished(self) -> str | None:
        """The reason why the search has stopped, or None."""
        return self._state.stopped(pending=bool(self._pending))

    @atomic
    def forecast(self) -> int | None:
        """Return the expected number of answers until the first stop rule is met; None if it cannot be predicted.

        `BestItemFound` has no forecast, and with residual utilities, which are the default, neither `RadiusBelow` nor
        `InformationBelow` has one. No forecast exceeds a thousand answers, or two hundred for `GainBelow`.
        """
        return self._state.forecast()

    @atomic
    def expect(self, left: object, right: object) -> QueryInfo:
        """Return the predicted answer to any pair of items, and its expected information."""
        return self._state.expect(left, right)

    @atomic
    def choice_shares(self, ids: Iterable[object]) -> list[float]:
        """Return, for each of these items, the probability that it is chosen over another item drawn at random."""
        return self._state.choice_shares(ids)

    # Telling

    @atomic
    def tell(self, query: Query | str, winner: object = None, *, tie: bool = False) -> None:
        """Record the answer to a query. Repeating it is idempotent; a different answer raises `AnswerConflict`."""
        if _tie_flag(tie) == (winner is not None):
            raise InvalidAnswer("an answer must have a winner or be a tie: give either winner=... or tie=True")
        self._record(query, "tie" if tie else "answer", winner)

    @atomic
    def skip(self, query: Query | str) -> None:
        """Record that a query was skipped; the belief does not change."""
        self._record(query, "skip", None)

    @atomic
    def observe(self, left: object, right: object, winner: object = None, *, tie: bool = False) -> None:
        """Record an answer to a pair that the search did not ask, such as earlier data."""
        if _tie_flag(tie) == (winner is not None):
            raise InvalidAnswer("an observation must have a winner or be a tie: give either winner=... or tie=True")
        a, b = self._state.configuration.side(left), self._state.configuration.side(right)
        if a == b:
            raise InvalidAnswer(f"the observation compares {a!r} with itself: give two different items")
        event = Event(a, b, "tie" if tie else "answer", None if tie else self._winner(a, b, winner))
        self._state = self._state.with_events((*self._state.events, event))

    @atomic
    def undo(self) -> Event:
        """Remove the last event and return it. Its query, if any, is pending again."""
        if not self._state.events:
            raise UnknownQuery("there is no event to undo: no answer was given yet")
        *events, event = self._state.events
        self._state = self._state.with_events(events)
        self._pending = [query for query in self._pending if serialization.query_position(query)[0] <= len(events)]
        if event.query is not None and not {event.left, event.right} & self._state.configuration.removed.keys():
            self._pending = sorted([*self._pending, event.query], key=serialization.query_position)
        return event

    @atomic
    def continued(self, events: Sequence[Event], *, rng: int | np.random.Generator | None = None) -> Self:
        """Return a copy of this search with other events.

        Parameters
        ----------
        events
            The events of the copy.
        rng
            Seed of the copy, or a generator to draw one from. None: the seed of this search.
        """
        other = copy.copy(self)
        seed = self.seed if rng is None else seed_of(rng)
        other._begin(SearchState(self._state.configuration, seed, tuple(events)))
        return other

    # State

    @property
    @atomic
    def pending(self) -> tuple[Query, ...]:
        """Queries without an answer."""
        return tuple(self._pending)

    @property
    @atomic
    def belief(self) -> Belief:
        """The posterior after all events, in the dimensions of `modelled_items`."""
        return self._state.belief

    @atomic
    def estimate(self) -> Estimate:
        """Return the estimate of the user point: the posterior mean, or the estimate of the procedure."""
        return self._state.estimate()

    @atomic
    def recommend(
        self,
        count: int = 5,
        *,
        only: Iterable[object] | None = None,
        exclude: Iterable[object] | None = None,
        where: Mapping[str, object] | None = None,
        missing: Missing = "error",
        among: Items | CatalogueIndex | None = None,
        diversity: float = 0.0,
    ) -> list[Recommendation]:
        """Return the items most likely to be the user's best or, if the goal is a list, of highest expected utility.

        With residual utilities, the expected utility decides for every goal: among many items, each probability of
        being the best is too small to estimate from samples. Probabilities refer to the items that may be recommended.

        Parameters
        ----------
        count
            Number of items; fewer are returned if fewer may be recommended.
        only
            Items that may be recommended: ids, or a mask of one bool for each item.
        exclude
            Items that may not be recommended, in the same form.
        where
            Values that columns of ``items.data`` must have: ``{"in_stock": True, "kind": ["red", "rosé"], "price":
            {"max": 20}}`` for a value, a list of accepted values and a range.
        missing
            Whether ids in `only` and `exclude` that are not in the catalogue are an ``"error"``, or are skipped
            (``"ignore"``), which suits stock lists that do not match the catalogue exactly.
        among
            Other items to recommend from, in the same coordinates, such as tomorrow's catalogue; or millions of items
            in a vector database, for which neither probabilities nor distances are known: see `pairseek.indexes`.
        diversity
            Smallest distance between two recommended items, from 0 to 1, as a fraction of the root mean square distance
            between items. It is halved until enough items are left.
        """
        return self._state.recommend(
            count, only=only, exclude=exclude, where=where, missing=missing, among=among, diversity=diversity
        )

    # Internals

    def _record(self, query: Query | str, outcome: EventOutcome, winner: object) -> None:
        """Record the outcome of a pending query; verify that a repeated outcome agrees with the recorded one."""
        name = query.id if isinstance(query, Query) else query if isinstance(query, str) else None
        pending = next((q for q in self._pending if q.id == name), None)
        answered_event = next((e for e in self._state.events if e.query is not None and e.query.id == name), None)
        original = pending or (answered_event.query if answered_event else None)
        if original is None or (isinstance(query, Query) and query != original):
            raise UnknownQuery(f"this search has no query {query!r}: answer the one that ask() returns")
        winning_side = self._winner(original.left, original.right, winner) if outcome == "answer" else None
        if pending is None:
            assert answered_event is not None
            if (answered_event.outcome, answered_event.winner) != (outcome, winning_side):
                recorded = (
                    answered_event.outcome if answered_event.winner is None else f"winner {answered_event.winner!r}"
                )
                received = outcome if winning_side is None else f"winner {winning_side!r}"
                raise AnswerConflict(
                    f"query {name!r} has the answer {recorded}, received {received}: undo first to change it"
                )
            return
        self._pending.remove(pending)
        event = Event(pending.left, pending.right, outcome, winning_side, pending)
        self._state = self._state.with_events((*self._state.events, event))

    def _winner(self, left: Side, right: Side, winner: object) -> Side:
        try:
            side = self._state.configuration.side(winner)
        except LookupError:
            side = None
        if side is None or side not in (left, right):
            raise InvalidAnswer(f"the winner {winner!r} is not in the query: give {left!r} or {right!r}")
        return side


def _tie_flag(tie: object) -> bool:
    if not isinstance(tie, bool | np.bool_):
        raise InvalidAnswer(f"tie is {tie!r}: give True or False")
    return bool(tie)
