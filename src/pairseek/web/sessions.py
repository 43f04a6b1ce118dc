"""The one place where search and store meet: what a session asks, and what happens to an answer.

The stored events are the truth. A worker keeps what they lead to in memory, together with the session's version, and
reads the events again whenever the version has moved on without it, so any worker can serve any request.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import sqlalchemy as sa

from pairseek._types import JSON
from pairseek.errors import AnswerConflict, UnknownQuery
from pairseek.population import Population
from pairseek.store import cache, events, populations, sessions
from pairseek.store.database import Database, now
from pairseek.store.events import EventRow, Overtaken, QueryRow
from pairseek.store.sessions import SessionRow
from pairseek.web.admission import closed, expired, taken, too_old
from pairseek.web.beliefs import pack_belief, unpack_belief
from pairseek.web.catalogue import Catalogue, Study
from pairseek.web.export import populations_of
from pairseek.web.live import Live, Said, foreseen, put_by, state_of, take_up
from pairseek.web.metrics import ANSWERS, PREPARED
from pairseek.web.problems import Problem, invalid
from pairseek.web.standing import OUTCOMES, Answered, Standing, digest_of, effective, learned, voided
from pairseek.web.tokens import hashed, new_token

_TRIES = 8
_POPULATIONS = 16


class Sessions:
    """The sessions of a database.

    Parameters
    ----------
    database, catalogue
        Where they are.
    kept
        How many are kept in memory.
    """

    def __init__(self, database: Database, catalogue: Catalogue, kept: int = 400) -> None:
        self.database, self.catalogue = database, catalogue
        self._kept = kept
        self._lock = threading.Lock()
        self._live: OrderedDict[str, Live] = OrderedDict()
        self._populations: OrderedDict[tuple[int, int], Population] = OrderedDict()

    # Opening

    def open(
        self,
        study: Study,
        identity: Mapping[str, str | None],
        *,
        kind: str = "person",
        seed: int | None = None,
        truth: JSON | None = None,
    ) -> tuple[str, str]:
        """A new session: its id and its token, of which only a hash is stored."""
        session_id, token = secrets.token_hex(16), new_token()
        if seed is None and study.configuration.seed is None:
            seed = secrets.randbits(63)

        def add(connection: sa.Connection) -> None:
            chosen = seed
            if chosen is None:
                # With a seed of the study's own, the n-th person's follows from it.
                count = len(sessions.of_study(connection, study.row.id, ["person", "simulated"]))
                chosen = int(np.random.default_rng([int(study.configuration.seed or 0), count]).integers(2**63))
            values = {name: identity.get(name) for name in sessions.IDENTITIES}
            further = {"study_id": study.row.id, "kind": kind, "token_hash": hashed(token), "truth": truth}
            further["population"] = populations.latest(connection, study.row.id)
            sessions.add(connection, {"id": session_id, "seed": chosen, **values, **further})

        try:
            self.database.write(add)
        except sa.exc.IntegrityError:
            # The connection was lost after the commit, and the second try found the first one's row.
            if self.by_token(token) is None:
                raise
        return session_id, token

    def arrive(self, study: Study, identity: Mapping[str, str | None]) -> tuple[str, str]:
        """Someone begins: a new session, or the one they left, as the study's policy says; its id and token."""
        before = self.database.read(lambda connection: sessions.of_person(connection, study.row.id, identity))
        policy = study.configuration.resume
        if before is None or policy.policy == "restart" or expired(before, study):
            return self.open(study, identity)
        if policy.policy == "block":
            raise taken()
        token = new_token()
        self.database.write(lambda connection: sessions.set_token(connection, before.id, hashed(token)))
        return before.id, token

    def by_token(self, token: str) -> SessionRow | None:
        """The session that this token opens."""
        return self.database.read(lambda connection: sessions.by_token(connection, hashed(token)))

    def by_id(self, session_id: str) -> SessionRow | None:
        """The session of this id."""
        return self.database.read(lambda connection: sessions.by_id(connection, session_id))

    # Asking and answering

    def state(self, row: SessionRow) -> JSON:
        """What a page has to know now."""
        live = self.live(row)
        with live.lock:
            self._refresh(live, row)
            self._ask(live)
            return state_of(live)

    def answer(self, row: SessionRow, said: Said) -> JSON:
        """Store an answer and give what comes next. The same answer again is harmless."""
        began = time.perf_counter()
        live = self.live(row)
        with live.lock:
            for _ in range(_TRIES):
                self._refresh(live, row)
                if self._answered_before(live, said):
                    break
                self._check(live, said)
                try:
                    self._store(live, said, began)
                    break
                except (Overtaken, sa.exc.IntegrityError):
                    row = self._fresh(live)
            else:
                raise Problem(503, "busy", "the session is being answered elsewhere", hint="Try again in a moment.")
            self._ask(live)
            return state_of(live)

    def undo(self, row: SessionRow, query: str) -> JSON:
        """Take back the last answer, which must be the one to this query. To do so again is harmless."""
        live = self.live(row)
        with live.lock:
            for _ in range(_TRIES):
                self._refresh(live, row)
                if any(event.kind == "undo" and event.query == query for event in live.events):
                    break
                self._check_undo(live, query)
                event = EventRow(
                    live.row.id, len(live.events), query, "undo", None, None, None, None, None, now(), None
                )

                def add(connection: sa.Connection, event: EventRow = event, live: Live = live) -> None:
                    events.add_event(connection, event, version=live.row.version)
                    sessions.reopen(connection, live.row.id)

                try:
                    self.database.write(add)
                except (Overtaken, sa.exc.IntegrityError):
                    row = self._fresh(live)
                    continue
                row = self._fresh(live)
                self._refresh(live, row)
                break
            else:
                raise Problem(503, "busy", "the session is being answered elsewhere", hint="Try again in a moment.")
            self._ask(live)
            return state_of(live)

    def standing(self, row: SessionRow) -> Standing:
        """Where the session stands, for those who only look."""
        live = self.live(row)
        with live.lock:
            self._refresh(live, row)
            live.standing.search.belief  # noqa: B018 - worked out here, so that looking changes nothing
            return live.standing

    def blur(self, row: SessionRow, query: str, lost_at: str, ms: int) -> None:
        """The page was out of sight."""
        if not row.is_open and row.kind == "person":
            raise closed(self.catalogue.numbered(row.study_id).row.slug)
        self.database.write(lambda connection: sessions.blur(connection, row.id, query, lost_at, ms))

    # Memory

    def live(self, row: SessionRow) -> Live:
        """The session in memory, read from the store if it is not there yet."""
        live = self.peek(row.id)
        if live is None:
            study = self.catalogue.numbered(row.study_id)
            standing = Standing.begun(study.configuration, study.items, row.seed, self._population(row))
            # A version that no row has: the first use reads the events.
            live = Live(replace(row, version=-1), study, standing, {}, [])
        with self._lock:
            # Of two who came at once, the first one's is kept.
            live = self._live.setdefault(row.id, live)
            self._live.move_to_end(row.id)
            while len(self._live) > self._kept:
                self._live.popitem(last=False)
            return live

    def _population(self, row: SessionRow) -> Population | None:
        """What the session began with; read once, as it never changes."""
        if row.population is None:
            return None
        key = (row.study_id, row.population)
        with self._lock:
            known = self._populations.get(key)
        if known is None:
            known = populations_of(self.database, [row])[key]
            with self._lock:
                self._populations[key] = known
                while len(self._populations) > _POPULATIONS:
                    self._populations.popitem(last=False)
        return known

    def peek(self, session_id: str) -> Live | None:
        """The session if it is in memory."""
        with self._lock:
            return self._live.get(session_id)

    def _fresh(self, live: Live) -> SessionRow:
        row = self.by_id(live.row.id)
        assert row is not None
        return row

    def _refresh(self, live: Live, row: SessionRow) -> None:
        """Bring what is in memory to what is stored."""
        if row.version < live.row.version:
            return  # read before this worker's own newest write
        if row.version == live.row.version:
            live.row = row
            return
        fresh = live.row.version < 0
        asked, happened, marks, kept, live.foreseen = self.database.read(
            lambda connection: (
                events.queries_of(connection, [row.id]),
                events.events_of(connection, [row.id]),
                sessions.marks_of(connection, [row.id]),
                cache.snapshot_of(connection, row.id) if fresh else None,
                cache.foreseen_of(connection, row.id) if fresh else None,
            )
        )
        done = effective(asked, happened, voided(marks)[1])
        if kept is not None:
            self._recall(live, done, kept)
        live.standing = live.standing.after(done)
        live.queries = {query.name: query for query in asked}
        live.events = happened
        live.current, live.prepared = None, {}
        live.kept = min(live.kept, len(live.standing.search.history))
        live.row = replace(row, version=len(happened) + len(marks))

    def _recall(self, live: Live, done: tuple[Answered, ...], kept: cache.Snapshot) -> None:
        """Take up a stored belief, if it is the one that these answers and this program would lead to."""
        told, standing = learned(done)[: kept.count], live.standing
        if len(told) != kept.count or kept.digest != digest_of(
            standing.configuration, standing.items, standing.seed, told
        ):
            return
        belief = unpack_belief(kept.content)
        if belief is not None:
            live.kept = kept.count
            live.standing = replace(standing, search=standing.search.continued(told, belief=(kept.count, belief)))

    def snapshot(self, live: Live) -> cache.Snapshot | None:
        """The belief to keep, if a newer one than the last has been worked out."""
        with live.lock:
            search = live.standing.search
            count = len(search.history)
            if count <= live.kept or live.row.finished_at is not None:
                return None
            live.kept = count
            content = pack_belief(search.belief)
            return None if content is None else cache.Snapshot(live.row.id, count, live.standing.digest, content)

    def prepared(self, live: Live) -> cache.Foreseen | None:
        """What follows the open query, to keep, if it has been prepared and is not kept yet."""
        with live.lock:
            return None if live.row.finished_at is not None else put_by(live)

    def all_live(self) -> list[Live]:
        """Every session in memory."""
        with self._lock:
            return list(self._live.values())

    # How

    def _answered_before(self, live: Live, said: Said) -> bool:
        for event in live.events:
            if event.kind == "answer" and event.query == said.query:
                if event.outcome != said.outcome:
                    raise AnswerConflict(
                        f"query {said.query!r} has the answer {event.outcome}, received {said.outcome}: "
                        f"undo first to change it"
                    )
                return True
        return False

    def _check(self, live: Live, said: Said) -> None:
        if said.outcome not in OUTCOMES:
            raise invalid(f"there is no outcome {said.outcome!r}", said.outcome, f"Send one of {', '.join(OUTCOMES)}.")
        offer = live.study.configuration.offer
        if (said.outcome == "tie" and not offer.tie) or (said.outcome == "skip" and not offer.skip):
            raise invalid(
                f"this study does not offer a {said.outcome}", said.outcome, "Send left or right.", "not_offered"
            )
        if not live.row.is_open and live.row.kind == "person":
            raise closed(live.study.row.slug)
        if expired(live.row, live.study):
            raise too_old()
        self._ask(live)
        if live.current is None or live.current.name != said.query:
            open_now = "none" if live.current is None else repr(live.current.name)
            raise UnknownQuery(f"query {said.query!r} is not open in this session, the open one is {open_now}")

    def _check_undo(self, live: Live, query: str) -> None:
        if not live.study.configuration.offer.undo:
            raise invalid("this study does not offer undo", query, "Go on with the next pair.", "not_offered")
        if not live.row.is_open and live.row.kind == "person":
            raise closed(live.study.row.slug)
        done = live.standing.done
        if not done or done[-1].query.name != query:
            last = "none" if not done else repr(done[-1].query.name)
            raise UnknownQuery(f"query {query!r} is not the last answered one, which is {last}: undo that one")

    def _store(self, live: Live, said: Said, began: float) -> None:
        """One transaction: the answer, and what follows it, which is worked out before. Then nothing is half done."""
        asked, prepared = live.current, live.prepared.get(said.outcome)
        assert asked is not None
        ready = foreseen(live, said.outcome) if prepared is None else prepared
        facts = (said.outcome, said.rt_ms, said.shown_at, said.sent_at, said.attempt, now())
        spent = round(1000 * (time.perf_counter() - began), 3)
        event = EventRow(live.row.id, len(live.events), asked.name, "answer", *facts, spent)
        following, standing = ready.query, ready.standing.told(event)
        end = None if following is not None else (str(standing.following[1]), standing.believed())

        def add(connection: sa.Connection) -> QueryRow | None:
            events.add_event(connection, event, version=live.row.version)
            if end is not None:
                sessions.finish(connection, live.row.id, *end)
            return None if following is None else events.add_query(connection, replace(following, asked_at=now()))

        stored = self.database.write(add)
        ANSWERS.labels(said.outcome).inc()
        PREPARED.labels("no" if prepared is None else "yes").inc()
        live.row = replace(live.row, version=live.row.version + 1)
        if end is not None:
            live.row = replace(live.row, finished_at=now(), reason=end[0], final=end[1])
        live.events.append(event)
        live.standing, live.current, live.prepared = standing, stored, {}
        if stored is not None:
            live.queries[stored.name] = stored

    def _ask(self, live: Live) -> None:
        """See that the open query, or the end, is known and stored."""
        if live.current is not None:
            return
        query = live.standing.query(live.row.id, live.queries.values(), live.answered_names())
        if query is None:
            if live.row.finished_at is None:
                reason, final = str(live.standing.following[1]), live.standing.believed()
                self.database.write(lambda connection: sessions.finish(connection, live.row.id, reason, final))
                live.row = replace(live.row, finished_at=now(), reason=reason, final=final)
            return
        stored = live.queries.get(query.name)
        if stored is None:
            stored = self.database.write(lambda connection: events.add_query(connection, query))
        live.queries[stored.name] = live.current = stored
        take_up(live)
