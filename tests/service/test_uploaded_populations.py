"""Populations that are uploaded to a study over HTTP, named and chosen."""

import json
import re

import numpy as np
import pytest

import pairseek as ps
from helpers.refusals import refused_with
from helpers.serving import csrf_of, served
from pairseek.client import Client, ServiceError
from pairseek.web.access.auth import make_token, set_password

POINTS = np.random.default_rng(4).standard_normal((40, 2))
ALL = ps.Items(POINTS, [f"i{row}" for row in range(40)])
TODAY, TOMORROW = ALL.subset(np.arange(30)), ALL.subset(np.arange(10, 40))


def rows_of(items):
    return [
        {"id": name, "coordinates": point.tolist()} for name, point in zip(items.ids, items.coordinates, strict=True)
    ]


def fitted(items, taste):
    rng = np.random.default_rng(1)
    rows = []
    for person in range(20):
        for _ in range(8):
            a, b = rng.choice(items.n, 2, replace=False)
            better = taste * (items.coordinates[a] - items.coordinates[b])[0] > 0
            rows.append((f"p{person}", *((items.ids[a], items.ids[b]) if better else (items.ids[b], items.ids[a]))))
    return ps.Population.fit(ps.Choices.from_pairs(rows), items, residual=0.0)


@pytest.fixture(scope="module")
def populations():
    return fitted(TODAY, 1), fitted(TODAY, -1)


@pytest.fixture
def visitors(tmp_path):
    with served(tmp_path / "s.db") as visitors:
        scopes = ["read", "write", "answer"]
        visitors.client = Client(visitors.address, make_token(visitors.service.database, "t", scopes, "test"))
        visitors.client.create_study({"title": "Which", "answers": 4, "seed": 3}, rows_of(TODAY))
        yield visitors


def session_items(visitors, client):
    sessions = visitors.service.sessions
    return sessions.snapshot(sessions.by_id(client.open_session("which").id)).state.parts.items


def test_a_population_is_uploaded_named_chosen_and_kept_over_a_new_catalogue(visitors, populations):
    client, (first, second) = visitors.client, populations
    assert client.populations("which") == []
    assert client.upload_population("which", "spring", first.record()) == 1
    # A request whose reply was lost is sent again.
    assert client.upload_population("which", "spring", first.record()) == 1
    assert client.upload_population("which", "autumn 2", second.record()) == 2
    listed = client.populations("which")
    shown = [(row["version"], row["name"], row["current"]) for row in listed]
    assert shown == [(2, "autumn 2", True), (1, "spring", False)]
    assert session_items(visitors, client).appeal.tolist() == second.items.appeal.tolist()
    client.choose_population("which", 1)
    assert session_items(visitors, client).appeal.tolist() == first.items.appeal.tolist()
    client.replace_items("which", rows_of(TOMORROW))
    assert session_items(visitors, client).appeal[:20].tolist() == first.items.appeal[10:].tolist()
    client.choose_population("which", 0)
    assert not session_items(visitors, client).appeal.any()


def test_the_page_of_the_study_shows_an_uploaded_population(visitors, populations):
    visitors.client.upload_population("which", "spring", populations[0].record())
    set_password(visitors.service.database, "ann", "a long password")
    browser = visitors.browser(headers={"accept": "text/html"}, follow_redirects=True)
    page = browser.get("/login")
    browser.post("/login", data={"csrf": csrf_of(page), "name": "ann", "password": "a long password"})
    study = browser.get("/studies/which")
    assert study.status_code == 200
    assert "uploaded a population: spring" in " ".join(re.sub("<[^>]*>", " ", study.text).split())


def test_populations_of_other_items_and_broken_ones_are_refused(visitors, populations):
    client, (first, _) = visitors.client, populations
    record = first.record()
    moved = fitted(ps.Items(3.0 * TODAY.coordinates, TODAY.ids), 1).record()
    others = fitted(ps.Items(TODAY.coordinates, [f"x{row}" for row in range(30)]), 1).record()
    for wrong, code in (
        (moved, "invalid_parameter"),
        (others, "invalid_parameter"),
        ({}, "invalid_file"),
        ({**record, "mean": "x"}, "invalid_file"),
        ({**record, "items": []}, "invalid_file"),
        ({**record, "k": -1.0}, "invalid_parameter"),
        ({**record, "provenance": None}, "invalid_file"),
    ):
        with refused_with(code, ServiceError):
            client.upload_population("which", "wrong", json.loads(json.dumps(wrong)))
    with refused_with("unknown_version", ServiceError):
        client.choose_population("which", 7)
    reader = Client(visitors.address, make_token(visitors.service.database, "r", ["read"], "test"))
    with refused_with("scope_missing", ServiceError):
        reader.upload_population("which", "spring", record)
    assert client.populations("which") == []
