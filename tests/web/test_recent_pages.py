"""Result pages of the last seconds, and the small pool in which results and downloads are computed."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from helpers.serving import begin, configuration, served, some_items
from pairseek.web.access.auth import make_token
from pairseek.web.results import recent_pages, tables
from pairseek.web.results.recent_pages import RecentPages
from pairseek.web.views import participant as views


def test_a_page_is_rendered_once_for_each_version_until_it_is_cleared(monkeypatch):
    monkeypatch.setattr(recent_pages, "_KEPT_SECONDS", 1e9)
    pages, rendered = RecentPages(), []

    def render():
        rendered.append(1)
        return str(len(rendered))

    assert [pages.get("s", 1, render), pages.get("s", 1, render), pages.get("s", 2, render)] == ["1", "1", "2"]
    assert pages.get("other", 1, render) == "3"
    pages.clear()
    assert pages.get("s", 1, render) == "4"


class Crowd:
    """Counts how many calls of a function run at once."""

    def __init__(self, function):
        self.function, self.lock = function, threading.Lock()
        self.calls, self.running, self.most = 0, 0, 0

    def __call__(self, *given, **named):
        with self.lock:
            self.calls, self.running = self.calls + 1, self.running + 1
            self.most = max(self.most, self.running)
        try:
            threading.Event().wait(0.05)
            return self.function(*given, **named)
        finally:
            with self.lock:
                self.running -= 1


@pytest.fixture(scope="module")
def visitors(tmp_path_factory):
    with served(tmp_path_factory.mktemp("r") / "r.db", studies=[(configuration(answers=2), some_items())]) as visitors:
        yield visitors


def test_a_result_that_is_loaded_many_times_is_computed_by_few_threads_and_few_times(visitors, monkeypatch):
    browser = visitors.browser()
    state = begin(browser)
    while state["query"] is not None:
        state = browser.post(
            "/s/which/answer", json={"query": state["query"]["query"], "outcome": "left"}, headers={"X-Pairseek": "1"}
        ).json()
    crowd = Crowd(views.result_page)
    monkeypatch.setattr(views, "result_page", crowd)
    with ThreadPoolExecutor(20) as pool:
        replies = list(pool.map(lambda _: browser.get("/s/which/result"), range(20)))
    assert {reply.status_code for reply in replies} == {200}
    assert len({reply.text for reply in replies}) == 1
    assert 1 <= crowd.calls <= 2
    assert crowd.most <= 2


def test_many_downloads_are_computed_by_few_threads(visitors, monkeypatch):
    token = make_token(visitors.service.database, "t", ["read"], "test")
    crowd = Crowd(tables.columns_of)
    monkeypatch.setattr(tables, "columns_of", crowd)
    browser = visitors.browser(headers={"authorization": f"Bearer {token}"})

    def export(number):
        return browser.get(f"/api/v1/studies/which/export/items.{('csv', 'parquet')[number % 2]}")

    with ThreadPoolExecutor(20) as pool:
        replies = list(pool.map(export, range(20)))
    assert {reply.status_code for reply in replies} == {200}
    assert crowd.calls == 20
    assert crowd.most <= 2
