"""Write docs/figures/demo-*.png: the pages of the demo study, photographed in Chromium while somebody answers it.

python docs/figures/make_screens.py        # needs Chromium and the extras cli, web and dev
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).resolve().parent
PORT, PASSWORD = 8437, "figures-of-the-docs"
ROOT = f"http://127.0.0.1:{PORT}"
PHONE = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True, "device_scale_factor": 1.5}
DESK = {"viewport": {"width": 1280, "height": 1460}}
PEOPLE = 24


def main() -> None:
    """Serve the demo, answer it once, and photograph the pages on the way."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {"PAIRSEEK_DATABASE": f"{folder}/demo.db", "PAIRSEEK_PASSWORD": PASSWORD}
        server = subprocess.Popen(
            [sys.executable, "-m", "pairseek", "serve", "--demo", "--port", str(PORT)], env=os.environ | settings
        )
        try:
            wait()
            with sync_playwright() as playwright:
                flags = ["--no-sandbox"]
                browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
                participant(browser)
                researcher(browser)
                browser.close()
        finally:
            server.terminate()
            server.wait()


def wait() -> None:
    """Wait until the server answers."""
    for _ in range(240):
        try:
            urllib.request.urlopen(f"{ROOT}/readyz").close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
        else:
            return
    raise TimeoutError(f"no server at {ROOT}")


def participant(browser) -> None:
    """Answer the whole study."""
    page = browser.new_page(**PHONE)
    page.goto(f"{ROOT}/s/colours")
    shoot(page, "demo-start")
    page.click("button.primary")
    page.wait_for_url("**/run")
    page.wait_for_timeout(1500)
    shoot(page, "demo-pair")
    last = page.get_by_role("heading", name="That was the last pair")
    for number in range(60):
        if last.is_visible():
            break
        page.keyboard.press("f" if number % 3 else "j")
        page.wait_for_timeout(900)
    page.get_by_role("button", name="Finish").click()
    page.wait_for_url("**/result")
    page.wait_for_timeout(1500)
    shoot(page, "demo-result")


def researcher(browser) -> None:
    """Sign in, simulate some people, and photograph the page of the study."""
    page = browser.new_page(**DESK)
    page.goto(f"{ROOT}/login?next=/studies/colours")
    page.get_by_label("Name").fill("admin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_label("Number of participants").fill(str(PEOPLE))
    page.get_by_role("button", name="Simulate").click()
    page.wait_for_timeout(60_000)
    page.goto(f"{ROOT}/studies/colours")
    page.wait_for_timeout(4000)
    shoot(page, "demo-study")


def shoot(page, name: str) -> None:
    """Write a picture with few colours, which is small."""
    path = HERE / f"{name}.png"
    page.screenshot(path=path)
    Image.open(path).convert("RGB").quantize(160).save(path, optimize=True)


if __name__ == "__main__":
    main()
