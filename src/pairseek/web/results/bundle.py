"""Study bundles: one zip with tables, configuration, parts, versions, seeds, raw records and codebook."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import platform
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pairseek._version import MODEL_VERSION, __version__
from pairseek.core.archives import UNREADABLE, ArchiveTooLarge, LimitedArchive
from pairseek.core.limits import Size, check_limits
from pairseek.core.types import JSON
from pairseek.embed.active import check_count
from pairseek.errors import InvalidFile, InvalidParameter, MissingExtra, PairseekError
from pairseek.model.item_records import items_from
from pairseek.model.items import Items
from pairseek.people.ranking import Ranking
from pairseek.store.database import Database, now
from pairseek.store.events import AskedPair, EventRow
from pairseek.web.results import tables
from pairseek.web.sessions import history
from pairseek.web.sessions.parts import SessionParts, learned_from_record
from pairseek.web.sessions.similarity import session_state
from pairseek.web.sessions.state import EffectiveAnswer, SessionState, effective, voided
from pairseek.web.studies.catalogue import Study
from pairseek.web.studies.configuration import StudyConfiguration, configured

FORMAT = "pairseek bundle"
FORMAT_VERSION, WITH_CATALOGUES = 2, 3
"""Versions of the format: of a study, and of a study whose items were replaced."""
MOST_CANDIDATES = 100_000
"""Triplets among which a session of a similarity study may choose."""
POPULATIONS = "populations.json"
CATALOGUES = "catalogues.json"
PARTS = "parts.json"
TOLERANCE = 0.1
"""Tolerance of replayed estimates, relative to the radius, for other versions or processors: rounding can change the
outcome of a resampling step, which leaves sampling noise of a few hundredths of the radius."""
# What records of another shape than the exported one lead to.
_MALFORMED = (
    PairseekError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    AssertionError,
    RecursionError,
    MemoryError,
)
_UNEXPORTED = ("study_id", "version", "browser", "is_open")


def write(database: Database, study: Study, out: BinaryIO, ranking: Callable[[Study], Ranking] | None = None) -> None:
    """Write the bundle of a study; ``ranking`` returns the group ranking if it is not to be computed here."""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for table in tables.TABLES:
            columns = tables.columns_of(study, table)
            with archive.open(f"{table}.csv", "w") as file:
                for piece in tables.as_csv(tables.rows_of(database, study, table, ranking), columns):
                    file.write(piece)
            try:
                rows = tables.rows_of(database, study, table, ranking)
                archive.writestr(f"{table}.parquet", tables.as_parquet(rows, columns))
            except MissingExtra:
                continue
        archive.writestr("study.json", _json(_study_record(study)))
        learned: dict[str, JSON] = {}
        began: dict[str, JSON] = {}
        catalogues: set[int] = set()
        with archive.open("sessions.jsonl", "w") as file:
            for one in history.all_histories(database, study):
                file.write(json.dumps(_session_record(study, one)).encode() + b"\n")
                began[one.row.parts] = one.parts.record
                catalogues.add(one.row.catalogue)
                population = one.parts.population
                if population is not None and str(one.row.population) not in learned:
                    learned[str(one.row.population)] = population.record()
        archive.writestr(PARTS, _json(began))
        archive.writestr(POPULATIONS, _json(learned))
        archive.writestr("items.json", _json(study.items.record()))
        if study.row.catalogue:
            numbers = sorted(set(catalogues) - {study.row.catalogue})
            records = {str(number): study.at(number).items.record() for number in numbers}
            archive.writestr(CATALOGUES, _json(records))
        archive.writestr("codebook.csv", _codebook(study))
        archive.writestr("README.txt", _README.format(slug=study.row.slug))


_README = """The study {slug} at the time of the export.

answers, participants, estimates, items, ranking   tables as CSV, and as Parquet if pyarrow was installed
codebook.csv        descriptions of the columns of all tables
study.json          configuration of the study, and versions of the software
items.json          the items, with coordinates in full precision
catalogues.json     if the items were replaced: the earlier ones that sessions began with, by number
parts.json          the parts of the searches with all settings, by key, and their model version
populations.json    the populations with which sessions began, by version
sessions.jsonl      one session per line: seed, key of its parts, queries, answers, and who voided them

pairseek replay FILE.zip recomputes every estimate and reports the differences.
"""


def _study_record(study: Study) -> JSON:
    return {
        "format": FORMAT,
        "format_version": WITH_CATALOGUES if study.row.catalogue else FORMAT_VERSION,
        "made_at": now(),
        "slug": study.row.slug,
        "created_at": study.row.created_at,
        "items_hash": study.items.hash,
        "catalogue": study.row.catalogue,
        "configuration": study.configuration.model_dump(mode="json"),
        "versions": versions(),
    }


def versions() -> JSON:
    """Return the versions on which bit-identical results depend."""
    return {
        "pairseek": __version__,
        "model": MODEL_VERSION,
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in ("numpy", "scipy", "numba")},
        "machine": platform.machine(),
        "processor": _processor(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), sys.platform)


def _session_record(study: Study, one: history.SessionHistory) -> JSON:
    along = history.estimates_along(study, one)
    return {
        **{key: value for key, value in asdict(one.row).items() if key not in _UNEXPORTED},
        "queries": [_without_session(asdict(query)) for query in one.queries],
        "events": [_event(event) for event in one.events],
        "marks": [_without_session(mark) for mark in one.marks],
        "blurs": [_without_session(blur) for blur in one.blurs],
        "estimate": along[-1] if along else None,
    }


def _event(event: EventRow) -> JSON:
    """Return an event; what was played only where there was something to play."""
    record = _without_session(asdict(event))
    return record if event.played is not None else {key: value for key, value in record.items() if key != "played"}


def _without_session(record: JSON) -> JSON:
    return {key: value for key, value in record.items() if key != "session_id"}


def _codebook(study: Study) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["table", "column", "meaning"])
    for table, columns in tables.codebook(study).items():
        writer.writerows([table, name, words] for name, words in columns.items())
    return text.getvalue()


def _json(record: object) -> str:
    return json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True, eq=False)
class Bundle:
    """Content of a bundle file."""

    slug: str
    configuration: StudyConfiguration
    versions: JSON
    sessions: tuple[JSON, ...]
    parts: Mapping[tuple[int | None, str, int], SessionParts]
    """By version of the population, key, and number of the catalogue."""
    path: Path

    def parts_of(self, session: JSON) -> SessionParts:
        """Return the parts with which a session began."""
        return self.parts[_began(session)]

    @property
    def current(self) -> tuple[JSON, ...]:
        """Sessions that began with the model version of this pairseek."""
        return tuple(session for session in self.sessions if self.parts_of(session).is_current)

    @property
    def dropped(self) -> tuple[JSON, ...]:
        """Sessions whose parts followed from a population that was learned from someone who was forgotten."""
        return tuple(session for session in self.sessions if self.parts_of(session).dropped is not None)

    @property
    def models(self) -> list[Any]:
        """Model versions with which the sessions began."""
        return sorted({parts.model for parts in self.parts.values()}, key=str)

    @property
    def same_program(self) -> bool:
        """Whether this program has the versions that wrote the bundle, so that results are bit-identical."""
        return self.versions == versions()


def read(path: Path) -> Bundle:
    """Read a bundle whose sessions this pairseek can recompute; raise `InvalidFile` otherwise."""
    try:
        with LimitedArchive(path) as archive:
            record = json.loads(archive.read("study.json"))
            _check_format(path, record)
            names = ("items.json", "sessions.jsonl", PARTS, POPULATIONS)
            items, sessions, parts, learned = (archive.read(name) for name in names)
            replaced = archive.read(CATALOGUES) if record["format_version"] == WITH_CATALOGUES else b"{}"
        catalogues = {int(number): items_from(one) for number, one in json.loads(replaced).items()}
        catalogues[int(record.get("catalogue", 0))] = items_from(json.loads(items))
        given = {number: one for number, one in catalogues.items() if isinstance(one, Items)}
        if len(given) < len(catalogues):
            raise InvalidFile(f"{path} has no items, but a continuous space: it is not a bundle of pairseek")
        people = tuple(json.loads(line) for line in sessions.splitlines() if line)
        known = {int(number): learned_from_record(one) for number, one in json.loads(learned).items()}
        pieces = json.loads(parts)
        shared = {
            (version, key, number): SessionParts.stored(
                given[number], pieces[key], None if version is None else known[version]
            )
            for version, key, number in map(_began, people)
        }
        bundle = Bundle(record["slug"], configured(record["configuration"]), record["versions"], people, shared, path)
        for one in shared.values():
            _check_parts(one)
    except FileNotFoundError:
        raise InvalidFile(f"there is no file {path}") from None
    except ArchiveTooLarge as error:
        raise InvalidFile(f"{path}: {error}; it is not a bundle that pairseek export wrote") from None
    except (*UNREADABLE, *_MALFORMED) as error:
        if isinstance(error, InvalidFile) and str(path) in str(error):
            raise
        raise InvalidFile(f"{path} cannot be read as a bundle: {_said(error)}; export it again") from None
    if len(bundle.sessions) > len(bundle.dropped) and not bundle.current:
        raise InvalidFile(
            f"{path} was computed by version {' and '.join(map(str, bundle.models))} of the model, and this pairseek "
            f"has version {MODEL_VERSION}: replay it with the pairseek that wrote it, "
            f"{record['versions'].get('pairseek')}"
        )
    return bundle


def _began(session: JSON) -> tuple[int | None, str, int]:
    """Return version of the population, key of the parts, and number of the catalogue that a session began with."""
    return session["population"], session["parts"], session.get("catalogue", 0)


def _check_parts(parts: SessionParts) -> None:
    """Raise an `InvalidParameter` for parts that no study may have, because they could take any time and memory."""
    if not isinstance(parts.model, int | str):
        raise TypeError(f"the version of the model is {parts.model!r}")
    if not parts.is_current:
        return
    if parts.record.get("kind") == "similarity":
        if not 1 <= int(parts.record["candidates"]) <= MOST_CANDIDATES:
            raise InvalidParameter(f"the number of candidates is {parts.record['candidates']}")
        check_count(parts.given.n)
        return
    decoded = parts.decoded
    size = Size(parts.given.n, parts.given.d, unknown=decoded["response"].unknown)
    for kind, part in decoded.items():
        for one in part if isinstance(part, list) else [part]:
            if one is not None:
                check_limits(one, kind, size)


def _said(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return text if len(text) <= 300 else f"{text[:297]}..."


def _check_format(path: Path, record: object) -> None:
    if not isinstance(record, dict) or not isinstance(record.get("versions", {}), dict):
        raise InvalidFile(f"{path}: study.json must hold an object: it is not a bundle of pairseek")
    if record.get("format") != FORMAT:
        raise InvalidFile(
            f"{path} has the format {record.get('format')!r}, not {FORMAT!r}: it is not a bundle of pairseek"
        )
    found = record.get("format_version")
    if found not in (FORMAT_VERSION, WITH_CATALOGUES):
        raise InvalidFile(
            f"{path} is a bundle of format version {found}, and this pairseek reads versions {FORMAT_VERSION} and "
            f"{WITH_CATALOGUES}: "
            f"replay it with the pairseek that wrote it, {record.get('versions', {}).get('pairseek')}"
        )


def done_of(session: JSON) -> tuple[EffectiveAnswer, ...]:
    """Return the effective answers of a session record."""
    queries = [AskedPair(session_id=session["id"], **query) for query in session["queries"]]
    events = [EventRow(session_id=session["id"], **event) for event in session["events"]]
    return effective(queries, events, voided(session["marks"])[1])


@dataclass(frozen=True, slots=True)
class ReplayedEstimate:
    """Recomputed estimate of a session; ``difference`` is the largest coordinate difference relative to the radius."""

    session: str
    answers: int
    mean: list[float]
    radius: float
    same: bool
    difference: float


def replayed(bundle: Bundle) -> Iterator[ReplayedEstimate]:
    """Recompute every estimate from the parts of its session and compare it with the exported one."""
    if bundle.configuration.is_similarity:
        yield from _replayed_triplets(bundle)
        return
    for number, session in enumerate(bundle.current, 1):
        with _session_errors(bundle, number):
            done = done_of(session)
            if not done or session["estimate"] is None:
                continue
            state = _state(bundle, session, bundle.parts_of(session), done)
            found, before = state.estimate_record(), session["estimate"]
            gap = float(np.max(np.abs(np.array(found["mean"]) - np.array(before["mean"])), initial=0.0))
            gap = max(gap, abs(found["radius"] - before["radius"])) / max(before["radius"], 1e-300)
            same = found == before and _same_nearest(state, session)
            one = ReplayedEstimate(session["id"], state.answered, found["mean"], found["radius"], same, gap)
        yield one


def _replayed_triplets(bundle: Bundle) -> Iterator[ReplayedEstimate]:
    """Choose every triplet of a similarity study again; ``difference`` is the share that was another one."""
    for number, session in enumerate(bundle.current, 1):
        with _session_errors(bundle, number):
            done = done_of(session)
            if not done:
                continue
            parts, other = bundle.parts_of(session), 0
            for count, answered in enumerate(done):
                state = _state(bundle, session, parts, done[:count])
                pair, asked = state.following[0], answered.query
                chosen = None if pair is None else (pair.details.get("anchor"), pair.left, pair.right)
                other += chosen != (asked.details.get("anchor"), asked.left, asked.right)
            one = ReplayedEstimate(session["id"], len(done), [], 0.0, other == 0, other / len(done))
        yield one


def _same_nearest(state: SessionState, session: JSON) -> bool:
    """Return whether the recommended items are the stored ones, where there are no coordinates to compare."""
    if state.parts.given.d or session.get("final") is None or any(one.void for one in state.done):
        return True
    return bool(state.final()["nearest"] == session["final"]["nearest"])


@contextlib.contextmanager
def _session_errors(bundle: Bundle, number: int) -> Iterator[None]:
    """Convert what a malformed session leads to into an `InvalidFile` that says which one it is."""
    try:
        yield
    except _MALFORMED as error:
        raise InvalidFile(
            f"{bundle.path}: session {number} of sessions.jsonl cannot be recomputed ({type(error).__name__}: "
            f"{_said(error)}); export the study again"
        ) from None


def replayed_with(bundle: Bundle, strategy: JSON) -> Iterator[JSON]:
    """Compute the estimates and queries of another strategy, given the same answers.

    The candidates are those of the study's configuration, or else the default for the strategy.
    """
    candidates = bundle.configuration.candidates
    for number, session in enumerate(bundle.current, 1):
        with _session_errors(bundle, number):
            parts = bundle.parts_of(session).changed(strategy=strategy, candidates=candidates)
            rows = list(_answers_with(bundle, session, parts))
        yield from rows


def _answers_with(bundle: Bundle, session: JSON, parts: SessionParts) -> Iterator[JSON]:
    done, state = done_of(session), _state(bundle, session, parts, ())
    for count, answered in enumerate(done, 1):
        wished, _ = state.following
        asked = state.search.expect(answered.query.left, answered.query.right)
        wish = None if wished is None else state.search.expect(wished.left, wished.right)
        state = _state(bundle, session, parts, done[:count])
        found = state.estimate_record()
        yield {
            "session": session["id"],
            "answer_index": count,
            "kind": answered.query.kind,
            "left": answered.query.left,
            "right": answered.query.right,
            "outcome": answered.outcome,
            "probability_left": asked.probability_left,
            "information": asked.information,
            "would_ask_left": None if wished is None else wished.left,
            "would_ask_right": None if wished is None else wished.right,
            "would_tell": None if wish is None else wish.information,
            **{f"mean_{i}": value for i, value in enumerate(found["mean"])},
            "radius": found["radius"],
        }


def _state(bundle: Bundle, session: JSON, parts: SessionParts, done: Iterable[EffectiveAnswer]) -> SessionState:
    return session_state(bundle.configuration, parts, session["seed"], (one.shown() for one in done))
