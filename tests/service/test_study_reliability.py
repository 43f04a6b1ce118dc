"""A study that infers how reliable each person is: what its owner sees, exports and keeps when it learns."""

import csv
import io
import zipfile

import numpy as np
import pytest

import pairseek as ps
from helpers.refusals import refused
from helpers.serving import answer_to, configuration, csrf_of, served, some_items
from pairseek.client import Client
from pairseek.search import serialization
from pairseek.search.defaults import TIE_WIDTH
from pairseek.store import migrate
from pairseek.store.database import Database
from pairseek.web.access.auth import Account, make_token, set_password
from pairseek.web.learning import populations
from pairseek.web.results import bundle, tables
from pairseek.web.results.quality import quality_indicators
from pairseek.web.sessions import history
from pairseek.web.sessions.service import Sessions
from pairseek.web.studies.catalogue import Catalogue
from pairseek.web.studies.configuration import configured
from pairseek.web.studies.creation import create_study
from pairseek.web.studies.forms import record_of
from pairseek.web.views.researcher import person_page

ITEMS = some_items(12)
UNKNOWN = {"name": "logistic", "k": "unknown", "lapse": "unknown"}
POSTERIOR = {"name": "ep"}


@pytest.fixture
def database(tmp_path):
    made = Database(str(tmp_path / "r.db"))
    migrate.prepare(made)
    create_study(made, _settings(), ITEMS, is_open=True, who="test")
    yield made
    made.close()


def _settings(**changes):
    return configuration(answers=16, response=UNKNOWN, posterior=POSTERIOR, **changes)


def study(database):
    return Catalogue(database).by_slug("which")


def answered(database, *, clicks, seed, count=16):
    """Somebody who likes what has a high first coordinate and is sure of it, or who clicks at random."""
    sessions, rng = Sessions(database, Catalogue(database)), np.random.default_rng(seed)
    session_id, _ = sessions.open(study(database), {})
    state = sessions.state(sessions.by_id(session_id))
    for _ in range(count):
        left, right = (ITEMS.coordinates[ITEMS.index(state["query"][side]["id"]), 0] for side in ("left", "right"))
        outcome = "left" if (rng.random() < 0.5 if clicks else left > right) else "right"
        state = sessions.answer(sessions.by_id(session_id), answer_to(state["query"]["query"], outcome, 900))
    return session_id


def test_unknown_is_a_word_in_files():
    response = serialization.decode("response", UNKNOWN)
    assert response == ps.Logistic(ps.Unknown(), lapse=ps.Unknown())
    with refused("response.k"):
        serialization.decode("response", {"name": "logistic", "k": "unknow"})


def test_the_form_leaves_it_open():
    response = record_of(None, {"title": "Which", "response.unknown": "true", "response.k": "3"})["response"]
    assert serialization.decode("response", response) == ps.Logistic(
        ps.Unknown(ps.LogNormal(3.0, 1.5)), lapse=ps.Unknown()
    )
    bare = record_of(None, {"title": "Which", "response.unknown": "true"})["response"]
    assert serialization.decode("response", bare) == ps.Logistic(ps.Unknown(), lapse=ps.Unknown())
    assert "response" not in record_of(None, {"title": "Which"})


def test_a_study_has_a_width_of_ties_where_it_offers_them():
    def width(**settings):
        return configured({"title": "Which", **settings}).resolved(ITEMS).response.tie_width

    assert width() == 0.0
    assert width(offer={"tie": True}) == TIE_WIDTH > 0.0
    given = {"name": "logistic", "k": 2.0, "tie_width": 0.8}
    assert width(offer={"tie": True}, response=given) == 0.8
    with refused("response.tie_width"):
        width(response=given)


def test_checks_are_asked_as_a_search_would():
    plan = configured({"title": "Which", "response": UNKNOWN})
    assert plan.resolved(ITEMS).strategy == ps.Search(ITEMS, response=ps.Logistic(lapse=ps.Unknown())).strategy
    assert plan.resolved(ITEMS).strategy.checks == 4
    assert configured({"title": "Which"}).resolved(ITEMS).strategy == ps.InfoGain()
    assert (
        configured({"title": "Which", "strategy": "infogain", "response": UNKNOWN}).resolved(ITEMS).strategy
        == ps.InfoGain()
    )


def test_the_owner_sees_how_people_answer_and_exports_it(database, tmp_path):
    careful, careless = (answered(database, clicks=clicks, seed=3) for clicks in (False, True))
    rows = {row["session"]: row for row in tables.rows_of(database, study(database), "estimates")}
    columns = tables.columns_of(study(database), "estimates")
    for name in ("manner", *(f"{one}{end}" for one in ("agreement", "k", "lapse") for end in ("", "_low", "_high"))):
        assert name in columns
    assert list(rows[careful]) == columns
    assert rows[careful]["manner"] == "consistent"
    assert rows[careless]["manner"] != "consistent"
    assert rows[careful]["agreement"] > rows[careless]["agreement"]
    assert rows[careful]["lapse_low"] < rows[careful]["lapse"] < rows[careful]["lapse_high"]
    path = tmp_path / "which.zip"
    content = io.BytesIO()
    bundle.write(database, study(database), content)
    path.write_bytes(content.getvalue())
    with zipfile.ZipFile(path) as archive:
        book = {row["column"] for row in csv.DictReader(archive.read("codebook.csv").decode().splitlines())}
    assert set(columns) <= book
    assert all(one.same for one in bundle.replayed(bundle.read(path)))


def test_what_is_stored_is_what_is_worked_out_again(database):
    session_id = answered(database, clicks=False, seed=4, count=9)
    sessions = Sessions(database, Catalogue(database))
    (one,) = history.read_histories(database, study(database), [sessions.by_id(session_id)])
    along = history.estimate_history(study(database), one)
    assert [one.state(study(database), one.done[:count]).estimate_record() for count in range(1, 10)] == along
    assert along[-1]["reliability"]["word"] in ("consistent", "noisy", "random")


def test_a_study_that_learns_still_infers_how_people_answer(database):
    for seed in range(8):
        answered(database, clicks=False, seed=seed)
    _, population = populations.fit(database, study(database), "ann")
    session_id = answered(database, clicks=True, seed=20)
    sessions = Sessions(database, Catalogue(database))
    search = sessions.snapshot(sessions.by_id(session_id)).state.search
    assert search.configuration.response.noise == "constant"
    assert search.configuration.response.k.prior == ps.LogNormal(population.k, 1.5)
    assert search.configuration.response.lapse_prior == ps.Beta()
    assert search.estimate().reliability is not None


def test_a_known_lapse_stays_and_a_plain_response_gives_way(database):
    for seed in range(8):
        answered(database, clicks=False, seed=seed)
    _, population = populations.fit(database, study(database), "ann")
    lapsing = configured({"title": "Which", "response": {"name": "probit", "k": 2.0, "lapse": 0.1}})
    given = ps.Logistic(population.k, "constant", 0.1, residual=population.residual)
    assert lapsing.resolved(ITEMS, population).response == given
    guess = {"name": "unknown", "prior": {"name": "log_normal", "median": 9.0, "spread": 0.5}}
    guessed = configured({"title": "Which", "response": {"name": "logistic", "k": guess}})
    # The guess was about k of another noise; how far people differ is not.
    assert guessed.resolved(ITEMS, population).response.k_prior == ps.LogNormal(population.k, 0.5)
    plain = configured({"title": "Which", "response": {"name": "logistic", "k": 2.0}})
    assert plain.resolved(ITEMS, population).response == population.response


def test_pages_say_how_somebody_answers(tmp_path):
    with served(tmp_path / "f.db", studies=[(_settings(), ITEMS)]) as visitors:
        database = visitors.service.database
        session_id = answered(database, clicks=True, seed=6)
        set_password(database, "ann", "a long password")
        browser = visitors.browser(headers={"accept": "text/html"})
        page = browser.get("/login")
        browser.post("/login", data={"csrf": csrf_of(page), "name": "ann", "password": "a long password"})
        row = Sessions(database, Catalogue(database)).by_id(session_id)
        reliability = person_page(visitors.service, Account("ann"), study(database), row)["reliability"]
        page = browser.get(f"/studies/which/people/{session_id}").text
        assert f"<dd>{reliability['word']}</dd>" in page
        assert (
            f"{100 * reliability['agreement']['low']:.0f} % to {100 * reliability['agreement']['high']:.0f} %" in page
        )


def test_answers_like_a_coin_are_a_sign(database):
    sessions = Sessions(database, Catalogue(database))
    (one,) = history.read_histories(
        database, study(database), [sessions.by_id(answered(database, clicks=True, seed=6))]
    )
    plan = study(database).configuration
    assert "random" in quality_indicators(plan, one.done, manner="random")["flags"]
    assert "random" not in quality_indicators(plan, one.done, manner="noisy")["flags"]
    assert "random" not in quality_indicators(plan, one.done)["flags"]
    # Seven answers say nothing of that kind.
    assert "random" not in quality_indicators(plan, one.done[:7], manner="random")["flags"]


def test_the_newest_word_counts():
    assert tables.manner_of([]) is None
    assert tables.manner_of([{"mean": [0.0]}]) is None
    assert tables.manner_of([{"reliability": {"word": "noisy"}}, {"reliability": {"word": "random"}}]) == "random"


def test_over_http(tmp_path):
    with served(tmp_path / "h.db", studies=[(_settings(), ITEMS)]) as visitors:
        session_id = answered(visitors.service.database, clicks=False, seed=6)
        token = make_token(visitors.service.database, "test", ["read", "answer"], "test")
        reliability = Client(visitors.address, token).session(session_id, token).estimate().reliability
        assert reliability["word"] == "consistent"
        assert reliability["k"]["low"] < reliability["k"]["median"] < reliability["k"]["high"]
