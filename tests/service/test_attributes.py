"""Attributes of items over HTTP: changes, filters of recommendations, and errors."""

import numpy as np
import pytest

from helpers.refusals import refused_with
from helpers.serving import served
from pairseek.client import Client, ServiceError
from pairseek.web.access.auth import make_token

COUNT = 40
POINTS = np.random.default_rng(4).standard_normal((COUNT, 2))
IDS = [f"i{row}" for row in range(COUNT)]
STOCK = dict.fromkeys(IDS[::2], True) | dict.fromkeys(IDS[1::2], False)
PRICES = {name: float(row) for row, name in enumerate(IDS)}


@pytest.fixture
def visitors(tmp_path):
    with served(tmp_path / "s.db") as visitors:
        token = make_token(visitors.service.database, "test", ["read", "write", "answer", "delete"], "test")
        visitors.client = Client(visitors.address, token)
        items = [{"id": name, "coordinates": POINTS[row].tolist()} for row, name in enumerate(IDS)]
        visitors.client.create_study({"title": "Which", "answers": 8}, items)
        yield visitors


@pytest.fixture
def client(visitors):
    return visitors.client


@pytest.fixture
def session(client):
    session = client.open_session("which")
    session.answer(session.state().pair, "left")
    return session


def ids_of(recommended):
    return {item.id for item in recommended}


def test_recommendations_are_filtered_by_the_current_attributes(client, session):
    everything = ids_of(session.recommend(COUNT))
    assert everything == set(IDS)
    assert client.set_attributes("which", {"in_stock": STOCK, "price": PRICES}) == {"in_stock": 40, "price": 40}
    assert ids_of(session.recommend(COUNT, where={"in_stock": True})) == set(IDS[::2])
    assert ids_of(session.recommend(COUNT, where={"price": {"min": 3, "max": 5}})) == {"i3", "i4", "i5"}
    assert ids_of(session.recommend(COUNT, where={"in_stock": True, "price": [3, 4]})) == {"i4"}
    only = ["i2", "i3", "gone"]
    assert ids_of(session.recommend(5, where={"in_stock": True}, only=only, missing="ignore")) == {"i2"}
    # A change counts at once, and what was not named stays.
    assert client.set_attributes("which", {"in_stock": {"i0": None, "i1": True}}) == {"in_stock": 39, "price": 40}
    assert ids_of(session.recommend(COUNT, where={"in_stock": True})) == set(IDS[2::2]) | {"i1"}


def test_a_token_for_one_study_changes_its_attributes(visitors):
    token = make_token(visitors.service.database, "own", ["write"], "test", 1)
    own = Client(visitors.address, token)
    assert own.set_attributes("which", {"price": PRICES}) == {"price": 40}


def test_attributes_change_no_catalogue_and_no_session(client, session):
    before, pair = client.study("which").catalogue, session.state().pair
    client.set_attributes("which", {"in_stock": STOCK})
    assert client.study("which").catalogue == before
    assert session.state().pair == pair


def test_probabilities_are_those_of_the_best_of_the_items_that_are_left(client, session):
    client.set_attributes("which", {"in_stock": STOCK})
    left = session.recommend(COUNT, where={"in_stock": True})
    assert sum(item.probability for item in left) == pytest.approx(1.0, abs=0.02)


def test_unknown_ids_are_an_error_or_are_skipped(client):
    with refused_with("invalid_parameter", ServiceError):
        client.set_attributes("which", {"in_stock": {"i0": True, "gone": True}})
    assert client.set_attributes("which", {"in_stock": {"i0": True, "gone": True}}, missing="ignore") == {"in_stock": 1}


@pytest.mark.parametrize(
    "attributes",
    [
        {"": {"i0": 1}},
        {"a" * 65: {"i0": 1}},
        {"kind": {"i0": "x" * 201}},
        {"kind": {"i0": [1]}},
        {f"a{number}": {"i0": 1} for number in range(21)},
    ],
    ids=["no name", "long name", "long text", "list", "too many"],
)
def test_bad_attributes_are_refused_and_nothing_is_stored(client, attributes):
    with pytest.raises(ServiceError) as caught:
        client.set_attributes("which", attributes)
    assert caught.value.status == 422
    assert client.set_attributes("which", {}) == {}


@pytest.mark.parametrize(
    "where",
    [{"in_stock": True}, {"price": {"max": -1}}, {"price": {"least": 1}}, {"price": {}}, {"price": {"max": None}}],
)
def test_filters_that_cannot_be_met_are_refused(client, session, where):
    client.set_attributes("which", {"price": PRICES})
    with pytest.raises(ServiceError) as caught:
        session.recommend(3, where=where)
    assert caught.value.status == 422


def test_a_stock_list_larger_than_a_plain_body_is_accepted(visitors, client):
    padding = {f"{number:0200}": True for number in range(2000)}
    assert 200 * len(padding) > visitors.service.settings.most_body
    assert client.set_attributes("which", {"in_stock": STOCK | padding}, missing="ignore") == {"in_stock": 40}


def test_attributes_go_with_their_study(visitors, client):
    client.set_attributes("which", {"in_stock": STOCK})
    client.delete_study("which")
    with refused_with("not_found", ServiceError):
        client.set_attributes("which", {})
