"""Contract tests of stores: the invariants on which sessions rely, for any database."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import pytest
import sqlalchemy as sa

from pairseek.core.types import JSON
from pairseek.store import events, migrate, parts, sessions, studies
from pairseek.store.database import Database, now
from pairseek.store.events import AnsweredPair, AskedPair, EventRow, VersionConflict
from pairseek.store.sessions import SessionRow

PARTS: JSON = {"model": 2, "prior": {"name": "gaussian", "mean": [0.1 + 0.2, 1e-300]}}
"""Parts of a search, with numbers that only a lossless format preserves."""
SESSION = "s"


def answer_row(number: int, query: str, outcome: str = "left") -> EventRow:
    """Return an answer to a query of the test session."""
    return EventRow(SESSION, number, query, "answer", outcome, 700, None, None, 1, now(), 1.5)


def add_session(connection: sa.Connection) -> None:
    """Add a study with one session."""
    study = studies.add(connection, "which", {"title": "t"}, b"items", size=(2, 1), is_open=True, who="me")
    values = {"id": SESSION, "study_id": study, "kind": "person", "token_hash": "h", "seed": 2**62 + 1}
    sessions.add(connection, values | {"participant": "ann", "parts": parts.add(connection, PARTS)})


def session_row(database: Database) -> SessionRow:
    """Read the test session."""
    row = database.read(lambda c: sessions.by_id(c, SESSION))
    assert row is not None
    return row


class StoreContract:
    """Invariants of the store; override the fixture `database_url` to return the address of an empty database.

    - Events are appended in order, and each increments the version of its session.
    - A writer that has not seen the newest event gets a `VersionConflict`, so exactly one of several concurrent writers
      succeeds.
    - A session has at most one answer to a query, and a failed transaction leaves no trace.
    - Queries and parts are stored once and read as they were written; adding equal parts again is idempotent.
    - A read transaction sees one snapshot.
    """

    @pytest.fixture
    def database_url(self) -> str:
        """Return the address of an empty database."""
        raise NotImplementedError("override the fixture `database_url` to return the address of an empty database")

    @pytest.fixture
    def database(self, database_url: str) -> Iterator[Database]:
        """Return a database with tables and one session."""
        database = Database(database_url)
        migrate.prepare(database)
        database.write(add_session)
        yield database
        database.close()

    def test_events_are_read_in_order_and_raise_the_version(self, database: Database) -> None:
        """Assert the order of three answers and the version after them."""
        for number in range(3):
            database.write(_add(answer_row(number, f"p{number + 1}"), version=number))
        assert [event.query for event in database.read(lambda c: events.events_of(c, [SESSION]))] == ["p1", "p2", "p3"]
        assert session_row(database).version == 3

    def test_a_query_has_one_answer(self, database: Database) -> None:
        """Assert that a second answer is rejected and rolled back, and that an undo is accepted."""
        database.write(_add(answer_row(0, "p1"), version=0))
        with pytest.raises(sa.exc.IntegrityError):
            database.write(_add(answer_row(1, "p1", "right"), version=1))
        assert session_row(database).version == 1
        database.write(_add(replace(answer_row(1, "p1"), kind="undo", outcome=None), version=1))

    def test_an_outdated_writer_gets_a_conflict(self, database: Database) -> None:
        """Assert `VersionConflict` for a version that is not the newest."""
        database.write(_add(answer_row(0, "p1"), version=0))
        with pytest.raises(VersionConflict):
            database.write(_add(answer_row(0, "p2"), version=0))

    def test_of_concurrent_writers_one_succeeds(self, database: Database) -> None:
        """Assert one success and seven conflicts among eight threads that saw the same version."""

        def add(writer: int) -> str:
            try:
                database.write(_add(answer_row(0, f"p{writer}"), version=0))
            except VersionConflict:
                return "conflict"
            return "added"

        assert sorted(_at_once(8, add)) == ["added"] + ["conflict"] * 7
        assert len(database.read(lambda c: events.events_of(c, [SESSION]))) == 1

    def test_a_pair_of_a_session_is_added_once(self, database: Database) -> None:
        """Assert that a pair with an existing name is rejected and the first one stays."""
        query = AskedPair(SESSION, "p1", 0, "strategy", "a", "b", now(), {"strategy": "random"})
        database.write(lambda c: events.add_pair(c, query))
        with pytest.raises(sa.exc.IntegrityError):
            database.write(lambda c: events.add_pair(c, replace(query, left="c")))
        assert database.read(lambda c: events.queries_of(c, [SESSION])) == [query]

    def test_events_are_read_with_their_queries(self, database: Database) -> None:
        """Assert the records that rebuild a session: its answers with their pairs, and the pairs that follow."""
        details: list[JSON] = [{"strategy": "random", "anchor": "c"}, {"anchor": None}, {}]
        pairs = [
            AskedPair(SESSION, f"p{position + 1}", position, "strategy", "a", "b", now(), detail)
            for position, detail in enumerate(details)
        ]
        for pair in pairs:
            database.write(partial(events.add_pair, pair=pair))
        assert database.read(lambda c: events.answers_of(c, SESSION)) == events.Answers()
        database.write(_add(answer_row(0, "p1"), version=0))
        database.write(_add(answer_row(1, "p2", "tie"), version=1))
        database.write(_add(replace(answer_row(2, "p2"), kind="undo", outcome=None), version=2))
        database.write(_add(answer_row(3, "p3", "right"), version=3))
        done = (
            AnsweredPair("p1", "strategy", "a", "b", "left", "c"),
            AnsweredPair("p3", "strategy", "a", "b", "right"),
        )
        assert database.read(lambda c: events.answers_of(c, SESSION)) == events.Answers(done, {"p2": "tie"}, 4, 4)
        assert database.read(lambda c: events.queries_since(c, SESSION, 1)) == pairs[1:]

    def test_parts_are_stored_once_and_read_to_the_bit(self, database: Database) -> None:
        """Assert one key for equal parts from concurrent writers, and another key for other parts."""
        key = session_row(database).parts
        assert _at_once(6, lambda _: database.write(lambda c: parts.add(c, dict(reversed(PARTS.items()))))) == [key] * 6
        other = database.write(lambda c: parts.add(c, {**PARTS, "model": 3}))
        assert other != key
        assert database.read(lambda c: parts.contents(c, [key, other])) == {key: PARTS, other: {**PARTS, "model": 3}}

    def test_the_first_end_of_a_session_stays_until_it_is_reopened(self, database: Database) -> None:
        """Assert that finishing is idempotent and reopening removes the result."""
        database.write(lambda c: sessions.finish(c, SESSION, "enough", {"radius": 0.5}, now()))
        database.write(lambda c: sessions.finish(c, SESSION, "later", {"radius": 0.1}, now()))
        row = session_row(database)
        assert (row.reason, row.final) == ("enough", {"radius": 0.5})
        database.write(lambda c: sessions.reopen(c, SESSION))
        row = session_row(database)
        assert (row.finished_at, row.reason, row.final) == (None, None, None)

    def test_a_read_transaction_sees_one_snapshot(self, database: Database) -> None:
        """Assert that an answer committed during a read transaction is visible only after it."""

        def read(connection: sa.Connection) -> tuple[list[EventRow], list[EventRow]]:
            before = events.events_of(connection, [SESSION])
            thread = threading.Thread(target=lambda: database.write(_add(answer_row(0, "p1"), version=0)))
            thread.start()
            thread.join()
            return before, events.events_of(connection, [SESSION])

        assert database.read(read) == ([], [])
        assert len(database.read(lambda c: events.events_of(c, [SESSION]))) == 1


def _add(event: EventRow, *, version: int) -> Callable[[sa.Connection], None]:
    """Return the function that adds an event on a connection."""
    return lambda connection: events.add_event(connection, event, version=version)


def _at_once(count: int, function: Callable[[int], str]) -> list[str]:
    """Call a function from several threads at the same time, and return the results."""
    results: list[str] = []
    barrier = threading.Barrier(count)

    def run(number: int) -> None:
        barrier.wait()
        results.append(function(number))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
