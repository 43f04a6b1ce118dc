"""One person's session as it stands: what its stored rows say, without a database.

Rows in, rows out, and nothing but the time of asking from elsewhere. `sessions` stores what is found here.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Container, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property

import numba
import numpy as np
import scipy

from pairseek._types import JSON, Event, Query, QueryInfo
from pairseek._version import __version__
from pairseek.errors import NoPairLeft
from pairseek.items import Items
from pairseek.population import Population
from pairseek.search import Search
from pairseek.store.database import now
from pairseek.store.events import EventRow, QueryRow
from pairseek.web.schedule import Planned, Shown, planned
from pairseek.web.study import StudyConfiguration

OUTCOMES = ("left", "right", "tie", "skip")


@dataclass(frozen=True, slots=True)
class Answered:
    """A query with the answer that counts; a voided one counts as skipped in what is believed."""

    query: QueryRow
    event: EventRow
    void: bool = False

    @property
    def outcome(self) -> str:
        """What was said."""
        return str(self.event.outcome)

    @property
    def winner(self) -> str | None:
        """The item that was chosen."""
        return {"left": self.query.left, "right": self.query.right}.get(self.outcome)

    @property
    def passed(self) -> bool | None:
        """Whether an attention pair was answered as it should be; None for any other pair."""
        if self.query.kind != "attention":
            return None
        return self.winner == self.query.details.get("expected")

    def learned(self) -> Event | None:
        """What the search is told of it: nothing of repeated and attention pairs, which serve to check the person."""
        if self.query.kind not in ("strategy", "random"):
            return None
        left, right = self.query.left, self.query.right
        name = self.query.details.get("search")
        query = None if name is None else Query(name, left, right)
        if self.void or self.outcome == "skip":
            return Event(left, right, "skip", None, query)
        if self.outcome == "tie":
            return Event(left, right, "tie", None, query)
        return Event(left, right, "answer", self.winner, query)


def effective(
    queries: Iterable[QueryRow], events: Sequence[EventRow], voided: Iterable[str] = ()
) -> tuple[Answered, ...]:
    """The answers that were not taken back, in order."""
    asked, void = {query.name: query for query in queries}, set(voided)
    done: list[Answered] = []
    for event in events:
        if event.kind == "answer":
            done.append(Answered(asked[event.query], event, event.query in void))
        else:
            done.pop()
    return tuple(done)


def voided(marks: Sequence[JSON]) -> tuple[bool, frozenset[str]]:
    """Whether the session as a whole is void, and which of its answers are."""
    state: dict[str | None, bool] = {}
    for mark in marks:
        state[mark["query"]] = mark["action"] == "void"
    return state.get(None, False), frozenset(name for name, void in state.items() if void and name is not None)


@dataclass(frozen=True, eq=False)
class Standing:
    """Where a session stands after its answers.

    Attributes
    ----------
    configuration, seed
        What decides, together with the answers.
    done
        The answers that count.
    search
        After these answers.
    """

    configuration: StudyConfiguration
    seed: int
    done: tuple[Answered, ...]
    search: Search

    @classmethod
    def begun(
        cls, configuration: StudyConfiguration, items: Items, seed: int, population: Population | None = None
    ) -> Standing:
        """Before the first answer."""
        return cls(configuration, seed, (), configuration.search(items, seed, population))

    def after(self, done: tuple[Answered, ...]) -> Standing:
        """The same session after other answers; cheap where they begin alike."""
        return replace(self, done=done, search=self.search.continued(learned(done)))

    def answering(self, query: QueryRow, event: EventRow) -> Standing:
        """After one answer more."""
        return self.after((*self.done, Answered(query, event)))

    def told(self, event: EventRow) -> Standing:
        """The same with the answer as it was stored in place of the one that was foreseen."""
        return replace(self, done=(*self.done[:-1], replace(self.done[-1], event=event)))

    @property
    def items(self) -> Items:
        """What it is about."""
        assert isinstance(self.search.items, Items)
        return self.search.items

    @property
    def answered(self) -> int:
        """Answers and ties to pairs of any kind; skips do not count."""
        return sum(one.outcome != "skip" for one in self.done)

    @cached_property
    def following(self) -> tuple[Planned | Query | None, str | None]:
        """The pair to ask now, or None and the reason why it has ended."""
        most = self.configuration.answers
        if most is not None and self.answered >= most:
            return None, f"{most} answers were given"
        try:
            reason = self.search.finished
            if reason is not None:
                return None, reason
            shown = [Shown(a.query.name, a.query.kind, a.query.left, a.query.right, a.outcome) for a in self.done]  # type: ignore[arg-type]
            other = planned(self.configuration, self.items, self.seed, shown)
            return (self.search.ask() if other is None else other), None
        except NoPairLeft as error:
            return None, f"no pair is left to ask: {error.rule}"

    @cached_property
    def path(self) -> str:
        """Which answers led here: a query that was asked after the same ones is asked again, under any name."""
        said = [[one.query.left, one.query.right, one.outcome] for one in self.done]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]

    def query(self, session_id: str, asked: Iterable[QueryRow], answered: Container[str]) -> QueryRow | None:
        """The row of the pair to ask now, a function of what was asked and answered before; None at the end.

        Parameters
        ----------
        session_id
            Whose.
        asked
            All queries of the session.
        answered
            Names of those that were answered, even if the answer was taken back.
        """
        position = len(self.done)
        here = [query for query in asked if query.position == position]
        name = f"p{position + 1}" if not here else f"p{position + 1}-{len(here) + 1}"
        same = [query for query in here if query.details.get("after") == self.path]
        for query in same:
            if query.name not in answered:
                return query
        if same:
            return replace(same[-1], name=name, asked_at=now())
        pair, _ = self.following
        if pair is None:
            return None
        kind = pair.kind if isinstance(pair, Planned) else "strategy"
        details = {"after": self.path, **self.believed(), **self._details(pair)}
        if self.configuration.stop:
            # To forecast it again would take the belief, which a worker that has just started does not have.
            details["left"] = self.left
        return QueryRow(session_id, name, position, kind, str(pair.left), str(pair.right), now(), details)

    def believed(self) -> JSON:
        """Estimate and radius at this point, and how the person answers where that is inferred."""
        estimate = self.search.estimate()
        found: JSON = {"mean": estimate.point.tolist(), "radius": estimate.credible_radius()}
        how = estimate.reliability
        return found if how is None else {**found, "reliability": asdict(how)}

    def _details(self, pair: Planned | Query) -> JSON:
        if isinstance(pair, Query):
            assert pair.info is not None
            return {"search": pair.id, **_told(pair.info)}
        facts = {"repeats": pair.repeats, "expected": pair.expected}
        info = self.search.expect(pair.left, pair.right)
        return {name: value for name, value in facts.items() if value is not None} | _told(info)

    @property
    def left(self) -> int | None:
        """A fair forecast of the answers still to come; None where there is none."""
        most = self.configuration.answers
        counted = None if most is None else max(0, most - self.answered)
        if not self.configuration.stop:
            return counted
        if self.following[0] is None:
            return 0
        forecast = self.search.forecast()
        known = [number for number in (counted, forecast) if number is not None]
        return min(known, default=None)

    @cached_property
    def digest(self) -> str:
        """Which events the search has seen, and with which program: what a kept belief must agree with."""
        return digest_of(self.configuration, self.items, self.seed, self.search.history)

    @property
    def place(self) -> str:
        """Where the session stands, and with which program: what a kept next query must agree with."""
        return hashlib.sha256(f"{self.digest}:{self.path}".encode()).hexdigest()


def learned(done: Iterable[Answered]) -> tuple[Event, ...]:
    """The events of the search."""
    return tuple(event for one in done if (event := one.learned()) is not None)


def digest_of(configuration: StudyConfiguration, items: Items, seed: int, events: Sequence[Event]) -> str:
    """SHA-256 of all that a belief depends on."""
    told = [[event.left, event.right, event.outcome, event.winner] for event in events]
    program = [__version__, np.__version__, scipy.__version__, numba.__version__, platform.machine()]
    text = json.dumps([program, configuration.model_dump(mode="json"), items.hash, seed, told])
    return hashlib.sha256(text.encode()).hexdigest()


def _told(info: QueryInfo) -> JSON:
    return {
        "strategy": info.strategy,
        "candidates": info.candidates,
        "considered": info.considered,
        "utility": info.utility,
        "information": info.information,
        "probability_left": info.probability_left,
        "seconds": info.seconds,
    }
