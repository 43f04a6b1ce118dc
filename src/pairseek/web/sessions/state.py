"""State of a session, rebuilt from its answers without a database."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from pairseek.core.lazy import cached_property
from pairseek.core.types import JSON, Event, FloatArray, Query, QueryInfo
from pairseek.errors import NoPairLeft
from pairseek.model.items import Items
from pairseek.search.state import SearchState
from pairseek.store.events import AnsweredPair, AskedPair, EventRow, remaining_answers
from pairseek.web.sessions.parts import SessionParts
from pairseek.web.sessions.playing import has_failed
from pairseek.web.sessions.schedule import pair_at, scheduled_pair
from pairseek.web.studies.configuration import StudyConfiguration

RECOMMENDATION_COUNT = 6
"""Number of recommended items that are stored at the end of a session and shown on its result page."""


@dataclass(frozen=True, slots=True)
class EffectiveAnswer:
    """Query with its effective answer; for the posterior, a voided answer is a skip."""

    query: AskedPair
    event: EventRow
    void: bool = False

    @property
    def outcome(self) -> str:
        """Answer: left, right, tie or skip."""
        return str(self.event.outcome)

    @property
    def winner(self) -> str | None:
        """Chosen item."""
        return {"left": self.query.left, "right": self.query.right}.get(self.outcome)

    @property
    def has_failed(self) -> bool:
        """Whether a sound or video of the pair could not be loaded."""
        return has_failed(self.event.played)

    @property
    def is_preference(self) -> bool:
        """Whether the answer says what a person likes: not void, not a skip, and not to an attention pair."""
        return not self.void and self.outcome != "skip" and self.query.kind != "attention"

    @property
    def passed(self) -> bool | None:
        """Whether the answer to an attention pair is correct; None for other pairs, and if media did not load."""
        if self.query.kind != "attention" or self.has_failed:
            return None
        return self.winner == self.query.details.get("expected")

    def answered_pair(self) -> AnsweredPair:
        """Return the pair with its answer, reduced to the fields on which later pairs depend."""
        return answered_pair(self.query, self.outcome, void=self.void)


def answered_pair(pair: AskedPair, outcome: str, *, void: bool = False) -> AnsweredPair:
    """Return a pair with its answer, reduced to the fields on which later pairs depend."""
    return AnsweredPair(pair.name, pair.kind, pair.left, pair.right, outcome, pair.details.get("anchor"), void)


def effective_answers(
    queries: Iterable[AskedPair], events: Sequence[EventRow], voided: Iterable[str] = ()
) -> tuple[EffectiveAnswer, ...]:
    """Return the answers that were not undone, in order."""
    asked, void = {query.name: query for query in queries}, set(voided)
    kept = remaining_answers([event.kind for event in events])
    return tuple(EffectiveAnswer(asked[events[i].query], events[i], events[i].query in void) for i in kept)


def attention_checks(queries: Iterable[AskedPair], events: Iterable[EventRow]) -> tuple[EffectiveAnswer, ...]:
    """Return the first answer to each attention pair, even if it was undone: an undo must not repair a failed check."""
    asked = {query.name: query for query in queries if query.kind == "attention"}
    first: dict[int, EffectiveAnswer] = {}
    for event in events:
        if event.kind == "answer" and event.query in asked:
            query = asked[event.query]
            first.setdefault(query.position, EffectiveAnswer(query, event))
    return tuple(answer for answer in first.values() if not answer.has_failed)


def voids_of(marks: Sequence[JSON]) -> tuple[bool, frozenset[str]]:
    """Return whether the whole session is void, and the pairs whose answers are void."""
    is_void: dict[str | None, bool] = {}
    for mark in marks:
        if mark["action"] in ("void", "restore"):
            is_void[mark["query"]] = mark["action"] == "void"
    return is_void.get(None, False), frozenset(name for name, void in is_void.items() if void and name is not None)


def count_answers(done: Iterable[AnsweredPair]) -> int:
    """Count choices and ties in pairs of any kind; skips do not count."""
    return sum(pair.outcome != "skip" for pair in done)


def answers_hash(done: Iterable[AnsweredPair]) -> str:
    """Return a hash of the answers, which identifies the queries that were asked after them."""
    record = [[*_items_of(pair), pair.outcome] for pair in done]
    return hashlib.sha256(json.dumps(record).encode()).hexdigest()[:16]


def _items_of(pair: AnsweredPair) -> list[str]:
    return [pair.left, pair.right, *([] if pair.anchor is None else [pair.anchor])]


@dataclass(frozen=True, eq=False)
class SessionState:
    """State of a session after its answers; the search is built on first access.

    Attributes
    ----------
    configuration, parts, seed
        Settings of the study, and the parts and seed of the session.
    done
        Effective answers.
    """

    configuration: StudyConfiguration
    parts: SessionParts
    seed: int
    done: tuple[AnsweredPair, ...] = ()

    @cached_property
    def search(self) -> SearchState:
        """Search after these answers."""
        return self.parts.search(self.seed, self._events)

    @cached_property
    def _events(self) -> list[Event]:
        return search_events(self.done)

    @property
    def items(self) -> Items:
        """Items of the search."""
        return self.parts.items

    @property
    def answer_count(self) -> int:
        """Number of choices and ties in pairs of any kind; skips do not count."""
        return count_answers(self.done)

    @cached_property
    def next_pair(self) -> tuple[AskedPair | None, str | None]:
        """Next pair, or None and the reason why the session has ended."""
        answer_limit = self.configuration.answers
        if answer_limit is not None and self.answer_count >= answer_limit:
            return None, f"{answer_limit} answers were given"
        try:
            reason = self.search.stopped()
            if reason is not None:
                return None, reason
            parts = self.parts
            learned = parts.population is not None and self.configuration.learns(parts.study_items.d)
            scheduled = scheduled_pair(
                self.configuration, self.items, self.seed, self.done, parts.design, parts.unseen_rows, learned=learned
            )
            return self._strategy_pair() if scheduled is None else scheduled, None
        except NoPairLeft as error:
            return None, f"no pair is left to ask: {error.rule}"

    def _strategy_pair(self) -> AskedPair | None:
        """Return the pair that the strategy chooses; None at the end of a procedure."""
        query = self.search.query()
        if query is None:
            return None
        assert query.info is not None
        pair = pair_at(len(self.done), "strategy", str(query.left), str(query.right))
        return replace(pair, details=_info_record(query.info))

    def with_details(self, pair: AskedPair) -> AskedPair:
        """Return the next pair with the details to store: the estimate so far and the predictions for the pair."""
        details = {"after": answers_hash(self.done), **self.estimate_record(), **self._details(pair)}
        if self.configuration.stops_early:
            # The forecast needs the belief, so it is stored for requests that repeat this pair.
            details["remaining"] = self.remaining
        return replace(pair, details=details)

    def estimate_record(self) -> JSON:
        """Return the estimate and radius, and the reliability if the study infers it."""
        return self.parts.cached_estimate(self._events, self._estimate_record)

    def _estimate_record(self) -> JSON:
        estimate, d = self.search.estimate(), self.parts.study_items.d
        # A population learned from few people has one more coordinate than the study.
        record: JSON = {"mean": estimate.point[:d].tolist(), "radius": estimate.credible_radius()}
        reliability = estimate.reliability
        return record if reliability is None else {**record, "reliability": asdict(reliability)}

    def final(self) -> JSON:
        """Return the result to store at the end, so that later model versions do not change it."""
        nearest = [[str(item.id), item.probability] for item in self.search.recommend(RECOMMENDATION_COUNT)]
        return {**self.estimate_record(), "covariance": self.covariance.tolist(), "nearest": nearest}

    @property
    def covariance(self) -> FloatArray:
        """Covariance of the estimate in the coordinates of the study."""
        d = self.parts.study_items.d
        return np.asarray(self.search.estimate().covariance[:d, :d])

    def _details(self, pair: AskedPair) -> JSON:
        is_ranked = all(self.parts.study_items.find(name) >= 0 for name in (pair.left, pair.right))
        if pair.kind == "strategy" or not is_ranked:
            # Items of attention pairs that are not ranked have no expected answer.
            return pair.details
        return {**pair.details, **_info_record(self.search.expect(pair.left, pair.right))}

    @property
    def remaining(self) -> int | None:
        """Forecast of the remaining answers; None if unknown."""
        answer_limit = self.configuration.answers
        fixed = None if answer_limit is None else max(0, answer_limit - self.answer_count)
        if not self.configuration.stops_early:
            return fixed
        if self.next_pair[0] is None:
            return 0
        forecast = self.search.forecast()
        return forecast if forecast is None or fixed is None else min(fixed, forecast)


def search_events(done: Iterable[AnsweredPair]) -> list[Event]:
    """Return the events for the search; repeated and attention pairs only measure quality and are left out."""
    return [_search_event(pair) for pair in done if pair.kind in ("strategy", "random")]


def _search_event(pair: AnsweredPair) -> Event:
    # A random pair is an observation without a query, because the search did not ask it.
    query = Query(pair.name, pair.left, pair.right) if pair.kind == "strategy" else None
    if pair.void or pair.outcome == "skip":
        return Event(pair.left, pair.right, "skip", None, query)
    if pair.outcome == "tie":
        return Event(pair.left, pair.right, "tie", None, query)
    return Event(pair.left, pair.right, "answer", pair.left if pair.outcome == "left" else pair.right, query)


def _info_record(info: QueryInfo) -> JSON:
    return {
        "strategy": info.strategy,
        "candidates": info.candidates,
        "considered": info.considered,
        "utility": info.utility,
        "information": info.information,
        "probability_left": info.probability_left,
        "seconds": info.seconds,
    }
