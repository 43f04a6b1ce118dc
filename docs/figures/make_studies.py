"""Write docs/figures/anything-*.png and alike-*.png: pages of a study of a list of things, and of a similarity study.

python docs/figures/make_studies.py        # needs Chromium and the extras cli, web and dev

Simulated people answer by the same functions as a browser; the pages are photographed in Chromium.
"""

import colorsys
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

from helpers.browsers import FLAGS, chromium  # noqa: E402
from helpers.serving import configuration, served  # noqa: E402
from pairseek.model.items import Items  # noqa: E402
from pairseek.store import learning, populations  # noqa: E402
from pairseek.web.access import auth  # noqa: E402
from pairseek.web.sessions.advance import Answer  # noqa: E402

PASSWORD = "figures-of-the-docs"
PHONE = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True, "device_scale_factor": 1.5}
DESK = {"viewport": {"width": 1280, "height": 900}}
DOGS = {
    "Beagle": "Merry and always hungry.",
    "Boxer": "Strong and silly.",
    "Collie": "Herds whatever moves.",
    "Corgi": "Small, clever, loud.",
    "Dachshund": "Low, long, stubborn.",
    "Husky": "Runs all day.",
    "Labrador": "Likes everybody.",
    "Poodle": "Learns anything.",
    "Pug": "Snores.",
    "Spitz": "Barks at the postman.",
    "Terrier": "Digs.",
    "Whippet": "Fast for a minute.",
}
N = 20
HSV = [(n / N, 0.75, 0.85 if n % 2 else 0.6) for n in range(N)]
COLOURS = ["#{:02x}{:02x}{:02x}".format(*(round(255 * part) for part in colorsys.hsv_to_rgb(*one))) for one in HSV]
MIND = np.array([(np.cos(2 * np.pi * h), np.sin(2 * np.pi * h), 1.2 * v) for h, _, v in HSV]) * 1.5


def main() -> None:
    """Serve both studies, let people answer, and photograph the pages."""
    rng = np.random.default_rng(18)
    dogs = Items(ids=[dog.lower() for dog in DOGS], labels=list(DOGS), data={"text": list(DOGS.values())})
    colours = Items(ids=[f"c{n}" for n in range(N)], data={"colour": COLOURS})
    anything = configuration(title="Which dog would you rather have?", slug="dogs", answers=12)
    alike = configuration(title="Which colours are alike?", slug="colours", kind="similarity", answers=30)
    with (
        tempfile.TemporaryDirectory() as folder,
        served(Path(folder) / "s.db", studies=[(anything, dogs), (alike, colours)]) as visitors,
        sync_playwright() as playwright,
    ):
        auth.set_password(visitors.service.database, "ann", PASSWORD)
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        participate(browser, visitors, "dogs", "anything-pair")
        participate(browser, visitors, "colours", "alike-question")
        for _ in range(3):
            for slug, people, person in (("dogs", 10, liking(rng)), ("colours", 4, judging(rng))):
                before = latest(visitors.service, slug)
                answer(visitors.service, slug, people, person)
                learned(visitors.service, slug, before)
        for device, kind in ((PHONE, "phone"), (DESK, "desk")):
            owner = signed_in(browser, visitors, device)
            photograph(owner, f"{visitors.address}/studies/dogs", "#population", f"anything-study-{kind}")
            photograph(owner, f"{visitors.address}/studies/colours", "#map-title", f"alike-study-{kind}")
        finished(browser, visitors)
        browser.close()


def liking(rng):
    """Return a person's answers: what many like, and a taste of their own."""
    common = np.linspace(-1.5, 1.5, len(DOGS))[np.random.default_rng(5).permutation(len(DOGS))]
    names = [dog.lower() for dog in DOGS]

    def person():
        utility = dict(zip(names, common + rng.normal(size=len(names)), strict=True))

        def say(query):
            gap = utility[query["left"]["id"]] - utility[query["right"]["id"]]
            return "left" if rng.random() < 1 / (1 + np.exp(-2 * gap)) else "right"

        return say

    return person


def judging(rng):
    """Return a judge's answers: the circle of hues, and lightness."""

    def say(query):
        anchor, left, right = (MIND[int(query[side]["id"][1:])] for side in ("anchor", "left", "right"))
        gap = np.sum((anchor - right) ** 2) - np.sum((anchor - left) ** 2)
        return "left" if rng.random() < 1 / (1 + np.exp(-gap)) else "right"

    return lambda: say


def answer(service, slug: str, people: int, person) -> None:
    """Let people answer everything."""
    sessions, study = service.sessions, service.catalogue.by_slug(slug)
    for _ in range(people):
        say = person()
        name, _ = sessions.open(study, {})
        state = sessions.state(sessions.by_id(name))
        while state["query"] is not None:
            given = Answer(query=state["query"]["query"], outcome=say(state["query"]), rt_ms=1400)
            state = sessions.answer(sessions.by_id(name), given)


def latest(service, slug: str) -> int:
    """Return the number of the study's newest version, 0 if there is none."""
    number = service.catalogue.by_slug(slug).row.id
    return service.database.read(lambda connection: populations.newest(connection, number)) or 0


def learned(service, slug: str, before: int) -> None:
    """Wait until the study has learned by itself. A request could learn a second time from the same people."""
    number, until = service.catalogue.by_slug(slug).row.id, time.monotonic() + 300
    while latest(service, slug) == before:
        why = service.database.read(lambda connection: learning.state(connection, number)).failure
        assert why is None, why
        assert time.monotonic() < until, f"{slug} did not learn"
        time.sleep(0.5)


def participate(browser, visitors, slug: str, name: str) -> None:
    """Photograph a question on a phone."""
    page = browser.new_page(**PHONE)
    page.goto(f"{visitors.address}/s/{slug}")
    page.locator("main form button").first.click()
    page.wait_for_url("**/run")
    page.wait_for_selector("[data-shown=p1]")
    page.wait_for_timeout(700)
    page.screenshot(path=HERE / f"{name}.png")
    small(name)
    page.context.close()


def finished(browser, visitors) -> None:
    """Answer the study of dogs on a phone, and photograph what the person sees at the end."""
    page = browser.new_page(**PHONE)
    page.goto(f"{visitors.address}/s/dogs")
    page.locator("main form button").first.click()
    page.wait_for_url("**/run")
    for number in range(40):
        page.wait_for_timeout(700)
        if page.locator("#panel").is_visible():
            break
        page.keyboard.press("f" if number % 3 else "j")
    page.locator("#done").click()
    page.wait_for_url("**/result")
    page.wait_for_timeout(800)
    page.screenshot(path=HERE / "anything-result.png")
    small("anything-result")


def signed_in(browser, visitors, device):
    """Return the page of the owner."""
    page = browser.new_page(**device)
    page.goto(f"{visitors.address}/login")
    page.fill("[name=name]", "ann")
    page.fill("[name=password]", PASSWORD)
    page.locator("main button").first.click()
    page.wait_for_url("**/studies")
    return page


def photograph(page, address: str, part: str, name: str) -> None:
    """Photograph a page from one of its parts on."""
    page.goto(address)
    page.wait_for_timeout(1500)
    page.evaluate(f"scrollTo(0, document.querySelector('{part}').getBoundingClientRect().top + scrollY - 24)")
    page.wait_for_timeout(300)
    page.screenshot(path=HERE / f"{name}.png")
    small(name)


def small(name: str) -> None:
    """Write a picture with few colours, which is small."""
    path = HERE / f"{name}.png"
    Image.open(path).convert("RGB").quantize(160).save(path, optimize=True)


if __name__ == "__main__":
    main()
