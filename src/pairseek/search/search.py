"""`Search`, the interactive search for one person's point, and the only class with mutable state.

A search holds a state, which never changes and knows all that follows from the events, and the pending queries. A lock
makes each call atomic, so that threads which share a search are serialised and compute nothing twice.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

import numpy as np

from pairseek.core import files
from pairseek.core.text import plural
from pairseek.core.types import JSON, Belief, Event, Outcome, Query, QueryInfo, Side
from pairseek.core.validation import seed_of, whole
from pairseek.errors import (
    AnswerConflict,
    InvalidAnswer,
    InvalidFile,
    NoPairLeft,
    SearchFinished,
    UnknownQuery,
    Unsupported,
)
from pairseek.model.catalogues import Selected
from pairseek.model.items import Items, Space
from pairseek.model.priors import AnyPrior, Prior
from pairseek.model.recommendations import Recommendation
from pairseek.model.responses import Response
from pairseek.pairs.context import Source
from pairseek.pairs.sources import Rest
from pairseek.pairs.strategies.base import Procedure, RandomUtility, Utility
from pairseek.posteriors import Posterior
from pairseek.search import saving, serialization
from pairseek.search.configuration import SearchConfiguration
from pairseek.search.defaults import warn_of_response
from pairseek.search.estimates import Estimate
from pairseek.search.goals import Goal, SearchGoal
from pairseek.search.record import Saved
from pairseek.search.state import SearchState
from pairseek.search.stopping import AfterAnswers, StopRule
from pairseek.search.tokens import Key

if TYPE_CHECKING:
    from pairseek.indexes import CatalogueIndex
    from pairseek.people.population import Population

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def _atomic(
    method: Callable[Concatenate[Search, _Given], _Result],
) -> Callable[Concatenate[Search, _Given], _Result]:
    """Wrap a method so that it holds the lock of the search, which makes it atomic."""

    @wraps(method)
    def locked(search: Search, /, *given: _Given.args, **named: _Given.kwargs) -> _Result:
        with search._lock:
            return method(search, *given, **named)

    return locked


class Search:
    """A search for one person's point.

    Parameters
    ----------
    items
        The items to ask about, or a continuous `Space`.
    response
        The response model. None: logistic with constant noise, a k derived from the scale of the prior, and an unknown
        residual and curvature.
    prior
        Prior of the user point. None: Gaussian around the items, or uniform on a `Space`. A density of your own has
        ``sample(n, d, rng)`` and ``log_density(points)``.
    posterior
        Method of inference. None: ``EP()``. One that cannot infer residual utilities, such as `Grid`, also changes the
        default response to the paper's model, ``Logistic()``; a `DefaultWarning` says so.
    strategy
        Rule that chooses pairs. None: that of the goal.
    candidates
        Source of pairs. None: all pairs if they are few, and otherwise what suits the response, the strategy and the
        number of dimensions.
    rest
        Number of questions before a pair or an item may be repeated. None: ``Rest()``.
    stop
        A stop rule, several (any of them suffices), or a number of answers. None: that of the goal, if it has one.
    rng
        A seed (integer, at least 0), or a generator to draw one from. None: a random seed.
    population
        A model fitted to other people's choices among these items: it provides appeal, and the prior and response
        where none is given. A saved search stores these values, not the population.
    goal
        What the search is for: ``"taste"``, to predict any choice of the person; ``"best"``, to find one item that the
        person loves; ``"list"``, to find a few. It provides the strategy (`InfoGain`, `EUBO`, `Shortlist`) and, for the
        last two, the stop rule `GainBelow`, where none is given; ``stop=()`` for none.
    askable
        The items to ask about, all of which `recommend` may return: ids, a mask of one bool for each item, or a number
        of items, which are chosen to cover the catalogue, those of high appeal first. None: all.

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
        if "response" not in configuration.given:
            warn_of_response(configuration.items, configuration.prior, configuration.posterior)
        self._begin(SearchState(configuration, seed_of(rng)))

    def _begin(self, state: SearchState, pending: Iterable[Query] = ()) -> None:
        self._lock = threading.RLock()
        self._state = state
        self._pending = list(pending)

    @classmethod
    def _restored(cls, saved: Saved) -> Self:
        """Return a search in this state; the ``__init__`` of a subclass is not called."""
        search = cls.__new__(cls)
        search._begin(*saved)
        return search

    def __repr__(self) -> str:
        items = self.items
        done = f"{plural(self.answers, 'answer')}, seed {self.seed}"
        return f"<Search of {items._summary} in {plural(items.d, 'dimension')} by {self.strategy.name}: {done}>"

    @_atomic
    def _repr_html_(self) -> str:
        from pairseek.search.notebook import search_panel  # only a notebook draws it

        return search_panel(self._state, self._pending, repr(self))

    @_atomic
    def __getstate__(self) -> dict[str, Any]:
        # A copy has its own list of queries and its own lock.
        kept = {name: value for name, value in vars(self).items() if name != "_lock"}
        return {**kept, "_pending": list(self._pending)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "_state" not in state:
            raise InvalidFile("the pickle is of a search of another version of pairseek: use save() and load()")
        vars(self).update(state, _lock=threading.RLock())

    # Parts

    @property
    def items(self) -> Items | Space:
        """The items, with the appeal of the population if there is one, or the space."""
        return self._state.configuration.items

    @property
    def response(self) -> Response:
        """The response model."""
        return self._state.configuration.response

    @property
    def prior(self) -> Prior:
        """The prior of the user point."""
        return self._state.configuration.prior

    @property
    def posterior(self) -> Posterior:
        """The method of inference."""
        return self._state.configuration.posterior

    @property
    def strategy(self) -> Utility | Procedure:
        """The rule that chooses pairs."""
        return self._state.configuration.strategy

    @property
    def candidates(self) -> Source | None:
        """The source of pairs; None for a space or a procedure."""
        return self._state.configuration.candidates

    @property
    def rest(self) -> Rest:
        """The number of questions before a pair or an item may be repeated."""
        return self._state.configuration.rest

    @property
    def stop(self) -> tuple[StopRule, ...]:
        """The stop rules."""
        return self._state.configuration.stop

    @property
    def goal(self) -> SearchGoal:
        """The goal."""
        return self._state.configuration.goal

    @property
    def seed(self) -> int:
        """The seed."""
        return self._state.seed

    @property
    def askable(self) -> Items | Space:
        """The items to ask about: those given as `askable`, or all."""
        return self._state.configuration.askable

    @property
    def modelled_items(self) -> Items:
        """The items as the model has them: with one more coordinate where the curvature is unknown."""
        items = self.items._catalogue(Unsupported("a continuous Space has no items"))
        return self._state.configuration.modelled(items)

    @property
    def configuration(self) -> JSON:
        """All parts with their names and settings, and the version of the model, as plain data."""
        return self._state.configuration.record()

    # Asking

    @_atomic
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

    @_atomic
    def ask_many(self, count: int) -> list[Query]:
        """Return several queries without common items, to be answered in any order.

        Pending queries come first. The list is shorter than `count` if the items or the rules of rest leave no more
        pairs, or if `AfterAnswers` allows fewer answers.
        """
        count = whole(count, "the count of ask_many")
        refused = Unsupported("ask_many needs items and a strategy that scores pairs: use ask()")
        self.items._catalogue(refused)
        if self._state.configuration.utility is None:
            raise refused
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
    @_atomic
    def finished(self) -> str | None:
        """The reason for which the search has stopped, or None."""
        return self._state.stopped(pending=bool(self._pending))

    @_atomic
    def forecast(self) -> int | None:
        """Return the expected number of answers until the first stop rule is met, among rules with a forecast.

        None without such a rule: `BestItemFound` has no forecast, `RadiusBelow` and `InformationBelow` have none beyond
        a thousand answers.
        """
        return self._state.forecast()

    @_atomic
    def expect(self, left: object, right: object) -> QueryInfo:
        """Return the predicted answer to any pair of items, and its expected information."""
        return self._state.expect(left, right)

    @_atomic
    def choice_shares(self, ids: Iterable[object]) -> list[float]:
        """Return, for each of these items, the probability that it is chosen over another item drawn at random."""
        return self._state.choice_shares(ids)

    # Telling

    @_atomic
    def tell(self, query: Query | str, winner: object = None, *, tie: bool = False) -> None:
        """Record the answer to a query. Repeating it is idempotent; a different answer raises `AnswerConflict`."""
        if _is_tie(tie) == (winner is not None):
            raise InvalidAnswer("an answer must have a winner or be a tie: give either winner=... or tie=True")
        self._record(query, "tie" if tie else "answer", winner)

    @_atomic
    def skip(self, query: Query | str) -> None:
        """Record that a query was skipped; the belief does not change."""
        self._record(query, "skip", None)

    @_atomic
    def observe(self, left: object, right: object, winner: object = None, *, tie: bool = False) -> None:
        """Record an answer to a pair that the search did not ask, such as earlier data."""
        if _is_tie(tie) == (winner is not None):
            raise InvalidAnswer("an observation must have a winner or be a tie: give either winner=... or tie=True")
        a, b = self._state.configuration.side(left), self._state.configuration.side(right)
        if a == b:
            raise InvalidAnswer(f"the observation compares {a!r} with itself: give two different items")
        event = Event(a, b, "tie" if tie else "answer", None if tie else self._winner(a, b, winner))
        self._state = self._state.after((*self._state.events, event))

    @_atomic
    def undo(self) -> Event:
        """Remove the last event and return it. Its query, if any, is pending again."""
        if not self._state.events:
            raise UnknownQuery("there is no event to undo: no answer was given yet")
        *events, event = self._state.events
        self._state = self._state.after(events)
        self._pending = [query for query in self._pending if serialization.order(query)[0] <= len(events)]
        if event.query is not None and not {event.left, event.right} & self._state.configuration.removed.keys():
            self._pending = sorted([*self._pending, event.query], key=serialization.order)
        return event

    @_atomic
    def continued(self, events: Sequence[Event], *, rng: int | np.random.Generator | None = None) -> Self:
        """Return a copy of this search with these events instead of its own.

        Parameters
        ----------
        events
            The events of the copy.
        rng
            Seed of the copy, or a generator to draw one from. None: that of this search.
        """
        other = copy.copy(self)
        seed = self.seed if rng is None else seed_of(rng)
        other._begin(SearchState(self._state.configuration, seed, tuple(events)))
        return other

    @_atomic
    def moved_to(self, items: Items, *, population: Population | None = None, askable: Selected = None) -> Self:
        """Return a search with the same answers and settings among other items, such as tomorrow's catalogue.

        Answers about items that are gone count with the coordinates that they had. Queries about them are dropped.

        Parameters
        ----------
        items
            The other items, in the same coordinates.
        population
            A population of the other items, if this search has one.
        askable
            The items to ask about. None: as many as before, or those of the items before that are still there.
        """
        refused = Unsupported("moved_to needs items: a continuous Space has none")
        self.items._catalogue(refused)
        if not isinstance(items, Items):
            raise refused
        return self._restored(saving.moved(*self._saved(), items, population, askable))

    # State

    @property
    def history(self) -> tuple[Event, ...]:
        """All events, in order."""
        return self._state.events

    @property
    @_atomic
    def pending(self) -> tuple[Query, ...]:
        """Queries without an answer."""
        return tuple(self._pending)

    @property
    def answers(self) -> int:
        """Number of answers and ties given to queries; skips and observations do not count."""
        return self._state.answers

    @property
    @_atomic
    def belief(self) -> Belief:
        """The posterior after all events, in the dimensions of `modelled_items`."""
        return self._state.belief

    @_atomic
    def estimate(self) -> Estimate:
        """Return the estimate of the user point: the posterior mean, or that of the procedure."""
        return self._state.estimate()

    @_atomic
    def recommend(
        self,
        count: int = 5,
        *,
        only: Iterable[object] | None = None,
        exclude: Iterable[object] | None = None,
        among: Items | CatalogueIndex | None = None,
        diversity: float = 0.0,
    ) -> list[Recommendation]:
        """Return the items of highest probability of being the user's best; for a list, of highest expected utility.

        With residual utilities it is the expected utility for every goal: of many items each has a small probability of
        being the best, which samples do not resolve. Probabilities are those of being the best of the items that may be
        recommended.

        Parameters
        ----------
        count
            Number of items; fewer are returned if fewer may be recommended.
        only
            Items that may be recommended: ids, or a mask of one bool for each item.
        exclude
            Items that may not be recommended, in the same form.
        among
            Other items in the same coordinates, such as tomorrow's catalogue, to recommend from; or millions of them in
            a vector database, which say neither probabilities nor distances: see `pairseek.indexes`.
        diversity
            Least distance of two recommended items, as a share of the root mean square distance of two items, from 0
            to 1. It is halved as often as too few items are left.
        """
        return self._state.recommend(count, only=only, exclude=exclude, among=among, diversity=diversity)

    # Saving

    def save(self, path: str | Path, *, light: bool = False) -> None:
        """Write configuration, seed, items and events to a JSON file, atomically.

        A light file names the items by their hash instead: it is about 2 kB, and `load` needs the items.
        """
        if light:
            files.write(path, self.to_dict(), files.LIGHT_SEARCH)
        else:
            files.write(path, saving.to_file(*self._saved()))

    @classmethod
    def load(cls, path: str | Path, *, items: Items | None = None, **parts: Any) -> Self:
        """Read a saved search, which reproduces the belief and the queries of the original.

        Parameters
        ----------
        path
            File written by `save`.
        items
            The items of a light file, which only names them.
        parts
            Parts in place of those in the file: response, prior, posterior, strategy, candidates, rest, stop. A part of
            your own must be given: the file stores only its name. For a light file, all arguments of `from_dict`.
        """
        if items is not None:
            given = {name: part for name, part in parts.items() if part is not None}
            return cls.from_dict(files.read(path, files.LIGHT_SEARCH), items=items, **given)
        return cls._restored(saving.from_file(files.read(path), path, parts))

    def to_dict(self) -> JSON:
        """Return the search as plain data of about 2 kB, which names the items by their hash: see `from_dict`.

        A long part, such as the prior of many dimensions, is named by its hash, and must be given again.
        """
        return saving.to_light(*self._saved())

    @classmethod
    def from_dict(
        cls,
        record: Mapping[str, Any],
        *,
        items: Items,
        catalogues: Iterable[Items] = (),
        population: Population | None = None,
        askable: Selected = None,
        **parts: Any,
    ) -> Self:
        """Return the search that `to_dict` described.

        Parameters
        ----------
        record
            What `to_dict` returned, also after a way through JSON.
        items
            The items; if they are those of another catalogue, the answers carry over to them: see `moved_to`.
        catalogues
            Earlier catalogues that the record may be about.
        population
            The population that the search began with, if it had one.
        askable
            The items to ask about, where they were given by ids or a mask.
        parts
            Parts that the record only names: response, prior, posterior, strategy, candidates, rest, stop.
        """
        given = {"population": population, "askable": askable, **parts}
        return cls._restored(saving.from_light(record, items, catalogues, **given))

    def to_token(self, *, key: Key, lifetime: float | None = None) -> str:
        """Return a signed token with seed and events, under 256 bytes for 20 answers among 50,000 items.

        It holds neither items nor configuration: `from_token` takes the same ones. Whoever has a token can read which
        items were asked and what was answered; nobody without the key can change it.

        Parameters
        ----------
        key
            A secret of at least 16 bytes, or several, of which the first signs.
        lifetime
            Seconds until it expires. None: never.
        """
        return saving.to_token(*self._saved(), key, lifetime)

    @classmethod
    def from_token(
        cls, token: str, *, items: Items, key: Key, catalogues: Iterable[Items] = (), **configuration: object
    ) -> Self:
        """Return the search that a token carries.

        Parameters
        ----------
        token
            What `to_token` returned.
        items
            The items; if they are those of another catalogue, the answers carry over to them: see `moved_to`.
        key
            The secret, or several.
        catalogues
            Earlier catalogues that the token may be about.
        configuration
            The arguments of the search, as it was begun with: population, askable, response, goal and so on.
        """
        return cls._restored(saving.from_token(token, items, key, catalogues, configuration))

    @_atomic
    def _saved(self) -> Saved:
        return self._state, tuple(self._pending)

    # Internals

    def _record(self, query: Query | str, outcome: Outcome, winner: object) -> None:
        """Record the outcome of a pending query; verify that a repeated outcome agrees with the recorded one."""
        name = query.id if isinstance(query, Query) else query if isinstance(query, str) else None
        known = next((q for q in self._pending if q.id == name), None)
        answered = next((e for e in self._state.events if e.query is not None and e.query.id == name), None)
        stored = known or (answered.query if answered else None)
        if stored is None or (isinstance(query, Query) and query != stored):
            raise UnknownQuery(f"this search has no query {query!r}: answer the one that ask() returns")
        decided = self._winner(stored.left, stored.right, winner) if outcome == "answer" else None
        if known is None:
            assert answered is not None
            if (answered.outcome, answered.winner) != (outcome, decided):
                said = answered.outcome if answered.winner is None else f"winner {answered.winner!r}"
                told = outcome if decided is None else f"winner {decided!r}"
                raise AnswerConflict(f"query {name!r} has the answer {said}, received {told}: undo first to change it")
            return
        self._pending.remove(known)
        event = Event(known.left, known.right, outcome, decided, known)
        self._state = self._state.after((*self._state.events, event))

    def _winner(self, left: Side, right: Side, winner: object) -> Side:
        try:
            side = self._state.configuration.side(winner)
        except LookupError:
            side = None
        if side is None or side not in (left, right):
            raise InvalidAnswer(f"the winner {winner!r} is not in the query: give {left!r} or {right!r}")
        return side


def _is_tie(tie: object) -> bool:
    if not isinstance(tie, bool | np.bool_):
        raise InvalidAnswer(f"tie is {tie!r}: give True or False")
    return bool(tie)
