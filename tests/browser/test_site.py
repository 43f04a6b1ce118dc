"""The built documentation site in Chromium: accessibility, phones, no request to elsewhere (`make docs-check`)."""

import functools
import http.server
import threading
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe

from helpers.browsers import DESKTOP, PHONE, browser  # noqa: F401

SITE = Path(__file__).resolve().parents[2] / "site"
PAGES = sorted(str(path.relative_to(SITE)) for path in SITE.rglob("*.html") if path.name != "404.html")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not PAGES, reason="the site is not built: run `make docs` first"),
]


@pytest.fixture(scope="module")
def address():
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=SITE)
    handler.log_message = lambda *_: None
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("device", [PHONE, DESKTOP], ids=["phone", "desktop"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible_and_complete(browser, address, name, scheme, device):  # noqa: F811
    context = browser.new_context(**device, color_scheme=scheme, reduced_motion="reduce")
    page = context.new_page()
    requests, problems = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(f"{address}/{name}", wait_until="load")
    page.wait_for_timeout(300)
    found = Axe().run(page)
    elsewhere = [url for url in requests if not url.startswith((address, "data:", "blob:"))]
    width = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    context.close()
    assert elsewhere == []
    assert problems == []
    assert width <= 0, f"{name} is {width} px wider than the screen"
    assert found.violations_count == 0, found.generate_report()


def test_the_site_can_be_searched(browser, address):  # noqa: F811
    page = browser.new_page(**DESKTOP)
    page.goto(f"{address}/index.html")
    page.keyboard.press("/")
    page.keyboard.type("credible radius")
    page.locator(".md-search-result__item").first.wait_for()
    page.close()


def test_the_site_works_from_a_disk(browser):  # noqa: F811
    page = browser.new_page(**DESKTOP)
    page.goto((SITE / "index.html").as_uri())
    page.keyboard.press("/")
    page.keyboard.type("credible radius")
    page.locator(".md-search-result__item").first.wait_for()
    page.close()
