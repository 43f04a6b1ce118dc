"""Debian's Chromium, driven by Playwright, for tests that need a real browser."""

from __future__ import annotations

import os
import shutil

import pytest

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Console messages that tests provoke, and the style sheet of Plotly's map library, which the content policy blocks.
EXPECTED = ("Failed to load resource", "Applying inline style violates")
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
DESKTOP = {"viewport": {"width": 1280, "height": 800}}


def chromium() -> str:
    """Return the path of Chromium; without it, skip the tests or, if PAIRSEEK_BROWSER requires one, fail them."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        message = "no Chromium found; install it: apt-get install chromium"
        if os.environ.get("PAIRSEEK_BROWSER") == "required":
            pytest.fail(message)
        pytest.skip(message)
    return path


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    path = chromium()
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def visit(browser):
    """Return ``visit(address, **options)``, which opens a page in a new context; console messages fail the test."""
    contexts, said = [], []

    def open_page(address: str, *, context=None, **options):
        if context is None:
            context = browser.new_context(**options)
            context.set_default_timeout(20_000)
            contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on(
            "console",
            lambda message: (
                said.append(message.text)
                if message.type == "error" and not any(text in message.text for text in EXPECTED)
                else None
            ),
        )
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert said == []
