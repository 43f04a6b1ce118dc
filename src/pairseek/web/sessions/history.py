"""Stored histories of sessions: their rows, the parts with which they began, and the estimates along the answers."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import sqlalchemy as sa

from pairseek.core.types import JSON
from pairseek.store import events, populations, sessions
from pairseek.store.database import Database
from pairseek.store.events import AskedPair, EventRow
from pairseek.store.sessions import SessionRow
from pairseek.web.sessions.parts import Learned, PartsKey, SessionParts, learned_from_record, parts_key, records_of
from pairseek.web.sessions.similarity import session_state
from pairseek.web.sessions.state import (
    EffectiveAnswer,
    SessionState,
    attention_checks,
    effective,
    path_of,
    voided,
)
from pairseek.web.studies.catalogue import Study

Row = TypeVar("Row")
# Number of sessions read in one batch.
_BATCH = 200


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
        return session_state(study.configuration, self.parts, self.row.seed, (one.shown() for one in done))

    @property
    def is_void(self) -> bool:
        """Whether the session as a whole is void."""
        return voided(self.marks)[0]

    @property
    def done(self) -> tuple[EffectiveAnswer, ...]:
        """Effective answers."""
        return effective(self.queries, self.events, voided(self.marks)[1])

    @property
    def checks(self) -> tuple[EffectiveAnswer, ...]:
        """First answer to each attention pair."""
        return attention_checks(self.queries, self.events)


def all_histories(database: Database, study: Study) -> Iterator[SessionHistory]:
    """Yield every session of a study except previews, oldest first."""
    rows = database.read(lambda connection: sessions.of_study(connection, study.row.id, ["person", "simulated"]))
    for start in range(0, len(rows), _BATCH):
        batch = rows[start : start + _BATCH]
        yield from read_histories(database, study, batch)


def read_histories(database: Database, study: Study, rows: Sequence[SessionRow]) -> list[SessionHistory]:
    """Read these sessions of a study with all of their rows."""
    names = [row.id for row in rows]

    def read(connection: sa.Connection) -> tuple[Any, ...]:
        return (
            events.queries_of(connection, names),
            events.events_of(connection, names),
            sessions.marks_of(connection, names),
            sessions.blurs_of(connection, names),
        )

    asked, happened, marks, blurs = database.read(read)
    began = parts_of(database, study, rows)
    queries_by = _grouped(asked, lambda query: query.session_id)
    events_by = _grouped(happened, lambda event: event.session_id)
    marks_by, blurs_by = (_grouped(found, lambda one: one["session_id"]) for found in (marks, blurs))
    return [
        SessionHistory(
            row,
            began[parts_key(row)],
            tuple(queries_by.get(row.id, ())),
            tuple(events_by.get(row.id, ())),
            tuple(marks_by.get(row.id, ())),
            tuple(blurs_by.get(row.id, ())),
        )
        for row in rows
    ]


def parts_of(database: Database, study: Study, rows: Sequence[SessionRow]) -> dict[PartsKey, SessionParts]:
    """Return the parts with which these sessions of a study began."""
    versions = {(row.study_id, row.population) for row in rows if row.population is not None}
    records, learned = records_of(database, rows), populations_of(database, versions)
    return {
        key: SessionParts.stored(study.at(key[3]).items, records[key[2]], learned.get((key[0], key[1])))
        for key in set(map(parts_key, rows))
    }


def populations_of(
    database: Database, versions: Iterable[tuple[int, int | None]]
) -> dict[tuple[int, int | None], Learned]:
    """Return populations by study and version; of a similarity study, its maps."""
    wanted = sorted((study_id, version) for study_id, version in versions if version is not None)
    found = database.read(
        lambda connection: [populations.content(connection, study_id, version) for study_id, version in wanted]
    )
    return {
        key: learned_from_record(json.loads(zlib.decompress(content)))
        for key, content in zip(wanted, found, strict=True)
    }


def _grouped(rows: Sequence[Row], of: Callable[[Row], str]) -> dict[str, list[Row]]:
    out: dict[str, list[Row]] = {}
    for row in rows:
        out.setdefault(of(row), []).append(row)
    return out


def estimates_along(study: Study, one: SessionHistory) -> list[JSON]:
    """Return estimate and radius after each effective answer: as stored, or recomputed.

    They are computed again where an answer was voided. The estimates of a session of another version of the model
    cannot be: then they are None.
    """
    done = one.done
    if study.configuration.is_similarity:
        return [_unknown(study)] * len(done)
    if not any(answered.void for answered in done):
        stored = _as_stored(one, done)
        if stored is not None:
            return stored
    if not one.parts.is_current:
        return [_unknown(study)] * len(done)
    return [one.state(study, done[:count]).estimate_record() for count in range(1, len(done) + 1)]


def latest_estimate(study: Study, one: SessionHistory, along: Sequence[JSON]) -> JSON:
    """Return the newest estimate, or the one before the first answer."""
    if along:
        return along[-1]
    is_known = one.parts.is_current and not study.configuration.is_similarity
    return one.state(study).estimate_record() if is_known else _unknown(study)


def _unknown(study: Study) -> JSON:
    return {"mean": [None] * study.items.d, "radius": None}


def _as_stored(one: SessionHistory, done: Sequence[EffectiveAnswer]) -> list[JSON] | None:
    """Return the estimates that were stored with the queries: each query has the belief after the answer before it."""
    known = {(query.position, query.details.get("after")): query.details for query in one.queries}
    shown = [answered.shown() for answered in done]
    out: list[JSON] = []
    for count in range(1, len(done) + 1):
        found = known.get((count, path_of(shown[:count])))
        if found is None and count == len(done):
            found = one.row.final
        if found is None or "mean" not in found:
            # An estimate that followed from a dropped population was removed.
            return None
        out.append({name: found[name] for name in ("mean", "radius", "reliability") if name in found})
    return out
