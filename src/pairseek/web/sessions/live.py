"""Session in the memory of a worker, and its state as the pages see it.

A worker caches the rows, about a hundred bytes per answer; sessions share items and parts. The search is rebuilt from
the rows on demand, which takes less time than selecting the next pair.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from pairseek.store.events import AnsweredRow, QueryRow
from pairseek.store.sessions import SessionRow
from pairseek.web.pages.contexts.shared import PairSchema, StateSchema, Status
from pairseek.web.sessions.parts import Parts
from pairseek.web.sessions.schedule import AnsweredPair, Kind
from pairseek.web.sessions.similarity import session_state
from pairseek.web.sessions.state import SessionState, counted, remaining_answers, shown
from pairseek.web.studies.catalogue import Study


@dataclass(frozen=True, slots=True)
class SubmittedAnswer:
    """Answer as submitted by a client."""

    query: str
    outcome: str
    rt_ms: int | None = None
    shown_at: str | None = None
    sent_at: str | None = None
    attempt: int | None = None
    played: Mapping[str, str] | None = None


@dataclass(eq=False, slots=True)
class LiveSession:
    """Session in memory.

    Attributes
    ----------
    row
        Stored row of the session.
    study, parts
        Shared with other sessions.
    done
        Effective answers.
    undone
        Outcomes of undone answers, by query.
    events
        Number of stored events.
    asked
        Queries that were asked at the current position or later.
    current
        Open query; None at the end, and before it is computed.
    prefetched
        The query that follows each answer to the open one, None for an answer that ends the session.
    """

    row: SessionRow
    study: Study
    parts: Parts
    done: tuple[AnsweredPair, ...] = ()
    undone: dict[str, str] = field(default_factory=dict)
    events: int = 0
    asked: tuple[QueryRow, ...] = ()
    current: QueryRow | None = None
    prefetched: dict[str, QueryRow | None] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def state(self) -> SessionState:
        """State of the session, rebuilt on each access."""
        return session_state(self.study.configuration, self.parts, self.row.seed, self.done)

    def answering(self, outcome: str) -> SessionState:
        """Return the state after this answer to the open query."""
        assert self.current is not None
        return self.state.after((*self.done, self.compact(shown(self.current, outcome))))

    def outcome_of(self, query: str) -> str | None:
        """Return the answer to a query, even if it was undone; None if there is none."""
        given = next((one.outcome for one in self.done if one.name == query), None)
        return self.undone.get(query) if given is None else given

    def answered_names(self) -> set[str]:
        """Return the queries that were answered, even if the answer was undone."""
        return {one.name for one in self.done} | set(self.undone)

    def read(self, happened: Sequence[AnsweredRow], asked: Sequence[QueryRow], void: Container[str]) -> None:
        """Replace the content by stored rows: all events, the queries that follow the answers, and what is void."""
        done = [happened[place] for place in remaining_answers(row.event for row in happened)]
        self.done = tuple(self.compact(row, void=row.name in void) for row in done)
        back = {row.name for row in happened if row.event == "undo"}
        given = [row for row in happened if row.event == "answer" and row.name in back]
        self.undone = {row.name: str(row.outcome) for row in given}
        self.events = len(happened)
        self.asked = tuple(asked)
        self.current, self.prefetched = None, {}

    def follow(self, done: tuple[AnsweredPair, ...], query: QueryRow | None) -> None:
        """Append an answer and set the query that follows it."""
        self.done, self.events, self.current, self.prefetched = done, self.events + 1, query, {}
        known = [one for one in self.asked if one.position >= len(done) and (query is None or one.name != query.name)]
        self.asked = tuple(known if query is None else [*known, query])

    def compact(self, one: AnsweredPair | AnsweredRow, *, void: bool = False) -> AnsweredPair:
        """Return an answered pair with interned strings, which sessions share."""
        intern, kind = sys.intern, cast("Kind", sys.intern(one.kind))
        search = None if one.search is None else intern(one.search)
        anchor = None if one.anchor is None else intern(one.anchor)
        name, left, right, outcome = intern(one.name), intern(one.left), intern(one.right), intern(str(one.outcome))
        return AnsweredPair(name, kind, left, right, outcome, search, void, anchor)


def outcomes_of(study: Study) -> list[str]:
    """Return the answers that the study offers."""
    offer = study.configuration.offer
    return ["left", "right", *(["tie"] if offer.tie else []), *(["skip"] if offer.skip else [])]


def state_of(live: LiveSession) -> StateSchema:
    """Return the state of a session as JSON for pages and API."""
    study = live.study
    offer = study.configuration.offer
    is_open = live.row.is_open or live.row.kind != "person"
    finished = live.current is None
    status: Status = "finished" if finished else "asking" if is_open else "closed"
    last = live.done[-1].name if live.done and offer.undo and is_open and live.row.confirmed_at is None else None
    answered, remaining = counted(live.done), _remaining(live)
    return {
        "status": status,
        "query": pair_of(study, live.current) if status == "asking" and live.current is not None else None,
        "progress": {
            "answered": answered,
            "total": study.configuration.answers if not study.configuration.stops_early else None,
            "remaining": remaining,
            "share": 1.0 if finished else 0.0 if remaining is None else answered / max(1, answered + remaining),
        },
        "can": {"undo": last, "tie": offer.tie, "skip": offer.skip},
        "result": f"/s/{study.row.slug}/result" if finished else None,
    }


def _remaining(live: LiveSession) -> int | None:
    """Return the forecast of remaining answers; with stop rules, the one made with the open query."""
    if live.current is None:
        return 0
    return live.current.details["remaining"] if live.study.configuration.stops_early else live.state.remaining


def pair_of(study: Study, query: QueryRow) -> PairSchema:
    """Return a query as JSON, without its kind, which participants must not see."""
    anchor = query.details.get("anchor")
    return {
        "query": query.name,
        "number": query.position + 1,
        "anchor": None if anchor is None else study.card(anchor),
        "left": study.card(query.left),
        "right": study.card(query.right),
    }
