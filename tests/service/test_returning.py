"""Who comes again: once only, the end of a session, and links that prove who a person is."""

import csv
import sys
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from helpers.serving import GUARD, answer, begin, configuration, csrf_of, served, some_items
from pairseek.store import database as store_database
from pairseek.store import migrate, schema, sessions
from pairseek.store.database import Database, stamp
from pairseek.web.access.auth import make_token
from pairseek.web.routes.participant import cookie_of
from pairseek.web.sessions import access, links
from pairseek.web.sessions.links import signed_link
from pairseek.web.sessions.service import Sessions
from pairseek.web.studies.catalogue import Catalogue
from pairseek.web.studies.creation import create_study

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import service

AT_ONCE = 6


def start_at_once(address, slug, **ids):
    """Six browsers that have opened the link press Begin at the same moment; the statuses of the replies."""
    clients = [httpx.Client(base_url=address, timeout=30) for _ in range(AT_ONCE)]
    forms = [csrf_of(client.get(f"/s/{slug}", params=ids)) for client in clients]
    together = threading.Barrier(AT_ONCE)

    def start(client, form):
        together.wait()
        return client.post(f"/s/{slug}/start", data={"csrf": form}).status_code

    try:
        with ThreadPoolExecutor(AT_ONCE) as threads:
            return sorted(threads.map(start, clients, forms))
    finally:
        for client in clients:
            client.close()


def begun(database, slug="which"):
    """Participants of the stored sessions."""
    rows = database.read(lambda c: sessions.of_study(c, 1, ["person"]))
    return [row.participant or row.prolific_pid for row in rows]


@pytest.mark.parametrize("policy", ["block", "resume"])
def test_of_simultaneous_starts_with_one_id_one_begins_a_session(database_url, policy):
    made = configuration(resume={"policy": policy})
    with served(database_url, studies=[(made, some_items())]) as visitors:
        for case in range(4):
            name = {"PROLIFIC_PID" if case % 2 else "participant": f"person-{case}"}
            assert start_at_once(visitors.address, "which", **name) == [303] + [403] * (AT_ONCE - 1)
        assert sorted(begun(visitors.service.database)) == [f"person-{case}" for case in range(4)]


@pytest.mark.long
def test_of_simultaneous_starts_at_two_worker_processes_one_begins_a_session(database_url):
    database = Database(database_url)
    migrate.prepare(database)
    made = configuration(resume={"policy": "block"})
    create_study(database, made, some_items(), is_open=True, who="test")
    server = service.Server(database_url, 2)
    try:
        server.start()
        for case in range(4):
            replies = start_at_once(f"http://127.0.0.1:{server.port}", "which", participant=f"person-{case}")
            assert replies == [303] + [403] * (AT_ONCE - 1)
    finally:
        server.stop()
    assert sorted(begun(database)) == [f"person-{case}" for case in range(4)]
    database.close()


def make(visitors, **settings):
    """Another study; its slug."""
    return create_study(visitors.service.database, configuration(**settings), some_items(), is_open=True, who="test")


@pytest.fixture(scope="module")
def visitors(tmp_path_factory):
    with served(tmp_path_factory.mktemp("returning") / "r.db") as visitors:
        yield visitors


def answered(client, state, slug, attention):
    """Answer until the end, attention pairs rightly or wrongly; the last state and the names of attention queries."""
    names = []
    while state["query"] is not None:
        sides = {state["query"][side]["id"]: side for side in ("left", "right")}
        checked = set(sides) == {"i0", "i1"}
        names += [state["query"]["query"]] if checked else []
        chosen = sides["i1" if attention == "right" else "i0"] if checked else "left"
        state = answer(client, state, chosen, slug=slug).json()
    return state, names


def with_attention(visitors, slug, **more):
    attention = {"pairs": [{"left": "i0", "right": "i1", "answer": "i1"}], "every": 2}
    completion = {"codes": {"finished": "PAID", "failed_attention": "NOPAY"}}
    return make(visitors, title=slug, slug=slug, attention=attention, completion=completion, answers=4, **more)


def undo(client, slug, query):
    return client.post(f"/s/{slug}/undo", json={"query": query}, headers=GUARD)


def test_an_attention_check_that_failed_cannot_be_repaired_by_undo(visitors):
    slug, client = with_attention(visitors, "repair"), visitors.browser()
    state, names = answered(client, begin(client, slug), slug, "wrong")
    assert len(names) == 2
    # Everything is taken back and answered anew, before the result was opened.
    while state["can"]["undo"] is not None:
        state = undo(client, slug, state["can"]["undo"]).json()
    state, _ = answered(client, state, slug, "right")
    assert state["status"] == "finished"
    page = client.get(f"/s/{slug}/result").text
    assert "NOPAY" in page
    assert "PAID" not in page.replace("NOPAY", "")
    rows = visitors.service.overview.participants(visitors.service.catalogue.by_slug(slug))
    assert rows[0][0]["quality"]["attention"] == 0.0
    assert "attention" in rows[0][0]["quality"]["flags"]


def test_nothing_is_undone_once_the_code_was_seen(visitors):
    slug, client = with_attention(visitors, "over"), visitors.browser()
    state, _ = answered(client, begin(client, slug), slug, "right")
    last = state["can"]["undo"]
    # Before the result was opened, the page of the pairs offers to change the last answer, also after a reload.
    page = client.get(f"/s/{slug}/run")
    assert page.status_code == 200
    assert "PAID" not in page.text
    assert undo(client, slug, last).json()["status"] == "asking"
    assert client.get(f"/s/{slug}/result").headers["location"] == f"/s/{slug}/run"
    state, _ = answered(client, client.get(f"/s/{slug}/state").json(), slug, "right")
    assert "PAID" in client.get(f"/s/{slug}/result").text
    token = client.cookies[cookie_of(slug)]
    session = client.get(f"/s/{slug}/mine").json()["session"]
    refused = undo(client, slug, state["can"]["undo"])
    over_http = client.post(
        f"/api/v1/sessions/{session}/undo",
        json={"query": state["can"]["undo"]},
        headers={"Authorization": f"Bearer {token}"},
    )
    for reply in (refused, over_http):
        assert (reply.status_code, reply.json()["error"]["code"]) == (409, "session_finished")
    now = client.get(f"/s/{slug}/state").json()
    assert (now["status"], now["can"]["undo"]) == ("finished", None)
    assert client.get(f"/s/{slug}/run").headers["location"] == f"/s/{slug}/result"


def test_an_undo_and_the_result_at_the_same_moment_exclude_each_other(database_url):
    made = configuration(answers=1, completion={"codes": {"finished": "PAID"}})
    with served(database_url, studies=[(made, some_items())]) as visitors:
        for _ in range(6):
            client = visitors.browser()
            state = answer(client, begin(client)).json()
            with ThreadPoolExecutor(2) as threads:
                undone = threads.submit(undo, client, "which", state["can"]["undo"])
                shown = threads.submit(client.get, "/s/which/result")
            assert (undone.result().status_code, shown.result().status_code) in ((200, 303), (409, 200))
            assert ("PAID" in shown.result().text) == (undone.result().status_code == 409)


def start(client, slug, address):
    """Open a link and press Begin; the reply, or that of the page if it refuses."""
    page = client.get(address)
    if page.status_code != 200:
        return page
    return client.post(f"/s/{slug}/start", data={"csrf": csrf_of(page)})


def code_of(reply):
    return reply.json()["error"]["code"]


def link(visitors, slug, participant, **more):
    row = visitors.service.catalogue.by_slug(slug).row
    return signed_link(visitors.service.link_key, visitors.address, row, participant, **more)


def test_an_id_alone_leads_to_no_session_of_another_browser(visitors):
    slug = make(visitors, title="Alone", slug="alone", answers=2)
    mine, other = visitors.browser(), visitors.browser()
    state = answer(mine, begin(mine, slug, participant="ann"), slug=slug).json()
    refused = start(other, slug, f"/s/{slug}?participant=ann")
    assert (refused.status_code, code_of(refused)) == (403, "begun_elsewhere")
    for path in ("state", "mine", "result"):
        assert code_of(other.get(f"/s/{slug}/{path}")) == "no_session"
    # The browser itself goes on, by its cookie, or by the link again if a reply with the cookie was lost.
    assert begin(mine, slug, participant="ann") == state
    mine.cookies.delete(cookie_of(slug))
    assert begin(mine, slug, participant="ann") == state
    answer(mine, state, slug=slug)
    assert code_of(start(visitors.browser(), slug, f"/s/{slug}?participant=ann")) == "begun_elsewhere"


@pytest.mark.parametrize(("by_id", "finished"), [("unfinished", 403), ("always", 303)])
def test_an_id_alone_is_enough_where_the_study_says_so(visitors, by_id, finished):
    slug = make(visitors, title="By id", slug=f"by-id-{by_id}", answers=1, resume={"by_id": by_id})
    begin(visitors.browser(), slug, PROLIFIC_PID="ann")
    client = visitors.browser()
    answer(client, begin(client, slug, PROLIFIC_PID="ann"), slug=slug)
    assert start(visitors.browser(), slug, f"/s/{slug}?PROLIFIC_PID=ann").status_code == finished


@pytest.mark.parametrize("policy", ["resume", "block"])
def test_a_double_click_and_a_lost_reply_shut_nobody_out(visitors, policy):
    slug, client = make(visitors, title="Twice", slug=f"twice-{policy}", resume={"policy": policy}), visitors.browser()
    form = csrf_of(client.get(f"/s/{slug}", params={"participant": "ann"}))
    with ThreadPoolExecutor(2) as threads:
        posts = [threads.submit(client.post, f"/s/{slug}/start", data={"csrf": form}) for _ in range(2)]
    assert [post.result().status_code for post in posts] == [303, 303]
    study = visitors.service.catalogue.by_slug(slug).row.id
    assert visitors.service.database.read(lambda c: sessions.count(c, study, ["person"])) == 1


def test_a_signed_link_begins_and_continues_from_any_browser(visitors):
    slug = make(visitors, title="Signed", slug="signed", answers=2, invited=True)
    assert code_of(start(visitors.browser(), slug, f"/s/{slug}?participant=ann")) == "invitation_needed"
    assert code_of(start(visitors.browser(), slug, f"/s/{slug}")) == "invitation_needed"
    phone, laptop = visitors.browser(), visitors.browser()
    address = link(visitors, slug, "ann")
    assert start(phone, slug, address).status_code == 303
    state = answer(phone, phone.get(f"/s/{slug}/state").json(), slug=slug).json()
    assert start(laptop, slug, address).status_code == 303
    assert laptop.get(f"/s/{slug}/state").json() == state
    assert code_of(phone.get(f"/s/{slug}/state")) == "no_session"
    answer(laptop, state, slug=slug)
    assert start(phone, slug, address).status_code == 303
    assert phone.get(f"/s/{slug}/state").json()["status"] == "finished"


def test_a_second_id_that_is_somebody_elses_does_not_come_before_their_own_session(visitors):
    slug = make(visitors, title="Second", slug="second-id", answers=3)
    address = link(visitors, slug, "ann")
    mine, other = visitors.browser(), visitors.browser()
    assert start(mine, slug, address).status_code == 303
    state = answer(mine, mine.get(f"/s/{slug}/state").json(), slug=slug).json()
    begin(other, slug, PROLIFIC_PID="mallory", participant="ann")
    laptop = visitors.browser()
    assert start(laptop, slug, address).status_code == 303
    assert laptop.get(f"/s/{slug}/state").json() == state


def test_a_session_from_before_the_cookies_were_renamed_goes_on(visitors):
    slug, client = make(visitors, title="Renamed", slug="renamed"), visitors.browser()
    state = answer(client, begin(client, slug, participant="ann"), slug=slug).json()
    token = client.cookies[cookie_of(slug)]
    client.cookies.clear()
    client.cookies.set(f"pairseek_{slug}", token)
    assert client.get(f"/s/{slug}/state").json() == state
    assert begin(client, slug, participant="ann") == state


def test_what_is_refused_is_said_in_the_language_of_the_study(visitors):
    slug, client = make(visitors, title="Deutsch", slug="deutsch", language="de", invited=True), visitors.browser()
    english = {"accept": "text/html", "accept-language": "en"}
    for path in ("", "?participant=ann&until=9&signature=00", "/result"):
        page = client.get(f"/s/{slug}{path}", headers=english)
        assert page.status_code in (401, 403)
        assert "Das hat nicht geklappt" in page.text
    # A form without its token.
    assert "Das hat nicht geklappt" in client.post(f"/s/{slug}/start", headers=english).text


def test_a_link_that_was_changed_or_is_for_another_study_is_refused(visitors):
    slug, other = (make(visitors, title=name, slug=name, invited=True) for name in ("link-a", "link-b"))
    address = link(visitors, slug, "ann")
    wrong = [address.replace(f"/s/{slug}", f"/s/{other}"), address.replace("ann", "anm"), f"{address}0", address[:-1]]
    wrong += [
        address.replace("until=1", "until=2"),
        address.replace("until=", "until=0"),
        f"{address}&until=9999999999",
    ]
    for place in range(len(address) - 32, len(address)):
        wrong.append(address[:place] + ("0" if address[place] != "0" else "1") + address[place + 1 :])
    wrong += [f"{address}&participant=bob", f"{address}&signature=é", f"/s/{slug}?participant=ann&until=&signature="]
    for changed in wrong:
        reply = start(visitors.browser(), slug, changed)
        assert (reply.status_code, code_of(reply)) == (403, "link_invalid"), changed
    # What the signature does not cover says nothing.
    client = visitors.browser()
    assert start(client, slug, f"{address}&PROLIFIC_PID=victim&puid=victim").status_code == 303
    ids = client.get(f"/s/{slug}/mine").json()["ids"]
    assert (ids["participant"], ids["PROLIFIC_PID"]) == ("ann", None)
    # The cookie of one study does not vouch for the person in another.
    client = visitors.browser()
    client.get(address)
    client = visitors.browser(cookies={f"pairseek_who_{other}": client.cookies[f"pairseek_who_{slug}"]})
    page = client.get("/login")
    assert code_of(client.post(f"/s/{other}/start", data={"csrf": csrf_of(page)})) == "invitation_needed"


def test_a_link_expires_by_the_clock_of_the_server(visitors, monkeypatch):
    slug = make(visitors, title="Clock", slug="clock", resume={"hours": 3}, answers=3)
    address, now = link(visitors, slug, "ann", days=2 / 24), time.time
    client, early = visitors.browser(), visitors.browser()
    assert start(client, slug, address).status_code == 303
    form = csrf_of(early.get(address))
    for jump, status in ((1, 303), (-1, 303), (2.01, 410)):
        monkeypatch.setattr(links.time, "time", lambda jump=jump: now() + 3600 * jump)
        reply = start(visitors.browser(), slug, address)
        assert reply.status_code == status, jump
    assert code_of(reply) == "link_expired"
    # Neither does a page that was opened in time begin a session afterwards.
    assert code_of(early.post(f"/s/{slug}/start", data={"csrf": form})) == "link_expired"


def test_an_expired_link_begins_no_further_session_in_the_same_browser(visitors, monkeypatch):
    slug = make(visitors, title="Anew", slug="anew", invited=True, resume={"policy": "restart"})
    address, client = link(visitors, slug, "ann", days=1), visitors.browser()
    assert start(client, slug, address).status_code == 303
    assert start(client, slug, address).status_code == 303
    later = time.time() + 2 * 86_400
    monkeypatch.setattr(links.time, "time", lambda: later)
    assert code_of(start(client, slug, address)) == "link_expired"
    assert code_of(start(client, slug, f"/s/{slug}")) == "invitation_needed"
    # The session that was begun goes on.
    assert client.get(f"/s/{slug}/state").json()["status"] == "asking"


@pytest.mark.parametrize(
    "name", ["=1+1", "a b&c=d#e?f/g%20", "日本語", "🎨" * 50, "ü" * 200, "'; DROP TABLE sessions; --"]
)
def test_odd_ids_are_kept_as_they_are(visitors, name):
    slug = make(visitors, title="Odd", slug=f"odd-{zlib.crc32(name.encode())}", invited=True)
    client = visitors.browser()
    assert start(client, slug, link(visitors, slug, name)).status_code == 303
    assert client.get(f"/s/{slug}/mine").json()["ids"]["participant"] == name


def test_ids_that_are_too_long_are_refused_and_not_cut(visitors):
    slug = make(visitors, title="Long", slug="long")
    for name in ("x" * 201, "y" * 10_000):
        reply = visitors.browser().get(f"/s/{slug}", params={"participant": name})
        assert (reply.status_code, code_of(reply)) == (422, "id_too_long")
    # Four ids that fit their columns and, together, no cookie.
    many = dict.fromkeys(("PROLIFIC_PID", "STUDY_ID", "SESSION_ID", "participant"), "🎨" * 200)
    assert code_of(visitors.browser().get(f"/s/{slug}", params=many)) == "id_too_long"


def test_a_full_study_takes_nobody_until_empty_sessions_have_expired(database_url):
    made = configuration(resume={"hours": 1})
    with served(database_url, studies=[(made, some_items())], most_sessions=3) as visitors:
        first = visitors.browser()
        answer(first, begin(first))
        for _ in range(2):
            begin(visitors.browser())
        refused = start(visitors.browser(), "which", "/s/which")
        assert "This study is full" in refused.text
        older = stamp(datetime.now(UTC) - timedelta(hours=2))
        change = schema.sessions.update().values(created_at=older)
        visitors.service.database.write(lambda connection: connection.execute(change))
        assert start(visitors.browser(), "which", "/s/which").status_code == 303
        # The session with an answer was kept.
        rows = visitors.service.database.read(lambda c: sessions.of_study(c, 1, ["person"]))
        assert sorted(row.version for row in rows) == [0, 1]


def test_the_command_makes_links_that_work(tmp_path, command):
    with served(tmp_path / "l.db", studies=[(configuration(invited=True), some_items())]) as visitors:
        (tmp_path / "people.csv").write_text("name,participant\nAnn,a-1\nBob, b-2 \n")
        made = ["link", "which", "--participants", "people.csv", "--address", visitors.address, "--database", "l.db"]
        code, out, _ = command(*made)
        assert code == 0
        rows = list(csv.DictReader(out.splitlines()))
        assert [row["participant"] for row in rows] == ["a-1", "b-2"]
        assert start(visitors.browser(), "which", rows[1]["link"]).status_code == 303
        assert command(*made, "--out", "links.csv")[0] == 0
        assert (tmp_path / "links.csv").stat().st_mode & 0o777 == 0o600
        for more, words in (
            (["--out", "links.csv"], "already exists"),
            (["--days", "0"], "the number of days is 0"),
            (["--address", "studies.example.org"], "--address is"),
        ):
            code, _, err = command(*made, *more)
            assert code != 0
            assert words in err
        for text, words in (
            ("a\nb\na\n", "line 3: the id 'a' is already in line 1"),
            ("a;b,c\n", "expected one id"),
            ("", "empty"),
        ):
            (tmp_path / "people.csv").write_text(text)
            code, _, err = command(*made)
            assert code != 0
            assert words in " ".join(err.split())


def test_links_are_made_over_http(visitors):
    slug = make(visitors, title="By HTTP", slug="by-http", invited=True)
    tokens = {
        scope: make_token(visitors.service.database, scope, [scope], "test") for scope in ("read", "answer", "write")
    }
    client = visitors.browser()

    def ask(scope, **body):
        headers = {"Authorization": f"Bearer {tokens[scope]}"}
        return client.post(f"/api/v1/studies/{slug}/links", json=body, headers=headers)

    for scope in ("read", "answer"):
        assert code_of(ask(scope, participants=["ann"])) == "scope_missing"
    found = ask("write", participants=["ann", "bob"], days=1).json()
    assert [one["participant"] for one in found] == ["ann", "bob"]
    assert start(visitors.browser(), slug, found[0]["link"]).status_code == 303
    assert ask("write", participants=["a\nb"]).status_code == 422


def test_a_clock_that_jumps_by_an_hour_moves_the_end_of_sessions_and_nothing_else(database_url, monkeypatch):
    """Sessions, links and limits when the time of day is set forward and back, as docs/how-to/service.md says."""
    jump = 0

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(hours=jump)

    monkeypatch.setattr(access, "datetime", Clock)
    monkeypatch.setattr(store_database, "datetime", Clock)
    made = configuration(answers=20, resume={"hours": 0.5})
    with served(database_url, studies=[(made, some_items())], starts_per_minute=2) as visitors:
        client, other = visitors.browser(), visitors.browser()
        state = answer(client, begin(client, participant="ann")).json()
        begin(other)
        jump = 1
        assert code_of(client.get("/s/which/state")) == "session_expired"
        assert code_of(answer(client, state)) == "session_expired"
        # The limit of starts is where it was.
        refused = start(visitors.browser(), "which", "/s/which")
        assert (refused.status_code, code_of(refused)) == (429, "too_many")
        for hours in (0, -1, 0):
            jump = hours
            assert client.get("/s/which/state").json() == state
            state = answer(client, state, "right").json()
            back = undo(client, "which", state["can"]["undo"]).json()
            state = answer(client, back, "left").json()
        assert state["progress"]["answered"] == 4
        assert [one["number"] for one in client.get("/s/which/mine").json()["answers"]] == [1, 2, 3, 4]
        # Another worker reads the same from the store.
        fresh = Sessions(visitors.service.database, Catalogue(visitors.service.database))
        assert fresh.state(fresh.by_token(client.cookies[cookie_of("which")])) == state
