"""`Search`, the interactive search for one user point, and the only class with mutable state.

The belief and the next pair are functions of the configuration and the events so far. The seed determines the side on
which an item is shown, and the draws of random strategies and candidates. Each such draw is keyed by the seed, the
number of events and a purpose, never taken from one advancing stream, so that undo, load and replay agree by
construction. A lock makes each call atomic: threads that share a search are serialised.
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, cast

import numpy as np

from pairseek import persistence, serialization
from pairseek._version import MODEL_VERSION
from pairseek.candidates import Rest
from pairseek.candidates.context import SelectionContext, Source
from pairseek.catalogues import GoneItem, Selected, askable_rows, part_of, permitted_rows
from pairseek.compatibility import (
    check_appeal,
    check_askable,
    check_curvature,
    check_inference,
    check_parts,
    check_residual,
    check_together,
    rules_of,
)
from pairseek.core import files, notebook
from pairseek.core.text import plural
from pairseek.core.types import (
    JSON,
    Belief,
    Event,
    Evidence,
    FloatArray,
    IntArray,
    ItemId,
    Outcome,
    Query,
    QueryInfo,
    Side,
)
from pairseek.core.validation import seed_of, whole
from pairseek.defaults import default_candidates, resolve, spread_of, warn_of_response
from pairseek.errors import (
    AnswerConflict,
    InvalidAnswer,
    InvalidFile,
    InvalidParameter,
    NoPairLeft,
    SearchFinished,
    UnknownQuery,
    Unsupported,
)
from pairseek.estimates import (
    Estimate,
    Recommendation,
    Shelf,
    best_probabilities,
    estimate_panel,
    recommendations,
    recommended_rows,
    reliability_estimate,
    typical_unit,
)
from pairseek.forecasts import expected_path
from pairseek.gains import expected_gain, expected_gains
from pairseek.goals import Goal, goal_of
from pairseek.indexes import CatalogueIndex
from pairseek.model.curvature import CurvedUtility, extended_items, extended_points, extended_prior
from pairseek.model.items import Items, Space
from pairseek.model.priors import AnyPrior, Prior, check_prior
from pairseek.model.responses import Response
from pairseek.numerics.compilation import first_use
from pairseek.persistence import SearchLog, check_dimension
from pairseek.population import Population
from pairseek.posteriors import Posterior
from pairseek.posteriors.residuals import infer_with_residuals
from pairseek.posteriors.span import infer_within_span
from pairseek.selection import ChosenPair, Draws, PairMemo, PairRules, choice_shares, choose_pair, pair_info
from pairseek.stopping import AfterAnswers, StopRule
from pairseek.strategies.base import Procedure, RandomUtility, Utility
from pairseek.strategies.features import typical_response
from pairseek.tokens import Key, verify

_CHOICE, _SIDES, _PROCEDURE, _SCORES = range(4)

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
        ``sample`` and ``log_density``.
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
        if not isinstance(items, Items | Space):
            items = Items(items)
        own: dict[str, Any] = {"response": response, "prior": prior, "posterior": posterior, "strategy": strategy}
        own |= {"candidates": candidates, "rest": rest, "stop": stop}
        # The parts tell their two kinds apart themselves.
        prior, strategy = cast("Prior | None", prior), cast("Utility | Procedure | None", strategy)
        if population is not None:
            items, response, prior = _from_population(population, items, response, prior)
        self.items = items
        # The parts as they were given, before and after a population: defaults follow from the items.
        self._own = {name: part for name, part in own.items() if part is not None}
        self._given = {**self._own, **({} if population is None else {"response": response, "prior": prior})}
        self._askable_rows = askable_rows(items, askable)
        self._askable = int(askable) if isinstance(askable, int | np.integer) else self._askable_ids()
        check_parts(
            response=response, prior=prior, posterior=posterior, strategy=strategy, candidates=candidates, rest=rest
        )
        if prior is not None:
            check_prior(prior, items.d)
        self.goal = goal_of(goal, items)
        self.response, self.prior, self.posterior, self.strategy = resolve(
            items, response, prior, posterior, strategy, self.goal
        )
        # Tested once, because the test of a protocol takes as long as a small computation.
        self._utility = self.strategy if isinstance(self.strategy, Utility) else None
        self._procedure = self.strategy if isinstance(self.strategy, Procedure) else None
        self.candidates = (
            default_candidates(self.askable, self.strategy, self.response, self.prior)
            if candidates is None
            else candidates
        )
        self.rest = Rest() if rest is None else rest
        self.stop = rules_of(self.goal.stop() if stop is None else stop)
        self.seed = seed_of(rng)
        check_together(items, self.strategy, {"candidates": candidates, "rest": rest}, self.stop)
        if self._askable_rows is not None:
            check_askable(self.strategy, candidates)
        check_appeal(items, self.response)
        check_residual(items, self.response, self.posterior)
        check_curvature(items, self.response, self.prior)
        check_inference(self.response, self.posterior, self.prior, items.d)
        if response is None:
            warn_of_response(items, self.prior, self.posterior)
        self._lock = threading.RLock()
        self._events: list[Event] = []
        self._pending: list[Query] = []
        self._gone: dict[ItemId, GoneItem] = {}
        self._belief: Belief | None = None
        self._next: tuple[int, ChosenPair | None] | None = None
        self._memo: PairMemo | None = None

    def __repr__(self) -> str:
        items = self.items
        what = f"{items.n} items" if isinstance(items, Items) else "a space"
        done = f"{plural(self.answers, 'answer')}, seed {self.seed}"
        return f"<Search of {what} in {plural(items.d, 'dimension')} by {self.strategy.name}: {done}>"

    @_atomic
    def _repr_html_(self) -> str:
        items, estimate = self.items, self.estimate()
        title = f"Search after {plural(self.answers, 'answer')}"
        if isinstance(items, Space):
            return notebook.panel(title, notebook.Html(estimate_panel(estimate)), note=repr(self))
        best = self.recommend(5)
        names = {items.index(one.id): one.label for one in best}
        drawing, axes = notebook.items_map(items, names, estimate.point, estimate.covariance)
        said: list[tuple[str, object]] = [("strategy", self.strategy.name), ("goal", self.goal.name)]
        if any(rule.reached(_Progress(self)) for rule in self.stop):
            said.append(("finished", self.finished))
        for query in self.pending:
            texts = (items.labels[items.index(side)] for side in (query.left, query.right))
            said.append(("asks", " or ".join(texts) + "?"))
        note = " ".join(filter(None, (estimate.note, axes)))
        return notebook.panel(title, drawing, recommended_rows(items, best), notebook.facts(said), note=note)

    @_atomic
    def __getstate__(self) -> dict[str, Any]:
        # A copy is independent of the original: it has its own lists and its own lock.
        own = {"_events": list(self._events), "_pending": list(self._pending), "_belief": None, "_memo": None}
        return {name: own.get(name, value) for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.RLock())

    # Asking

    @_atomic
    def ask(self) -> Query:
        """Return the next query. The call is idempotent until the query is answered, skipped or undone."""
        reason = self.finished
        if reason is not None:
            raise SearchFinished(reason)
        if not self._pending:
            query = self._cached_query()
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
        if isinstance(self.items, Space) or self._utility is None:
            raise Unsupported("ask_many needs items and a strategy that scores pairs: use ask()")
        self.ask()
        allowed = [rule.count - self.answers for rule in self.stop if isinstance(rule, AfterAnswers)]
        count = min([count, *allowed])
        while len(self._pending) < count:
            try:
                index = len(self._pending)
                query = self._shown(self._chosen(index, self._pending), index)
            except NoPairLeft:
                break
            assert query is not None  # Only procedures return None.
            self._pending.append(query)
        return self._pending[:count]

    @property
    @_atomic
    def finished(self) -> str | None:
        """The reason for which the search has stopped, or None."""
        progress = _Progress(self)
        for rule in self.stop:
            reason = rule.reached(progress)
            if reason is not None:
                return reason
        if self._procedure is not None and not self._pending and self._cached_query() is None:
            return f"{self.strategy.name} has no more pairs to ask"
        return None

    @_atomic
    def forecast(self) -> int | None:
        """Return the expected number of answers until the first stop rule is met, among rules with a forecast.

        None without such a rule: `BestItemFound` has no forecast, `RadiusBelow` and `InformationBelow` have none beyond
        a thousand answers.
        """
        progress = _Progress(self)
        counts = [rule.remaining(progress) for rule in self.stop]
        return min((count for count in counts if count is not None), default=None)

    @_atomic
    def expect(self, left: object, right: object) -> QueryInfo:
        """Return the predicted answer to any pair of items, and its expected information."""
        if isinstance(self.items, Space):
            raise Unsupported("expect needs items: a continuous Space has none")
        rows = self.items.index(left), self.items.index(right)
        if rows[0] == rows[1]:
            raise InvalidAnswer(f"the pair consists of {left!r} twice: give two different items")
        return pair_info(self._context(()), *rows)

    def choice_shares(self, ids: Iterable[object]) -> list[float]:
        """Return, for each of these items, the probability that it is chosen over another item drawn at random."""
        if isinstance(self.items, Space):
            raise Unsupported("choice_shares needs items: a continuous Space has none")
        return [float(one) for one in choice_shares(self._context(()), [self.items.index(one) for one in ids])]

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
        a, b = self._side(left), self._side(right)
        if a == b:
            raise InvalidAnswer(f"the observation compares {a!r} with itself: give two different items")
        event = Event(a, b, "tie" if tie else "answer", None if tie else self._winner(a, b, winner))
        self._events.append(event)
        self._belief = None

    @_atomic
    def undo(self) -> Event:
        """Remove the last event and return it. Its query, if any, is pending again."""
        if not self._events:
            raise UnknownQuery("there is no event to undo: no answer was given yet")
        event = self._events.pop()
        count = len(self._events)
        self._belief = self._next = None
        self._pending = [query for query in self._pending if serialization.order(query)[0] <= count]
        if event.query is not None and not {event.left, event.right} & self._gone.keys():
            self._pending = sorted([*self._pending, event.query], key=serialization.order)
        return event

    @_atomic
    def continued(
        self, events: Sequence[Event], *, rng: int | np.random.Generator | None = None, memo: PairMemo | None = None
    ) -> Self:
        """Return a copy of this search with these events instead of its own.

        Parameters
        ----------
        events
            The events of the copy.
        rng
            Seed of the copy, or a generator to draw one from. None: that of this search.
        memo
            Recalls the pairs that other searches with the same configuration have chosen after the same events.
        """
        other = copy.copy(self)
        if rng is not None:
            other.seed = seed_of(rng)
        other._events, other._pending, other._next, other._memo = list(events), [], None, memo
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
        if not isinstance(self.items, Items) or not isinstance(items, Items):
            raise Unsupported("moved_to needs items: a continuous Space has none")
        check_dimension(self.items, items)
        if askable is None and self._askable is not None:
            kept = self._askable
            askable = kept if isinstance(kept, int) else [name for name in kept if items.find(name) >= 0]
        parts = self._given if population is None else self._own
        other = type(self)(items, population=population, askable=askable, rng=self.seed, goal=self.goal.name, **parts)
        other._adopt(self._log().carried(self.items, items))
        return other

    def _log(self) -> SearchLog:
        return SearchLog(self.seed, tuple(self._events), tuple(self._pending), tuple(self._gone.values()))

    def _adopt(self, log: SearchLog) -> None:
        """Take over events; reject those about items that neither the catalogue nor the items that are gone contain."""
        self._events, self._pending = list(log.events), list(log.pending)
        self._gone = {one.id: one for one in log.gone}
        shown = [(e.left, e.right) for e in self._events] + [(q.left, q.right) for q in self._pending]
        for side in (side for pair in shown for side in pair):
            self._side(side)
        serialization.check_order(self._events, self._pending)

    # State

    @property
    def askable(self) -> Items | Space:
        """The items to ask about: those given as `askable`, or all."""
        if self._askable_rows is None:
            return self.items
        assert isinstance(self.items, Items)
        return part_of(self.items, self._askable_rows.tobytes())

    @property
    @_atomic
    def history(self) -> tuple[Event, ...]:
        """All events, in order."""
        return tuple(self._events)

    @property
    @_atomic
    def pending(self) -> tuple[Query, ...]:
        """Queries without an answer."""
        return tuple(self._pending)

    @property
    @_atomic
    def answers(self) -> int:
        """Number of answers and ties given to queries; skips and observations do not count."""
        return sum(event.query is not None and event.outcome != "skip" for event in self._events)

    @property
    @_atomic
    def belief(self) -> Belief:
        """The posterior after all events, in the dimensions of `modelled_items`."""
        if self._belief is None:
            with first_use():
                self._belief = self._inferred()
        return self._belief

    @property
    def modelled_items(self) -> Items:
        """The items as the model has them: with one more coordinate where the curvature is unknown."""
        if isinstance(self.items, Space):
            raise Unsupported("a continuous Space has no items")
        return self._modelled(self.items)

    @_atomic
    def estimate(self) -> Estimate:
        """Return the estimate of the user point: the posterior mean, or that of the procedure."""
        belief, d = self.belief, self.items.d
        reliability = reliability_estimate(belief, self.response, spread_of(self.prior, d))
        point, note = belief.mean[:d], None
        if self._procedure is not None and isinstance(self.items, Items):
            point = np.asarray(self._procedure.estimate(self.items, self.history))
            status = getattr(self._procedure, "status", None)
            note = None if status is None else status(self.items, self.history)
        utility = CurvedUtility.of(self.prior, self.response, d)
        return Estimate(point, belief.covariance[:d, :d], belief, note, reliability, utility)

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
        if isinstance(self.items, Space):
            raise Unsupported("a continuous Space has no items to recommend: read estimate().point")
        if isinstance(among, CatalogueIndex):
            if diversity:
                raise Unsupported("diversity needs the coordinates of the items: give Items as among, or no diversity")
            return self._recommended_from(among, count, only, exclude)
        if among is not None and not isinstance(among, Items):
            raise InvalidParameter(
                f"among is of the type {type(among).__name__}: give Items, such as Items.from_vectors(...)",
                field="among",
            )
        items = self.items if among is None else among
        if items.d != self.items.d:
            raise InvalidParameter(
                f"among has {items.d} coordinates and the search {self.items.d}: place its vectors by the same map, "
                f"Items.from_vectors(vectors, vector_map=items.vector_map)",
                field="among",
            )
        typical = typical_response(self.response, self.belief)
        unit = typical_unit(self.items, typical.noise_kind.name)
        rows = permitted_rows(items, only, exclude)
        shelf = Shelf(items, self._modelled(items), self._belief_about(items), typical, unit, rows)
        by_utility = self.goal.name == "list"
        return recommendations(shelf, self.estimate(), count, by_utility=by_utility, diversity=diversity)

    def _recommended_from(
        self, among: CatalogueIndex, count: int, only: Iterable[object] | None, exclude: Iterable[object] | None
    ) -> list[Recommendation]:
        """Return the items of highest expected utility in a vector database."""
        assert isinstance(self.items, Items)
        belief, found = self.belief, self.belief.residuals
        typical = typical_response(self.response, belief)
        shown: dict[ItemId, float] = {}
        if found is not None:
            unit = typical_unit(self.items, typical.noise_kind.name)
            pairs = zip(found.rows.tolist(), (unit * found.mean).tolist(), strict=True)
            shown = {self.items.ids[row]: mean for row, mean in pairs if row >= 0}
        names: list[Any] = [None if some is None else list(some) for some in (only, exclude)]
        return among.recommend(belief, typical.reference, count, shown=shown, only=names[0], exclude=names[1])

    # Persistence

    @property
    def configuration(self) -> JSON:
        """All parts with their names and settings, and the version of the model, as plain data."""
        parts = ("response", "prior", "posterior", "strategy", "rest")
        return {
            "model": MODEL_VERSION,
            "goal": self.goal.name,
            **{name: serialization.encode(getattr(self, name)) for name in parts},
            "candidates": None if self.candidates is None else serialization.encode(self.candidates),
            "stop": [serialization.encode(rule) for rule in self.stop],
        }

    def save(self, path: str | Path, *, light: bool = False) -> None:
        """Write configuration, seed, items and events to a JSON file, atomically.

        A light file names the items by their hash instead: it is about 2 kB, and `load` needs the items.
        """
        if light:
            files.write(path, self.to_dict(), files.LIGHT_SEARCH)
            return
        with self._lock:
            log = self._log()
        files.write(path, persistence.file_record(log, self.items, self.configuration, self._askable))

    @_atomic
    def to_dict(self) -> JSON:
        """Return the search as plain data of about 2 kB, which names the items by their hash: see `from_dict`.

        A long part, such as the prior of many dimensions, is named by its hash, and must be given again.
        """
        return persistence.light_record(self._log(), self.items, self._light_configuration())

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
        arguments, log, name = persistence.read_light_record(record, parts, askable, population=population is not None)
        search = cls(items, population=population, **arguments)
        before = persistence.named_catalogue(name, [search._catalogue, items, *catalogues])
        search._adopt(log.carried(before, search._catalogue))
        return search

    @_atomic
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
        return persistence.signed_token(self._log(), self.items, self._light_configuration(), key, lifetime)

    @classmethod
    def from_token(
        cls, token: str, *, items: Items, key: Key, catalogues: Iterable[Items] = (), **configuration: Any
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
        content = verify(token, key)
        search = cls(items, rng=content.seed, **configuration)
        known = [search._catalogue, items, *catalogues]
        log, before = persistence.read_token(content, search._light_configuration(), search._catalogue, known)
        search._adopt(log.carried(before, search._catalogue))
        return search

    @property
    def _catalogue(self) -> Items:
        return persistence.catalogue_of(self.items)

    def _askable_ids(self) -> list[ItemId] | None:
        return None if self._askable_rows is None else list(self.askable.ids)  # type: ignore[union-attr]

    def _light_configuration(self) -> JSON:
        return persistence.light_configuration(self._given, self.stop, self.goal.name, self._askable)

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        response: Response | None = None,
        prior: AnyPrior | None = None,
        posterior: Posterior | None = None,
        strategy: Utility | RandomUtility | Procedure | None = None,
        candidates: Source | None = None,
        stop: StopRule | Sequence[StopRule] | int | None = None,
        items: Items | None = None,
        **light: Any,
    ) -> Self:
        """Read a saved search, which reproduces the belief and the queries of the original.

        Parameters
        ----------
        path
            File written by `save`.
        response
            Replacement of the part in the file. A part of your own must be given: the file stores only its name.
        prior
            As `response`.
        posterior
            As `response`.
        strategy
            As `response`.
        candidates
            As `response`.
        stop
            As `response`.
        items
            The items of a light file, which only names them.
        light
            Further arguments of `from_dict`, for a light file: catalogues, population, askable, rest.
        """
        if items is not None:
            given: dict[str, Any] = {"response": response, "prior": prior, "posterior": posterior}
            given |= {"strategy": strategy, "candidates": candidates, "stop": stop}
            given = {name: part for name, part in given.items() if part is not None}
            return cls.from_dict(files.read(path, files.LIGHT_SEARCH), items=items, **given, **light)
        record = files.read(path)
        own = {"response": response, "prior": prior, "posterior": posterior, "strategy": strategy}
        try:
            return cls._from_record(record, {**own, "candidates": candidates, "stop": stop})
        except (TypeError, ValueError, LookupError, AttributeError, OverflowError, RecursionError) as error:
            words = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
            raise InvalidFile(f"{path} is not a valid saved search: {words}; the file was not changed") from error

    @classmethod
    def _from_record(cls, record: JSON, own: dict[str, Any]) -> Self:
        """Build a search from a record of `save`; `own` are parts that replace those of the record."""
        arguments, log = persistence.read_file_record(record, own)
        search = cls(**arguments)
        search._adopt(log)
        return search

    # Internals

    def _rng(self, purpose: int, *, events: int = 0, index: int = 0) -> np.random.Generator:
        return np.random.default_rng(self._seeds(purpose, events=events, index=index))

    def _seeds(self, purpose: int, *, events: int = 0, index: int = 0) -> np.random.SeedSequence:
        return np.random.SeedSequence([self.seed, events, purpose, index])

    def _inferred(self) -> Belief:
        """Return the posterior after all events: of the point, and of residual utilities where the response has any."""
        evidence, pairs = self._evidence()
        prior = extended_prior(self.prior, self.response, self.items.d)

        def infer(evidence: Evidence, prior: Prior) -> Belief:
            if self.response.residual_deviation == 0.0 or pairs is None:
                return self.posterior.infer(evidence, prior, self.response)
            return infer_with_residuals(self.posterior, evidence, pairs, prior, self.response)

        belief = infer_within_span(infer, evidence, prior)
        if not self._gone or belief.residuals is None:
            return belief
        rows = belief.residuals.rows
        return belief.at(np.where(rows < self._catalogue.n, rows, -1))

    def _row(self, side: Side | None) -> int:
        """Return the row of an item; those that are gone follow the others."""
        assert side is not None  # Only ties and skips have no loser.
        found = self._catalogue.find(side)
        return found if found >= 0 else self._catalogue.n + list(self._gone).index(side)  # type: ignore[arg-type]

    def _places(self, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the (m, d) coordinates and (m,) appeals of items in the model, also of those that are gone."""
        items, gone = self._catalogue, list(self._gone.values())
        if not gone:
            modelled = self._modelled(items)
            return modelled.coordinates[rows], modelled.appeal[rows]
        here = np.minimum(rows, items.n - 1)
        points, appeal = items.coordinates[here], items.appeal[here]
        for place in np.flatnonzero(rows >= items.n).tolist():
            one = gone[int(rows[place]) - items.n]
            points[place], appeal[place] = one.coordinates, one.appeal
        return extended_points(points, appeal, self.prior, self.response)

    def _evidence(self) -> tuple[Evidence, IntArray | None]:
        """Return the logit planes of all answers and ties, oriented towards the winner, and the rows of their items."""
        answered = [event for event in self._events if event.outcome != "skip"]
        sides = [(e.left, e.right) if e.winner is None else (e.winner, e.loser) for e in answered]
        pairs = None
        if isinstance(self.items, Items):
            row = self._row if self._gone else self._catalogue.find
            pairs = np.array([row(side) for pair in sides for side in pair], dtype=np.int64).reshape(-1, 2)  # type: ignore[arg-type]
            points, appeals = self._places(pairs.ravel())
            winners, losers = points[::2], points[1::2]
            appeal = appeals[::2] - appeals[1::2]
        else:
            winners, losers = (
                np.array([pair[i] for pair in sides], dtype=np.float64).reshape(-1, self.items.d) for i in (0, 1)
            )
            appeal = np.zeros(len(sides))
        slopes, offsets = self.response.planes(winners, losers, appeal)
        decided = np.array([float(event.outcome == "answer") for event in answered])
        return Evidence(np.ascontiguousarray(slopes), offsets, decided), pairs

    def _cached_query(self) -> Query | None:
        """Return the cached query that `ask` would return if none were pending; None when a procedure has finished."""
        count = len(self._events)
        if self._next is None or self._next[0] != count:
            self._next = (count, self._chosen(0, ()))
        return self._shown(self._next[1], 0)

    def _modelled(self, items: Items) -> Items:
        return extended_items(items, self.prior, self.response)

    def _belief_about(self, items: Items | Space) -> Belief:
        """Return the belief about the point and about the items of another catalogue, or of a part of this one."""
        belief = self.belief
        if belief.residuals is None or items is self.items or not isinstance(items, Items):
            return belief
        assert isinstance(self.items, Items)
        names = [self.items.ids[row] for row in belief.residuals.rows.tolist()]
        return belief.at(np.array([items.find(name) for name in names], dtype=np.int64))

    def _context(self, pending: Sequence[Query], items: Items | Space | None = None) -> SelectionContext:
        """Return the inputs of a pair selection under the present belief, among all items or these."""
        items = self.items if items is None else items
        belief = self._belief_about(items)
        modelled = items if isinstance(items, Space) else self._modelled(items)
        context = SelectionContext.of(modelled, belief, typical_response(self.response, belief), self._utility)
        return replace(context, history=self.history, pending=pending)

    def _chosen(self, index: int, pending: Sequence[Query]) -> ChosenPair | None:
        """Choose pair `index` after the present events, given pending ones; None when a procedure has finished."""
        memo = None if pending else self._memo
        known = None if memo is None else memo.recall(self._events)
        if known is not None:
            return known
        began = time.perf_counter()
        constant = None if self._procedure is None else self._rng(_PROCEDURE)
        place = {"events": len(self._events), "index": index}
        draws = Draws(self._rng(_CHOICE, **place), self._seeds(_SCORES, **place), constant)
        with first_use():
            context, rules = self._context(pending, self.askable), PairRules(self.candidates, self.rest)
            pair = choose_pair(self.askable, context, rules, draws, self._procedure)
        if pair is None:
            return None
        pair = replace(pair, info=replace(pair.info, seconds=time.perf_counter() - began))
        if memo is not None and not pair.drawn:
            memo.keep(self._events, pair)
        return pair

    def _shown(self, pair: ChosenPair | None, index: int) -> Query | None:
        """Return query `index` after the present events, with the sides of this search."""
        events = len(self._events)
        sides = self._rng(_SIDES, events=events, index=index)
        return None if pair is None else pair.query(persistence.query_name(events, index), sides)

    def _record(self, query: Query | str, outcome: Outcome, winner: object) -> None:
        """Record the outcome of a pending query; verify that a repeated outcome agrees with the recorded one."""
        name = query.id if isinstance(query, Query) else query if isinstance(query, str) else None
        known = next((q for q in self._pending if q.id == name), None)
        answered = next((e for e in self._events if e.query is not None and e.query.id == name), None)
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
        self._events.append(Event(known.left, known.right, outcome, decided, known))
        self._belief = self._next = None

    def _winner(self, left: Side, right: Side, winner: object) -> Side:
        try:
            side = self._side(winner)
        except LookupError:
            side = None
        if side is None or side not in (left, right):
            raise InvalidAnswer(f"the winner {winner!r} is not in the query: give {left!r} or {right!r}")
        return side

    def _side(self, value: object) -> Side:
        if isinstance(self.items, Space):
            return self.items.point(value)
        if isinstance(value, int | str) and value in self._gone:
            return value
        return self.items.ids[self.items.index(value)]


class _Progress:
    """Quantities of a search that stop rules read."""

    def __init__(self, search: Search) -> None:
        self._search = search

    @property
    def answers(self) -> int:
        return self._search.answers

    def radius(self, level: float) -> float:
        return self._search.estimate().credible_radius(level)

    def information(self) -> float:
        # A pending query was chosen under an earlier belief, so that the next one is computed instead.
        try:
            query = self._search._cached_query()
        except NoPairLeft:
            return 0.0
        if query is None or query.info is None:
            return 0.0
        search = self._search
        if search.belief.residuals is None or not search.items.d:
            return query.info.information
        # Of many items, each new pair tells of two more residual utilities, and there would be no end of it.
        rows = [np.array([self._items.index(side)]) for side in (query.left, query.right)]
        return float(search._context(()).features(rows[0], rows[1]).point_information()[0])

    def best_probability(self) -> float:
        belief = self._search.belief
        return float(best_probabilities(self._items, belief, typical_response(self._search.response, belief)).max())

    def gain(self, size: int) -> float:
        return expected_gain(self._resting_context(), min(size, self._items.n - 1))

    def gains(self, size: int) -> Iterator[float]:
        repeats = self._search.rest.pair is not None
        return expected_gains(self._resting_context(), min(size, self._items.n - 1), repeats=repeats)

    def _resting_context(self) -> SelectionContext:
        search, items = self._search, self._items
        shown = [(items.find(event.left), items.find(event.right)) for event in search.history]
        return replace(search._context(()), resting=next(iter(search.rest.after(shown, items.n))))

    def path(self, level: float = 0.95) -> Iterator[tuple[float, float]]:
        search, information, radius = self._search, self.information(), self.radius(level)
        typical = typical_response(search.response, search.belief)
        items = search.items if isinstance(search.items, Space) else search.modelled_items
        return expected_path(information, items, search.belief, typical, radius=radius, level=level)

    @property
    def _items(self) -> Items:
        if isinstance(self._search.items, Space):
            raise Unsupported("a continuous Space has no best item: use another stop rule")
        return self._search.modelled_items


def _from_population(
    population: Population, items: Items | Space, response: Response | None, prior: Prior | None
) -> tuple[Items, Response, Prior]:
    """Return items, response and prior from the population, unless given explicitly."""
    if not isinstance(population, Population):
        raise InvalidParameter(
            f"population is {population!r}: give a Population, as from Population.fit(...) or Population.load(path)"
        )
    matched = population.matched(items)
    return matched, population.answering(response), population.prior if prior is None else prior


def _is_tie(tie: object) -> bool:
    if not isinstance(tie, bool | np.bool_):
        raise InvalidAnswer(f"tie is {tie!r}: give True or False")
    return bool(tie)
