"""Tables of a study, as they are while it runs: answers, participants, estimates, items."""

from __future__ import annotations

import csv
import io
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import sqlalchemy as sa

from pairseek.core.types import JSON
from pairseek.errors import MissingExtra
from pairseek.population import Population
from pairseek.store import events, populations, sessions
from pairseek.store.database import Database
from pairseek.store.events import EventRow, QueryRow
from pairseek.store.sessions import SessionRow
from pairseek.web.data.quality import signs
from pairseek.web.sessions.parts import Beginning, Parts, beginning, records_of
from pairseek.web.sessions.state import Answered, Standing, effective, path_of, voided
from pairseek.web.studies.catalogue import Study

Row = TypeVar("Row")

TABLES = ("answers", "participants", "estimates", "items")
FORMATS = ("csv", "parquet")
# Sessions read at once.
_BATCH = 200


@dataclass(frozen=True, eq=False)
class Told:
    """A session with all that is stored of it."""

    row: SessionRow
    parts: Parts
    queries: tuple[QueryRow, ...] = ()
    events: tuple[EventRow, ...] = ()
    marks: tuple[JSON, ...] = ()
    blurs: tuple[JSON, ...] = ()

    def standing(self, study: Study, done: Iterable[Answered] = ()) -> Standing:
        """Return the state of the session after these answers."""
        return Standing(study.configuration, self.parts, self.row.seed, tuple(one.shown() for one in done))

    @property
    def is_void(self) -> bool:
        """Whether the session as a whole is void."""
        return voided(self.marks)[0]

    @property
    def done(self) -> tuple[Answered, ...]:
        """The answers that count."""
        return effective(self.queries, self.events, voided(self.marks)[1])


def all_told(database: Database, study: Study) -> Iterator[Told]:
    """Return every session of a study but previews, oldest first."""
    rows = database.read(lambda connection: sessions.of_study(connection, study.row.id, ["person", "simulated"]))
    for start in range(0, len(rows), _BATCH):
        batch = rows[start : start + _BATCH]
        yield from told(database, study, batch)


def told(database: Database, study: Study, rows: Sequence[SessionRow]) -> list[Told]:
    """Return these sessions of a study with all that is stored of them."""
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
        Told(
            row,
            began[beginning(row)],
            tuple(queries_by.get(row.id, ())),
            tuple(events_by.get(row.id, ())),
            tuple(marks_by.get(row.id, ())),
            tuple(blurs_by.get(row.id, ())),
        )
        for row in rows
    ]


def parts_of(database: Database, study: Study, rows: Sequence[SessionRow]) -> dict[Beginning, Parts]:
    """Return the parts with which these sessions of a study began."""
    versions = {(row.study_id, row.population) for row in rows if row.population is not None}
    records, learned = records_of(database, rows), populations_of(database, versions)
    return {
        key: Parts(study.items, records[key[2]], learned.get((key[0], key[1]))) for key in set(map(beginning, rows))
    }


def populations_of(
    database: Database, versions: Iterable[tuple[int, int | None]]
) -> dict[tuple[int, int | None], Population]:
    """Return populations by study and version."""
    wanted = sorted((study_id, version) for study_id, version in versions if version is not None)
    found = database.read(
        lambda connection: [populations.content(connection, study_id, version) for study_id, version in wanted]
    )
    return {
        key: Population.from_record(json.loads(zlib.decompress(content)))
        for key, content in zip(wanted, found, strict=True)
    }


def _grouped(rows: Sequence[Row], of: Callable[[Row], str]) -> dict[str, list[Row]]:
    out: dict[str, list[Row]] = {}
    for row in rows:
        out.setdefault(of(row), []).append(row)
    return out


def believed_along(study: Study, one: Told) -> list[JSON]:
    """Return estimate and radius after each answer that counts: as stored when it was given, or computed again.

    They are computed again where an answer was voided. The estimates of a session of another version of the model
    cannot be: then they are None.
    """
    done = one.done
    if not any(answered.void for answered in done):
        stored = _as_stored(one, done)
        if stored is not None:
            return stored
    if not one.parts.is_current:
        return [_unknown(study)] * len(done)
    return [one.standing(study, done[:count]).believed() for count in range(1, len(done) + 1)]


def believed(study: Study, one: Told, along: Sequence[JSON]) -> JSON:
    """Return the newest of the estimates along the answers, or the one before the first answer."""
    if along:
        return along[-1]
    return one.standing(study).believed() if one.parts.is_current else _unknown(study)


def _unknown(study: Study) -> JSON:
    return {"mean": [None] * study.items.d, "radius": None}


def _as_stored(one: Told, done: Sequence[Answered]) -> list[JSON] | None:
    """Return the estimates that were stored with the queries: each query has the belief after the answer before it."""
    known = {(query.position, query.details.get("after")): query.details for query in one.queries}
    shown = [answered.shown() for answered in done]
    out: list[JSON] = []
    for count in range(1, len(done) + 1):
        found = known.get((count, path_of(shown[:count])))
        if found is None and count == len(done):
            found = one.row.final
        if found is None:
            return None
        out.append({name: found[name] for name in ("mean", "radius", "reliability") if name in found})
    return out


def identity(row: SessionRow) -> JSON:
    """Return the columns that say who took part, as far as that is known."""
    return {
        "session": row.id,
        "participant": row.participant,
        "PROLIFIC_PID": row.prolific_pid,
        "STUDY_ID": row.prolific_study,
        "SESSION_ID": row.prolific_session,
        "simulated": row.kind == "simulated",
    }


def answer_rows(study: Study, one: Told) -> Iterator[JSON]:
    """Return one row for each answer, in the order in which they were given, with those that were taken back."""
    counted = {answered.event.number: index for index, answered in enumerate(one.done)}
    along, asked = believed_along(study, one), {query.name: query for query in one.queries}
    void, blurred = voided(one.marks), _blurred(one.blurs)
    dimensions = range(study.items.d)
    for event in one.events:
        if event.kind != "answer":
            continue
        query, index = asked[event.query], counted.get(event.number)
        answered = Answered(query, event)
        after = None if index is None else along[index]
        details = query.details
        losses = blurred.get(query.name, (0, 0))
        yield {
            "study": study.row.slug,
            **identity(one.row),
            "answer_index": None if index is None else index + 1,
            "query": query.name,
            "left": query.left,
            "right": query.right,
            "winner": answered.winner,
            "loser": {query.left: query.right, query.right: query.left}.get(answered.winner or ""),
            "outcome": event.outcome,
            "rt_ms": event.rt_ms,
            "asked_at": query.asked_at,
            "shown_at": event.shown_at,
            "sent_at": event.sent_at,
            "answered_at": event.at,
            "kind": query.kind,
            "strategy": details.get("strategy"),
            "expected_information": details.get("information"),
            "probability_left": details.get("probability_left"),
            **{f"mean_{i}": None if after is None else after["mean"][i] for i in dimensions},
            "radius": None if after is None else after["radius"],
            "repeats": details.get("repeats"),
            "expected": details.get("expected"),
            "passed": answered.passed,
            "undone": index is None,
            "void": void[0] or query.name in void[1],
            "focus_losses": losses[0],
            "focus_lost_ms": losses[1],
            "attempt": event.attempt,
            "server_ms": event.server_ms,
        }


def _blurred(blurs: Sequence[JSON]) -> dict[str, tuple[int, int]]:
    out: dict[str, tuple[int, int]] = {}
    for blur in blurs:
        count, ms = out.get(blur["query"], (0, 0))
        out[blur["query"]] = (count + 1, ms + blur["ms"])
    return out


def participant_row(study: Study, one: Told) -> JSON:
    """Return one row for a session."""
    done = one.done
    along = believed_along(study, one)
    quality = signs(study.configuration, done, manner_of(along))
    row = one.row
    return {
        "study": study.row.slug,
        **identity(row),
        "started_at": row.created_at,
        "finished_at": row.finished_at,
        "reason": row.reason,
        "seed": row.seed,
        "answers": sum(answered.outcome != "skip" for answered in done),
        "ties": sum(answered.outcome == "tie" for answered in done),
        "skips": sum(answered.outcome == "skip" for answered in done),
        "undone": sum(event.kind == "undo" for event in one.events),
        "void": one.is_void,
        "consistency": quality["consistency"],
        "attention": quality["attention"],
        "left_share": quality["left_share"],
        "fast_share": quality["fast_share"],
        "median_rt_ms": quality["median_ms"],
        "focus_losses": len(one.blurs),
        "focus_lost_ms": sum(blur["ms"] for blur in one.blurs),
        "flags": " ".join(quality["flags"]),
    }


def estimate_row(study: Study, one: Told) -> JSON:
    """Return the estimate of one session as a row; void answers do not count."""
    done, true = one.done, (one.row.truth or {}).get("point")
    along = believed_along(study, one)
    found = believed(study, one, along)
    return {
        "study": study.row.slug,
        **identity(one.row),
        "answers": sum(answered.outcome != "skip" for answered in done),
        "finished": one.row.finished_at is not None,
        "void": one.is_void,
        **{f"mean_{i}": value for i, value in enumerate(found["mean"])},
        "radius": found["radius"],
        **_reliability(found.get("reliability")),
        **{f"truth_{i}": None if true is None else true[i] for i in range(study.items.d)},
    }


def manner_of(along: Sequence[JSON]) -> str | None:
    """Return how a person answers, in a word, where that was inferred."""
    found = along[-1].get("reliability") if along else None
    return None if found is None else str(found["word"])


def _reliability(found: JSON | None) -> JSON:
    if found is None:
        return {}
    ends = {"median": "", "low": "_low", "high": "_high"}
    return {
        "manner": found["word"],
        **{f"{name}{end}": found[name][key] for name in ("agreement", "k", "lapse") for key, end in ends.items()},
    }


def item_rows(study: Study) -> Iterator[JSON]:
    """Return one row for each item."""
    items = study.items
    for row in range(items.n):
        yield {
            "id": items.ids[row],
            "label": items.labels[row],
            "appeal": float(items.appeal[row]),
            **{name: values[row] for name, values in items.data.items()},
            **{f"x{i}": float(value) for i, value in enumerate(items.coordinates[row])},
        }


def rows_of(database: Database, study: Study, table: str) -> Iterator[JSON]:
    """Return the rows of a table."""
    if table == "items":
        yield from item_rows(study)
        return
    for one in all_told(database, study):
        if table == "answers":
            yield from answer_rows(study, one)
        else:
            yield (participant_row if table == "participants" else estimate_row)(study, one)


def columns_of(study: Study, table: str) -> list[str]:
    """Return the columns of a table, even if it has no rows."""
    if table == "items":
        return list(next(item_rows(study)))
    row = SessionRow(
        "", study.row.id, "person", 0, None, None, None, None, "", 0, None, None, None, None, None, "", is_open=True
    )
    nobody = Told(row, Parts.resolved(study.configuration, study.items))
    if table == "answers":
        event = EventRow("", 0, "p1", "answer", "left", None, None, None, None, "", None)
        query = QueryRow("", "p1", 0, "strategy", "a", "b", "", {})
        final = {"mean": [0.0] * study.items.d, "radius": 0.0}
        one = replace(nobody, row=replace(row, final=final), queries=(query,), events=(event,))
        return list(next(answer_rows(study, one)))
    return list(participant_row(study, nobody) if table == "participants" else estimate_row(study, nobody))


def as_csv(rows: Iterator[JSON], columns: Sequence[str]) -> Iterator[bytes]:
    """Return a CSV file in pieces."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(name, row.get(name)) for name in columns})
        if text.tell() > 64_000:
            yield text.getvalue().encode()
            text.seek(0)
            text.truncate()
    yield text.getvalue().encode()


def as_parquet(rows: Iterator[JSON], columns: Sequence[str]) -> bytes:
    """Return a Parquet file."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ModuleNotFoundError:
        raise MissingExtra("an export as Parquet", "data") from None
    collected = list(rows)
    table = pa.table({name: _column(pa, name, [row.get(name) for row in collected]) for name in columns})
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


_WHOLE = {"answer_index", "rt_ms", "answers", "ties", "skips", "focus_losses", "focus_lost_ms", "attempt", "seed"}
_TRUTHS = {"simulated", "undone", "void", "passed", "finished"}
_TEXTS = {"participant", "PROLIFIC_PID", "STUDY_ID", "SESSION_ID"}


def _column(pa: Any, name: str, values: list[Any]) -> Any:
    if name in _TRUTHS and name != "undone":
        return pa.array(values, pa.bool_())
    if name in _WHOLE:
        return pa.array(values, pa.int64())
    if all(value is None for value in values):
        numbers = name.startswith(("mean_", "truth_")) or name in ("radius", "server_ms")
        return pa.array(values, pa.float64() if numbers else pa.string())
    return pa.array(values)


def _cell(name: str, value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    # What came in by a link must not become a formula in somebody's spreadsheet.
    if name in _TEXTS and isinstance(value, str) and value[:1] in "=+-@\t\r":
        return f"'{value}"
    return value


def codebook(study: Study) -> Mapping[str, Mapping[str, str]]:
    """Return what every column of every table means."""
    from pairseek.web.data.codebook import meaning

    return {table: {name: meaning(table, name) for name in columns_of(study, table)} for table in TABLES}
