"""How often somebody may ask: a clear refusal with the time to wait, and room for a classroom behind one address."""

import pytest

from helpers.serving import GUARD, answer, begin, configuration, served, some_items
from pairseek.client import Client
from pairseek.web.access import rates
from pairseek.web.access.auth import make_token
from pairseek.web.access.rates import Rate, network_of
from pairseek.web.errors import Problem

STUDY = (configuration(answers=100), some_items())


@pytest.fixture
def clock(monkeypatch):
    """The time that the limits see: it stands still until a test moves it."""
    now = [1000.0]
    monkeypatch.setattr(rates, "monotonic", lambda: now[0])
    return now


def refused(reply):
    assert reply.status_code == 429
    assert int(reply.headers["retry-after"]) >= 1
    assert reply.json()["error"]["code"] == "too_many"
    return reply.json()["error"]["message"]


def test_a_minutes_worth_may_come_at_once_and_then_as_time_goes_by(clock):
    rate = Rate("cups", 30)
    for _ in range(30):
        rate.check("ann")
    with pytest.raises(Problem, match="more than 30 cups in a minute: Wait 2 s") as caught:
        rate.check("ann")
    assert caught.value.headers == {"retry-after": "2"}
    rate.check("bob")
    # To be refused costs nothing, so who waits as told is served.
    for _ in range(50):
        with pytest.raises(Problem):
            rate.check("ann")
    clock[0] += 2.0
    rate.check("ann")
    clock[0] += 3600.0
    for _ in range(30):
        rate.check("ann")
    with pytest.raises(Problem):
        rate.check("ann")


def test_buckets_that_have_refilled_are_forgotten_and_no_others(clock):
    rate = Rate("cups", 30)
    for _ in range(30):
        rate.check("ann")
    for number in range(500):
        clock[0] += 0.1
        rate.check(str(number))
    assert len(rate._buckets) == 501
    clock[0] += 9.0
    # After 59 seconds hers holds 29 again, and no more.
    for _ in range(29):
        rate.check("ann")
    with pytest.raises(Problem):
        rate.check("ann")
    clock[0] += 58.0
    rate.check("bob")
    assert set(rate._buckets) == {"ann", "bob"}
    clock[0] += 60.0
    rate.check("bob")
    assert set(rate._buckets) == {"bob"}


def test_a_network_of_ipv6_counts_as_one():
    assert network_of("2001:db8:1:2:aaaa::1") == network_of("2001:db8:1:2:bbbb::2") != network_of("2001:db8:1:3::1")
    assert network_of("192.0.2.7") != network_of("192.0.2.8")
    assert network_of("") == ""


def test_requests_from_one_address_are_counted_but_not_the_files_of_pages(tmp_path, clock):
    with served(tmp_path / "l.db", studies=[STUDY], requests_per_minute=4, trusted_proxies="127.0.0.1") as visitors:
        browser = visitors.browser()
        for _ in range(4):
            assert browser.get("/s/which").status_code == 200
        assert "more than 4 requests from one address" in refused(browser.get("/s/which"))
        page = browser.get("/s/which", headers={"accept": "text/html"})
        assert page.status_code == 429
        assert "Wait" in page.text
        assert page.headers["retry-after"]
        assert refused(browser.post("/api/v1/studies", json={}))
        for path in ("/healthz", "/readyz", "/static/base.css"):
            assert browser.get(path).status_code == 200
        elsewhere = visitors.browser(headers={"x-forwarded-for": "203.0.113.5"})
        assert elsewhere.get("/s/which").status_code == 200


def test_a_session_that_answers_too_often_is_held_up_and_nothing_of_it_is_lost(tmp_path, clock):
    with served(tmp_path / "l.db", studies=[STUDY], answers_per_minute=3) as visitors:
        browser, other = visitors.browser(), visitors.browser()
        state = begin(browser)
        for _ in range(3):
            state = answer(browser, state).json()
        assert "more than 3 answers or messages in one session" in refused(answer(browser, state))
        assert refused(browser.post("/s/which/undo", json={"query": "p3"}, headers=GUARD))
        assert browser.get("/s/which/state").json() == state
        assert answer(other, begin(other)).status_code == 200


def test_a_token_that_calls_too_often_is_held_up_and_the_client_waits(tmp_path, clock, monkeypatch):
    with served(tmp_path / "l.db", studies=[STUDY], calls_per_minute=60) as visitors:
        scopes = ["read", "answer"]
        token, other = (make_token(visitors.service.database, name, scopes, "test") for name in ("a", "b"))
        browser = visitors.browser(headers={"authorization": f"Bearer {token}"})
        replies = [browser.get("/api/v1/studies") for _ in range(61)]
        assert [reply.status_code for reply in replies[:60]] == [200] * 60
        assert "more than 60 calls with one token" in refused(replies[60])
        assert len(Client(visitors.address, other).studies()) == 1
        # The client waits as it is told, and is served.
        waited = []

        def sleep(seconds):
            waited.append(seconds)
            clock[0] += seconds

        monkeypatch.setattr("pairseek.client.connection.sleep", sleep)
        assert len(Client(visitors.address, token).studies()) == 1
        assert Client(visitors.address, token).open_session("which").id
        assert waited == [1.0, 1.0]


def test_a_classroom_behind_one_address_is_not_held_up(tmp_path):
    with served(tmp_path / "l.db", studies=[STUDY]) as visitors:
        pupils = [visitors.browser() for _ in range(35)]
        states = [begin(pupil) for pupil in pupils]
        for _ in range(4):
            replies = [answer(pupil, state) for pupil, state in zip(pupils, states, strict=True)]
            assert {reply.status_code for reply in replies} == {200}
            states = [reply.json() for reply in replies]
