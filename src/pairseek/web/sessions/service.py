"""Session service: opens sessions, asks queries, and stores and undoes answers.

The stored events are authoritative. A worker caches a snapshot of them, and rereads them when another worker has
changed the session, so that any worker can serve any request.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeVar

import numpy as np
import sqlalchemy as sa
from cachetools import LRUCache

from pairseek.core.types import JSON
from pairseek.errors import UnknownQuery, Unsupported
from pairseek.people.population import Population
from pairseek.store import events, locks, parts, populations, sessions, unanswered
from pairseek.store.database import Database, now, stamp
from pairseek.store.events import Answers, AskedPair, VersionConflict
from pairseek.store.sessions import SessionRow
from pairseek.web.access.tokens import hash_token
from pairseek.web.operations.metrics import ANSWERS, NEXT_PAIRS
from pairseek.web.pages.contexts.shared import StateSchema
from pairseek.web.sessions.access import (
    Visitor,
    check_return,
    is_expired,
    result_confirmed,
    session_busy,
    session_deleted,
    study_closed,
    study_full,
    too_many_events,
)
from pairseek.web.sessions.advance import Answer, Step, advance, resume, undo
from pairseek.web.sessions.history import populations_of
from pairseek.web.sessions.limits import has_reached_quota
from pairseek.web.sessions.parts import Learned, PartsKey, SessionParts, parts_key, population_for, records_of
from pairseek.web.sessions.snapshot import Snapshot
from pairseek.web.sessions.state import voids_of
from pairseek.web.sessions.view import state_of
from pairseek.web.settings import Settings
from pairseek.web.studies.catalogue import Catalogue, Study
from pairseek.web.studies.questions import Stage

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

# Attempts at a change; each fails if another request changes the session meanwhile.
_MAX_ATTEMPTS = 8
MAX_BLURS = 200
"""Maximum number of losses of focus that a session stores."""
# Largest number of sessions that may start concurrently.
_MAX_CONCURRENT_STARTS = 200
# Length of a section of the balanced design if a study has only stop rules.
_SECTION_LENGTH = 20
# Size of the caches of parts and of populations.
_SHARED_CACHE_SIZE = 64


def _previous_session(connection: sa.Connection, study: Study, visitor: Visitor, claim: str) -> SessionRow | None:
    """Return the session that the visitor continues, if any; raise a `Problem` if they may not continue it."""
    previous = sessions.of_person(connection, study.row.id, visitor.identity)
    if previous is None:
        return None
    if is_expired(previous, study):
        sessions.release_claim(connection, study.row.id, claim, previous.created_at)
        return None
    check_return(previous, study, visitor)
    return previous


def _seed(connection: sa.Connection, study: Study) -> int:
    """Return the seed of the study's next session, derived from the study's seed and its number of sessions."""
    locks.wait_in_transaction(connection, f"start-{study.row.id}")
    count = sessions.count(connection, study.row.id, ["person", "simulated"])
    return int(np.random.default_rng([int(study.configuration.seed or 0), count]).integers(2**63))


class Sessions:
    """Sessions of a database.

    Parameters
    ----------
    database, catalogue
        Database and its studies.
    max_cached
        Largest number of sessions in memory.
    max_sessions
        Largest number of people's sessions in a study.
    """

    def __init__(
        self,
        database: Database,
        catalogue: Catalogue,
        max_cached: int = Settings.kept_sessions,
        max_sessions: int = Settings.most_sessions,
    ) -> None:
        self.database, self.catalogue = database, catalogue
        self._max_sessions = max_sessions
        self._lock = threading.Lock()
        self._snapshots: LRUCache[str, Snapshot] = LRUCache(max(1, max_cached))
        self._parts: LRUCache[PartsKey, SessionParts] = LRUCache(_SHARED_CACHE_SIZE)
        self._populations: LRUCache[tuple[int, int], Learned] = LRUCache(_SHARED_CACHE_SIZE)
        # Populations for the present items of studies.
        self._placed: LRUCache[tuple[int, int | None, str], Population] = LRUCache(_SHARED_CACHE_SIZE)

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
        variables: Mapping[str, str] | None = None,
    ) -> tuple[str, str]:
        """Begin a session and return its id and token.

        Only a hash of the token is stored. The parts are resolved now, so that later changes of defaults do not affect
        the session. If a study can be taken only once, an id that already has a session is refused. ``opened_by`` is
        the hash of the API token that begins the session.
        """
        policy = study.configuration.resume.policy
        claim = sessions.claim_of(identity) if kind == "person" and policy == "block" else None
        columns = {"kind": kind, "truth": truth, "opened_by": opened_by}
        return self._enter(study, Visitor(identity, variables=variables or {}), claim, seed, columns)

    def arrive(self, study: Study, visitor: Visitor) -> tuple[str, str]:
        """Begin a session or resume the previous one, as the study's policy requires; return its id and token."""
        policy = study.configuration.resume.policy
        claim = None if policy == "restart" else sessions.claim_of(visitor.identity)
        return self._enter(study, visitor, claim, None, {"kind": "person"})

    def _enter(
        self, study: Study, visitor: Visitor, claim: str | None, seed: int | None, columns: JSON
    ) -> tuple[str, str]:
        """Find the session that holds the claim, or begin one with these columns; return its id and token."""
        for _ in range(_MAX_ATTEMPTS):
            id_and_token = self._try_enter(study, visitor, claim, seed, columns)
            if id_and_token is not None:
                return id_and_token
            # Someone else began with the claim at the same time, a population was dropped, or the study was deleted;
            # in that case, this call raises an error. The items may also have been replaced.
            study = self.catalogue.by_slug(study.row.slug)
        raise session_busy()

    def _try_enter(
        self, study: Study, visitor: Visitor, claim: str | None, seed: int | None, columns: JSON
    ) -> tuple[str, str] | None:
        """Find or begin a session in one transaction; return None if its population or claim has changed meanwhile."""
        session_id = secrets.token_hex(16)
        token = visitor.token(session_id)
        version = self.database.read(lambda connection: populations.current(connection, study.row.id))
        learned = self._population_of(study, version)
        if learned is None:
            version = None
        resolved = SessionParts.resolved(study.configuration, study.items, learned, self._design(study, version))
        if seed is None and study.configuration.seed is None:
            seed = secrets.randbits(63)

        def enter(connection: sa.Connection) -> tuple[str, str] | None:
            previous = None if claim is None else _previous_session(connection, study, visitor, claim)
            if previous is not None:
                renewed = visitor.token(previous.id)
                sessions.set_token(connection, previous.id, hash_token(renewed))
                return previous.id, renewed
            if version is not None and not populations.is_usable(connection, study.row.id, version):
                return None
            if not unanswered.holds_catalogue(connection, study.row.id, study.row.catalogue):
                return None
            if columns["kind"] == "person":
                self._make_room(connection, study)
            session_seed = _seed(connection, study) if seed is None else seed
            values = {"id": session_id, "token_hash": hash_token(token), "seed": session_seed, **columns}
            values |= {name: visitor.identity.get(name) for name in sessions.IDENTITIES}
            values |= {"claim": claim, "browser": visitor.browser, "variables": dict(visitor.variables) or None}
            values |= {"study_id": study.row.id, "catalogue": study.row.catalogue}
            values |= {"population": version, "parts": parts.add(connection, resolved.record)}
            sessions.add(connection, values)
            return session_id, token

        try:
            return self.database.write(enter)
        except sa.exc.IntegrityError:
            # If the confirmation of a commit was lost, the retried transaction conflicts with its own row.
            return (session_id, token) if self.by_token(token) is not None else None

    def _design(self, study: Study, version: int | None) -> JSON | None:
        """Return the next section of the balanced design; None if the strategy chooses.

        The design serves a study's first people. If the items have coordinates, the strategy chooses from the start.
        """
        if version is not None or study.items.d or not study.configuration.learns(study.items.d):
            return None
        count = self.database.read(lambda connection: sessions.count(connection, study.row.id, ["person", "simulated"]))
        seed = study.configuration.seed
        if seed is None:
            digest = hashlib.sha256(f"{study.row.slug} {study.row.created_at}".encode()).digest()
            seed = int.from_bytes(digest[:7])
        return {"seed": seed, "begin": count * (study.configuration.answers or _SECTION_LENGTH)}

    def _make_room(self, connection: sa.Connection, study: Study) -> None:
        """Raise a `Problem` if the study is full, even after deleting expired sessions without answers."""
        if study.configuration.quota is not None:
            # Starts are counted one at a time across all servers.
            locks.wait_in_transaction(connection, f"start-{study.row.id}")
            if has_reached_quota(connection, study):
                raise study_full()
        if sessions.count(connection, study.row.id, ["person"]) < self._max_sessions - _MAX_CONCURRENT_STARTS:
            return
        # Near the limit, starts are counted one at a time across all servers.
        locks.wait_in_transaction(connection, f"start-{study.row.id}")
        if sessions.count(connection, study.row.id, ["person"]) < self._max_sessions:
            return
        earliest = datetime.now(UTC) - timedelta(hours=study.configuration.resume.hours)
        if not sessions.delete_empty(connection, study.row.id, stamp(earliest)):
            raise study_full()

    def by_token(self, token: str) -> SessionRow | None:
        """Return the session with this token."""
        return self.database.read(lambda connection: sessions.by_token(connection, hash_token(token)))

    def by_id(self, session_id: str) -> SessionRow | None:
        """Return the session with this id."""
        return self.database.read(lambda connection: sessions.by_id(connection, session_id))

    # Asking and answering

    def state(self, row: SessionRow) -> StateSchema:
        """Return the state of a session as JSON for pages and API."""
        return state_of(self._advance(row, resume))

    def answer(self, row: SessionRow, answer: Answer) -> StateSchema:
        """Store an answer and return the next state; the call is idempotent."""
        return state_of(self._advance(row, lambda snapshot: advance(snapshot, answer)))

    def undo(self, row: SessionRow, name: str) -> StateSchema:
        """Undo the last answer, which must belong to the pair with this name; the call is idempotent."""
        # Snapshots in memory do not contain the answered pair, which is asked again.
        self._discard(row)
        return state_of(self._advance(row, lambda snapshot: undo(snapshot, name)))

    def _advance(self, row: SessionRow, step_of: Callable[[Snapshot], Step | None]) -> Snapshot:
        """Store the step from the newest snapshot of a session, and return the resulting snapshot."""
        start = time.perf_counter()
        for _ in range(_MAX_ATTEMPTS):
            snapshot = self.snapshot(row)
            step = step_of(snapshot)
            if step is None:
                return self._cache(snapshot)
            step = step.with_time(now(), round(1000 * (time.perf_counter() - start), 3))
            try:
                self.database.write(partial(_store, step=step))
            except (VersionConflict, sa.exc.IntegrityError):
                # Another request or worker was first, or the session was deleted.
                self._discard(row)
                row = self._reread(row)
                continue
            if step.event is not None and step.event.outcome is not None:
                ANSWERS.labels(step.event.outcome).inc()
                NEXT_PAIRS.labels("yes" if step.prefetched else "no").inc()
            return self._cache(step.after)
        raise session_busy()

    def confirm(self, row: SessionRow) -> bool:
        """Confirm the end of a session, after which nothing can be undone; return False if it has not ended."""
        if row.confirmed_at is not None:
            return True
        return self.database.write(lambda connection: sessions.confirm(connection, row.id))

    def reply(self, row: SessionRow, stage: Stage, replies: JSON) -> None:
        """Store the replies to the researcher's own questions; they cannot change once the result was opened."""
        if stage == "before" and not row.accepts_answers:
            raise study_closed(self.catalogue.by_id(row.study_id).row.slug)
        self.database.write(lambda connection: sessions.put_replies(connection, row.id, stage, replies))

    def blur(self, row: SessionRow, query: str, lost_at: str, ms: int) -> None:
        """Store that the page lost focus during a query."""
        if not row.accepts_answers:
            raise study_closed(self.catalogue.by_id(row.study_id).row.slug)

        def add(connection: sa.Connection) -> None:
            if not events.was_asked(connection, row.id, query):
                raise UnknownQuery(f"query {query!r} was not asked in this session: send the id of one that was")
            if sessions.count_blurs(connection, row.id) >= MAX_BLURS:
                raise too_many_events()
            sessions.add_blur(connection, row.id, query, lost_at, ms)

        try:
            self.database.write(add)
        except sa.exc.IntegrityError:
            raise session_deleted() from None

    # Sessions in memory

    def snapshot(self, row: SessionRow) -> Snapshot:
        """Return the snapshot of a session, from memory unless its row has a newer version."""
        cached = self.peek(row.id)
        if cached is None or cached.row.version < row.version:
            return self._read(row)
        # A row with an older version was read before this worker's last write.
        return cached if cached.row.version > row.version else replace(cached, row=row)

    def peek(self, session_id: str) -> Snapshot | None:
        """Return the snapshot of a session if it is in memory."""
        with self._lock:
            return self._snapshots.get(session_id)

    def add_prefetched(self, snapshot: Snapshot, outcome: str, pair: AskedPair | None) -> Snapshot | None:
        """Add the pair that follows an answer to a cached snapshot; return it, or None if the session has moved on."""
        with self._lock:
            cached = self._snapshots.get(snapshot.row.id)
            if cached is None or cached.row.version != snapshot.row.version or cached.current != snapshot.current:
                return None
            self._snapshots[snapshot.row.id] = after = replace(cached, prefetched={**cached.prefetched, outcome: pair})
        return after

    def _cache(self, snapshot: Snapshot) -> Snapshot:
        """Cache a snapshot unless a newer one is cached."""
        with self._lock:
            cached = self._snapshots.get(snapshot.row.id)
            if cached is None or cached.row.version < snapshot.row.version or cached.current is None:
                self._snapshots[snapshot.row.id] = snapshot
        return snapshot

    def _discard(self, row: SessionRow) -> None:
        with self._lock:
            self._snapshots.pop(row.id, None)

    def _read(self, row: SessionRow) -> Snapshot:
        """Read a session from the database, including the pair of its last answer, which an undo asks again."""

        def read(connection: sa.Connection) -> tuple[SessionRow | None, Answers, list[AskedPair], list[JSON]]:
            answers = events.answers_of(connection, row.id)
            # The version counts events and marks, so a session whose version equals its events has no marks.
            is_current = answers.version == row.version == answers.events
            return (
                row if is_current else sessions.by_id(connection, row.id),
                answers,
                events.queries_since(connection, row.id, len(answers.done) - 1),
                [] if is_current else sessions.marks_of(connection, [row.id]),
            )

        current, answers, asked, marks = self.database.read(read)
        if current is None:
            raise session_deleted()
        study = self._study(current)
        parts = self._parts_of(study, current)
        if parts.item_count > study.items.n:
            study = self.catalogue.reread(study.row.id)
        return Snapshot.of_rows(current, study, parts, answers, tuple(asked), voids_of(marks)[1])

    def _study(self, row: SessionRow) -> Study:
        """Return the study with the items that a session began with."""
        study = self.catalogue.by_id(row.study_id)
        if row.catalogue > study.row.catalogue:
            # Another worker has replaced the items since this one read them.
            study = self.catalogue.reread(row.study_id)
        return study.with_catalogue(row.catalogue)

    def _parts_of(self, study: Study, row: SessionRow) -> SessionParts:
        """Return the parts of a session, as one object shared by all sessions that began with them."""
        key = parts_key(row)
        shared = self._cached(self._parts, key)
        if shared is None:
            record = records_of(self.database, [row]).get(row.parts)
            if record is None:
                raise session_deleted()
            parts = SessionParts.from_record(study.items, record, self._population(study, row.population))
            if parts.item_count > study.items.n:
                # Another worker has added items since this one read them.
                study = self.catalogue.reread(study.row.id)
                parts = SessionParts.from_record(study.items, record, parts.population)
            shared = self._share(self._parts, key, parts)
        return shared

    def _population(self, study: Study, version: int | None) -> Learned | None:
        """Return a population, which is read only once because it never changes."""
        if version is None:
            return None
        key = (study.row.id, version)
        shared = self._cached(self._populations, key)
        if shared is None:
            shared = self._share(self._populations, key, populations_of(self.database, [key])[key])
        return shared

    def _population_of(self, study: Study, version: int | None) -> Learned | None:
        """Return a population for the present items of a study; None if it cannot place them."""
        learned = self._population(study, version)
        if not isinstance(learned, Population):
            return learned
        key = (study.row.id, version, study.items.hash)
        placed = self._cached(self._placed, key)
        if placed is None:
            try:
                placed = self._share(self._placed, key, population_for(study.items, learned))
            except Unsupported:
                return None
        return placed

    def _cached(self, cache: LRUCache[K, V], key: K) -> V | None:
        with self._lock:
            return cache.get(key)

    def _share(self, cache: LRUCache[K, V], key: K, value: V) -> V:
        """Cache a value and return it; if another thread has cached one meanwhile, return that."""
        with self._lock:
            return cache.setdefault(key, value)

    def _reread(self, row: SessionRow) -> SessionRow:
        current = self.by_id(row.id)
        if current is None:
            raise session_deleted()
        return current

    def clear_cache(self) -> None:
        """Remove all sessions, parts and populations from memory after a deletion."""
        with self._lock:
            for cache in (self._snapshots, self._parts, self._populations, self._placed):
                cache.clear()


def _store(connection: sa.Connection, step: Step) -> None:
    """Store a step; raise `VersionConflict` if the session has changed since its snapshot was read."""
    row = step.before.row
    if step.event is not None:
        events.add_event(connection, step.event, version=row.version)
        if step.event.kind == "undo" and not sessions.reopen(connection, row.id):
            raise result_confirmed()
    for pair in step.new:
        events.add_pair(connection, pair)
    if step.end is not None:
        sessions.finish(connection, row.id, *step.end, str(step.after.row.finished_at))
