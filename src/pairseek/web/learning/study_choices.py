"""Choices of the people of a study, and of those who finished before a person."""

from __future__ import annotations

from collections.abc import Iterable

from pairseek.errors import InvalidChoices
from pairseek.people.learning import learn_appeal
from pairseek.people.population import Choices, Population
from pairseek.store import sessions
from pairseek.store.database import Database
from pairseek.web.sessions.history import SessionHistory, read_histories
from pairseek.web.studies.catalogue import Study

# Largest number of earlier people in a first impression, the newest ones.
_MOST = 50


def choices_of(study: Study, histories: Iterable[SessionHistory]) -> Choices | None:
    """Return the choices and ties of these sessions, attention pairs and void answers left out; None without any."""
    rows: list[tuple[str, str, str]] = []
    tied: list[tuple[str, str, str]] = []
    for one in histories:
        for answered in one.done:
            left, right, winner = answered.query.left, answered.query.right, answered.winner
            if not answered.counts:
                continue
            if winner is None:
                tied.append((one.row.id, left, right))
            else:
                rows.append((one.row.id, winner, right if winner == left else left))
    return Choices.from_pairs(rows, ids=study.every_item.ids, tied=tied) if rows or tied else None


def appeal_before(database: Database, study: Study, one: SessionHistory) -> Population | None:
    """Return the appeal that the items had for those who finished before a person; None if they were too few.

    It does not change when others finish, so that a person who opens their result again sees the same.
    """
    at = one.row.finished_at
    if at is None:
        return None
    rows = database.read(lambda connection: sessions.finished_before(connection, study.row.id, at, _MOST))
    choices = choices_of(study, (other for other in read_histories(database, study, rows) if not other.is_void))
    try:
        return None if choices is None else learn_appeal(choices, one.parts.given)
    except InvalidChoices:
        return None
