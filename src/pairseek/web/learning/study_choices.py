"""Choices of a study's people, and the appeal of its items to the people who finished before someone."""

from __future__ import annotations

from collections.abc import Iterable

from pairseek.errors import InvalidChoices
from pairseek.people.learning import learn_appeal
from pairseek.people.population import Choices, Population
from pairseek.store import sessions
from pairseek.store.database import Database
from pairseek.web.sessions.history import SessionHistory, read_histories
from pairseek.web.studies.catalogue import Study

# Largest number of earlier people from whom the appeal is computed; the newest are used.
_MAX_PEOPLE = 50


def choices_of(study: Study, histories: Iterable[SessionHistory]) -> Choices | None:
    """Return the choices and ties of these sessions, without attention pairs and void answers; None if empty."""
    rows: list[tuple[str, str, str]] = []
    tied: list[tuple[str, str, str]] = []
    for session in histories:
        for answered in session.done:
            left, right, winner = answered.query.left, answered.query.right, answered.winner
            if not answered.is_preference:
                continue
            if winner is None:
                tied.append((session.row.id, left, right))
            else:
                rows.append((session.row.id, winner, right if winner == left else left))
    return Choices.from_pairs(rows, ids=study.all_items.ids, tied=tied) if rows or tied else None


def appeal_before(database: Database, study: Study, session: SessionHistory) -> Population | None:
    """Return the appeal of the items to people who finished before this session; None if there were too few.

    It does not change when others finish, so that a person who reopens their result sees it unchanged.
    """
    finished_at = session.row.finished_at
    if finished_at is None:
        return None
    rows = database.read(
        lambda connection: sessions.newest_finished(connection, study.row.id, finished_at, _MAX_PEOPLE)
    )
    choices = choices_of(study, (other for other in read_histories(database, study, rows) if not other.is_void))
    try:
        return None if choices is None else learn_appeal(choices, session.parts.study_items)
    except InvalidChoices:
        return None
