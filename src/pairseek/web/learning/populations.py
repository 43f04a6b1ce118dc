"""Learning of studies from their finished sessions: versions of populations, on request and by themselves."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

import sqlalchemy as sa

from pairseek.core.types import JSON
from pairseek.errors import InvalidChoices, PairseekError, StoreUnavailable
from pairseek.people.learning import is_due, learn
from pairseek.people.population import Choices, Population
from pairseek.store import learning, populations, studies
from pairseek.store.database import Database
from pairseek.store.locks import try_lock
from pairseek.web.errors import Problem
from pairseek.web.learning.learned import LearnedVersion
from pairseek.web.learning.study_choices import choices_of
from pairseek.web.sessions import history
from pairseek.web.studies.catalogue import Study

Learn: TypeAlias = Callable[[Database, Study], LearnedVersion]
LEARNER = "pairseek"
"""Author of the versions that a study learned by itself."""
# Number of times that a fit is repeated because a participant was forgotten meanwhile.
_TRIES = 3

logger = logging.getLogger("pairseek.web")


def fit(database: Database, study: Study, who: str, run: Learn | None = None) -> tuple[int, Population]:
    """Learn from the finished sessions, store what was learned, and return its version with it.

    Sessions that begin later use the new version. ``run`` does the work: `learned`, here or in another process.
    """
    for _ in range(_TRIES - 1):
        try:
            return _fit(database, study, who, run or learned)
        except sa.exc.IntegrityError:
            # Someone was forgotten during the fit, or another fit has just been stored.
            continue
    return _fit(database, study, who, run or learned)


def _fit(database: Database, study: Study, who: str, run: Learn) -> tuple[int, Population]:
    found, number = run(database, study), study.row.id

    def keep(connection: sa.Connection) -> int:
        version = populations.add(connection, number, found.content, who, found.sessions, found.facts)
        studies.note(connection, who, "population", study.row.slug, version=version, **found.note)
        learning.tried(connection, number, learning.finished(connection, number))
        return version

    return database.write(keep), Population.from_record(found.learned)


def learned(database: Database, study: Study) -> LearnedVersion:
    """Learn from the finished sessions of a study; nothing is stored."""
    choices, people = _choices(database, study)
    previous, known = _previous(database, study)
    items = study.every_item
    if previous is not None and items.d and not previous.describes(items):
        previous = None
    try:
        lesson = learn(choices, items, previous=previous, since=set(people) - known)
    except InvalidChoices as error:
        raise InvalidChoices(f"the study {study.row.slug!r} has learned nothing: {error}") from None
    # Answers about items that are gone have taught it, too.
    found = lesson.population if items is study.items else lesson.population.among(study.items)
    return LearnedVersion.of(found.record(), people, lesson.record(), {"people": found.people})


def _previous(database: Database, study: Study) -> tuple[Population | None, set[str]]:
    """Return the newest version, and the sessions that it was learned from."""
    number = study.row.id
    version = database.read(lambda connection: populations.latest(connection, number))
    if version is None:
        return None, set()
    found = history.populations_of(database, [(number, version)])[number, version]
    known = database.read(lambda connection: populations.learned_sessions(connection, number, version))
    assert isinstance(found, Population)
    return found, known


def is_on(study: Study, state: learning.LearningRow) -> bool:
    """Return whether a study learns by itself: as its owner has switched it, or else as its configuration says.

    A similarity study learns its map elsewhere.
    """
    if study.configuration.is_similarity:
        return False
    return study.configuration.learns(study.items) if state.is_on is None else state.is_on


def learn_if_due(database: Database, study: Study, run: Learn | None = None) -> int | None:
    """Learn if the study learns by itself and has enough new sessions; return the new version, or None.

    Of several workers and servers, one learns at a time. If learning fails, the newest version stays, and the owner of
    the study sees why.
    """
    if not _is_due(database, study):
        return None
    with try_lock(database, lock_name(study)) as held:
        # Another worker may have learned since.
        return _learn_now(database, study, LEARNER, run) if held and _is_due(database, study) else None


def learn_now(database: Database, study: Study, who: str, run: Learn | None = None) -> bool:
    """Learn unless somebody else is learning, and return whether it was tried; a failure is stored for the owner."""
    with try_lock(database, lock_name(study)) as held:
        if held:
            _learn_now(database, study, who, run)
        return held


def lock_name(study: Study) -> str:
    """Return the name of the lock that whoever learns holds."""
    return f"learning-{study.row.id}"


def _learn_now(database: Database, study: Study, who: str, run: Learn | None) -> int | None:
    """Learn and return the new version; if that fails, store why, for the owner of the study, and return None."""
    count = database.read(lambda connection: learning.finished(connection, study.row.id))
    try:
        return fit(database, study, who, run)[0]
    except StoreUnavailable:
        # The answers are not to blame: the next round tries again.
        raise
    except PairseekError as error:
        words = str(error)
        logger.warning("learning failed", extra={"facts": {"study": study.row.slug, "why": words[:300]}})
        database.write(lambda connection: learning.tried(connection, study.row.id, count, words))
        return None


def check(database: Database, study: Study) -> None:
    """Raise an `InvalidChoices` if the study has no finished session with an answer."""
    _choices(database, study)


def _is_due(database: Database, study: Study) -> bool:
    state, count = database.read(
        lambda connection: (learning.state(connection, study.row.id), learning.finished(connection, study.row.id))
    )
    return is_on(study, state) and is_due(count, state.tried)


def switch(database: Database, study: Study, who: str, *, is_on: bool) -> None:
    """Switch the learning of a study on or off."""

    def change(connection: sa.Connection) -> None:
        learning.switch(connection, study.row.id, is_on=is_on)
        studies.note(connection, who, "learning_on" if is_on else "learning_off", study.row.slug)

    database.write(change)


def choose(database: Database, study: Study, who: str, version: int) -> None:
    """Let sessions begin with a version, 0 for none; learning is switched off."""

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
        studies.note(connection, who, "choose_version", study.row.slug, version=version)

    database.write(change)


def _choices(database: Database, study: Study) -> tuple[Choices, list[str]]:
    """Return the choices of the finished sessions, and the ids of these sessions."""
    finished = [
        one
        for one in history.all_histories(database, study)
        if one.row.kind == "person" and one.row.finished_at is not None and not one.is_void
    ]
    choices = choices_of(study, finished)
    if choices is None or not len(choices):
        raise InvalidChoices(
            f"the study {study.row.slug!r} has no finished session with an answer: a population needs two people"
        )
    return choices, [one.row.id for one in finished]


def versions(database: Database, study: Study) -> list[JSON]:
    """Return the versions of a study, newest first, with what each has learned and how well it predicts."""
    number = study.row.id
    rows, answers = database.read(
        lambda connection: (populations.every(connection, number), learning.random_answers(connection, number))
    )
    pairs: Counter[int] = Counter()
    right: Counter[int] = Counter()
    for version, details, outcome in answers:
        # The prediction was stored with the query, before the answer.
        chance = details.get("probability_left")
        if chance is not None and outcome in ("left", "right") and not details.get("unmet"):
            pairs[version] += 1
            right[version] += (chance > 0.5) == (outcome == "left")
    return [{**row, "random": (pairs[row["version"]], right[row["version"]])} for row in rows]
