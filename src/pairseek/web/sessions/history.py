"""Stored histories of sessions: their rows, their parts, and the estimate after each answer."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import sqlalchemy as sa

from pairseek.core.types import JSON
from pairseek.store import events, populations, sessions
from pairseek.store import parts as stored_parts
from pairseek.store.database import Database
from pairseek.store.events import AskedPair, EventRow
from pairseek.store.sessions import SessionRow
from pairseek.web.sessions.access import session_deleted
from pairseek.web.sessions.parts import Learned, SessionParts, learned_from_record, parts_key
from pairseek.web.sessions.similarity import session_state
from pairseek.web.sessions.state import (
    EffectiveAnswer,
    SessionState,
    answers_hash,
    attention_checks,
    effective_answers,
    voids_of,
)
from pairseek.web.studies.catalogue import Study

Row = TypeVar("Row")
_Version: TypeAlias = "tuple[int, int | None]"
# Number of sessions per read.
_BATCH_SIZE = 200


@dataclass(frozen=True, eq=False)
class SessionHistory:
    """Session with all of its stored rows."""

    row: SessionRow
    parts: SessionParts
    queries: tuple[AskedPair, ...] = ()
    events: tuple[EventRow, ...] = ()
    marks: tuple[JSON, ...] = ()
    blurs: tuple[JSON, ...] = ()

    def state(self, study: Study, done: Iterable[EffectiveAnswer] = ()) -> SessionState:
        """Return the state of the session after these answers."""
        return session_state(
            study.configuration, self.parts, self.row.seed, (answer.answered_pair() for answer in done)
        )

    @property
    def is_void(self) -> bool:
        """Whether the session as a whole is void."""
        return voids_of(self.marks)[0]

    @property
    def done(self) -> tuple[EffectiveAnswer, ...]:
        """Effective answers."""
        return effective_answers(self.queries, self.events, voids_of(self.marks)[1])

    @property
    def checks(self) -> tuple[EffectiveAnswer, ...]:
        """First answer to each attention pair."""
        return attention_checks(self.queries, self.events)


def iterate_histories(database: Database, study: Study) -> Iterator[SessionHistory]:
    """Yield all sessions of a study except previews, oldest first."""
    rows = database.read(lambda connection: sessions.of_study(connection, study.row.id, ["person", "simulated"]))
    for start in range(0, len(rows), _BATCH_SIZE):
        batch = rows[start : start + _BATCH_SIZE]
        yield from read_histories(database, study, batch)


def read_history(database: Database, study: Study, row: SessionRow) -> SessionHistory:
    """Read a session of a study with all of its rows; raise a `Problem` if it has been deleted."""
    histories = read_histories(database, study, [row])
    if not histories:
        raise session_deleted()
    return histories[0]


def read_histories(database: Database, study: Study, rows: Sequence[SessionRow]) -> list[SessionHistory]:
    """Read sessions of a study with all of their rows, except those that have been deleted since their row was read.

    Their rows are read again, because a deletion replaces the parts of other sessions, too.
    """
    ids = [row.id for row in rows]

    def read(connection: sa.Connection) -> tuple[Any, ...]:
        present = sessions.by_ids(connection, ids)
        return (
            present,
            stored_parts.contents(connection, {row.parts for row in present}),
            _population_contents(connection, {(row.study_id, row.population) for row in present}),
            events.queries_of(connection, ids),
            events.events_of(connection, ids),
            sessions.marks_of(connection, ids),
            sessions.blurs_of(connection, ids),
        )

    # In one transaction, because a deletion may come between two.
    rows, records, contents, stored_queries, stored_events, marks, blurs = database.read(read)
    learned = {key: _unpacked(content) for key, content in contents.items()}
    parts = {
        key: SessionParts.from_record(
            study.with_catalogue(key.catalogue).items, records[key.parts], learned.get((key.study, key.population))
        )
        for key in set(map(parts_key, rows))
    }
    queries_by = _group_by(stored_queries, lambda query: query.session_id)
    events_by = _group_by(stored_events, lambda event: event.session_id)
    marks_by, blurs_by = (_group_by(records, lambda row: row["session_id"]) for records in (marks, blurs))
    return [
        SessionHistory(
            row,
            parts[parts_key(row)],
            tuple(queries_by.get(row.id, ())),
            tuple(events_by.get(row.id, ())),
            tuple(marks_by.get(row.id, ())),
            tuple(blurs_by.get(row.id, ())),
        )
        for row in rows
    ]


def populations_of(database: Database, versions: Iterable[_Version]) -> dict[_Version, Learned]:
    """Return the populations, or the maps of a similarity study, by (study, version)."""
    contents = database.read(lambda connection: _population_contents(connection, versions))
    return {key: _unpacked(content) for key, content in contents.items()}


def _population_contents(connection: sa.Connection, versions: Iterable[_Version]) -> dict[_Version, bytes]:
    keys = [(study_id, version) for study_id, version in set(versions) if version is not None]
    return {(study_id, version): populations.content(connection, study_id, version) for study_id, version in keys}


def _unpacked(content: bytes) -> Learned:
    return learned_from_record(json.loads(zlib.decompress(content)))


def _group_by(rows: Sequence[Row], key: Callable[[Row], str]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def estimate_history(study: Study, session: SessionHistory) -> list[JSON]:
    """Return the estimate and radius after each effective answer, as stored if possible.

    They are recomputed if an answer was voided, and None if that is impossible because the parts are not usable.
    """
    done = session.done
    if study.configuration.is_similarity:
        return [_unknown_estimate(study)] * len(done)
    if not any(answered.void for answered in done):
        stored = _stored_estimates(session, done)
        if stored is not None:
            return stored
    if not session.parts.is_usable:
        return [_unknown_estimate(study)] * len(done)
    return [session.state(study, done[:count]).estimate_record() for count in range(1, len(done) + 1)]


def latest_estimate(study: Study, session: SessionHistory, estimates: Sequence[JSON]) -> JSON:
    """Return the latest estimate, or else the estimate before the first answer."""
    if estimates:
        return estimates[-1]
    is_computable = session.parts.is_usable and not study.configuration.is_similarity
    return session.state(study).estimate_record() if is_computable else _unknown_estimate(study)


def _unknown_estimate(study: Study) -> JSON:
    return {"mean": [None] * study.items.d, "radius": None}


def _stored_estimates(session: SessionHistory, done: Sequence[EffectiveAnswer]) -> list[JSON] | None:
    """Return the stored estimates; None if some are missing.

    Each query is stored with the estimate after the previous answer.
    """
    stored = {(query.position, query.details.get("after")): query.details for query in session.queries}
    pairs = [answered.answered_pair() for answered in done]
    estimates: list[JSON] = []
    for count in range(1, len(done) + 1):
        details = stored.get((count, answers_hash(pairs[:count])))
        if details is None and count == len(done):
            details = session.row.final
        if details is None or "mean" not in details:
            # Estimates from a dropped population were removed.
            return None
        estimates.append({name: details[name] for name in ("mean", "radius", "reliability") if name in details})
    return estimates
