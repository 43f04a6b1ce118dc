"""Study bundles: one zip with tables, configuration, parts, versions, seeds, raw records and codebook."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import platform
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pairseek._version import MODEL_VERSION, __version__
from pairseek.core.archives import ARCHIVE_ERRORS, ArchiveTooLarge, LimitedArchive
from pairseek.core.limits import Size, check_limits
from pairseek.core.types import JSON
from pairseek.embed.active import check_count
from pairseek.errors import InvalidFile, InvalidParameter, MissingExtra, PairseekError
from pairseek.model.item_records import items_from
from pairseek.model.items import Items
from pairseek.store.database import Database, now
from pairseek.store.events import AskedPair, EventRow
from pairseek.web.results import tables
from pairseek.web.sessions import history
from pairseek.web.sessions.parts import SessionParts, learned_from_record
from pairseek.web.sessions.similarity import session_state
from pairseek.web.sessions.state import EffectiveAnswer, SessionState, effective_answers, voids_of
from pairseek.web.studies.catalogue import Study
from pairseek.web.studies.configuration import StudyConfiguration, stored_configuration
from pairseek.web.studies.editing import versions_of

FORMAT = "pairseek bundle"
FORMAT_VERSION = 2
FORMAT_VERSION_WITH_CATALOGUES = 3
"""Version of the format for a study whose items were replaced."""
MAX_CANDIDATES = 100_000
"""Maximum number of triplets that a session of a similarity study may choose from."""
POPULATIONS = "populations.json"
CATALOGUES = "catalogues.json"
PARTS = "parts.json"
RADIUS_TOLERANCE = 0.1
"""Tolerance of replayed estimates, relative to the radius, for other versions or processors: rounding can change a
resampling step, which causes sampling noise of a few hundredths of the radius."""
# Errors caused by records whose shape differs from the exported one.
_MALFORMED_RECORD_ERRORS = (
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
_NOT_EXPORTED = ("study_id", "version", "browser", "is_open")


def write(database: Database, study: Study, out: BinaryIO, findings: tables.FindingsSource | None = None) -> None:
    """Write the bundle of a study; pass ``findings`` to reuse computed findings."""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        variables = tables.variables_of(database, study)
        for table in tables.TABLES:
            columns = tables.columns_of(study, table, variables)
            with archive.open(f"{table}.csv", "w") as file:
                for chunk in tables.as_csv(tables.rows_of(database, study, table, findings), columns):
                    file.write(chunk)
            try:
                rows = tables.rows_of(database, study, table, findings)
                archive.writestr(f"{table}.parquet", tables.as_parquet(rows, columns))
            except MissingExtra:
                continue
        archive.writestr("study.json", _json(_study_record(study)))
        learned: dict[str, JSON] = {}
        parts: dict[str, JSON] = {}
        catalogues: set[int] = set()
        with archive.open("sessions.jsonl", "w") as file:
            for session in history.iterate_histories(database, study):
                file.write(json.dumps(_session_record(study, session)).encode() + b"\n")
                parts[session.row.parts] = session.parts.record
                catalogues.add(session.row.catalogue)
                population = session.parts.population
                if population is not None and str(session.row.population) not in learned:
                    learned[str(session.row.population)] = population.record()
        archive.writestr(PARTS, _json(parts))
        archive.writestr(POPULATIONS, _json(learned))
        archive.writestr("items.json", _json(study.items.record()))
        if study.row.catalogue:
            numbers = sorted(set(catalogues) - {study.row.catalogue})
            records = {str(number): study.with_catalogue(number).items.record() for number in numbers}
            archive.writestr(CATALOGUES, _json(records))
        archive.writestr("texts.json", _json(versions_of(database, study)))
        archive.writestr("codebook.csv", _codebook(study, variables))
        archive.writestr("README.txt", _README.format(slug=study.row.slug))


_README = """The study {slug} at the time of the export.

answers, participants, estimates, items, ranking, people   tables as CSV, and as Parquet if pyarrow was installed
codebook.csv        descriptions of the columns of all tables
study.json          configuration of the study, and versions of the software
texts.json          what people read: title, instructions, consent and debriefing, each version with its time and author
items.json          the items, with coordinates in full precision
catalogues.json     if the items were replaced: earlier items that sessions began with, by catalogue number
parts.json          the parts of the searches with all settings, by key, and their model version
populations.json    the populations that sessions began with, by version
sessions.jsonl      one session per line: seed, key of its parts, queries, answers, and who voided them

pairseek replay FILE.zip recomputes every estimate and reports the differences.
"""


def _study_record(study: Study) -> JSON:
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION_WITH_CATALOGUES if study.row.catalogue else FORMAT_VERSION,
        "made_at": now(),
        "slug": study.row.slug,
        "created_at": study.row.created_at,
        "items_hash": study.items.hash,
        "catalogue": study.row.catalogue,
        "configuration": study.configuration.model_dump(mode="json"),
        "versions": versions(),
    }


def versions() -> JSON:
    """Return the versions that bit-identical results depend on."""
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


def _session_record(study: Study, session: history.SessionHistory) -> JSON:
    estimates = history.estimate_history(study, session)
    return {
        **{key: value for key, value in asdict(session.row).items() if key not in _NOT_EXPORTED},
        "queries": [_without_session(asdict(query)) for query in session.queries],
        "events": [_event(event) for event in session.events],
        "marks": [_without_session(mark) for mark in session.marks],
        "blurs": [_without_session(blur) for blur in session.blurs],
        "estimate": estimates[-1] if estimates else None,
    }


def _event(event: EventRow) -> JSON:
    """Return the record of an event, with its playback only if there was something to play."""
    record = _without_session(asdict(event))
    return record if event.played is not None else {key: value for key, value in record.items() if key != "played"}


def _without_session(record: JSON) -> JSON:
    return {key: value for key, value in record.items() if key != "session_id"}


def _codebook(study: Study, variables: Sequence[str]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["table", "column", "meaning"])
    for table, columns in tables.codebook(study, variables=variables).items():
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
    """By population version, key of the parts, and catalogue number."""
    path: Path

    def parts_of(self, session: JSON) -> SessionParts:
        """Return the parts that a session began with."""
        return self.parts[_parts_key(session)]

    @property
    def usable_sessions(self) -> tuple[JSON, ...]:
        """Sessions that this pairseek can replay."""
        return tuple(session for session in self.sessions if self.parts_of(session).is_usable)

    @property
    def dropped_sessions(self) -> tuple[JSON, ...]:
        """Sessions whose parts were derived from a population learned from someone who was later forgotten."""
        return tuple(session for session in self.sessions if self.parts_of(session).dropped_population is not None)

    @property
    def model_versions(self) -> list[Any]:
        """Model versions that the sessions began with."""
        return sorted({parts.model for parts in self.parts.values()}, key=str)

    @property
    def same_program(self) -> bool:
        """Whether this program has exactly the versions that wrote the bundle, so that results are bit-identical."""
        return self.versions == versions()


def read(path: Path) -> Bundle:
    """Read a bundle; raise `InvalidFile` if this pairseek cannot recompute its sessions."""
    try:
        with LimitedArchive(path) as archive:
            record = json.loads(archive.read("study.json"))
            _check_format(path, record)
            names = ("items.json", "sessions.jsonl", PARTS, POPULATIONS)
            items, sessions, parts, learned = (archive.read(name) for name in names)
            replaced = archive.read(CATALOGUES) if record["format_version"] == FORMAT_VERSION_WITH_CATALOGUES else b"{}"
        catalogues = {int(number): items_from(content) for number, content in json.loads(replaced).items()}
        catalogues[int(record.get("catalogue", 0))] = items_from(json.loads(items))
        given = {number: content for number, content in catalogues.items() if isinstance(content, Items)}
        if len(given) < len(catalogues):
            raise InvalidFile(f"{path} has a continuous space instead of items: it is not a pairseek bundle")
        people = tuple(json.loads(line) for line in sessions.splitlines() if line)
        populations = {int(version): learned_from_record(content) for version, content in json.loads(learned).items()}
        parts_records = json.loads(parts)
        shared = {
            (version, key, number): SessionParts.from_record(
                given[number], parts_records[key], None if version is None else populations[version]
            )
            for version, key, number in map(_parts_key, people)
        }
        bundle = Bundle(
            record["slug"], stored_configuration(record["configuration"]), record["versions"], people, shared, path
        )
        for session_parts in shared.values():
            _check_parts(session_parts)
    except FileNotFoundError:
        raise InvalidFile(f"there is no file {path}") from None
    except ArchiveTooLarge as error:
        raise InvalidFile(f"{path}: {error}; it was not written by pairseek export") from None
    except (*ARCHIVE_ERRORS, *_MALFORMED_RECORD_ERRORS) as error:
        if isinstance(error, InvalidFile) and str(path) in str(error):
            raise
        raise InvalidFile(f"{path} cannot be read as a bundle: {_short_message(error)}; export it again") from None
    if len(bundle.sessions) > len(bundle.dropped_sessions) and not bundle.usable_sessions:
        models = " and ".join(map(str, bundle.model_versions))
        raise InvalidFile(
            f"{path} was computed with model version {models}, but this pairseek has version {MODEL_VERSION}: replay "
            f"it with the pairseek that wrote it, {record['versions'].get('pairseek')}, or a later one"
        )
    return bundle


def _parts_key(session: JSON) -> tuple[int | None, str, int]:
    """Return the population version, key of the parts, and catalogue number that a session began with."""
    return session["population"], session["parts"], session.get("catalogue", 0)


def _check_parts(parts: SessionParts) -> None:
    """Raise an error for parts that no study may have, because they could need arbitrary time and memory."""
    if not isinstance(parts.model, int | str):
        raise TypeError(f"the model version is {parts.model!r}")
    if not parts.is_usable:
        return
    if parts.record.get("kind") == "similarity":
        if not 1 <= int(parts.record["candidates"]) <= MAX_CANDIDATES:
            raise InvalidParameter(f"the number of candidates is {parts.record['candidates']}")
        check_count(parts.study_items.n)
        return
    by_kind = parts.parts_by_kind
    size = Size(parts.study_items.n, parts.study_items.d, unknown=by_kind["response"].unknown)
    for kind, part in by_kind.items():
        for element in part if isinstance(part, list) else [part]:
            if element is not None:
                check_limits(element, kind, size)


def _short_message(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return text if len(text) <= 300 else f"{text[:297]}..."


def _check_format(path: Path, record: object) -> None:
    if not isinstance(record, dict) or not isinstance(record.get("versions", {}), dict):
        raise InvalidFile(f"{path}: study.json does not contain an object: it is not a pairseek bundle")
    if record.get("format") != FORMAT:
        raise InvalidFile(
            f"{path} has the format {record.get('format')!r}, not {FORMAT!r}: it is not a pairseek bundle"
        )
    version = record.get("format_version")
    if version not in (FORMAT_VERSION, FORMAT_VERSION_WITH_CATALOGUES):
        raise InvalidFile(
            f"{path} is a bundle of format version {version}, but this pairseek reads versions {FORMAT_VERSION} and "
            f"{FORMAT_VERSION_WITH_CATALOGUES}: replay it with the pairseek that wrote it, "
            f"{record.get('versions', {}).get('pairseek')}"
        )


def answers_of(session: JSON) -> tuple[EffectiveAnswer, ...]:
    """Return the effective answers of a session record."""
    queries = [AskedPair(session_id=session["id"], **query) for query in session["queries"]]
    events = [EventRow(session_id=session["id"], **event) for event in session["events"]]
    return effective_answers(queries, events, voids_of(session["marks"])[1])


@dataclass(frozen=True, slots=True)
class ReplayedEstimate:
    """Recomputed estimate of a session; ``difference`` is the largest coordinate difference relative to the radius.

    Differences are expected if the session began with an earlier ``model`` version.
    """

    session: str
    model: int
    answers: int
    mean: list[float]
    radius: float
    same: bool
    difference: float


def replayed(bundle: Bundle) -> Iterator[ReplayedEstimate]:
    """Recompute every estimate from the parts of its session, and compare it with the exported estimate.

    Sessions that began with an earlier model version are recomputed with the present model.
    """
    if bundle.configuration.is_similarity:
        yield from _replayed_triplets(bundle)
        return
    for number, session in enumerate(bundle.usable_sessions, 1):
        with _session_errors(bundle, number):
            done = answers_of(session)
            if not done or session["estimate"] is None:
                continue
            parts = bundle.parts_of(session)
            state = _state(bundle, session, parts, done)
            new, exported = state.estimate_record(), session["estimate"]
            gap = float(np.max(np.abs(np.array(new["mean"]) - np.array(exported["mean"])), initial=0.0))
            gap = max(gap, abs(new["radius"] - exported["radius"])) / max(exported["radius"], 1e-300)
            same = new == exported and _same_nearest(state, session)
            count, mean, radius = state.answer_count, new["mean"], new["radius"]
            estimate = ReplayedEstimate(session["id"], parts.record["model"], count, mean, radius, same, gap)
        yield estimate


def _replayed_triplets(bundle: Bundle) -> Iterator[ReplayedEstimate]:
    """Choose every triplet of a similarity study again; ``difference`` is the share that came out differently."""
    for number, session in enumerate(bundle.usable_sessions, 1):
        with _session_errors(bundle, number):
            done = answers_of(session)
            if not done:
                continue
            parts, different = bundle.parts_of(session), 0
            for count, answered in enumerate(done):
                state = _state(bundle, session, parts, done[:count])
                pair, asked = state.next_pair[0], answered.query
                chosen = None if pair is None else (pair.details.get("anchor"), pair.left, pair.right)
                different += chosen != (asked.details.get("anchor"), asked.left, asked.right)
            share, model = different / len(done), parts.record["model"]
            estimate = ReplayedEstimate(session["id"], model, len(done), [], 0.0, different == 0, share)
        yield estimate


def _same_nearest(state: SessionState, session: JSON) -> bool:
    """Return whether the recommended items equal the stored ones; always true for items with coordinates."""
    if state.parts.study_items.d or session.get("final") is None or any(pair.void for pair in state.done):
        return True
    return bool(state.final()["nearest"] == session["final"]["nearest"])


@contextlib.contextmanager
def _session_errors(bundle: Bundle, number: int) -> Iterator[None]:
    """Convert the errors caused by a malformed session to an `InvalidFile` that names the session."""
    try:
        yield
    except _MALFORMED_RECORD_ERRORS as error:
        raise InvalidFile(
            f"{bundle.path}: session {number} of sessions.jsonl cannot be recomputed ({type(error).__name__}: "
            f"{_short_message(error)}); export the study again"
        ) from None


def replayed_with(bundle: Bundle, strategy: JSON) -> Iterator[JSON]:
    """Compute the estimates and queries of another strategy, given the same answers.

    It uses the candidates of the study's configuration, or else the strategy's default.
    """
    candidates = bundle.configuration.candidates
    for number, session in enumerate(bundle.usable_sessions, 1):
        with _session_errors(bundle, number):
            parts = bundle.parts_of(session).with_records(strategy=strategy, candidates=candidates)
            rows = list(_answers_with(bundle, session, parts))
        yield from rows


def _answers_with(bundle: Bundle, session: JSON, parts: SessionParts) -> Iterator[JSON]:
    done, state = answers_of(session), _state(bundle, session, parts, ())
    for count, answered in enumerate(done, 1):
        preferred, _ = state.next_pair
        asked = state.search.expect(answered.query.left, answered.query.right)
        expected = None if preferred is None else state.search.expect(preferred.left, preferred.right)
        state = _state(bundle, session, parts, done[:count])
        estimate = state.estimate_record()
        yield {
            "session": session["id"],
            "answer_index": count,
            "kind": answered.query.kind,
            "left": answered.query.left,
            "right": answered.query.right,
            "outcome": answered.outcome,
            "probability_left": asked.probability_left,
            "information": asked.information,
            "would_ask_left": None if preferred is None else preferred.left,
            "would_ask_right": None if preferred is None else preferred.right,
            "would_tell": None if expected is None else expected.information,
            **{f"mean_{i}": value for i, value in enumerate(estimate["mean"])},
            "radius": estimate["radius"],
        }


def _state(bundle: Bundle, session: JSON, parts: SessionParts, done: Iterable[EffectiveAnswer]) -> SessionState:
    return session_state(bundle.configuration, parts, session["seed"], (answer.answered_pair() for answer in done))
