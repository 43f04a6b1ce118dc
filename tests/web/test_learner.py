"""Learner of a worker: which studies it reads, and what becomes of requests to learn."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from helpers.serving import configuration, some_items
from pairseek.errors import StoreUnavailable
from pairseek.model.items import Items
from pairseek.store import counts, learning, migrate, schema, studies
from pairseek.store.database import Database
from pairseek.web.learning import learner as module
from pairseek.web.learning import populations
from pairseek.web.learning.learner import Learner
from pairseek.web.studies import catalogue
from pairseek.web.studies.catalogue import Catalogue
from pairseek.web.studies.creation import add_items, create_study
from pairseek.web.studies.replacement import replace_items

NAMES = ["none", "similar", "placed"]


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request, tmp_path):
    made = Database(
        str(tmp_path / "s.db") if request.param == "sqlite" else request.getfixturevalue("cluster").database()
    )
    migrate.prepare(made)
    create_study(made, configuration(slug="none"), Items(ids=list("abcde")), is_open=True, who="t")
    create_study(made, configuration(slug="similar", kind="similarity"), some_items(6), is_open=True, who="t")
    create_study(made, configuration(slug="placed"), some_items(9), is_open=True, who="t")
    yield made
    made.close()


@pytest.fixture
def learned(monkeypatch):
    """Studies that learned, with who asked for it."""
    found = []

    def learn_now(database, study, who, run=None, **_):
        found.append((study.row.slug, who))
        return True

    monkeypatch.setattr(module.populations, "learn_now", learn_now)
    monkeypatch.setattr(module.similarity, "learn_now", learn_now)
    return found


def learners(database, count=2):
    return [Learner(database, Catalogue(database)) for _ in range(count)]


def test_the_size_of_a_study_is_stored_with_its_items(database):
    found = Catalogue(database)
    add_items(database, found.by_slug("none"), Items(ids=["f", "g"]), who="t")
    more = some_items(12)
    replace_items(database, found.by_slug("placed"), more, who="t")
    rows = {row.slug: row for row in database.read(studies.all_studies)}
    assert {name: (rows[name].item_count, rows[name].dimensions) for name in NAMES} == {
        "none": (7, 0),
        "similar": (6, 2),
        "placed": (12, 2),
    }
    assert [row.count for row in database.read(lambda c: studies.replaced_catalogues(c, rows["placed"].id))] == [9]


def test_a_round_without_news_is_one_query_and_reads_no_items(database, monkeypatch):
    def read(_):
        raise AssertionError("items were read")

    monkeypatch.setattr(catalogue, "unpack_items", read)
    (one,) = learners(database, 1)
    one.round()
    statements = []
    sa.event.listen(database.engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    database.write(lambda c: c.execute(schema.studies.delete().where(schema.studies.c.slug == "similar")))
    del statements[:]
    one.round()
    assert len([text for text in statements if text.lstrip().upper().startswith("SELECT")]) == 1


def test_many_requests_are_one_learning_whichever_worker_gets_them(database, learned):
    one, other = learners(database)
    study = Catalogue(database).by_slug("none")
    for _ in range(6):
        one.request(study, "ann")
        other.request(study, "bob")
    one.round()
    other.round()
    assert learned == [("none", "bob")]
    one.request(study, "ann")
    other.round()
    assert learned == [("none", "bob"), ("none", "ann")]


def test_a_request_waits_while_another_worker_learns_or_the_database_is_away(database, learned, monkeypatch):
    one, other = learners(database)
    one.request(Catalogue(database).by_slug("placed"), "ann")

    def is_away(*_):
        raise StoreUnavailable("away", "now")

    for answer in (lambda *_: False, is_away):
        with monkeypatch.context() as patch:
            patch.setattr(module.populations, "learn_now", answer)
            try:
                one.round()
            except StoreUnavailable:
                assert answer is is_away
    other.round()
    assert learned == [("placed", "ann")]


def test_a_request_during_learning_is_kept_for_the_next(database, monkeypatch):
    one, other = learners(database)
    study, begun = Catalogue(database).by_slug("none"), []

    def learn_now(*_):
        begun.append(1)
        for _ in range(3):
            other.request(study, "bob")
        return True

    monkeypatch.setattr(module.populations, "learn_now", learn_now)
    one.request(study, "ann")
    one.round()
    assert len(begun) == 1
    other.round()
    assert len(begun) == 2


def test_studies_with_enough_sessions_are_found_without_their_items(database):
    rows = {progress.study.slug: progress for progress in database.read(learning.progress)}
    assert not any(populations.may_be_due(progress) for progress in rows.values())
    due = {name: learning.LearningProgress(rows[name].study, rows[name].state, 12) for name in NAMES}
    # Items without coordinates are learned by default.
    assert {name for name in NAMES if populations.may_be_due(due[name])} == {"none"}
    off = learning.LearningProgress(due["none"].study, learning.LearningRow(is_on=False), 12)
    assert not populations.may_be_due(off)


def test_totals_of_all_studies_are_those_of_each(database):
    every = database.read(counts.totals)
    for row in database.read(studies.all_studies):
        assert database.read(lambda c, row=row: counts.totals(c, row.id)).get(row.id) == every.get(row.id)
