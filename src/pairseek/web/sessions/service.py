"""Session service: opens sessions, asks queries, stores answers and undoes them.

The stored events are authoritative. A worker caches a compact form of them with the version of the session, and reads
them again when another worker has changed it, so that any worker can serve any request.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections.abc import Hashable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import numpy as np
import sqlalchemy as sa
from cachetools import LRUCache

from pairseek.core.types import JSON
from pairseek.errors import AnswerConflict, UnknownQuery
from pairseek.population import Population
from pairseek.store import events, locks, parts, populations, sessions
from pairseek.store.database import Database, now, stamp
from pairseek.store.events import EventRow, QueryRow, VersionConflict
from pairseek.store.sessions import SessionRow
from pairseek.web.errors import invalid
from pairseek.web.metrics import ANSWERS, NEXT_PAIRS
from pairseek.web.pages.contexts.shared import StateSchema
from pairseek.web.sessions.access import (
    Visitor,
    busy,
    check_return,
    closed,
    confirmed,
    expired,
    full,
    gone,
    overfull,
    too_old,
)
from pairseek.web.sessions.history import populations_of
from pairseek.web.sessions.live import LiveSession, SubmittedAnswer, state_of
from pairseek.web.sessions.parts import Learned, Parts, PartsKey, parts_key, records_of
from pairseek.web.sessions.playing import check_played, has_failed, played_of
from pairseek.web.sessions.state import OUTCOMES, SessionState, remaining_answers, voided
from pairseek.web.settings import Settings
from pairseek.web.studies.catalogue import Catalogue, Study
from pairseek.web.tokens import hashed

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_TRIES = 8
EVENTS_PER_ANSWER, SPARE_EVENTS = 4, 100
"""Answers, skips and undos that a session may have for each answer that the study asks for, and in addition."""
MOST_BLURS = 200
"""Losses of focus in a session."""
# Answers of a session whose study has stop rules alone, for the limit of its events.
_UNBOUNDED = 1000
# More starts than this are never under way at the same time.
_CONCURRENT = 200
# Length of a section of the balanced pairs in a study with stop rules alone.
_SECTION = 20
# Number of parts and populations in the shared cache.
_SHARED = 64


def _most_events(study: Study) -> int:
    return EVENTS_PER_ANSWER * (study.configuration.answers or _UNBOUNDED) + SPARE_EVENTS


def _before(connection: sa.Connection, study: Study, visitor: Visitor, claim: str) -> SessionRow | None:
    """Return the session in which the visitor goes on; raise a `Problem` if there is one and they may not."""
    before = sessions.of_person(connection, study.row.id, visitor.identity)
    if before is None:
        return None
    if expired(before, study):
        sessions.release(connection, study.row.id, claim, before.created_at)
        return None
    check_return(before, study, visitor)
    return before


def _seed(connection: sa.Connection, study: Study) -> int:
    """Return the seed of the study's n-th session, which the seed of the study determines."""
    locks.wait_in_transaction(connection, f"start-{study.row.id}")
    count = sessions.count(connection, study.row.id, ["person", "simulated"])
    return int(np.random.default_rng([int(study.configuration.seed or 0), count]).integers(2**63))


class Sessions:
    """Sessions of a database.

    Parameters
    ----------
    database, catalogue
        The database and its studies.
    kept
        Maximum number of sessions in memory.
    most
        Maximum number of people's sessions in a study.
    """

    def __init__(
        self,
        database: Database,
        catalogue: Catalogue,
        kept: int = Settings.kept_sessions,
        most: int = Settings.most_sessions,
    ) -> None:
        self.database, self.catalogue = database, catalogue
        self._most = most
        self._lock = threading.Lock()
        self._live: LRUCache[str, LiveSession] = LRUCache(max(1, kept))
        self._parts: LRUCache[PartsKey, Parts] = LRUCache(_SHARED)
        self._populations: LRUCache[tuple[int, int], Learned] = LRUCache(_SHARED)

    # Opening

    def open(
        self,
        study: Study,
        identity: Mapping[str, str | None],
        *,
        kind: str = "person",
        seed: int | None = None,
        truth: JSON | None = None,
        opened_by: str | None = None,
    ) -> tuple[str, str]:
        """Begin a session with the parts that are resolved now; return its id and its token.

        Only a hash of the token is stored. Later changes of the defaults do not affect the session. Where a study can
        be taken only once, an id that has a session is refused. ``opened_by`` is the hash of the API token that begins
        the session.
        """
        policy = study.configuration.resume.policy
        claim = sessions.claim_of(identity) if kind == "person" and policy == "block" else None
        further = {"kind": kind, "truth": truth, "opened_by": opened_by}
        return self._enter(study, Visitor(identity), claim, seed, further)

    def arrive(self, study: Study, visitor: Visitor) -> tuple[str, str]:
        """Begin a session or resume the previous one, as the study's policy requires; return its id and token."""
        policy = study.configuration.resume.policy
        claim = None if policy == "restart" else sessions.claim_of(visitor.identity)
        return self._enter(study, visitor, claim, None, {"kind": "person"})

    def _enter(
        self, study: Study, visitor: Visitor, claim: str | None, seed: int | None, further: JSON
    ) -> tuple[str, str]:
        """Find the session that holds the claim or begin one; ``further`` are more columns of a new one."""
        for _ in range(_TRIES):
            found = self._entered(study, visitor, claim, seed, further)
            if found is not None:
                return found
            # Someone else began with the claim at the same time, or a population was dropped, or else the study was
            # deleted, which this call raises.
            self.catalogue.row(study.row.slug)
        raise busy()

    def _entered(
        self, study: Study, visitor: Visitor, claim: str | None, seed: int | None, further: JSON
    ) -> tuple[str, str] | None:
        """Find or begin a session in one transaction; return None if something that it rests on has changed."""
        session_id = secrets.token_hex(16)
        token = visitor.token(session_id)
        version = self.database.read(lambda connection: populations.current(connection, study.row.id))
        learned = self._population(study, version)
        if isinstance(learned, Population) and study.items.d and not learned.describes(study.items):
            # It was learned before the items were replaced.
            version = learned = None
        resolved = Parts.resolved(study.configuration, study.items, learned, self._design(study, version))
        if seed is None and study.configuration.seed is None:
            seed = secrets.randbits(63)

        def enter(connection: sa.Connection) -> tuple[str, str] | None:
            before = None if claim is None else _before(connection, study, visitor, claim)
            if before is not None:
                again = visitor.token(before.id)
                sessions.set_token(connection, before.id, hashed(again))
                return before.id, again
            if version is not None and not populations.is_usable(connection, study.row.id, version):
                return None
            if further["kind"] == "person":
                self._make_room(connection, study)
            chosen = _seed(connection, study) if seed is None else seed
            values = {name: visitor.identity.get(name) for name in sessions.IDENTITIES}
            began = {"population": version, "parts": parts.add(connection, resolved.record)}
            bound = {"claim": claim, "browser": visitor.browser, "study_id": study.row.id, "token_hash": hashed(token)}
            bound |= {"catalogue": study.row.catalogue}
            sessions.add(connection, {"id": session_id, "seed": chosen, **values, **further, **began, **bound})
            return session_id, token

        try:
            return self.database.write(enter)
        except sa.exc.IntegrityError:
            # After a commit whose confirmation was lost, the repeated transaction finds the inserted row.
            return (session_id, token) if self.by_token(token) is not None else None

    def _design(self, study: Study, version: int | None) -> JSON | None:
        """Return the section of the balanced pairs for one of the first people; None where the strategy asks.

        Where the items have coordinates, the strategy asks from the first person on.
        """
        if version is not None or study.items.d or not study.configuration.learns(study.items):
            return None
        count = self.database.read(lambda connection: sessions.count(connection, study.row.id, ["person", "simulated"]))
        seed = study.configuration.seed
        if seed is None:
            digest = hashlib.sha256(f"{study.row.slug} {study.row.created_at}".encode()).digest()
            seed = int.from_bytes(digest[:7])
        return {"seed": seed, "begin": count * (study.configuration.answers or _SECTION)}

    def _make_room(self, connection: sa.Connection, study: Study) -> None:
        """Raise a `Problem` if the study is full; expired sessions without an answer give way before."""
        if sessions.count(connection, study.row.id, ["person"]) < self._most - _CONCURRENT:
            return
        # Near the limit one start at a time is counted, over all servers.
        locks.wait_in_transaction(connection, f"start-{study.row.id}")
        if sessions.count(connection, study.row.id, ["person"]) < self._most:
            return
        earliest = datetime.now(UTC) - timedelta(hours=study.configuration.resume.hours)
        if not sessions.forget_empty(connection, study.row.id, stamp(earliest)):
            raise full()

    def by_token(self, token: str) -> SessionRow | None:
        """Return the session that this token opens."""
        return self.database.read(lambda connection: sessions.by_token(connection, hashed(token)))

    def by_id(self, session_id: str) -> SessionRow | None:
        """Return the session with this id."""
        return self.database.read(lambda connection: sessions.by_id(connection, session_id))

    # Asking and answering

    def state(self, row: SessionRow) -> StateSchema:
        """Return the state of a session as JSON for pages and API."""
        live = self.live(row)
        with live.lock:
            self._refresh(live, row)
            self._ask(live)
            return state_of(live)

    def answer(self, row: SessionRow, sent: SubmittedAnswer) -> StateSchema:
        """Store an answer and return the next state. The call is idempotent."""
        began = time.perf_counter()
        live = self.live(row)
        with live.lock:
            for _ in range(_TRIES):
                self._refresh(live, row)
                if self._answered_before(live, sent):
                    break
                played = self._check(live, sent)
                try:
                    self._store(live, sent, played, began)
                    break
                except (VersionConflict, sa.exc.IntegrityError):
                    row = self._outdated(live)
            else:
                raise busy()
            self._ask(live)
            return state_of(live)

    def undo(self, row: SessionRow, query: str) -> StateSchema:
        """Undo the last answer, which must be the one to this query. The call is idempotent."""
        live = self.live(row)
        with live.lock:
            for _ in range(_TRIES):
                self._refresh(live, row)
                if query in live.undone:
                    break
                self._check_undo(live, query)
                event = EventRow(live.row.id, live.events, query, "undo", None, None, None, None, None, now(), None)

                def add(connection: sa.Connection, event: EventRow = event, live: LiveSession = live) -> None:
                    events.add_event(connection, event, version=live.row.version)
                    if not sessions.reopen(connection, live.row.id):
                        raise confirmed()

                try:
                    self.database.write(add)
                except (VersionConflict, sa.exc.IntegrityError):
                    row = self._outdated(live)
                    continue
                row = self._fresh(live)
                self._refresh(live, row)
                break
            else:
                raise busy()
            self._ask(live)
            return state_of(live)

    def confirm(self, row: SessionRow) -> bool:
        """Confirm the end of a session, after which nothing can be undone; return False if it has not ended."""
        if row.confirmed_at is not None:
            return True
        return self.database.write(lambda connection: sessions.confirm(connection, row.id))

    def session_state(self, row: SessionRow) -> SessionState:
        """Return the state of a session without asking a query."""
        live = self.live(row)
        with live.lock:
            self._refresh(live, row)
            return live.state

    def blur(self, row: SessionRow, query: str, lost_at: str, ms: int) -> None:
        """Store a loss of focus during a query that was asked."""
        if not row.is_open and row.kind == "person":
            raise closed(self.catalogue.numbered(row.study_id).row.slug)

        def add(connection: sa.Connection) -> None:
            if not events.was_asked(connection, row.id, query):
                raise UnknownQuery(f"query {query!r} was not asked in this session")
            if sessions.count_blurs(connection, row.id) >= MOST_BLURS:
                raise overfull()
            sessions.blur(connection, row.id, query, lost_at, ms)

        try:
            self.database.write(add)
        except sa.exc.IntegrityError:
            raise gone() from None

    # Sessions in memory

    def live(self, row: SessionRow) -> LiveSession:
        """Return the session in memory, which is loaded if necessary."""
        live = self.peek(row.id)
        if live is None:
            study = self._study(row)
            # Version -1 never occurs in a row, so the first use reads the events.
            began = self._began(study, row)
            if began.count > study.items.n:
                study = self.catalogue.refreshed(study.row.id)
            live = LiveSession(replace(row, version=-1), study, began)
        with self._lock:
            # Of two concurrent requests, the first one's object is kept.
            return self._live.setdefault(row.id, live)

    def _study(self, row: SessionRow) -> Study:
        """Return the study with the items that a session began with."""
        study = self.catalogue.numbered(row.study_id)
        if row.catalogue > study.row.catalogue:
            # Another worker has replaced the items, and this one has not read them yet.
            study = self.catalogue.refreshed(row.study_id)
        return study.at(row.catalogue)

    def _began(self, study: Study, row: SessionRow) -> Parts:
        """Return the parts of a session, one shared object for all sessions that began with them."""
        key = parts_key(row)
        known = self._recalled(self._parts, key)
        if known is None:
            record = records_of(self.database, [row]).get(row.parts)
            if record is None:
                raise gone()
            parts = Parts.stored(study.items, record, self._population(study, row.population))
            if parts.count > study.items.n:
                # Another worker has added items, and this one has not read them yet.
                study = self.catalogue.refreshed(study.row.id)
                parts = Parts.stored(study.items, record, parts.population)
            known = self._shared(self._parts, key, parts)
        return known

    def _population(self, study: Study, version: int | None) -> Learned | None:
        """Return a population; read once, as it never changes."""
        if version is None:
            return None
        key = (study.row.id, version)
        known = self._recalled(self._populations, key)
        if known is None:
            found = populations_of(self.database, [key])[key]
            known = self._shared(self._populations, key, found)
        return known

    def _recalled(self, among: LRUCache[K, V], key: K) -> V | None:
        with self._lock:
            return among.get(key)

    def _shared(self, among: LRUCache[K, V], key: K, value: V) -> V:
        """Cache a shared value; of two values computed concurrently, the first is kept."""
        with self._lock:
            return among.setdefault(key, value)

    def peek(self, session_id: str) -> LiveSession | None:
        """Return the session if it is in memory."""
        with self._lock:
            return self._live.get(session_id)

    def _fresh(self, live: LiveSession) -> SessionRow:
        row = self.by_id(live.row.id)
        if row is None:
            raise gone()
        return row

    def _outdated(self, live: LiveSession) -> SessionRow:
        """Return the stored row, and read the events and queries again at the next use, whatever its version.

        Another worker may have stored a query, which does not change the version.
        """
        live.row = replace(live.row, version=-1)
        return self._fresh(live)

    def _refresh(self, live: LiveSession, row: SessionRow) -> None:
        """Reload the session if the stored version is newer."""
        if row.version < live.row.version:
            return  # the row was read before this worker's latest write
        if row.version == live.row.version:
            live.row = row
            return

        def stored(connection: sa.Connection) -> tuple[Any, ...]:
            happened = events.answered_of(connection, row.id)
            position = len(remaining_answers(one.event for one in happened))
            # A version counts events and marks: the session is as in its row, and has no mark.
            plain = bool(happened) and happened[0].version == row.version == len(happened)
            return (
                row if plain else sessions.by_id(connection, row.id),
                happened,
                events.queries_from(connection, row.id, position),
                [] if plain else sessions.marks_of(connection, [row.id]),
            )

        now_row, happened, asked, marks = self.database.read(stored)
        if now_row is None:
            raise gone()
        if (now_row.parts, now_row.population) != (live.row.parts, live.row.population):
            # Its population was dropped.
            live.parts = self._began(live.study, now_row)
        live.read(happened, asked, voided(marks)[1])
        live.row = now_row

    def clear_cache(self) -> None:
        """Remove all sessions, parts and populations from memory, because some of them were deleted."""
        with self._lock:
            for cached in (self._live, self._parts, self._populations):
                cached.clear()

    def all_live(self) -> list[LiveSession]:
        """Return every session in memory."""
        with self._lock:
            return list(self._live.values())

    # Validation and storage

    def _answered_before(self, live: LiveSession, sent: SubmittedAnswer) -> bool:
        given = live.outcome_of(sent.query)
        if given is not None and given != sent.outcome:
            raise AnswerConflict(
                f"query {sent.query!r} has the answer {given}, received {sent.outcome}: undo first to change it"
            )
        return given is not None

    def _check(self, live: LiveSession, sent: SubmittedAnswer) -> dict[str, str] | None:
        """Raise a `Problem` for an answer that cannot be stored, and return what was played before it."""
        if sent.outcome not in OUTCOMES:
            raise invalid(
                f"{sent.outcome!r} is not a valid outcome",
                sent.outcome,
                f"Send one of {', '.join(OUTCOMES)}.",
            )
        if not live.row.is_open and live.row.kind == "person":
            raise closed(live.study.row.slug)
        if expired(live.row, live.study):
            raise too_old()
        if live.events >= _most_events(live.study):
            raise overfull()
        self._ask(live)
        if live.current is None or live.current.name != sent.query:
            open_now = "none" if live.current is None else repr(live.current.name)
            raise UnknownQuery(f"query {sent.query!r} is not open in this session, the open one is {open_now}")
        played = played_of(live.study, live.current, sent.played)
        offer = live.study.configuration.offer
        # Nobody can choose between items of which one could not be loaded.
        offered = {"tie": offer.tie, "skip": offer.skip or has_failed(played)}
        if not offered.get(sent.outcome, True):
            raise invalid(
                f"this study does not offer a {sent.outcome}",
                sent.outcome,
                "Send left or right.",
                "not_offered",
            )
        check_played(live.study, sent.outcome, played)
        return played

    def _check_undo(self, live: LiveSession, query: str) -> None:
        if not live.study.configuration.offer.undo:
            raise invalid("this study does not offer undo", query, "Answer the next pair.", "not_offered")
        if not live.row.is_open and live.row.kind == "person":
            raise closed(live.study.row.slug)
        live.parts.check()
        if live.row.confirmed_at is not None:
            raise confirmed()
        if live.events >= _most_events(live.study):
            raise overfull()
        done = live.done
        if not done or done[-1].name != query:
            last = "none" if not done else repr(done[-1].name)
            raise UnknownQuery(f"query {query!r} is not the last answered one, which is {last}: undo that one")

    def _store(self, live: LiveSession, sent: SubmittedAnswer, played: dict[str, str] | None, began: float) -> None:
        """Store an answer, and the next query or the end, in one transaction; both are computed before."""
        asked, prefetched = live.current, sent.outcome in live.prefetched
        assert asked is not None
        state = live.answering(sent.outcome)
        following = live.prefetched[sent.outcome] if prefetched else self._following(live, state, asked)
        # It was asked before if this answer follows an undo.
        known = None if following is None else next((one for one in live.asked if one.name == following.name), None)
        end = None if following is not None else (str(state.following[1]), state.final())
        facts = (sent.outcome, sent.rt_ms, sent.shown_at, sent.sent_at, sent.attempt, now())
        spent = round(1000 * (time.perf_counter() - began), 3)
        event = EventRow(live.row.id, live.events, asked.name, "answer", *facts, spent, played)

        def add(connection: sa.Connection) -> QueryRow | None:
            events.add_event(connection, event, version=live.row.version)
            if end is not None:
                sessions.finish(connection, live.row.id, *end)
            if following is None or known is not None:
                return known
            return events.insert_query(connection, replace(following, asked_at=now()))

        stored = self.database.write(add)
        ANSWERS.labels(sent.outcome).inc()
        NEXT_PAIRS.labels("yes" if prefetched else "no").inc()
        live.row = replace(live.row, version=live.row.version + 1)
        if end is not None:
            live.row = replace(live.row, finished_at=now(), reason=end[0], final=end[1])
        live.follow(state.done, stored)

    def _following(self, live: LiveSession, state: SessionState, asked: QueryRow) -> QueryRow | None:
        return state.query(live.row.id, live.asked, live.answered_names() | {asked.name})

    def _ask(self, live: LiveSession) -> None:
        """Compute and store the open query, or the end, unless they are known."""
        if live.current is not None or live.row.finished_at is not None:
            return
        live.parts.check()
        state = live.state
        query = state.query(live.row.id, live.asked, live.answered_names())
        if query is None:
            reason, final = str(state.following[1]), state.final()
            self.database.write(lambda connection: sessions.finish(connection, live.row.id, reason, final))
            live.row = replace(live.row, finished_at=now(), reason=reason, final=final)
            return
        known = next((one for one in live.asked if one.name == query.name), None)
        if known is None:
            try:
                known = self.database.write(lambda connection: events.add_query(connection, query))
            except sa.exc.IntegrityError:
                # The session was deleted, or another worker has stored this query at the same time.
                self._fresh(live)
                known = self.database.write(lambda connection: events.add_query(connection, query))
            live.asked = (*live.asked, known)
        live.current = known
