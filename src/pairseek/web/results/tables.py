"""Export tables of a study: answers, participants, estimates, items, the group ranking and people's tastes."""

from __future__ import annotations

import contextlib
import csv
import io
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, TypeAlias

from pairseek.core.frames import has_parquet
from pairseek.core.media import FILE_COLUMNS, MEDIA
from pairseek.core.messages import DEFAULT, words
from pairseek.core.types import JSON, ItemId
from pairseek.errors import InvalidChoices, MissingExtra
from pairseek.people.ranking.personal import PersonalChances
from pairseek.people.ranking.ranking import RANKING_COLUMNS
from pairseek.store import sessions
from pairseek.store.database import Database
from pairseek.store.events import AskedPair, EventRow
from pairseek.store.sessions import SessionRow
from pairseek.web.results.codebook import is_known, meaning
from pairseek.web.results.findings import GroupFindings, findings_of
from pairseek.web.results.quality import manner_of, quality_indicators
from pairseek.web.sessions.history import SessionHistory, estimate_history, iterate_histories, latest_estimate
from pairseek.web.sessions.parts import SessionParts
from pairseek.web.sessions.state import EffectiveAnswer, voids_of
from pairseek.web.studies.catalogue import Study
from pairseek.web.studies.questions import replies_by_question

TABLES = ("answers", "participants", "estimates", "items", "ranking", "people")
"""Tables of every export."""
MAX_PERSONAL_ITEMS = 500
"""Largest number of items in the table of people's tastes; the best-ranked are exported."""

FindingsSource: TypeAlias = Callable[[Study], GroupFindings]
"""Returns the findings of a study; raises `InvalidChoices` if there is nothing to rank."""


_TASTE_COLUMNS = ("id", "label", "probability", "probability_low", "probability_high", "answers")


URL_PREFIX = "url_"
"""Beginning of the columns of a link's variables."""
QUESTION_PREFIX = "question_"
"""Beginning of the columns of the researcher's own questions."""


def formats() -> list[str]:
    """Return the table formats that this installation can write."""
    return ["csv", "parquet"] if has_parquet() else ["csv"]


def identity(row: SessionRow) -> JSON:
    """Return the columns that identify a participant, as far as they are known."""
    return {
        "session": row.id,
        "participant": row.participant,
        "PROLIFIC_PID": row.prolific_pid,
        "STUDY_ID": row.prolific_study,
        "SESSION_ID": row.prolific_session,
        "simulated": row.kind == "simulated",
    }


def answer_rows(study: Study, session: SessionHistory) -> Iterator[JSON]:
    """Yield a row per answer in chronological order, including undone answers."""
    counted = {answered.event.number: index for index, answered in enumerate(session.done)}
    estimates, asked = estimate_history(study, session), {query.name: query for query in session.queries}
    void, blurred = voids_of(session.marks), _blurred(session.blurs)
    places = coordinate_names(study)
    shown = ("left", "right", *(("anchor",) if study.configuration.is_similarity else ()))
    sides = shown if study.has_players else ()
    for event in session.events:
        if event.kind != "answer":
            continue
        query, index = asked[event.query], counted.get(event.number)
        answered = EffectiveAnswer(query, event)
        after = None if index is None else estimates[index]
        details = query.details
        losses = blurred.get(query.name, (0, 0))
        yield {
            "study": study.row.slug,
            **identity(session.row),
            "answer_index": None if index is None else index + 1,
            "query": query.name,
            **({"anchor": details.get("anchor")} if study.configuration.is_similarity else {}),
            "left": query.left,
            "right": query.right,
            "winner": answered.winner,
            "loser": {query.left: query.right, query.right: query.left}.get(answered.winner or ""),
            "outcome": event.outcome,
            **({f"{side}_played": (event.played or {}).get(side) for side in sides}),
            "rt_ms": event.rt_ms,
            "asked_at": query.asked_at,
            "shown_at": event.shown_at,
            "sent_at": event.sent_at,
            "answered_at": event.at,
            "kind": query.kind,
            "strategy": details.get("strategy"),
            "expected_information": details.get("information"),
            "probability_left": details.get("probability_left"),
            **{name: None if after is None else after["mean"][i] for i, name in enumerate(places)},
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


def participant_row(study: Study, session: SessionHistory) -> JSON:
    """Return a session as a row."""
    done = session.done
    estimates = estimate_history(study, session)
    quality = quality_indicators(study.configuration, done, session.checks, manner_of(estimates))
    row = session.row
    return {
        "study": study.row.slug,
        **identity(row),
        **{f"{URL_PREFIX}{name}": value for name, value in (row.variables or {}).items()},
        **question_cells(study, row),
        "started_at": row.created_at,
        "finished_at": row.finished_at,
        "reason": row.reason,
        "seed": row.seed,
        "answers": sum(answered.outcome != "skip" for answered in done),
        "ties": sum(answered.outcome == "tie" for answered in done),
        "skips": sum(answered.outcome == "skip" for answered in done),
        "undone": sum(event.kind == "undo" for event in session.events),
        "void": session.is_void,
        "consistency": quality["consistency"],
        "attention": quality["attention"],
        "left_share": quality["left_share"],
        "fast_share": quality["fast_share"],
        "median_rt_ms": quality["median_ms"],
        "focus_losses": len(session.blurs),
        "focus_lost_ms": sum(blur["ms"] for blur in session.blurs),
        "flags": " ".join(quality["flags"]),
    }


def estimate_row(study: Study, session: SessionHistory) -> JSON:
    """Return the estimate of a session as a row; void answers do not count."""
    done, truth = session.done, (session.row.truth or {}).get("point")
    estimates = estimate_history(study, session)
    estimate = latest_estimate(study, session, estimates)
    return {
        "study": study.row.slug,
        **identity(session.row),
        "answers": sum(answered.outcome != "skip" for answered in done),
        "finished": session.row.finished_at is not None,
        "void": session.is_void,
        **dict(zip(coordinate_names(study), estimate["mean"], strict=True)),
        "radius": estimate["radius"],
        **_reliability(estimate.get("reliability")),
        **{f"truth_{name}": None if truth is None else truth[i] for i, name in enumerate(coordinate_names(study))},
    }


def _reliability(record: JSON | None) -> JSON:
    if record is None:
        return {}
    return {
        "manner": record["word"],
        **{
            f"{name}{end}": record[name][key]
            for name in _RELIABILITY_PARAMETERS
            for key, end in _INTERVAL_SUFFIXES.items()
        },
    }


_RELIABILITY_PARAMETERS = ("agreement", "k", "lapse")
_INTERVAL_SUFFIXES = {"median": "", "low": "_low", "high": "_high"}
RELIABILITY_COLUMNS = (
    "manner",
    *(f"{name}{end}" for name in _RELIABILITY_PARAMETERS for end in _INTERVAL_SUFFIXES.values()),
)
"""Columns about how a person answers, in studies that infer it."""


def item_rows(study: Study) -> Iterator[JSON]:
    """Yield a row per item, including replaced items."""
    items, names = study.all_items, data_names(study)
    for row in range(items.n):
        yield {
            "id": items.ids[row],
            "label": items.labels[row],
            "appeal": float(items.appeal[row]),
            **{names.get(name, name): values[row] for name, values in items.data.items()},
            **dict(zip(coordinate_names(study), items.coordinates[row].tolist(), strict=True)),
        }


def ranking_rows(study: Study, findings: FindingsSource) -> Iterator[JSON]:
    """Yield a row per item, best first; no rows while there is nothing to rank."""
    items, shown = study.all_items, shown_columns(study)
    with contextlib.suppress(InvalidChoices):
        for item in findings(study).ranking:
            row = items.find(item.id)
            yield {**asdict(item), **({name: items.data[name][row] for name in shown} if row >= 0 else {})}


def personal_rows(database: Database, study: Study, findings: FindingsSource) -> Iterator[JSON]:
    """Yield a row per person and item, best-ranked items first; no rows while there is nothing to rank."""
    with contextlib.suppress(InvalidChoices):
        group = findings(study)
        people = {row.id: row for row in session_rows(database, study)}
        indices = {item: index for index, item in enumerate(group.tastes.ids)}
        columns_of_items = [
            (item.id, item.label, indices[item.id]) for item in group.ranking.items[:MAX_PERSONAL_ITEMS]
        ]
        for number, person in enumerate(group.tastes.chances()):
            # Someone may have been forgotten since the findings were computed.
            if person.person in people:
                row = people[person.person]
                columns = {"study": study.row.slug, **identity(row), **standing(group, number)}
                for item, label, index in columns_of_items:
                    yield {**columns, **_taste_columns(item, label, person, index)}


def session_rows(database: Database, study: Study) -> list[SessionRow]:
    """Return the sessions that are exported, oldest first."""
    return database.read(lambda connection: sessions.of_study(connection, study.row.id, ["person", "simulated"]))


def standing(group: GroupFindings, number: int) -> JSON:
    """Return the segment and the weight of a person behind the findings."""
    segment = int(group.segments.membership[number].argmax()) + 1
    return {"segment": segment if len(group.segments) > 1 else None, "weight": float(group.model.trust[number])}


def _taste_columns(item: ItemId, label: str, person: PersonalChances, index: int) -> JSON:
    return {
        "id": item,
        "label": label,
        "probability": float(person.chance[index]),
        "probability_low": float(person.low[index]),
        "probability_high": float(person.high[index]),
        "answers": int(person.answers[index]),
    }


def rows_of(database: Database, study: Study, table: str, findings: FindingsSource | None = None) -> Iterator[JSON]:
    """Yield the rows of a table; ``findings``, if given, returns the findings, which are otherwise computed."""
    findings = findings or (lambda study: findings_of(database, study))
    if table == "people":
        yield from personal_rows(database, study, findings)
        return
    if table == "items":
        yield from item_rows(study)
        return
    if table == "ranking":
        yield from ranking_rows(study, findings)
        return
    for session in iterate_histories(database, study):
        if table == "answers":
            yield from answer_rows(study, session)
        else:
            yield (participant_row if table == "participants" else estimate_row)(study, session)


def question_cells(study: Study, row: SessionRow) -> JSON:
    """Return the replies to the researcher's own questions, a column for each."""
    replies = replies_by_question(row.replies)
    return {
        f"{QUESTION_PREFIX}{question.name}": replies.get(question.name) for question in study.configuration.questions
    }


def columns_of(study: Study, table: str, variables: Sequence[str] = ()) -> list[str]:
    """Return the columns of a table; only the ``variables`` of links depend on the sessions that there are."""
    if table == "items":
        return list(next(item_rows(study)))
    if table == "ranking":
        return [*RANKING_COLUMNS, *shown_columns(study)]
    if table == "people":
        return ["study", *identity(_no_session(study)), "segment", "weight", *_TASTE_COLUMNS]
    nobody = SessionHistory(_no_session(study), SessionParts.resolved(study.configuration, study.items))
    if table == "answers":
        event = EventRow("", 0, "p1", "answer", "left", None, None, None, None, "", None)
        query = AskedPair("", "p1", 0, "strategy", "a", "b", "", {})  # the anchor column depends on the kind of study
        final = {"mean": [0.0] * study.items.d, "radius": 0.0}
        session = replace(nobody, row=replace(nobody.row, final=final), queries=(query,), events=(event,))
        return list(next(answer_rows(study, session)))
    if table == "participants":
        named = replace(nobody.row, variables=dict.fromkeys(variables, ""))
        return list(participant_row(study, replace(nobody, row=named)))
    return list(estimate_row(study, nobody))


def _no_session(study: Study) -> SessionRow:
    ids = dict.fromkeys(("participant", "prolific_pid", "prolific_study", "prolific_session"))
    ends = dict.fromkeys(("finished_at", "confirmed_at", "reason", "final", "truth", "population", "browser"))
    began = {"id": "", "study_id": study.row.id, "kind": "person", "seed": 0, "created_at": "", "version": 0}
    return SessionRow(**began, **ids, **ends, parts="", catalogue=0, is_open=True)  # type: ignore[arg-type]


def as_csv(rows: Iterator[JSON], columns: Sequence[str], *, for_excel: bool = False) -> Iterator[bytes]:
    """Yield a CSV file in chunks; Excel takes it for UTF-8 only if it begins with a byte order mark."""
    text = io.StringIO()
    if for_excel:
        text.write("\N{BYTE ORDER MARK}")
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
    cells: dict[str, list[Any]] = {name: [] for name in columns}
    for row in rows:
        for name, values in cells.items():
            values.append(row.get(name))
    table = pa.table({name: _column(pa, name, values) for name, values in cells.items()})
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


_INTEGER_COLUMNS = {
    "answer_index",
    "rt_ms",
    "answers",
    "ties",
    "skips",
    "focus_losses",
    "focus_lost_ms",
    "attempt",
    "seed",
    "segment",
}
_BOOLEAN_COLUMNS = {"simulated", "undone", "void", "passed", "finished"}
# Texts that anybody can send: ids in links, and times of the browser.
_VISITOR_COLUMNS = {"participant", "PROLIFIC_PID", "STUDY_ID", "SESSION_ID", "shown_at", "sent_at"}


def _column(pa: Any, name: str, values: list[Any]) -> Any:
    if name in _BOOLEAN_COLUMNS and name != "undone":
        return pa.array(values, pa.bool_())
    if name in _INTEGER_COLUMNS:
        return pa.array(values, pa.int64())
    if all(value is None for value in values):
        numbers = not is_known(name) or name in ("radius", "server_ms")
        return pa.array(values, pa.float64() if numbers else pa.string())
    return pa.array(values)


def _cell(name: str, value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    is_visitors = name in _VISITOR_COLUMNS or name.startswith((URL_PREFIX, QUESTION_PREFIX))
    if is_visitors and isinstance(value, str) and _is_formula(value):
        return f"'{value}"
    return value


def _is_formula(text: str) -> bool:
    """Return whether a spreadsheet program might execute a visitor's text as a formula.

    Programs skip blanks and control characters before a formula, and some treat full-width signs like plain ones.
    """
    if text[:1] in ("\t", "\r", "\n"):
        return True
    visible = "".join(ch for ch in unicodedata.normalize("NFKC", text) if not unicodedata.category(ch).startswith("C"))
    return visible.strip()[:1] in tuple("=+-@\N{MINUS SIGN}")


def coordinate_names(study: Study) -> list[str]:
    """Return the columns of the coordinates: the researcher's names, with a suffix if they clash with other columns."""
    return [f"{name}_coordinate" if is_known(name) else name for name in study.items.columns]


def shown_columns(study: Study) -> list[str]:
    """Return the data columns by which a person recognizes an item, such as its text or picture file."""
    data = study.all_items.data
    # A stored file is named by a hash, but the uploaded file by the researcher.
    return [name for name in (*MEDIA, *FILE_COLUMNS.values()) if name in data and FILE_COLUMNS.get(name) not in data]


def data_names(study: Study) -> dict[str, str]:
    """Return the exported names of all other data columns, which must not clash with other columns."""
    further = [name for name in study.all_items.data if name not in (*MEDIA, *FILE_COLUMNS.values())]
    return {name: f"{name}_data" if is_known(name) else name for name in further}


def variables_of(database: Database, study: Study) -> list[str]:
    """Return the names of the variables that links to the study had."""
    return database.read(lambda connection: sessions.variable_names(connection, study.row.id))


def codebook(study: Study, language: str = DEFAULT, variables: Sequence[str] = ()) -> Mapping[str, Mapping[str, str]]:
    """Return the description of every column by table, in the given language."""
    catalogue = words(language)
    places, further = coordinate_names(study), data_names(study).values()
    asked = {f"{QUESTION_PREFIX}{question.name}": question.text for question in study.configuration.questions}

    def description(table: str, name: str) -> str:
        if table == "participants" and name in asked:
            return catalogue.say("codebook.question", text=asked[name])
        if table == "participants" and name.startswith(URL_PREFIX):
            return catalogue.say("codebook.variable", name=name.removeprefix(URL_PREFIX))
        return meaning(catalogue, table, name, places, further if table == "items" else ())

    return {table: {name: description(table, name) for name in columns_of(study, table, variables)} for table in TABLES}
