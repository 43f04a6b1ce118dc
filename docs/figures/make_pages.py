"""Draw docs/figures/pages.png: pages of a study on a phone, from the canned data of the tests.

Run it with Chromium installed: python docs/figures/make_pages.py
"""

import io
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

from helpers.browsers import FLAGS, chromium  # noqa: E402
from helpers.pages_service import gallery, served  # noqa: E402

SHOWN = [("run-colour", "light"), ("run-colour", "dark"), ("result", "light")]
GAP, SIZE, BETWEEN = 24, {"width": 360, "height": 720}, "#9a9a9a"

shots = []
with served(gallery()) as root, sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
    for name, scheme in SHOWN:
        page = browser.new_page(viewport=SIZE, color_scheme=scheme, reduced_motion="reduce", has_touch=True)
        page.goto(f"{root}/gallery/{name}")
        page.wait_for_timeout(500)
        shots.append(Image.open(io.BytesIO(page.screenshot())))
    browser.close()

width = sum(shot.width for shot in shots) + GAP * (len(shots) + 1)
sheet = Image.new("RGB", (width, shots[0].height + 2 * GAP), BETWEEN)
for number, shot in enumerate(shots):
    sheet.paste(shot, (GAP + number * (SIZE["width"] + GAP), GAP))
sheet.quantize(128).save(HERE / "pages.png", optimize=True)
