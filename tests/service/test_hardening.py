"""What operators rely on: files that cost little to refuse, passwords that stay, redirects that stay here."""

import contextlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import namedtuple

import httpx
import pytest

from helpers.refusals import refused
from helpers.serving import answer, configuration, csrf_of, listening, served, some_items
from pairseek.errors import InvalidParameter
from pairseek.store import studies
from pairseek.store.database import Database
from pairseek.web import server
from pairseek.web.access import auth
from pairseek.web.access.auth import make_token
from pairseek.web.errors import Problem
from pairseek.web.operations import readiness
from pairseek.web.sessions import warmup
from pairseek.web.settings import Settings
from pairseek.web.studies.checks import check
from pairseek.web.studies.creation import create_study
from pairseek.web.studies.yaml_reader import MAX_YAML_LENGTH, read_yaml

STUDY = (configuration(), some_items())
COLLIDING = 2**61 - 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 50_000, "nests lists and mappings more than 20 deep, line 1"),
        ("title: t\nprior:\n  mean: " + "[" * 30, "more than 20 deep, line 3"),
        ("- " * 50_000, "more than 20 deep"),
        ("{a: " * 50_000, "more than 20 deep"),
        ("# a line\n" * MAX_YAML_LENGTH, "more than 300,000 characters"),
        ("a: [" + "1," * 30_000 + "1]", "more than 20,000 values"),
        ("\n".join(f"{k * COLLIDING}: 1" for k in range(8000)), "1,000 settings in one mapping"),
        ("a: " + "x" * 30_000, "a text of more than 20,000 characters"),
        ("a: " + "1:" * 5000 + "1", "a number of more than 400 digits"),
        ("a: 0x" + "f" * 5000, "a number of more than 400 digits"),
        ("a: " + "1:" * 190 + "1.5", "cannot be read: int too large|cannot be read"),
    ],
    ids=["brackets", "list", "dashes", "braces", "size", "values", "keys", "text", "base 60", "hexadecimal", "float"],
)
def test_settings_that_cost_much_to_read_are_refused_early(text, words):
    began = time.process_time()
    with pytest.raises(InvalidParameter, match=words):
        read_yaml(text)
    assert time.process_time() - began < 5


def test_ordinary_settings_are_read():
    record = read_yaml("title: Wine\nprior: {name: gaussian, covariance: [[1, 0], [0, 1]]}\nconsent: |\n  I agree.\n")
    assert record["prior"]["covariance"] == [[1, 0], [0, 1]]
    assert record["consent"] == "I agree.\n"


@pytest.mark.parametrize(
    "address",
    [
        "https://ok.example{participant}",
        "https://ok.example{code}/",
        "https://ok.example:{code}/",
        "https://{participant}",
        "https://{participant}@ok.example/",
        "https://ok.example\\{participant}",
        "https://user@ok.example/",
        "https://ok.example%2e{participant}/",
    ],
)
def test_what_a_participant_brings_cannot_change_the_host_of_the_completion_address(address):
    with refused("completion.address") as caught:
        configuration(completion={"address": address})
    assert caught.value.field == "completion.address"


@pytest.mark.parametrize(
    "address",
    [
        "https://ok.example/{participant}?c={code}",
        "https://ok.example?c={code}",
        "http://[::1]:8000/",
        "https://ä.example",
    ],
)
def test_placeholders_after_the_host_are_good(address):
    assert configuration(completion={"address": address}).completion.address == address


@pytest.fixture(scope="module")
def visitors(tmp_path_factory):
    with served(tmp_path_factory.mktemp("h") / "h.db", studies=[STUDY], calls_per_minute=5) as visitors:
        yield visitors


@pytest.mark.parametrize(
    "path", ["/s/which/", "/s/which//", "/healthz/", "/studies/new/", "//evil.example/", "/static"]
)
def test_no_redirect_names_the_host_of_the_request(visitors, path):
    reply = visitors.browser().get(path, headers={"host": "evil.example", "accept": "text/html"})
    assert reply.status_code in (200, 303, 404), reply
    assert "evil" not in reply.headers.get("location", "")
    if path.startswith("/s/which"):
        assert reply.status_code == 200


def test_a_cookie_with_escapes_costs_no_time(visitors):
    # Python before 3.11.10 and 3.12.6 takes a time that grows with the square of the number of escapes (CVE-2024-7592).
    cookies = 'a="' + "\\1" * 25_000 + '"; pairseek_form=' + "n" * 32
    began = time.process_time()
    reply = visitors.browser().get("/s/which", headers={"cookie": cookies})
    assert time.process_time() - began < 2
    assert reply.status_code == 200
    assert "set-cookie" not in reply.headers, "the cookie without escapes was lost"


@pytest.mark.parametrize("header", ["referer", "host"])
@pytest.mark.parametrize("value", ["http://[", "[", "[::1", "a b", "ä", "x:99999999", ""])
def test_headers_that_are_no_addresses_are_borne(visitors, header, value):
    token = make_token(visitors.service.database, f"{header} {value}", ["read"], "test")
    headers = {header: value.encode("latin-1"), "accept": "text/html", "authorization": f"Bearer {token}"}
    for path in ("/nothing", "/s/which", "/api/v1/studies/which"):
        reply = visitors.browser().get(path, headers=headers)
        assert reply.status_code in (200, 400, 404), (path, reply.text)


def test_spellings_of_one_token_are_counted_together(visitors):
    token = make_token(visitors.service.database, "speller", ["read"], "test")
    spellings = [f"Bearer {token}", f"bearer {token}", f"BEARER  {token}", f"Bearer   {token}", f"bEARER {token}"]
    replies = [visitors.browser().get("/api/v1/studies", headers={"authorization": text}) for text in spellings * 2]
    assert [reply.status_code for reply in replies] == [200] * 5 + [429] * 5


def test_nobody_is_believed_who_says_for_whom_they_ask(tmp_path):
    said = {"x-forwarded-for": "203.0.113.5", "x-forwarded-proto": "https"}
    with served(tmp_path / "p.db", studies=[STUDY], requests_per_minute=4) as visitors:
        browsers = [visitors.browser(headers=said | {"x-forwarded-for": f"203.0.113.{k}"}) for k in range(6)]
        replies = [browser.get("/s/which") for browser in browsers]
        assert [reply.status_code for reply in replies] == [200] * 4 + [429] * 2
        assert "strict-transport-security" not in replies[0].headers
        # A proxy on this machine does not make strangers those who sit at it.
        assert visitors.browser(headers=said).get("/metrics").status_code == 401
        assert visitors.browser().get("/metrics").status_code == 200
    with served(tmp_path / "t.db", studies=[STUDY], trusted_proxies="127.0.0.0/8") as visitors:
        reply = visitors.browser(headers=said).get("/s/which")
        assert "strict-transport-security" in reply.headers


def test_a_full_disk_and_a_database_that_takes_no_writes_are_not_ready(tmp_path, monkeypatch):
    monkeypatch.setattr(readiness, "_MIN_SECONDS_BETWEEN_WRITES", 0.0)
    monkeypatch.setattr(readiness, "_MAX_WRITE_SECONDS", 60.0)
    usage = namedtuple("usage", "total used free")
    with served(tmp_path / "r.db", studies=[STUDY]) as visitors:
        browser = visitors.browser()
        assert browser.get("/readyz").json() == {"status": "ready"}
        with monkeypatch.context() as full:
            full.setattr(shutil, "disk_usage", lambda _: usage(10**9, 10**9, 1000))
            reply = browser.get("/readyz")
        assert (reply.status_code, reply.json()["error"]["code"]) == (503, "store_unavailable")
        assert "disk of the database is full" in reply.json()["error"]["message"]
        assert browser.get("/readyz").status_code == 200
        database = visitors.service.database
        with monkeypatch.context() as broken:
            broken.setattr(
                readiness,
                "_write",
                lambda connection: (
                    connection.exec_driver_sql("PRAGMA query_only = 1")
                    and readiness.meta.put(connection, "ready_at", "now")
                ),
            )
            assert browser.get("/readyz").status_code == 503
        database.engine.dispose()
        assert browser.get("/readyz").status_code == 200


def test_readiness_is_tried_once_in_a_while_whoever_asks(tmp_path, monkeypatch):
    tried = []
    monkeypatch.setattr(readiness, "_write", lambda _: tried.append(1))
    # However slowly this machine replies.
    monkeypatch.setattr(readiness, "_MIN_SECONDS_BETWEEN_WRITES", 600.0)
    monkeypatch.setattr(readiness, "_MAX_WRITE_SECONDS", 60.0)
    with served(tmp_path / "r.db", studies=[STUDY]) as visitors:
        assert {visitors.browser().get("/readyz").status_code for _ in range(5)} == {200}
    assert len(tried) == 1


def test_a_locked_database_is_not_ready_within_seconds_and_ready_again_afterwards(tmp_path, monkeypatch):
    monkeypatch.setattr(readiness, "_MIN_SECONDS_BETWEEN_WRITES", 0.0)
    limit = 5.0
    monkeypatch.setattr(readiness, "_MAX_WRITE_SECONDS", limit)
    with served(tmp_path / "l.db", studies=[STUDY]) as visitors:
        browser = visitors.browser()
        assert browser.get("/readyz").json() == {"status": "ready"}
        with contextlib.closing(sqlite3.connect(tmp_path / "l.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            waited = []
            for _ in range(5):
                began = time.monotonic()
                reply = browser.get("/readyz")
                waited.append(time.monotonic() - began)
                assert (reply.status_code, reply.json()["error"]["code"]) == (503, "store_unavailable")
                assert "does not accept writes in time" in reply.json()["error"]["message"]
            # Only the first one waits for the write, which goes on.
            assert waited[0] >= 0.9 * limit
            assert min(waited[1:]) < 0.5 * limit
            other.execute("ROLLBACK")
        until = time.monotonic() + 60
        while browser.get("/readyz").status_code != 200:
            assert time.monotonic() < until
            time.sleep(0.05)


def said(capsys):
    return capsys.readouterr().out


def signs_in(url, password):
    database = Database(url)
    try:
        return bool(auth.sign_in(database, auth.FIRST_USER, password, "192.0.2.1"))
    except Problem:
        return False
    finally:
        database.close()


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(server, "warm_up", lambda: None)
    monkeypatch.setattr(server, "warm_studies", lambda _: {})


def drawn(capsys):
    out = said(capsys)
    assert "with the password" in out
    return out.split("with the password ")[1].split()[0]


def test_the_demo_draws_its_own_password_anew_and_leaves_a_given_one(tmp_path, quick, capsys):
    url = str(tmp_path / "demo.db")
    settings = Settings(database=url)
    server.prepare(settings, demo=True)
    first = drawn(capsys)
    server.prepare(settings, demo=True)
    second = drawn(capsys)
    assert (signs_in(url, first), signs_in(url, second)) == (False, True)
    database = Database(url)
    auth.set_password(database, auth.FIRST_USER, "chosen by a person")
    database.close()
    server.prepare(settings, demo=True)
    assert "the password that was set" in said(capsys)
    assert signs_in(url, "chosen by a person")


def test_the_demo_leaves_the_password_of_the_environment(tmp_path, quick, capsys):
    url = str(tmp_path / "demo.db")
    for _ in range(2):
        server.prepare(Settings(database=url, password="from the environment"), demo=True)
    server.prepare(Settings(database=url), demo=True)
    assert signs_in(url, "from the environment")


def test_a_demo_in_another_database_is_no_demo_for_its_password(tmp_path, monkeypatch):
    from pairseek import cli

    seen = []
    monkeypatch.setattr(server, "serve", lambda settings, **options: seen.append((settings.database, options["demo"])))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PAIRSEEK_DATABASE", raising=False)
    for arguments in (["--demo"], ["--demo", "--database", "other.db"], ["--database", "other.db"]):
        with pytest.raises(SystemExit):
            cli.main(["serve", *arguments])
    monkeypatch.setenv("PAIRSEEK_DATABASE", "third.db")
    with pytest.raises(SystemExit):
        cli.main(["serve", "--demo"])
    assert seen == [("pairseek-demo.db", True), ("other.db", False), ("other.db", False), ("third.db", False)]


def stored_without_limits(url, monkeypatch):
    """A study from before the limits, whose questions take minutes."""
    endless = configuration(slug="endless", posterior={"name": "particles", "sweeps": 1_000_000})
    with pytest.raises(InvalidParameter):
        check(endless, some_items())
    database = Database(url)
    server.migrate.prepare(database)
    with monkeypatch.context() as before:
        before.setattr("pairseek.web.studies.creation.check", lambda *_: None)
        create_study(database, endless, some_items(), is_open=True, who="test")
    create_study(database, configuration(), some_items(), is_open=True, who="test")
    return database


def test_studies_are_warmed_up_in_a_limited_time(tmp_path, monkeypatch, caplog):
    database = stored_without_limits(str(tmp_path / "w.db"), monkeypatch)
    gone = []
    monkeypatch.setattr(warmup, "run_search", lambda search, until: gone.append(until))
    known = warmup.warm_studies(database)
    assert len(gone) == 1, "the endless study was tried"
    assert {study.row.slug for study in known.values()} == {"endless", "which"}
    assert "a study could not be warmed up" in caplog.text
    monkeypatch.setattr(warmup, "monotonic", iter(range(0, 1000, 50)).__next__)
    assert len(warmup.warm_studies(database)) == 0
    assert "not warmed up in time" in caplog.text
    assert len(database.read(studies.all_studies)) == 2
    database.close()


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2])
def test_a_server_opens_soon_and_ends_within_the_grace_though_a_study_computes_for_minutes(
    tmp_path, monkeypatch, workers
):
    stored_without_limits(str(tmp_path / "w.db"), monkeypatch).close()
    command = [
        sys.executable,
        "-m",
        "pairseek",
        "serve",
        "--port",
        "0",
        "--workers",
        str(workers),
        "--database",
        "w.db",
    ]
    with open(tmp_path / "out", "w") as out, open(tmp_path / "err", "w") as err:
        process = subprocess.Popen(command, cwd=tmp_path, stdout=out, stderr=err)
    try:
        with httpx.Client(base_url=listening(tmp_path / "out"), timeout=5) as browser:
            page = browser.get("/s/endless")
            browser.post("/s/endless/start", data={"csrf": csrf_of(page)})
            with pytest.raises(httpx.TimeoutException):
                answer_twice(browser)
            assert browser.get("/healthz").status_code == 200
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=25)
        assert time.monotonic() - began < 20
    finally:
        process.kill()
        process.wait()


def answer_twice(browser):
    """Answer the first two questions; without an answer there is nothing to compute."""
    state = browser.get("/s/endless/state").json()
    for _ in range(2):
        state = answer(browser, state, slug="endless").json()
