"""Learning of the map of a similarity study from its judgements, and creation of preference studies from the map."""

from __future__ import annotations

import json
import logging
import zlib
from dataclasses import dataclass

import sqlalchemy as sa

from pairseek.core.types import JSON
from pairseek.embed.similarity_map import MIN_JUDGEMENTS, SimilarityMap
from pairseek.embed.triplets import Triplets
from pairseek.errors import InvalidTriplets, PairseekError, StoreUnavailable
from pairseek.model.items import Items
from pairseek.store import media, populations, studies
from pairseek.store.counts import Totals, totals
from pairseek.store.database import Database
from pairseek.store.locks import try_lock
from pairseek.web.errors import Problem
from pairseek.web.learning.learned import LearnedVersion
from pairseek.web.learning.populations import LEARNER, Learn, lock_name
from pairseek.web.sessions import history
from pairseek.web.studies.catalogue import Study
from pairseek.web.studies.configuration import StudyConfiguration
from pairseek.web.studies.items import pack_items

logger = logging.getLogger("pairseek.web")

# Attempts to learn; each fails if a participant is forgotten meanwhile.
_MAX_ATTEMPTS = 3
# Number of names to try for a preference study.
_MAX_NAMES = 100


@dataclass(frozen=True, eq=False)
class Judgements:
    """Valid judgements of a study, as (anchor, nearer item, farther item), and the ids of their sessions.

    The map is fitted to ``fitted``; ``held_out`` are the judgements of random triplets.
    """

    fitted: list[tuple[str, str, str]]
    held_out: list[tuple[str, str, str]]
    sessions: list[str]


@dataclass(frozen=True, eq=False)
class MapVersion:
    """Version of a study's map; ``answers`` is the number of answers when it was learned."""

    version: int
    created_at: str
    answers: int
    learned: SimilarityMap


def judgements_of(database: Database, study: Study) -> Judgements:
    """Return people's judgements, without attention checks, skips, and undone and void answers.

    Repeated triplets count as judgements, because people may answer differently the second time.
    """
    fitted: list[tuple[str, str, str]] = []
    held_out: list[tuple[str, str, str]] = []
    session_ids: list[str] = []
    for session in history.iterate_histories(database, study):
        if session.row.kind != "person" or session.is_void:
            continue
        count = len(fitted) + len(held_out)
        kinds = {answered.query.name: answered.query.kind for answered in session.done}
        for answered in session.done:
            query, winner = answered.query, answered.winner
            if answered.void or winner is None or query.kind == "attention":
                continue
            row = (query.details["anchor"], winner, query.right if winner == query.left else query.left)
            # A repetition of a random triplet is held out with it.
            first_kind = kinds.get(str(query.details.get("repeats")), query.kind)
            (held_out if first_kind == "random" else fitted).append(row)
        if len(fitted) + len(held_out) > count:
            session_ids.append(session.row.id)
    return Judgements(fitted, held_out, session_ids)


def newest_map(database: Database, study: Study) -> MapVersion | None:
    """Return the newest version of the map; None before the first."""
    version = database.read(lambda connection: populations.newest(connection, study.row.id))
    return None if version is None else _read(database, study.row.id, version)


def all_versions(database: Database, study: Study) -> list[MapVersion]:
    """Return all versions of the map that were not dropped, oldest first."""
    numbers = database.read(lambda connection: populations.versions(connection, study.row.id))
    return [_read(database, study.row.id, number) for number in numbers]


def _read(database: Database, study_id: int, version: int) -> MapVersion:
    content, created = database.read(
        lambda connection: (
            populations.content(connection, study_id, version),
            populations.created_at(connection, study_id, version),
        )
    )
    record = json.loads(zlib.decompress(content))
    return MapVersion(version, created, int(record["answers"]), SimilarityMap.from_record(record))


def is_learning_due(items: int, answers: int, last_answers: int | None) -> bool:
    """Return whether a study should learn; ``last_answers`` is the number of answers at its last learning, if any.

    A study first learns when it has as many answers as items, then whenever half as many have been added.
    """
    if last_answers is None:
        return answers >= max(items, MIN_JUDGEMENTS)
    return answers - last_answers >= max(items // 2, MIN_JUDGEMENTS)


def learn_if_due(database: Database, study: Study, who: str = LEARNER, run: Learn | None = None) -> None:
    """Learn a new version if there are enough new answers and no other worker is learning.

    If learning fails, the last version remains in use, and the audit log records the failure.
    """
    if may_be_due(database, study.row.id, study.items.n):
        learn_now(database, study, who, run, log_version=False)


def may_be_due(database: Database, study_id: int, items: int) -> bool:
    """Return whether a study with this number of items has enough new answers, without reading its items."""
    answers = _count_answers(database, study_id)
    rows = database.read(lambda connection: populations.summaries(connection, study_id))
    # A map that was dropped with a forgotten person is replaced without waiting for new answers.
    last = rows[0]["version"] if rows and rows[0]["dropped_at"] is None else None
    last_answers = None if last is None else _answers_learned_from(database, study_id, last)
    return is_learning_due(items, answers, last_answers)


def learn_now(database: Database, study: Study, who: str, run: Learn | None = None, *, log_version: bool) -> bool:
    """Learn unless another worker is learning; return whether it was tried. The audit log records a failure."""
    try:
        learn(database, study, who, run, log_version=log_version)
    except Problem:
        return False  # another worker is learning
    except StoreUnavailable:
        # This is not a failure to learn: the next round tries again.
        raise
    except PairseekError as error:
        reason = str(error)
        logger.warning("a map was not learned", extra={"facts": {"study": study.row.slug, "why": reason}})
        notes = database.read(lambda connection: studies.audit_log_of(connection, study.row.slug, 1))
        if not notes or notes[0]["details"].get("reason") != reason:
            database.write(
                lambda connection: studies.log_action(connection, who, "learning_failed", study.row.slug, reason=reason)
            )
    return True


def learn(database: Database, study: Study, who: str, run: Learn | None = None, *, log_version: bool = True) -> int:
    """Learn a map from all valid judgements, store it, and return its version; sessions that begin later use it.

    ``run`` does the work, by default `learn_version` in this process. With ``log_version``, the audit log records the
    version; the many automatic versions are not recorded.
    """
    with try_lock(database, lock_name(study)) as held:
        if not held:
            raise Problem(
                409,
                "learning",
                f"the study {study.row.slug!r} is already learning",
                received=study.row.slug,
                hint="Wait a moment, then look again.",
            )
        for _ in range(_MAX_ATTEMPTS - 1):
            try:
                return _learn(database, study, who, run or learn_version, log_version=log_version)
            except sa.exc.IntegrityError:
                # Someone was forgotten meanwhile.
                continue
        return _learn(database, study, who, run or learn_version, log_version=log_version)


def check(database: Database, study: Study) -> Judgements:
    """Return the judgements of a study; raise an `InvalidTriplets` if there are none to learn from."""
    valid = judgements_of(database, study)
    if not valid.fitted:
        raise InvalidTriplets(
            f"the study {study.row.slug!r} has no valid judgements: collect some, or restore voided ones"
        )
    return valid


def learn_version(database: Database, study: Study) -> LearnedVersion:
    """Learn a map from all valid judgements of a study without storing it."""
    last, answers = newest_map(database, study), _count_answers(database, study.row.id)
    valid, ids = check(database, study), study.items.ids
    result = SimilarityMap.learn(
        Triplets.from_ids(valid.fitted, ids),
        Triplets.from_ids(valid.held_out, ids) if valid.held_out else None,
        dimensions=study.configuration.dimensions,
        start=None if last is None else last.learned,
        labels=study.items.labels,
    )
    facts = {"answers": answers}
    return LearnedVersion.of({**result.record(), **facts}, valid.sessions, facts, {"judgements": result.judgements})


def _learn(database: Database, study: Study, who: str, run: Learn, *, log_version: bool) -> int:
    result = run(database, study)

    def store(connection: sa.Connection) -> int:
        version = populations.add(connection, study.row.id, result.content, who, result.sessions, result.facts)
        if log_version:
            studies.log_action(connection, who, "map", study.row.slug, version=version, **result.note)
        return version

    return database.write(store)


def _answers_learned_from(database: Database, study_id: int, version: int) -> int:
    """Return the number of answers that a version was learned from, without reading the map if possible."""
    facts = database.read(lambda connection: populations.facts(connection, study_id, version))
    return int(facts["answers"]) if facts else _read(database, study_id, version).answers


def _count_answers(database: Database, study_id: int) -> int:
    return database.read(lambda connection: totals(connection, study_id)).get(study_id, Totals()).answers


def create_preference_study(database: Database, study: Study, who: str, *, slug: str | None = None) -> str:
    """Create a preference study from the newest map, with the pictures and the judges' noise; return its slug."""
    if not study.configuration.is_similarity:
        raise Problem(
            409,
            "not_similarity",
            f"the study {study.row.slug!r} is not a similarity study",
            received=study.row.slug,
            hint="Choose a study with kind: similarity.",
        )
    newest = newest_map(database, study)
    if newest is None:
        raise Problem(
            409,
            "no_map",
            f"the study {study.row.slug!r} has no map yet",
            received=study.row.slug,
            hint="Collect judgements first: the first map needs as many judgements as there are items.",
        )
    source, learned = study.items, newest.learned
    items = Items._without_warnings(learned.final.coordinates, source.ids, source.labels, None, dict(source.data))
    base = slug or f"{study.row.slug[:56].rstrip('-')}-search"
    names = [base] if slug else [base, *(f"{base}-{number}" for number in range(2, _MAX_NAMES))]
    response = {"name": "logistic", "k": float(f"{learned.k:.4g}"), "noise": "constant"}
    for name in names:
        configuration = StudyConfiguration(
            title=study.configuration.title, slug=name, language=study.configuration.language, response=response
        )
        record: JSON = configuration.model_dump(mode="json")

        def add(connection: sa.Connection, name: str = name, record: JSON = record) -> None:
            number = studies.add(
                connection, name, record, pack_items(items), size=(items.n, items.d), is_open=True, who=who
            )
            media.copy(connection, study.row.id, number)
            facts = {"items": items.n, "source": study.row.slug, "version": newest.version}
            studies.log_action(connection, who, "create_study", name, **facts)

        try:
            database.write(add)
        except sa.exc.IntegrityError:
            continue
        return name
    raise Problem(
        409,
        "slug_taken",
        f"the slug {base!r} is taken by another study",
        received=base,
        hint="Give another slug.",
        field="slug",
    )
