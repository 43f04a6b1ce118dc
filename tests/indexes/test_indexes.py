"""Recommendations from vector databases, compared with those from items.

The tests of FAISS, Qdrant and pgvector have the mark `backends`. `make test-backends` installs these and a PostgreSQL
with the extension, and runs them; the ordinary suite leaves them out.
"""

from __future__ import annotations

import atexit

import numpy as np
import pytest

import pairseek as ps
from helpers import pgvector
from helpers.refusals import missing_extra, refused
from pairseek.errors import InvalidItems, StoreUnavailable, Unsupported
from pairseek.indexes import CatalogueIndex, ExactIndex, FaissIndex, PgvectorIndex, QdrantIndex

N, D = 3000, 5


def faiss_index():
    return FaissIndex()


def qdrant_index():
    import qdrant_client

    return QdrantIndex(qdrant_client.QdrantClient(":memory:"), "shelf")


def connected():
    """Return a connection with a PostgreSQL of our own with pgvector; both end with the process."""
    import psycopg

    connection = psycopg.connect(pgvector.address(), autocommit=True)
    atexit.register(connection.close)
    return connection


def pgvector_index(table="shelf"):
    connection = connected()
    connection.execute(f'DROP TABLE IF EXISTS "{table}"')
    return PgvectorIndex(connection, table)


INDEXES = [
    ExactIndex,
    pytest.param(faiss_index, marks=pytest.mark.backends),
    pytest.param(qdrant_index, marks=pytest.mark.backends),
    pytest.param(pgvector_index, marks=pytest.mark.backends),
]


@pytest.fixture(scope="module")
def items():
    rng = np.random.default_rng(3)
    appeal = rng.standard_normal(N)
    return ps.Items(rng.standard_normal((N, D)), [f"i{k}" for k in range(N)], appeal=appeal)


def searched(items, **settings):
    search = ps.Search(items, askable=200, rng=2, **settings)
    for number in range(6):
        query = search.ask()
        search.tell(query, winner=query.left if number % 3 else query.right)
    return search


SETTINGS = {
    "default": {},
    "plain": {"response": ps.Logistic(0.4, "constant")},
    "residual": {"response": ps.Logistic(0.4, "normalized", residual=2.0)},
}


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("settings", SETTINGS)
def test_the_best_items_are_those_of_the_search_itself(items, index, settings):
    search = searched(items, **SETTINGS[settings], goal="list")
    stock = np.arange(N) % 3 != 0
    shelf = CatalogueIndex.of(
        index(), items, {"stock": stock, "kind": np.where(stock, "a", "b"), "price": 5.0 + 20.0 * ~stock}
    )
    expected = search.recommend(10)
    recommended = search.recommend(10, among=shelf)
    # Vectors have single precision: items whose utilities agree to 1e-5 may change places.
    utilities = [one.expected_utility for one in expected]
    assert len({item.id for item in recommended} & {one.id for one in expected}) >= 9
    np.testing.assert_allclose([item.expected_utility for item in recommended], utilities, rtol=1e-4, atol=1e-4)
    wanted = search.recommend(10, only=stock, exclude=["i1"])
    for filter in ({"stock": True}, {"kind": ["a"]}, {"stock": True, "kind": "a"}, {"price": {"min": 1, "max": 5.5}}):
        recommended = search.recommend(10, among=shelf.where(filter), exclude=["i1", "gone"])
        np.testing.assert_allclose(
            [item.expected_utility for item in recommended],
            [one.expected_utility for one in wanted],
            rtol=1e-4,
            atol=1e-4,
        )
        assert all(stock[items.index(item.id)] for item in recommended)
    few = search.recommend(10, among=shelf, only=["i4", "i5", "nothing"])
    assert {one.id for one in few} == {"i4", "i5"}


def test_an_item_that_was_shown_and_liked_is_found_however_far_it_is(items):
    search = searched(items, response=ps.Logistic(0.4, "constant", residual=20.0))
    shelf = CatalogueIndex.of(ExactIndex(), items)
    found = [item.id for item in search.recommend(5, among=shelf)]
    assert found == [item.id for item in search.recommend(5)]
    assert set(found) & {event.winner for event in search.history}


@pytest.mark.parametrize("index", INDEXES)
def test_items_are_added_later(items, index):
    search = searched(items)
    rows = np.arange(N)
    shelf = CatalogueIndex.of(index(), items.subset(rows[: N // 2]))
    shelf.add(items.subset(rows[N // 2 :]))
    assert search.recommend(1, among=shelf)[0].id == search.recommend(1)[0].id


@pytest.mark.parametrize("index", INDEXES)
def test_searches_with_other_settings_recommend_from_the_same_catalogue(items, index):
    catalogue = CatalogueIndex.of(index(), items)
    for response in (
        ps.Logistic(0.1, "constant"),
        ps.Logistic(0.9, "constant", curvature=-0.5),
        ps.Logistic(0.4, "constant", curvature=ps.Unknown(), residual=1.0),
    ):
        search = searched(items, response=response, goal="list", stop=())
        expected = [item.expected_utility for item in search.recommend(5)]
        utilities = [item.expected_utility for item in search.recommend(5, among=catalogue)]
        np.testing.assert_allclose(utilities, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("index", INDEXES)
def test_a_day_in_a_shop_changes_what_changed(items, index):
    """Items leave, new ones come, some move and some are sold out: the best are those of an index built afresh."""
    backend, rng = index(), np.random.default_rng(7)
    stock = rng.random(N) < 0.7
    catalogue = CatalogueIndex.of(backend, items, {"stock": stock, "shop": ["a"] * N})
    search = searched(items, goal="list")
    gone, moved, sold = rng.permutation(N)[:900].reshape(3, 300)
    catalogue.remove([*(items.ids[row] for row in gone), "never there"])
    sold = np.setdiff1d(sold, gone)
    names = [*(items.ids[row] for row in sold), items.ids[gone[0]]]
    catalogue.update(names, {"stock": [False] * len(names), "shop": ["another town"] * len(names)})
    moved = np.setdiff1d(moved, gone)
    points = items.coordinates.copy()
    points[moved] = rng.standard_normal((len(moved), D))
    stock[sold] = False
    today = ps.Items(points, items.ids, appeal=items.appeal)
    catalogue.add(today.subset(moved), {"stock": stock[moved], "shop": ["a"] * len(moved)})
    new = ps.Items(rng.standard_normal((50, D)), [f"n{k}" for k in range(50)])
    catalogue.add(new, {"stock": [True] * 50, "shop": ["new"] * 50})

    catalogue = CatalogueIndex.attach(backend, today)
    kept = np.setdiff1d(np.arange(N), gone)
    afresh = ps.Items(
        np.concatenate([points[kept], new.coordinates]),
        [*(items.ids[row] for row in kept), *new.ids],
        appeal=np.concatenate([items.appeal[kept], new.appeal]),
    )
    in_stock = np.concatenate([stock[kept], np.ones(50, dtype=bool)])
    expected = search.recommend(20, among=afresh, only=in_stock)
    best = search.recommend(20, among=catalogue.where({"stock": True}))
    utilities = [item.expected_utility for item in expected]
    np.testing.assert_allclose([item.expected_utility for item in best], utilities, rtol=1e-4, atol=1e-4)
    shown = {side for event in search.history for side in (event.left, event.right)}
    everything = {item.id for item in search.recommend(2 * N, among=catalogue)}
    assert everything == set(afresh.ids)
    assert shown - {items.ids[row] for row in gone} <= everything
    elsewhere = {item.id for item in search.recommend(N, among=catalogue.where({"shop": "another town"}))}
    assert elsewhere == {items.ids[row] for row in np.setdiff1d(sold, moved)}


class _Down:
    def add(self, ids, vectors, payload):
        pass

    def best(self, *_, **__):
        raise ConnectionError("refused")


def test_an_unreachable_database_is_reported_and_the_search_goes_on(items):
    search = searched(items)
    shelf = CatalogueIndex.of(_Down(), items)
    with pytest.raises(StoreUnavailable):
        search.recommend(3, among=shelf)
    query = search.ask()
    search.tell(query, winner=query.left)
    assert search.answers == 7


def test_filters_that_leave_no_item_or_do_not_fit_are_rejected(items):
    search = searched(items)
    shelf = CatalogueIndex.of(ExactIndex(), items, {"stock": np.ones(N, dtype=bool)})
    with refused("only") as caught:
        search.recommend(3, among=shelf.where({"stock": False}))
    assert "leave no item to recommend" in str(caught.value)
    with refused("only"):
        search.recommend(3, among=shelf, only=["nothing"])
    with refused("where") as caught:
        search.recommend(3, among=shelf.where({"colour": "red"}))
    assert "the items have no column 'colour': use one of stock" in str(caught.value)
    with refused("where") as caught:
        search.recommend(3, among=shelf.where([True]))
    assert "the filter is a list: give a mapping from columns to values, or a mask of 3000 bools" in str(caught.value)


def test_items_and_searches_that_do_not_fit_the_catalogue_are_rejected(items):
    search = searched(items)
    shelf = CatalogueIndex.of(ExactIndex(), items, {"stock": np.ones(N, dtype=bool)})
    with pytest.raises(Unsupported):
        search.recommend(3, among=shelf, diversity=0.5)
    with pytest.raises(InvalidItems):
        CatalogueIndex.of(ExactIndex(), items, {"stock": [True]})
    with pytest.raises(InvalidItems):
        shelf.add(ps.Items([[0.0, 0.0], [1.0, 1.0]], ["a", "b"]))
    other = ps.Search(ps.Items(np.eye(3)), rng=1)
    with refused("among") as caught:
        other.recommend(3, among=shelf)
    assert "among holds items of 5 coordinates" in str(caught.value)
    with refused("payload"):
        CatalogueIndex.of(ExactIndex(), items, search)
    far = ps.Items(items.coordinates + 1000.0, items.ids)
    with pytest.raises(InvalidItems):
        CatalogueIndex.of(ExactIndex(), far)
    assert ExactIndex().best(np.zeros(3), 2) == []


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "faiss", None)
    monkeypatch.setitem(__import__("sys").modules, "qdrant_client", None)
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with missing_extra("faiss"):
        FaissIndex()
    with missing_extra("qdrant"):
        QdrantIndex(None, "shelf")
    with missing_extra("pgvector"):
        PgvectorIndex(None, "shelf")


@pytest.mark.backends
def test_a_filter_of_qdrant_is_passed_through(items):
    from qdrant_client import models

    search = searched(items)
    price = np.linspace(0.0, 100.0, N)
    shelf = CatalogueIndex.of(qdrant_index(), items, {"price": price})
    cheap = models.Filter(must=[models.FieldCondition(key="price", range=models.Range(lte=50.0))])
    best = search.recommend(5, among=shelf.where(cheap))
    expected = search.recommend(5, only=price <= 50.0)
    assert [item.id for item in best] == [item.id for item in expected]


@pytest.mark.backends
def test_a_condition_of_sql_is_passed_through_and_ids_keep_their_type():
    from psycopg import sql

    rng = np.random.default_rng(5)
    items = ps.Items(rng.standard_normal((200, 3)), list(range(200)))
    search = searched(items)
    price = np.linspace(0.0, 100.0, 200)
    shelf = CatalogueIndex.of(pgvector_index("by price"), items, {"price": price})
    best = search.recommend(5, among=shelf.where(sql.SQL("(payload ->> 'price')::float <= 50")), exclude=[3])
    expected = search.recommend(5, only=price <= 50.0, exclude=[3])
    assert {item.id for item in best} == {item.id for item in expected}
    # Items with the same ids are replaced, and a failing statement leaves the connection usable.
    shelf.add(items, {"price": price[::-1]})
    with pytest.raises(StoreUnavailable):
        search.recommend(5, among=shelf.where(sql.SQL("colour = 'red'")))
    assert len(search.recommend(200, among=shelf)) == 200
    shelf.index.connection.close()
    with pytest.raises(StoreUnavailable):
        search.recommend(5, among=shelf)
    assert search.ask() is not None
