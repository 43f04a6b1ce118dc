"""Learning of populations from the finished sessions of studies, automatically or on request."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

import sqlalchemy as sa

from pairseek.core.types import JSON
from pairseek.errors import (
    InvalidChoices,
    InvalidFile,
    InvalidParameter,
    PairseekError,
    StoreUnavailable,
    Unsupported,
)
from pairseek.model.catalogues import same_space
from pairseek.model.items import Items
from pairseek.people.learning import is_due, learn
from pairseek.people.population import Choices, Population
from pairseek.store import learning, populations, studies
from pairseek.store.database import Database
from pairseek.store.locks import try_lock
from pairseek.web.errors import Problem
from pairseek.web.learning.learned import LearnedVersion
from pairseek.web.learning.study_choices import choices_of
from pairseek.web.sessions import history
from pairseek.web.sessions.parts import population_for
from pairseek.web.studies.catalogue import Study
from pairseek.web.studies.configuration import StudyConfiguration, configured

Learn: TypeAlias = Callable[[Database, Study], LearnedVersion]
LEARNER = "pairseek"
"""Author of versions that are learned automatically."""
# Attempts to fit; each fails if a participant is forgotten meanwhile.
_MAX_ATTEMPTS = 3

logger = logging.getLogger("pairseek.web")


def fit(database: Database, study: Study, who: str, run: Learn | None = None) -> tuple[int, Population]:
    """Learn a population from the finished sessions, store it, and return it with its version.

    Sessions that begin later use the new version. ``run`` does the work in this process or another; by default it is
    `learn_version`.
    """
    for _ in range(_MAX_ATTEMPTS - 1):
        try:
            return _fit(database, study, who, run or learn_version)
        except sa.exc.IntegrityError:
            # Someone was forgotten during the fit, or another fit was stored at the same time.
            continue
    return _fit(database, study, who, run or learn_version)


def _fit(database: Database, study: Study, who: str, run: Learn) -> tuple[int, Population]:
    result, number = run(database, study), study.row.id

    def store(connection: sa.Connection) -> int:
        version = populations.add(connection, number, result.content, who, result.sessions, result.facts)
        studies.log_action(connection, who, "population", study.row.slug, version=version, **result.note)
        learning.record_attempt(connection, number, learning.count_finished(connection, number))
        return version

    return database.write(store), Population.from_record(result.learned)


def learn_version(database: Database, study: Study) -> LearnedVersion:
    """Learn a population from the finished sessions of a study without storing it."""
    choices, people = _finished_choices(database, study)
    previous, old_sessions = _newest_population(database, study)
    items = study.all_items
    if previous is not None and items.d and not previous.describes(items):
        previous = None
    try:
        lesson = learn(choices, items, previous=previous, since=set(people) - old_sessions)
    except InvalidChoices as error:
        raise InvalidChoices(f"the study {study.row.slug!r} has learned nothing: {error}") from None
    # The population was also learned from answers about removed items, but describes only the present ones.
    population = lesson.population if items is study.items else lesson.population.among(study.items)
    return LearnedVersion.of(population.record(), people, lesson.record(), {"people": population.people})


def _newest_population(database: Database, study: Study) -> tuple[Population | None, set[str]]:
    """Return the newest population, and the sessions that it was learned from."""
    number = study.row.id
    version = database.read(lambda connection: populations.newest(connection, number))
    if version is None:
        return None, set()
    population = history.populations_of(database, [(number, version)])[number, version]
    session_ids = database.read(lambda connection: populations.sessions_learned_from(connection, number, version))
    assert isinstance(population, Population)
    return population, session_ids


def learns_automatically(configuration: StudyConfiguration, dimensions: int, state: learning.LearningRow) -> bool:
    """Return whether a study learns populations automatically, as its owner or else its configuration decides.

    Similarity studies learn maps instead, in `pairseek.web.learning.similarity`.
    """
    if configuration.is_similarity:
        return False
    return configuration.learns(dimensions) if state.is_on is None else state.is_on


def may_be_due(progress: learning.LearningProgress) -> bool:
    """Return whether a study has enough new sessions, without reading its items."""
    study, state = progress.study, progress.state
    # The configuration is parsed last, because few studies have enough new sessions.
    return is_due(progress.finished, state.tried) and learns_automatically(
        configured(study.configuration), study.dimensions, state
    )


def learn_if_due(database: Database, study: Study, run: Learn | None = None) -> int | None:
    """Learn if automatic learning is on and there are enough new sessions; return the new version, or None.

    Only one worker of all servers learns at a time. If learning fails, the newest version remains in use, and the
    study's owner sees the reason.
    """
    if not _is_due(database, study):
        return None
    with try_lock(database, lock_name(study)) as held:
        # Check again, because another worker may have learned meanwhile.
        return _learn_now(database, study, LEARNER, run) if held and _is_due(database, study) else None


def learn_now(database: Database, study: Study, who: str, run: Learn | None = None) -> bool:
    """Learn unless another worker is learning; return whether it was tried. A failure is stored for the owner."""
    with try_lock(database, lock_name(study)) as held:
        if held:
            _learn_now(database, study, who, run)
        return held


def lock_name(study: Study) -> str:
    """Return the name of the lock that is held while a study learns."""
    return f"learning-{study.row.id}"


def _learn_now(database: Database, study: Study, who: str, run: Learn | None) -> int | None:
    """Learn and return the new version; if that fails, store the reason for the study's owner and return None."""
    count = database.read(lambda connection: learning.count_finished(connection, study.row.id))
    try:
        return fit(database, study, who, run)[0]
    except StoreUnavailable:
        # This is not a failure to learn: the next round tries again.
        raise
    except PairseekError as error:
        reason = str(error)
        logger.warning("learning failed", extra={"facts": {"study": study.row.slug, "why": reason[:300]}})
        database.write(lambda connection: learning.record_attempt(connection, study.row.id, count, reason))
        return None


def check(database: Database, study: Study) -> None:
    """Raise an `InvalidChoices` if the study has no finished session with an answer."""
    _finished_choices(database, study)


def _is_due(database: Database, study: Study) -> bool:
    state, count = database.read(
        lambda connection: (learning.state(connection, study.row.id), learning.count_finished(connection, study.row.id))
    )
    return learns_automatically(study.configuration, study.items.d, state) and is_due(count, state.tried)


def switch(database: Database, study: Study, who: str, *, is_on: bool) -> None:
    """Switch automatic learning of a study on or off."""

    def change(connection: sa.Connection) -> None:
        learning.switch(connection, study.row.id, is_on=is_on)
        studies.log_action(connection, who, "learning_on" if is_on else "learning_off", study.row.slug)

    database.write(change)


def choose_version(database: Database, study: Study, who: str, version: int) -> None:
    """Choose the version that sessions begin with (0 for none), and switch automatic learning off."""

    def change(connection: sa.Connection) -> None:
        if version and not populations.is_usable(connection, study.row.id, version):
            raise Problem(
                404,
                "unknown_version",
                f"the study {study.row.slug!r} has no version {version}, or it was dropped",
                received=version,
                hint="Choose one of the versions on the page of the study, or 0 for none.",
            )
        learning.choose(connection, study.row.id, version)
        studies.log_action(connection, who, "choose_version", study.row.slug, version=version)

    database.write(change)


def upload(database: Database, study: Study, record: JSON, name: str, who: str) -> int:
    """Store a population under a name, let new sessions begin with it, and return its version.

    If it is the newest version already, nothing is stored.
    """
    population = _uploaded(study, record)
    content = LearnedVersion.of(population.record(), [], {}, {}).content
    number = study.row.id

    def store(connection: sa.Connection) -> int:
        version = populations.newest(connection, number)
        if (
            version is None
            or (populations.facts(connection, number, version) or {}).get("name") != name
            or populations.content(connection, number, version) != content
        ):
            version = populations.add(connection, number, content, who, [], {"name": name})
            studies.log_action(connection, who, "upload_population", study.row.slug, name=name)
        learning.choose(connection, number, version)
        return version

    return database.write(store)


def _uploaded(study: Study, record: JSON) -> Population:
    """Return a population from its record; reject one that does not suit the items and the settings of a study."""
    slug, items = study.row.slug, study.items
    if study.configuration.is_similarity:
        raise Unsupported(f"the study {slug!r} is a similarity study, which learns a map and no population")
    try:
        population = Population.from_record(record)
    except PairseekError:
        raise
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise InvalidFile(f"this is not a valid population ({error}): send what Population.record() returns") from None
    if items.d and not population.describes(items):
        known = population.items
        shared = known.d >= items.d and any(items.find(name) >= 0 for name in known.ids)
        if not shared or not same_space(Items._without_warnings(known.coordinates[:, : items.d], known.ids), items):
            raise InvalidParameter(
                f"this population was fitted to other items than those of the study {slug!r}, or in other coordinates: "
                f"fit it to the coordinates of the study's items",
                field="population",
            )
    study.configuration.resolved(items, population_for(items, population))
    return population


def _finished_choices(database: Database, study: Study) -> tuple[Choices, list[str]]:
    """Return the choices in the finished sessions, and the ids of these sessions."""
    finished = [
        session
        for session in history.iterate_histories(database, study)
        if session.row.kind == "person" and session.row.finished_at is not None and not session.is_void
    ]
    choices = choices_of(study, finished)
    if choices is None or not len(choices):
        raise InvalidChoices(
            f"the study {study.row.slug!r} has no finished session with an answer: a population needs two people"
        )
    return choices, [session.row.id for session in finished]


def versions(database: Database, study: Study) -> list[JSON]:
    """Return the versions of a study, newest first, with facts about each and how well it predicts random pairs."""
    number = study.row.id
    rows, answers = database.read(
        lambda connection: (populations.summaries(connection, number), learning.random_answers(connection, number))
    )
    pairs: Counter[int] = Counter()
    correct: Counter[int] = Counter()
    for version, details, outcome in answers:
        # The prediction was stored with the query, before the answer.
        probability = details.get("probability_left")
        if probability is not None and outcome in ("left", "right") and not details.get("unmet"):
            pairs[version] += 1
            correct[version] += (probability > 0.5) == (outcome == "left")
    return [{**row, "random": (pairs[row["version"]], correct[row["version"]])} for row in rows]
