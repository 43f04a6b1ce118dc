"""Parts of a session's search: resolved when it begins, stored, and used whatever becomes of the defaults."""

import io
import json
import zipfile

import numpy as np
import pytest

import pairseek as ps
from helpers.refusals import refused
from helpers.searches import search_of
from helpers.serving import answer, answer_to, begin, configuration, csrf_of, served, some_items
from pairseek import cli
from pairseek._version import MODEL_VERSION
from pairseek.client import Client
from pairseek.errors import InvalidFile
from pairseek.pairs.sources import ProposedPairs
from pairseek.pairs.strategies import all_strategies
from pairseek.search import defaults, serialization
from pairseek.store import migrate
from pairseek.store import parts as stored
from pairseek.store.database import Database
from pairseek.store.schema import sessions as table
from pairseek.store.schema import studies as studies_table
from pairseek.web.access.auth import make_token, set_password
from pairseek.web.errors import Problem
from pairseek.web.learning import populations
from pairseek.web.results import bundle, tables
from pairseek.web.sessions import history
from pairseek.web.sessions.parts import SessionParts
from pairseek.web.sessions.service import Sessions
from pairseek.web.studies.catalogue import Catalogue
from pairseek.web.studies.creation import create_study

ITEMS = some_items(60)
EARLIER, LATER = MODEL_VERSION - 1, MODEL_VERSION + 1
BOTH = rf"model version {LATER}, but this pairseek computes with version {MODEL_VERSION}"


@pytest.fixture
def database(tmp_path):
    made = Database(str(tmp_path / "parts.db"))
    migrate.prepare(made)
    create_study(made, configuration(answers=12), ITEMS, is_open=True, who="test")
    yield made
    made.close()


def worker(database):
    return Sessions(database, Catalogue(database))


def study(database):
    return Catalogue(database).by_slug("which")


def answered(database, outcomes, *, session=None, seed=3):
    """Answer a session in a fresh worker; return its id and the pairs that it showed."""
    sessions = worker(database)
    if session is None:
        session, _ = sessions.open(study(database), {}, seed=seed)
    state = sessions.state(sessions.by_id(session))
    pairs = [state["query"]]
    for outcome in outcomes:
        state = sessions.answer(sessions.by_id(session), answer_to(state["query"]["query"], outcome, 700))
        pairs.append(state["query"])
    return session, pairs


def estimate_of(database, session):
    sessions = worker(database)
    return sessions.snapshot(sessions.by_id(session)).state.search.estimate()


def with_other_defaults(monkeypatch):
    """Defaults of the prior, and with it of k, of the choice of pairs, and of the posterior."""
    monkeypatch.setattr("pairseek.model.defaults.PRIOR_FACTOR", 9.0)
    monkeypatch.setattr(defaults, "ProposedPairs", lambda **_: ProposedPairs(items=4, listed=0))
    monkeypatch.setattr(defaults, "EP", lambda: ps.Particles(300))


def test_other_defaults_change_no_session_that_has_begun(database, monkeypatch):
    before, after = ["left", "right", "left", "left"], ["right", "left", "right"]
    twin, expected = answered(database, before + after)
    session, pairs = answered(database, before)
    with_other_defaults(monkeypatch)
    _, more = answered(database, after, session=session)
    assert pairs + more[1:] == expected
    found, control = estimate_of(database, session), estimate_of(database, twin)
    assert np.array_equal(found.point, control.point)
    assert np.array_equal(found.covariance, control.covariance)
    assert found.belief.info.method == control.belief.info.method != "particles"
    # A session that begins now has the new defaults.
    fresh, others = answered(database, before + after)
    sessions = worker(database)
    rows = [sessions.by_id(name) for name in (session, twin, fresh)]
    assert rows[0].parts == rows[1].parts != rows[2].parts
    record = database.read(lambda c: stored.contents(c, [row.parts for row in rows]))
    old, new = record[rows[0].parts], record[rows[2].parts]
    assert new["prior"]["covariance"] == pytest.approx(9.0 * np.array(old["prior"]["covariance"]))
    assert (old["candidates"]["items"], new["candidates"]["items"]) == (256, 4)
    assert (old["posterior"]["name"], new["posterior"]["name"]) == ("ep", "particles")
    assert others != expected
    assert not np.allclose(estimate_of(database, fresh).point, found.point, rtol=0.05)


def test_the_parts_of_a_session_are_all_that_its_search_has(database):
    session, _ = answered(database, ["left"])
    sessions = worker(database)
    row = sessions.by_id(session)
    record = database.read(lambda c: stored.contents(c, [row.parts]))[row.parts]
    search = configuration(answers=12).resolved(ITEMS)
    assert record == search.record() == sessions.snapshot(row).state.search.configuration.record()
    assert record["model"] == MODEL_VERSION
    assert record["response"]["k"] is not None
    assert record["candidates"] is not None


@pytest.mark.parametrize("name", sorted(all_strategies()))
def test_parts_of_every_strategy_resolve_to_themselves(name):
    needed = {"gausscloud": {"stages": 2, "answers": 10}}.get(name, {})
    made = configuration(strategy={"name": name, **needed}, stop=[{"name": "radius", "radius": 0.5}])
    parts = SessionParts.resolved(made, ITEMS)
    again = SessionParts(ITEMS, json.loads(json.dumps(parts.record)))
    search = again.search(5)
    assert search.configuration.record() == parts.record
    assert search.query() == search_of(made.resolved(ITEMS), 5).ask()


def test_an_unknown_k_and_lapse_resolve_to_themselves():
    made = configuration(response={"name": "logistic", "k": "unknown", "lapse": "unknown"})
    parts = SessionParts.resolved(made, ITEMS)
    assert SessionParts(ITEMS, parts.record).search(5).configuration.record() == parts.record
    assert serialization.decode("response", parts.record["response"]).k_prior.median is not None


def test_a_session_with_a_population_keeps_appeal_prior_and_response(tmp_path, monkeypatch):
    database = Database(str(tmp_path / "population.db"))
    migrate.prepare(database)
    create_study(database, configuration(answers=12), some_items(12), is_open=True, who="test")
    rng = np.random.default_rng(0)
    for seed in range(12):
        # Most like what has a high first coordinate.
        sessions = worker(database)
        session, _ = sessions.open(study(database), {}, seed=seed)
        state = sessions.state(sessions.by_id(session))
        while state["query"] is not None:
            left, right = (
                study(database).items.coordinates[int(state["query"][s]["id"][1:]), 0] for s in ("left", "right")
            )
            outcome = "left" if rng.random() < 1 / (1 + np.exp(3 * (right - left))) else "right"
            state = sessions.answer(sessions.by_id(session), answer_to(state["query"]["query"], outcome, 500))
    _, population = populations.fit(database, study(database), "ann")
    twin, expected = answered(database, ["left", "right", "left", "right"])
    session, pairs = answered(database, ["left", "right"])
    with_other_defaults(monkeypatch)
    populations.fit(database, study(database), "ann")
    _, more = answered(database, ["left", "right"], session=session)
    assert pairs + more[1:] == expected
    sessions = worker(database)
    assert [sessions.by_id(name).population for name in (twin, session)] == [1, 1]
    search = sessions.snapshot(sessions.by_id(session)).state.search
    assert search.configuration.prior == population.prior
    assert search.configuration.response == population.response
    assert np.array_equal(search.configuration.items.appeal, population.items.appeal)
    assert np.array_equal(estimate_of(database, session).point, estimate_of(database, twin).point)
    # Sessions that began alike share what they began with.
    mine, theirs = (sessions.snapshot(sessions.by_id(name)).parts for name in (session, twin))
    assert mine is theirs
    assert bundled(database, tmp_path).model_versions == [MODEL_VERSION]
    assert all(one.same for one in bundle.replayed(bundled(database, tmp_path)))
    database.close()


# Another version of the model


def begun_with(model, database, *sessions):
    """Let these sessions have begun with another model version."""
    rows = [worker(database).by_id(session) for session in sessions]

    def change(connection):
        for row in rows:
            content = stored.contents(connection, [row.parts])[row.parts]
            key = stored.add(connection, {**content, "model": model})
            connection.execute(table.update().where(table.c.id == row.id).values(parts=key))

    database.write(change)


def test_a_session_of_an_earlier_model_continues_with_its_settings_and_the_present_model(database):
    session, pairs = answered(database, ["left", "right"])
    begun_with(EARLIER, database, session)
    sessions = worker(database)
    row = sessions.by_id(session)
    before = sessions.state(row)["query"]
    assert before["query"] == pairs[-1]["query"]
    sessions.answer(row, answer_to(before["query"], "left"))
    sessions.undo(sessions.by_id(session), before["query"])
    after = sessions.state(sessions.by_id(session))["query"]
    assert (after["left"], after["right"]) == (before["left"], before["right"])


UNKNOWN_RESIDUAL = {"name": "logistic", "k": 1.0, "noise": "constant", "residual": "unknown"}


def test_a_study_with_an_unknown_residual_is_refused(database):
    with refused("response.residual"):
        create_study(database, configuration(response=UNKNOWN_RESIDUAL), ITEMS, is_open=True, who="test")


@pytest.mark.filterwarnings("ignore:the saved response has an unknown residual:pairseek.DefaultWarning")
def test_a_stored_study_with_an_unknown_residual_continues_with_a_number(database):
    stored_settings = configuration(answers=12).model_dump(mode="json") | {"response": UNKNOWN_RESIDUAL}
    database.write(lambda connection: connection.execute(studies_table.update().values(configuration=stored_settings)))
    session, _ = answered(database, ["left", "right"])
    sessions = worker(database)
    response = sessions.snapshot(sessions.by_id(session)).state.search.configuration.response
    assert response.residual == pytest.approx(np.exp(0.49))


def test_a_session_of_a_later_model_is_not_continued(database):
    session, pairs = answered(database, ["left", "right"])
    begun_with(LATER, database, session)
    sessions = worker(database)
    row = sessions.by_id(session)
    for go_on in (
        lambda: sessions.state(row),
        lambda: sessions.answer(row, answer_to(pairs[-1]["query"], "left")),
        lambda: sessions.undo(row, pairs[1]["query"]),
        lambda: sessions.snapshot(row).state.search,
    ):
        with pytest.raises(Problem, match=BOTH) as refused:
            go_on()
        assert (refused.value.status, refused.value.code) == (409, "other_model")
    # What was believed after each answer is stored, and is shown as it was.
    one = history.read_histories(database, study(database), [row])[0]
    along = history.estimate_history(study(database), one)
    assert [entry["radius"] is not None for entry in along] == [True, True]
    assert len(one.events) == 2, "nothing was added"


def test_a_finished_session_of_an_earlier_model_shows_what_was_stored(tmp_path):
    with served(tmp_path / "old.db", studies=[(configuration(answers=3), ITEMS)]) as visitors:
        database = visitors.service.database
        browser = visitors.browser(headers={"accept": "text/html"})
        state = begin(browser)
        while state["query"] is not None:
            state = answer(browser, state).json()
        session = browser.get("/s/which/mine").json()["session"]
        pages = (
            "/s/which/mine",
            "/s/which/result",
            "/s/which/state",
            f"/studies/which/people/{session}",
            "/studies/which",
        )
        set_password(database, "ann", "a long password")
        page = browser.get("/login")
        browser.post("/login", data={"csrf": csrf_of(page), "name": "ann", "password": "a long password"})
        before = [browser.get(address) for address in pages]
        client = Client(visitors.address, make_token(database, "test", ["read", "answer"], "test"))
        estimate = client.session(session, client.token).estimate()
        stored = [list(tables.rows_of(database, study(database), name)) for name in ("answers", "estimates")]
    begun_with(EARLIER, Database(str(tmp_path / "old.db")), session)
    with served(tmp_path / "old.db") as visitors:
        database = visitors.service.database
        again = visitors.browser(headers={"accept": "text/html"})
        for name, value in browser.cookies.items():
            again.cookies.set(name, value)
        after = [again.get(address) for address in pages]
        assert [reply.status_code for reply in after] == [200] * 5
        assert after[0].json() == before[0].json()
        assert after[2].json() == before[2].json()
        nearest = worker(database).by_id(session).final["nearest"]
        for reply in (after[1], after[3]):
            assert f"Item {nearest[0][0][1:]}" in reply.text
        client = Client(visitors.address, client.token)
        assert client.session(session, client.token).estimate() == estimate
        assert [list(tables.rows_of(database, study(database), name)) for name in ("answers", "estimates")] == stored


def test_a_voided_answer_of_a_later_model_leaves_the_estimate_out(database):
    from pairseek.store import sessions as rows

    old, _ = answered(database, ["left", "right"])
    begun_with(LATER, database, old)
    database.write(lambda c: rows.mark(c, old, "p2", "void", "asleep", "ann"))
    found = {row["session"]: row for row in tables.rows_of(database, study(database), "estimates")}
    assert (found[old]["radius"], found[old]["x0"], found[old]["answers"]) == (None, None, 2)


# Bundles


def bundled(database, folder):
    path = folder / "which.zip"
    content = io.BytesIO()
    bundle.write(database, study(database), content)
    path.write_bytes(content.getvalue())
    return bundle.read(path)


def edited(path, name, change):
    """The bundle with one file changed, under another name."""
    with zipfile.ZipFile(path) as archive:
        files = {one: archive.read(one).decode() for one in archive.namelist() if not one.endswith("parquet")}
    files[name] = json.dumps(change(json.loads(files[name])))
    other = path.with_name("edited.zip")
    with zipfile.ZipFile(other, "w") as archive:
        for one, content in files.items():
            archive.writestr(one, content)
    return other


def test_a_bundle_is_replayed_with_the_parts_of_each_session(database, tmp_path, monkeypatch, capsys):
    answered(database, ["left", "right", "left"])
    with monkeypatch.context() as patch:
        with_other_defaults(patch)
        answered(database, ["left", "right", "left"], seed=4)
    read = bundled(database, tmp_path)
    assert len(read.parts) == 2
    assert all(one.same for one in bundle.replayed(read))
    with pytest.raises(SystemExit) as left:
        cli.main(["replay", str(tmp_path / "which.zip")])
    said = capsys.readouterr().out
    assert left.value.code == 0
    assert "2 sessions with answers, recomputed with the same versions and processor." in said
    assert f"Model version: {MODEL_VERSION}." in said
    assert "identical to the bit" in said
    # Other parts lead to other estimates: they are not looked up anywhere else.
    wider = edited(tmp_path / "which.zip", "parts.json", lambda all_parts: {
        key: {**one, "response": {**one["response"], "k": 3 * one["response"]["k"]}} for key, one in all_parts.items()
    })  # fmt: skip
    assert not any(one.same for one in bundle.replayed(bundle.read(wider)))


def test_a_bundle_of_a_later_model_or_another_format_is_refused(database, tmp_path, capsys):
    sessions = [answered(database, ["left", "right", "left"], seed=seed)[0] for seed in (3, 4)]
    path = tmp_path / "which.zip"
    bundled(database, tmp_path)
    older = edited(path, "study.json", lambda record: {**record, "format_version": 1})
    with pytest.raises(InvalidFile):
        bundle.read(older)
    begun_with(LATER, database, *sessions)
    words = rf"was computed with model version {LATER}, but this pairseek has version {MODEL_VERSION}: replay it with"
    with pytest.raises(InvalidFile, match=words):
        bundled(database, tmp_path)
    # Sessions that began with an earlier model are recomputed, those that began with a later one are left out.
    begun_with(EARLIER, database, sessions[0])
    answered(database, ["left", "right"], seed=5)
    bundled(database, tmp_path)
    with pytest.raises(SystemExit) as left:
        cli.main(["replay", str(path)])
    said = capsys.readouterr().out
    assert left.value.code == 0
    assert "which: 2 sessions with answers" in said
    assert f"Recomputed but not compared: 1 session of model version {EARLIER}." in said
    assert f"Left out: 1 session of model version {LATER}." in said
