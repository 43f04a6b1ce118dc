"""Fitting of populations to the finished sessions of a study."""

from __future__ import annotations

import json
import zlib

import sqlalchemy as sa

from pairseek.errors import InvalidChoices
from pairseek.population import Choices, Population
from pairseek.store import populations, studies
from pairseek.store.database import Database
from pairseek.web.sessions import history
from pairseek.web.studies.catalogue import Study

# Number of times that a fit is repeated because a participant was forgotten meanwhile.
_TRIES = 3


def fit(database: Database, study: Study, who: str) -> tuple[int, Population]:
    """Fit a population to the finished sessions, store it, and return its version with it.

    Sessions that begin later use the new version.
    """
    for _ in range(_TRIES - 1):
        try:
            return _fit(database, study, who)
        except sa.exc.IntegrityError:
            # Someone was forgotten during the fit, or another fit has just been stored.
            continue
    return _fit(database, study, who)


def _fit(database: Database, study: Study, who: str) -> tuple[int, Population]:
    choices, people = _choices(database, study)
    found = Population.fit(choices, study.items)
    if not found.informed:
        raise InvalidChoices(
            f"the answers of {found.people} people to the study {study.row.slug!r} are no more informative than random "
            f"answers: nothing was learned; collect more answers"
        )
    content = zlib.compress(json.dumps(found.record(), allow_nan=False).encode(), 6)

    def keep(connection: sa.Connection) -> int:
        version = populations.add(connection, study.row.id, content, who, people)
        studies.note(connection, who, "population", study.row.slug, version=version, people=found.people)
        return version

    return database.write(keep), found


def _choices(database: Database, study: Study) -> tuple[Choices, list[str]]:
    """Return the choices of the finished sessions, and the ids of these sessions."""
    rows: list[tuple[str, str, str]] = []
    tied: list[tuple[str, str, str]] = []
    people: list[str] = []
    for one in history.all_histories(database, study):
        if one.row.kind != "person" or one.row.finished_at is None or one.is_void:
            continue
        people.append(one.row.id)
        for answered in one.done:
            if answered.void or answered.query.kind == "attention":
                continue
            winner, left, right = answered.winner, answered.query.left, answered.query.right
            if winner is not None:
                rows.append((one.row.id, winner, right if winner == left else left))
            elif answered.outcome == "tie":
                tied.append((one.row.id, left, right))
    if not rows:
        raise InvalidChoices(
            f"the study {study.row.slug!r} has no finished session with an answer: a population needs two people"
        )
    return Choices.from_pairs(rows, ids=study.items.ids, tied=tied), people
