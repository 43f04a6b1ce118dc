"""Forgetting: what a person said is gone from tables, files, exports and logs, and from what was learned."""

import io
import logging
import threading
import time
import zipfile
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
import sqlalchemy as sa

from helpers.refusals import refused_with
from helpers.serving import GUARD, answer, answer_to, begin, cheap_passwords, configuration, csrf_of, served, some_items
from pairseek.client import Client, ServiceError
from pairseek.errors import AnswerConflict, InvalidParameter, StoreUnavailable, UnknownQuery
from pairseek.store import deletion, migrate, people, sessions, studies
from pairseek.store import populations as stored_populations
from pairseek.store.database import Database, stamp
from pairseek.store.schema import metadata
from pairseek.web.access import auth
from pairseek.web.errors import Problem
from pairseek.web.learning import populations
from pairseek.web.operations.logs import JsonLines
from pairseek.web.results import bundle, tables
from pairseek.web.sessions import forgetting, history
from pairseek.web.sessions.parts import dropped_record
from pairseek.web.sessions.service import Sessions
from pairseek.web.studies.catalogue import Catalogue
from pairseek.web.studies.creation import create_study, set_open

PASSWORD = "a long password"
ITEMS = some_items(12)
PERSON, PID = "zaphod-beeblebrox-42", "5f0deadbeef5f0deadbeef77"
SHOWN, RT = "2031-02-03T04:05:06.789Z", 73_519


@pytest.fixture(scope="module", autouse=True)
def _cheap():
    with cheap_passwords():
        yield


@pytest.fixture
def database(database_url):
    made = Database(database_url)
    migrate.prepare(made)
    create_study(made, configuration(answers=6), ITEMS, is_open=True, who="test")
    yield made
    made.close()


def study(database):
    return Catalogue(database).by_slug("which")


def worker(database):
    return Sessions(database, Catalogue(database))


def answered(database, name, *, count=6, seed=0):
    """A person with a taste; the id of the session."""
    sessions_ = worker(database)
    rng = np.random.default_rng(seed)
    taste = ITEMS.coordinates @ np.array([1.5, 0.5 * rng.normal()])
    session_id, _ = sessions_.open(study(database), {"participant": name})
    go_on(sessions_, session_id, taste, count)
    return session_id


def go_on(sessions_, session_id, taste, count):
    """Answer some pairs by a taste without noise."""
    state = sessions_.state(sessions_.by_id(session_id))
    for _ in range(count):
        left, right = (ITEMS.index(state["query"][side]["id"]) for side in ("left", "right"))
        sent = answer_to(state["query"]["query"], "left" if taste[left] > taste[right] else "right")
        state = sessions_.answer(sessions_.by_id(session_id), sent)
    return state


def learned(database, people_=8, start=0):
    """A population of some people; their sessions."""
    made = [answered(database, f"p{start + k}", seed=start + k) for k in range(people_)]
    return made, populations.fit(database, study(database), "ann")[0]


def everything(database):
    """All rows of all tables as text."""
    with database.engine.connect() as connection:
        names = sa.inspect(connection).get_table_names()
        rows = {name: connection.execute(sa.text(f'SELECT * FROM "{name}"')).all() for name in names}
    assert set(names) == set(metadata.tables) | {"alembic_version"}
    return {name: "\n".join(map(repr, found)) for name, found in rows.items()}


def found_in(texts, *needles):
    return [(name, needle) for name, text in texts.items() for needle in needles if needle in text]


@pytest.fixture
def log():
    """What the service writes to its log."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(JsonLines())
    loggers = [logging.getLogger(name) for name in ("pairseek", "uvicorn")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel("INFO")
    yield text
    for logger, level in zip(loggers, levels, strict=True):
        logger.removeHandler(handler)
        logger.setLevel(level)


def test_nothing_of_a_forgotten_participant_is_left(database_url, log):
    made = configuration(answers=6, resume={"policy": "restart"})
    with served(database_url, studies=[(made, ITEMS)], prefetch=True) as visitors:
        database = visitors.service.database
        token = auth.make_token(database, "robot", ["read", "delete"], "test")
        client = Client(visitors.address, token)
        for k in range(6):
            participate(visitors.browser(), f"other-{k}", 6)
        participate(visitors.browser(), PERSON, 6, PROLIFIC_PID=PID)
        again = visitors.browser()
        participate(again, PERSON, 3, PROLIFIC_PID=PID)
        rows = database.read(lambda c: sessions.of_study(c, study(database).row.id, ["person"]))
        mine = [row.id for row in rows if row.participant == PERSON]
        database.write(lambda c: sessions.mark(c, mine[0], None, "void", f"{PERSON} said so", "ann"))
        database.write(lambda c: sessions.mark(c, mine[0], None, "restore", "a mistake", "ann"))
        assert len(mine) == 2
        assert populations.fit(database, study(database), "ann")[0] == 1
        needles = [PERSON, PID, SHOWN, str(RT), *mine]
        before = {name for name, _ in found_in(everything(database), *needles)}
        assert before >= {"sessions", "events", "queries", "marks", "blurs", "learned_from"}
        if database.is_sqlite:
            assert found_in(files(database), PERSON, PID, SHOWN, *mine)
        assert PERSON in client.export("which", "answers").decode()
        assert f"{PERSON} said so" in zipped(client.bundle("which"))

        assert client.forget("which", PERSON)["sessions"] == len(mine)
        kept = visitors.service.sessions.peek
        for _ in range(200):
            if database.read(deletion.unscrubbed_since) is None and not any(map(kept, mine)):
                break
            time.sleep(0.05)
        assert found_in(everything(database), *needles) == []
        if database.is_sqlite:
            assert found_in(files(database), PERSON, PID, SHOWN, *mine) == []
        for table in tables.TABLES:
            assert not [needle for needle in needles if needle in client.export("which", table).decode()]
        assert not [needle for needle in needles if needle in zipped(client.bundle("which"))]
        assert [name for name in mine if kept(name) is not None] == []
        # The browser that was answering is told, and nothing is stored for it.
        reply = again.post("/s/which/answer", json={"query": "p4", "outcome": "left"}, headers=GUARD)
        assert (reply.status_code, reply.json()["error"]["code"]) == (401, "no_session")
        # The record says who did what and when, and nothing of the person.
        notes = database.read(lambda c: studies.audit_log_of(c, "which"))
        assert [(note["who"], note["action"]) for note in notes[:2]] == [
            ("test (token robot)", "drop_population"),
            ("test (token robot)", "forget"),
        ]
        assert notes[1]["details"]["sessions"] == len(mine)
        with refused_with("not_found", ServiceError):
            client.forget("which", PERSON)
    assert '"route": "/s/{slug}/answer"' in log.getvalue()
    assert found_in({"log": log.getvalue()}, *needles) == []


def participate(browser, name, count, **ids):
    """Answer some pairs in a browser; the times of the person to be forgotten can be recognized."""
    state = begin(browser, participant=name, **ids)
    known = {"rt_ms": RT, "shown_at": SHOWN, "sent_at": SHOWN} if name == PERSON else {}
    if known:
        lost = {"query": state["query"]["query"], "lost_at": SHOWN, "ms": RT}
        assert browser.post("/s/which/focus", json=lost, headers=GUARD).status_code == 204
    for _ in range(count):
        left, right = (ITEMS.coordinates[ITEMS.index(state["query"][side]["id"]), 0] for side in ("left", "right"))
        state = answer(browser, state, "left" if left > right else "right", **known).json()
        if known and state["query"] is not None:
            browser.get("/s/which/prefetch", params={"query": state["query"]["query"]})


def files(database):
    path = database.path
    return {one.name: one.read_bytes().decode("latin-1") for one in path.parent.glob(f"{path.name}*")}


def zipped(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return "\n".join(archive.read(name).decode("latin-1") for name in archive.namelist())


def test_what_was_learned_from_a_forgotten_person_is_dropped_and_sessions_say_so(database, tmp_path):
    people_, version = learned(database)
    finished = answered(database, "later", seed=50)
    open_now = answered(database, "open", count=3, seed=51)
    fresh = worker(database).open(study(database), {"participant": "fresh"})[0]
    old = worker(database)
    assert old.state(old.by_id(open_now))["query"] is not None
    before = old.by_id(finished).final
    dropped = forgetting.forget(database, study(database), "p0", "ann")
    assert dropped == deletion.Deleted(1, 6, (version,))
    assert database.read(lambda c: stored_populations.newest(c, study(database).row.id)) is None
    assert database.read(lambda c: stored_populations.content(c, study(database).row.id, version)) == b""
    # Facts about very few people would be facts about a person.
    assert database.read(lambda c: stored_populations.facts(c, study(database).row.id, version)) is None

    # Finished: the stored result stays, and nothing is computed from what is gone.
    sessions_ = worker(database)
    row = sessions_.by_id(finished)
    assert row.final == before
    rows = {row["session"]: row for row in tables.rows_of(database, study(database), "estimates")}
    assert rows[finished]["x0"] == before["mean"][0]
    with pytest.raises(Problem, match=r"began with population 1, which was dropped"):
        assert sessions_.snapshot(row).state.search
    # Open: it goes on in the worker that had it in memory, with what the study has without a population.
    for one in (old, sessions_):
        assert one.state(one.by_id(open_now))["progress"]["answered"] == 3
        assert one.snapshot(one.by_id(open_now)).parts.population is None
    query = old.state(old.by_id(open_now))["query"]["query"]
    assert query == "p4", "the person is asked the pair that is on the screen"
    go_on(old, open_now, ITEMS.coordinates @ np.array([1.5, 0.0]), 3)
    assert old.by_id(open_now).finished_at is not None
    for one in (finished, open_now, fresh):
        (mark,) = database.read(lambda c, one=one: sessions.marks_of(c, [one]))
        assert (mark["action"], mark["who"]) == ("dropped", "ann")
        assert mark["reason"].startswith("began with population 1, which was learned from a participant")
    # A later session begins without it; a later population has another number.
    after = answered(database, "after", seed=60)
    assert worker(database).by_id(after).population is None
    assert populations.fit(database, study(database), "ann")[0] == 2

    # The replay computes what it can, and says what it cannot.
    path = tmp_path / "which.zip"
    with path.open("wb") as file:
        bundle.write(database, study(database), file)
    read = bundle.read(path)
    replayed = {one.session: one for one in bundle.replayed(read)}
    assert finished not in replayed
    assert replayed[open_now].same
    assert replayed[after].same
    assert [session["id"] for session in read.dropped_sessions] == [finished]
    assert people_[0] not in path.read_bytes().decode("latin-1")


def test_no_parts_of_a_preview_that_is_gone_keep_what_was_learned(database):
    learned(database)
    worker(database).open(study(database), {}, kind="preview")
    later = stamp(datetime.now(UTC) + timedelta(hours=1))
    database.write(lambda connection: sessions.delete_previews(connection, later))
    forgetting.forget(database, study(database), "p3", "ann")
    with database.engine.connect() as connection:
        kept, used = (
            set(connection.execute(sa.text(text)).scalars())
            for text in ("SELECT key FROM parts", "SELECT parts FROM sessions")
        )
    assert kept == used


def test_an_open_session_goes_on_where_a_rule_stops_it(tmp_path):
    made = Database(str(tmp_path / "s.db"))
    migrate.prepare(made)
    stop = [{"name": "radius", "radius": 1e-6}]
    create_study(made, configuration(answers=6, stop=stop), ITEMS, is_open=True, who="test")
    learned(made)
    open_now = answered(made, "open", count=2, seed=51)
    assert forgetting.forget(made, study(made), "p0", "ann").populations == (1,)
    sessions_ = worker(made)
    state = sessions_.state(sessions_.by_id(open_now))
    assert (state["progress"]["answered"], state["query"]["query"]) == (2, "p3")
    go_on(sessions_, open_now, ITEMS.coordinates[:, 0], 4)
    assert sessions_.by_id(open_now).finished_at is not None
    made.close()


def test_the_replay_command_says_why_a_session_is_left_out(tmp_path, command):
    made = Database(str(tmp_path / "r.db"))
    migrate.prepare(made)
    create_study(made, configuration(answers=6), ITEMS, is_open=True, who="test")
    learned(made)
    answered(made, "later", seed=50)
    forgetting.forget(made, study(made), "p0", "ann")
    made.close()
    assert command("export", "which", "--database", "r.db")[0] == 0
    code, out, _ = command("replay", "which.zip")
    assert code == 0
    assert "Left out: 1 session that began with a population learned from" in out
    assert "All estimates are identical to the bit." in out


def test_a_population_that_others_taught_stays(database):
    _, first = learned(database)
    answered(database, "late", seed=70)
    second = populations.fit(database, study(database), "ann")[0]
    assert forgetting.forget(database, study(database), "late", "ann").populations == (second,)
    assert database.read(lambda c: stored_populations.newest(c, study(database).row.id)) == first


def test_someone_is_forgotten_while_a_population_is_fitted(database, monkeypatch):
    for k in range(7):
        answered(database, f"p{k}", seed=k)
    fit, seen = populations.Population.fit, []

    def slow(choices, *given, **settings):
        seen.append(len(choices.people))
        if len(seen) == 1:
            forgetting.forget(database, study(database), "p0", "ann")
        return fit(choices, *given, **settings)

    monkeypatch.setattr(populations.Population, "fit", slow)
    version, population = populations.fit(database, study(database), "ann")
    assert (version, population.people, seen) == (1, 6, [7, 6])


def test_a_session_that_begins_while_its_population_is_dropped_begins_without(database, monkeypatch):
    learned(database)
    sessions_ = worker(database)
    usable, dropped = stored_populations.is_usable, []

    def late(connection, study_id, version):
        if not dropped:
            dropped.append(version)
            return False
        return usable(connection, study_id, version)

    monkeypatch.setattr(stored_populations, "is_usable", late)
    forgetting.forget(database, study(database), "p0", "ann")
    session_id, _ = sessions_.open(study(database), {})
    assert sessions_.by_id(session_id).population is None


def test_forgetting_while_the_person_answers_gives_no_error_but_gone(database):
    """Answers and the deletion at once, on two workers: each answer is stored or refused as gone, nothing is left."""
    one, two = worker(database), worker(database)
    session_id, _ = one.open(study(database), {"participant": "busy"})
    said, begun = [], threading.Event()

    def answering(sessions_):
        try:
            while True:
                row = sessions_.by_id(session_id)
                if row is None:
                    said.append("gone")
                    return
                state = sessions_.state(row)
                begun.set()
                if state["query"] is None:
                    sessions_.blur(row, "p1", SHOWN, 5)
                    continue
                sessions_.answer(row, answer_to(state["query"]["query"], "left"))
        except StoreUnavailable:
            said.append("unavailable")
        except (UnknownQuery, AnswerConflict):
            said.append("gone")
        except Problem as problem:
            said.append(problem.code)
        finally:
            begun.set()

    threads = [threading.Thread(target=answering, args=(sessions_,)) for sessions_ in (one, two)]
    for thread in threads:
        thread.start()
    begun.wait()
    forgetting.forget(database, study(database), "busy", "ann")
    for thread in threads:
        thread.join(120)
    assert set(said) <= {"gone", "session_deleted", "busy", "unavailable"}
    assert set(said) != {"unavailable"}
    assert found_in(everything(database), session_id) == []


def test_a_deleted_study_is_gone_and_its_number_is_not_used_again(database):
    learned(database)
    auth.set_password(database, "ann", PASSWORD)
    bound = auth.make_token(database, "robot", ["read"], "ann", study(database).row.id)
    number = study(database).row.id
    catalogue = Catalogue(database)
    assert catalogue.by_slug("which").items.n == 12
    session_id, _ = Sessions(database, catalogue).open(catalogue.by_slug("which"), {"participant": "busy"})
    assert forgetting.delete_study(database, study(database), "ann").sessions == 9
    texts = everything(database)
    assert {name for name, text in texts.items() if text} == {"users", "audit", "meta", "alembic_version"}
    with refused_with("token_unknown", Problem):
        auth.authenticated_caller(database, f"Bearer {bound}")
    assert Sessions(database, catalogue).by_id(session_id) is None
    # A study of the same name is another one, also for a worker that knew the first.
    create_study(database, configuration(), some_items(20), is_open=True, who="test")
    assert catalogue.by_slug("which").row.id != number
    assert catalogue.by_slug("which").items.n == 20


def test_a_study_is_deleted_while_somebody_starts(database):
    sessions_, found = worker(database), study(database)
    forgetting.delete_study(database, found, "ann")
    with pytest.raises(Problem) as refused:
        sessions_.open(found, {})
    assert (refused.value.status, refused.value.code) == (404, "not_found")


def test_many_start_while_the_study_is_deleted(database):
    found, codes = study(database), []

    def start(sessions_):
        try:
            while True:
                sessions_.open(found, {})
        except StoreUnavailable:
            # A loaded machine may be too slow for a connection.
            codes.append("unavailable")
        except Problem as problem:
            codes.append(problem.code)

    threads = [threading.Thread(target=start, args=(worker(database),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    forgetting.delete_study(database, found, "ann")
    for thread in threads:
        thread.join(120)
    assert "not_found" in codes
    assert set(codes) <= {"not_found", "unavailable"}
    texts = everything(database)
    assert [name for name in ("sessions", "parts", "studies", "queries") if texts[name]] == []


@pytest.mark.parametrize("after", ["session", "close"])
def test_data_are_kept_for_as_long_as_the_study_says(database, after):
    create_study(
        database, configuration(slug="kept", retention={"days": 30, "after": after}), ITEMS, is_open=True, who="t"
    )
    kept, catalogue = Catalogue(database).by_slug("kept"), Catalogue(database)
    sessions_ = Sessions(database, catalogue)
    for name in ("old", "new"):
        sessions_.open(kept, {"participant": name})
    answered(database, "elsewhere", count=1)
    long_ago = stamp(datetime.now(UTC) - timedelta(days=31))
    database.write(
        lambda c: c.execute(sa.text("UPDATE sessions SET created_at = :t WHERE participant != 'new'"), {"t": long_ago})
    )
    expire = forgetting.expire(database, catalogue)
    if after == "session":
        assert [(one.slug, one.deleted.sessions) for one in expire] == [("kept", 1)]
    else:
        assert expire == []
        set_open(database, catalogue.row("kept"), is_open=False, who="ann")
        assert forgetting.expire(database, catalogue) == []
        database.write(
            lambda c: c.execute(sa.text("UPDATE studies SET closed_at = :t WHERE slug = 'kept'"), {"t": long_ago})
        )
        assert [one.deleted.sessions for one in forgetting.expire(database, catalogue)] == [2]
    left = [row.participant for row in database.read(lambda c: sessions.of_study(c, kept.row.id, ["person"]))]
    assert left == (["new"] if after == "session" else [])
    (note,) = [note for note in database.read(lambda c: studies.audit_log_of(c, "kept")) if note["action"] == "expire"]
    assert note["who"] == "pairseek (retention)"
    assert forgetting.expire(database, catalogue) == []


def test_the_service_applies_retention_on_its_own(tmp_path):
    made = Database(str(tmp_path / "r.db"))
    migrate.prepare(made)
    create_study(made, configuration(retention={"days": 1}), ITEMS, is_open=True, who="t")
    Sessions(made, Catalogue(made)).open(Catalogue(made).by_slug("which"), {"participant": PERSON})
    made.write(lambda c: c.execute(sa.text("UPDATE sessions SET created_at = '2026-01-01'")))
    made.close()
    with served(tmp_path / "r.db") as visitors:
        for _ in range(200):
            if not found_in(everything(visitors.service.database), PERSON):
                break
            time.sleep(0.05)
        assert found_in(everything(visitors.service.database), PERSON) == []


def test_the_commands(tmp_path, command, monkeypatch):
    made = Database(str(tmp_path / "c.db"))
    migrate.prepare(made)
    create_study(made, configuration(), ITEMS, is_open=True, who="t")
    for _ in range(2):
        Sessions(made, Catalogue(made)).open(study(made), {"participant": PERSON})
    made.close()
    at = ("--database", "c.db")
    for wrong in (("forget",), ("forget", "which"), ("forget", "which", PERSON, "--expired")):
        assert "a STUDY and a PARTICIPANT, or only --expired" in command(*wrong, *at)[2]
    assert "has no participant 'nobody'" in command("forget", "which", "nobody", *at)[2]
    monkeypatch.setattr("typer.prompt", lambda *_, **__: "another")
    for asked in (("forget", "which", PERSON), ("study", "delete", "which")):
        code, out, err = command(*asked, *at)
        assert code != 0
        assert "will be deleted. This cannot be undone." in out
        assert "the name was not confirmed: nothing was deleted" in err
    assert "No retention period is over" in command("forget", "--expired", *at)[1]
    monkeypatch.setattr("typer.prompt", lambda *_, **__: PERSON)
    assert "Deleted 2 sessions with 0 answers." in command("forget", "which", PERSON, *at)[1]
    for path in tmp_path.glob("c.db*"):
        assert PERSON.encode() not in path.read_bytes()
    assert "The study which was deleted." in command("study", "delete", "which", "--yes", *at)[1]
    assert "there is no study 'which'" in command("study", "delete", "which", "--yes", *at)[2]
    command("user", "add", "ann", *at)
    assert command("user", "list", *at)[1] == "ann\tadministrator\n"
    assert "there is no user 'bob'" in command("user", "remove", "bob", "--yes", *at)[2]
    assert "the only administrator" in command("user", "remove", "ann", "--yes", *at)[2]
    assert "the only administrator" in command("user", "add", "ann", "--no-admin", *at)[2]
    command("user", "add", "bob", "--admin", *at)
    assert "ann was removed, with 0 tokens." in command("user", "remove", "ann", "--yes", *at)[1]
    assert command("user", "list", *at)[1] == "bob\tadministrator\n"


def test_tokens_end_by_time_by_password_and_with_their_user(database):
    auth.set_password(database, "ann", PASSWORD)
    auth.set_password(database, "bob", PASSWORD)
    one, two = (auth.make_token(database, name, ["read"], name) for name in ("ann", "bob"))
    assert auth.authenticated_caller(database, f"Bearer {one}").user == "ann"
    (row,) = database.read(lambda c: people.list_tokens(c, "ann"))
    assert timedelta(days=89) < datetime.fromisoformat(row["expires_at"]) - datetime.now(UTC) < timedelta(days=90)
    auth.set_password(database, "ann", "another password")
    with refused_with("token_revoked", Problem):
        auth.authenticated_caller(database, f"Bearer {one}")
    assert auth.authenticated_caller(database, f"Bearer {two}").user == "bob"
    database.write(lambda c: c.execute(sa.text("UPDATE tokens SET expires_at = '2026-01-01' WHERE user_name = 'bob'")))
    with refused_with("token_expired", Problem):
        auth.authenticated_caller(database, f"Bearer {two}")
    three = auth.make_token(database, "robot", ["read"], "bob")
    login = auth.sign_in(database, "bob", PASSWORD, "192.0.2.1")
    assert auth.remove_user(database, "bob", "ann") == 2
    with refused_with("token_unknown", Problem):
        auth.authenticated_caller(database, f"Bearer {three}")
    assert auth.account_of_login(database, login) is None
    # A request of the removed user that is under way makes nothing.
    with refused_with("not_signed_in", Problem):
        auth.make_token(database, "late", ["read"], "bob")
    for days in (0, 367):
        with pytest.raises(InvalidParameter, match="lifetime of the token"):
            auth.make_token(database, "long", ["read"], "ann", days=days)


def test_two_administrators_who_remove_each_other_leave_one(database):
    for name in ("ann", "bob"):
        database.write(lambda c, name=name: people.set_password(c, name, "no password", is_admin=True))
    barrier, said = threading.Barrier(2), []

    def remove(name, who):
        barrier.wait()
        try:
            auth.remove_user(database, name, who)
            said.append("removed")
        except Problem as problem:
            said.append(problem.code)

    threads = [threading.Thread(target=remove, args=pair) for pair in (("ann", "bob"), ("bob", "ann"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted(said) == ["last_administrator", "removed"]
    assert len(database.read(people.user_names)) == 1


@pytest.fixture(scope="module")
def visitors(tmp_path_factory):
    with served(tmp_path_factory.mktemp("f") / "f.db", studies=[(configuration(), ITEMS)]) as visitors:
        auth.set_password(visitors.service.database, "ann", PASSWORD, is_admin=False)
        auth.set_password(visitors.service.database, "root", PASSWORD, is_admin=True)
        yield visitors


def signed_in(visitors, name):
    browser = visitors.browser(headers={"accept": "text/html"})
    page = browser.get("/login")
    browser.post("/login", data={"csrf": csrf_of(page), "name": name, "password": PASSWORD})
    return browser


def test_a_participant_is_forgotten_on_the_page_after_typing_the_name(visitors):
    begin(visitors.browser(), participant=PERSON)
    begin(visitors.browser(), participant="other")
    ann, database = signed_in(visitors, "ann"), visitors.service.database
    rows = database.read(lambda c: sessions.of_study(c, 1, ["person"]))
    mine = next(row.id for row in rows if row.participant == PERSON)
    at = f"/studies/which/people/{mine}"
    assert f'href="{at}/forget"' in ann.get(at).text
    page = ann.get(f"{at}/forget")
    assert "1 session of this participant is deleted" in page.text
    form = {"csrf": csrf_of(page)}
    wrong = ann.post(f"{at}/forget", data={**form, "name": "other"})
    assert wrong.status_code == 422
    assert "Nothing was deleted." in wrong.text
    assert ann.post(f"{at}/forget", data={"name": PERSON}).status_code == 403, "a form of another site"
    # A double click sends it twice.
    for _ in range(2):
        reply = ann.post(f"{at}/forget", data={**form, "name": PERSON})
        assert (reply.status_code, reply.headers["location"]) == (303, "/studies/which")
    left = [row.participant for row in database.read(lambda c: sessions.of_study(c, 1, ["person"]))]
    assert left == ["other"]
    shown = ann.get("/studies/which").text
    assert "forgot a participant; sessions deleted: 1" in shown
    assert PERSON not in shown
    assert ann.get(at).status_code == 404


def test_a_study_is_deleted_on_the_page_after_typing_its_name(visitors):
    create_study(visitors.service.database, configuration(slug="short-lived"), ITEMS, is_open=True, who="test")
    begin(visitors.browser(), "short-lived")
    ann = signed_in(visitors, "ann")
    page = ann.get("/studies/short-lived/delete")
    form = {"csrf": csrf_of(page)}
    assert ann.post("/studies/short-lived/delete", data={**form, "name": "which"}).status_code == 422
    for _ in range(2):
        reply = ann.post("/studies/short-lived/delete", data={**form, "name": "short-lived"})
        assert (reply.status_code, reply.headers["location"]) == (303, "/studies")
    assert ann.get("/studies/short-lived").status_code == 404
    assert visitors.browser().get("/s/short-lived").status_code == 404


def test_administrators_see_the_record_and_remove_users_and_others_do_not(visitors):
    root, ann = signed_in(visitors, "root"), signed_in(visitors, "ann")
    assert "/administration" not in ann.get("/studies").text
    assert ann.get("/administration").status_code == 403
    auth.set_password(visitors.service.database, "eve", PASSWORD)
    eve = signed_in(visitors, "eve")
    made = eve.post(
        "/tokens", data={"csrf": csrf_of(eve.get("/tokens")), "name": "hers", "scopes": ["read"], "days": 7}
    )
    assert "It works until" in made.text
    token = made.text.split('id="fresh">')[1].split("<")[0]
    assert Client(visitors.address, token).studies()
    # Others see and revoke only their own tokens.
    assert "hers" not in ann.get("/tokens").text
    number = next(row["id"] for row in visitors.service.database.read(people.list_tokens) if row["name"] == "hers")
    assert ann.post(f"/tokens/{number}/revoke", data={"csrf": csrf_of(ann.get("/tokens"))}).status_code == 404
    assert "hers" in root.get("/tokens").text
    user = next(row["id"] for row in visitors.service.database.read(people.all_users) if row["name"] == "eve")
    at = f"/administration/users/{user}/remove"
    form = {"csrf": csrf_of(root.get(at))}
    assert ann.post(at, data={"csrf": csrf_of(ann.get("/tokens")), "name": "eve"}).status_code == 403
    assert root.post(at, data={**form, "name": "ann"}).status_code == 422
    for _ in range(2):
        assert root.post(at, data={**form, "name": "eve"}).headers["location"] == "/administration"
    assert eve.get("/studies").headers["location"].startswith("/login")
    with refused_with("token_unknown", ServiceError):
        Client(visitors.address, token).studies()
    assert "removed the user eve" in root.get("/administration").text


def test_deletion_over_http_needs_its_scope(visitors):
    database = visitors.service.database
    create_study(database, configuration(slug="over-http"), ITEMS, is_open=True, who="test")
    strong = Client(visitors.address, auth.make_token(database, "strong", ["read", "answer", "delete"], "test"))
    weak = Client(visitors.address, auth.make_token(database, "weak", ["read", "write", "answer"], "test"))
    session = strong.open_session("over-http", participant=PERSON)
    other = strong.open_session("over-http", participant="other")
    for call in (lambda: weak.forget("over-http", PERSON), lambda: weak.delete_study("over-http")):
        with pytest.raises(ServiceError) as refused:
            call()
        assert refused.value.code == "scope_missing"
    assert strong.forget("over-http", PERSON) == {"sessions": 1, "answers": 0, "populations": []}
    with pytest.raises(ServiceError) as refused:
        session.state()
    assert refused.value.status == 401
    headers = {"Authorization": f"Bearer {strong.token}"}
    assert visitors.browser().delete(f"/api/v1/sessions/{other.id}", headers=headers).json()["sessions"] == 1
    assert visitors.browser().delete(f"/api/v1/sessions/{other.id}", headers=headers).status_code == 404
    assert strong.delete_study("over-http")["sessions"] == 0
    assert "over-http" not in [study["slug"] for study in strong.studies()]


def test_an_answer_token_reaches_the_sessions_that_it_began(visitors):
    database = visitors.service.database
    one, two = (Client(visitors.address, auth.make_token(database, name, ["answer"], "test")) for name in "ab")
    reader = Client(visitors.address, auth.make_token(database, "reader", ["read"], "test"))
    mine = one.open_session("which")
    begin(browser := visitors.browser(), participant="in a browser")
    theirs = browser.get("/s/which/mine").json()["session"]
    assert one.session(mine.id, one.token).state().pair is not None
    assert one.session(mine.id, one.token).estimate().answers == 0
    for client, session_id in ((two, mine.id), (one, theirs)):
        foreign = client.session(session_id, client.token)
        for call in (
            foreign.state,
            foreign.estimate,
            foreign.recommend,
            lambda foreign=foreign: foreign.answer("p1", "left"),
        ):
            with pytest.raises(ServiceError) as refused:
                call()
            assert (refused.value.status, refused.value.code) == (403, "other_session")
    # Who may read the data of the study may read this, too, but not answer.
    assert reader.session(theirs, reader.token).estimate().answers == 0
    with pytest.raises(ServiceError) as refused:
        reader.session(theirs, reader.token).answer("p1", "left")
    assert refused.value.code == "scope_missing"


def test_two_who_delete_the_same_at_once_do_it_once(database):
    answered(database, "once", count=1)
    found, said = study(database), []

    def both(function):
        barrier = threading.Barrier(2)

        def run():
            barrier.wait()
            try:
                said.append(function().sessions)
            except Problem as problem:
                said.append(problem.code)

        threads = [threading.Thread(target=run) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)

    both(lambda: forgetting.forget(database, found, "once", "ann"))
    assert sorted(map(str, said)) == ["1", "not_found"]
    said.clear()
    both(lambda: forgetting.delete_study(database, found, "ann"))
    assert said == [0, 0]
    actions = [note["action"] for note in database.read(studies.audit_log)]
    assert (actions.count("forget"), actions.count("delete_study")) == (1, 1)


def test_a_reader_in_the_way_delays_the_cleaning_of_the_file_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setattr("pairseek.store.database._SCRUB_MS", 50)
    made = Database(str(tmp_path / "s.db"))
    migrate.prepare(made)
    create_study(made, configuration(), ITEMS, is_open=True, who="t")
    answered(made, PERSON, count=1)
    other = Database(str(tmp_path / "s.db"))
    with other.transaction(writes=False) as reader:
        reader.execute(sa.text("SELECT count(*) FROM sessions")).scalar()
        forgetting.forget(made, study(made), PERSON, "ann")
        assert not forgetting.scrub(made)
        answered(made, "meanwhile", count=1)
    assert forgetting.scrub(made)
    assert found_in(files(made), PERSON) == []
    for one in (made, other):
        one.close()


def test_a_person_who_is_forgotten_while_answers_are_read_is_left_out(database):
    sessions_of_worker = worker(database)
    rows = []
    for name in ("anna", "ben"):
        number, _ = sessions_of_worker.open(study(database), {"participant": name})
        row = sessions_of_worker.by_id(number)
        sessions_of_worker.answer(row, answer_to(sessions_of_worker.state(row)["query"]["query"], "left"))
        rows.append(sessions_of_worker.by_id(number))
    forgetting.forget(database, study(database), "anna", "test")
    assert [found.row.id for found in history.read_histories(database, study(database), rows)] == [rows[1].id]
    with pytest.raises(Problem) as caught:
        history.read_history(database, study(database), rows[0])
    assert caught.value.status == 410
    # The parts of the last session go with it.
    forgetting.forget(database, study(database), "ben", "test")
    assert history.read_histories(database, study(database), rows) == []


def test_a_session_whose_population_is_dropped_while_answers_are_read_is_read_as_it_is_afterwards(database):
    """Somebody else was forgotten, from whom the population was learned; its parts are deleted with it."""
    sessions_of_worker = worker(database)
    number, _ = sessions_of_worker.open(study(database), {"participant": "anna"})
    row = sessions_of_worker.by_id(number)
    database.write(lambda connection: deletion.replace_parts(connection, [number], dropped_record(1)))
    (found,) = history.read_histories(database, study(database), [row])
    assert found.row.parts != row.parts
    assert not found.parts.is_usable
