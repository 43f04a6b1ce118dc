"""Compiled quizzes in a real browser: from a file without a network, and inside another page."""

from __future__ import annotations

import functools
import http.server
import re
import threading
from pathlib import Path

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image

import pairseek as ps
from helpers.browsers import DESKTOP, PHONE
from helpers.quizzes import by_share
from helpers.serving import some_items
from pairseek.quiz.compiler import compile_quiz
from pairseek.quiz.content import QuizSource
from pairseek.quiz.plan import plan_quiz
from pairseek.quiz.sources import from_items_file
from pairseek.web.studies.configuration import configured

ROOT = Path(__file__).resolve().parents[2]
DEPTH = 4
PLAY_ALL = """() => {
  const quiz = openedQuiz;
  const found = {};
  const visit = (path) => {
    const pair = quiz.pair(path);
    const name = path.map((side) => side[0].toUpperCase()).join("");
    if (!pair) { found[name] = quiz.result(path); return; }
    found[name] = [pair.left.id, pair.right.id];
    for (const side of ["left", "right"]) visit([...path, side]);
  };
  visit([]);
  return found;
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Quizzes of colours, texts in German, and pictures; a page that embeds one."""
    root = tmp_path_factory.mktemp("quizzes")
    colours = ps.datasets.colours()
    shown = ps.Items(colours.coordinates, colours.ids, colours.labels, data={"colour": colours.data["hex"]})
    quiz = QuizSource(configured({"title": "Which colour?", "answers": DEPTH, "debrief": "*Thanks*"}), shown)
    compile_quiz(plan_quiz(quiz), root / "quiz")
    words = "Ein leichter Wein für den Abend auf der Terrasse"
    base = some_items(20)
    texts = ps.Items(
        base.coordinates, base.ids, base.labels, data={"text": [f"{words}, Nummer {k}" for k in range(20)]}
    )
    stopping = {"stop": [{"name": "answers", "count": 2}], "language": "de", "answers": 3}
    compile_quiz(plan_quiz(QuizSource(configured({"title": "Welcher Wein?", **stopping}), texts)), root / "texts")
    rng = np.random.default_rng(2)
    rows = []
    for k in range(8):
        Image.fromarray(rng.integers(0, 255, (60, 40, 3), dtype=np.uint8)).resize((400, 600)).save(root / f"{k}.png")
        rows.append(f"w{k},{k}.png,Picture {k},{rng.normal()},{rng.normal()}\n")
    (root / "art.csv").write_text("id,image,alt,x,y\n" + "".join(rows))
    compile_quiz(plan_quiz(from_items_file(root / "art.csv"), answers=2), root / "pictures")
    example = re.findall(
        r"```html\n(.*?)```", (ROOT / "docs" / "how-to" / "embedding-a-quiz.md").read_text(), re.DOTALL
    )[0]
    (root / "page.html").write_text(example)
    return root


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def host(folder):
    """The folder on a static host."""
    handler = functools.partial(QuietHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def ready(page, answered: int) -> None:
    page.locator(f".stage[data-shown='{answered}']").wait_for()
    page.wait_for_timeout(330)  # longer than the guard against double presses


def labels(page) -> tuple[str, str]:
    return page.locator("#left-label").inner_text(), page.locator("#right-label").inner_text()


def usable(page) -> None:
    """Nothing overflows, and axe-core finds nothing in light and dark."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()
    size = page.viewport_size
    for width in (320, size["width"]):
        page.set_viewport_size({"width": width, "height": size["height"]})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("device", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_a_quiz_from_a_file_without_a_network(visit, folder, device) -> None:
    page = visit((folder / "quiz" / "index.html").as_uri(), offline=True, **device)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    assert page.title() == "Which colour?"
    assert page.get_by_text("Tap or click a card.").is_visible()
    assert page.get_by_text("The arrow keys choose too.").is_visible() == (device is DESKTOP)
    usable(page)
    page.get_by_role("button", name="Begin").click()
    search = ps.Search(ps.datasets.colours(), rng=0)
    for number in range(DEPTH):
        ready(page, number)
        query = search.ask()
        names = [search.items.labels[search.items.index(side)] for side in (query.left, query.right)]
        assert labels(page) == tuple(names)
        assert page.locator(".count").inner_text() == f"{number} of {DEPTH}"
        side = "left" if number % 2 else "right"
        card = page.get_by_role("button", name=f"{side.capitalize()}: ")
        if number == 0:
            usable(page)
        (card.tap if device is PHONE else card.click)()
        search.tell(query, winner=getattr(query, side))
    page.get_by_role("heading", name="What we found").wait_for()
    best = [one.label for one, _ in by_share(search, 6)]
    assert page.locator("li > span:nth-of-type(1)").all_inner_texts() == best
    assert page.get_by_text("Thanks").is_visible()
    assert page.get_by_role("img", name="A map of the items").is_visible()
    usable(page)
    assert [url for url in asked if not url.startswith("file:")] == []


def test_the_module_reads_what_the_search_gives(visit, folder, host) -> None:
    page = visit(f"{host}/page.html", **DESKTOP)
    page.evaluate(
        "async () => { const { loadQuiz } = await import('/quiz/quiz.js'); window.openedQuiz = await loadQuiz(); }"
    )
    found = page.evaluate(PLAY_ALL)
    assert len(found) == 2 ** (DEPTH + 1) - 1
    for path, shown in found.items():
        search = ps.Search(ps.datasets.colours(), rng=0)
        for side in path:
            query = search.ask()
            search.tell(query, winner=query.left if side == "L" else query.right)
        if len(path) < DEPTH:
            query = search.ask()
            assert shown == [query.left, query.right]
            continue
        estimate, best = search.estimate(), by_share(search, 6)
        assert [recommendation["id"] for recommendation in shown["recommendations"]] == [one.id for one, _ in best]
        assert [recommendation["label"] for recommendation in shown["recommendations"]] == [
            one.label for one, _ in best
        ]
        shares = [recommendation["share"] for recommendation in shown["recommendations"]]
        np.testing.assert_allclose(shares, [share for _, share in best], atol=1e-5)
        np.testing.assert_array_equal(np.float32(shown["estimate"]["point"]), np.float32(estimate.point))
        assert shown["estimate"]["radius"] == pytest.approx(estimate.credible_radius(), rel=1e-3)
        assert [one["winner"] for one in shown["answers"]] == [event.winner for event in search.history]


def test_paths_that_do_not_exist_are_refused(visit, host) -> None:
    page = visit(f"{host}/page.html", **DESKTOP)
    said = page.evaluate("""async () => {
      const { loadQuiz, openQuiz } = await import('/quiz/quiz.js');
      const quiz = await loadQuiz();
      const failing = [
        () => quiz.pair(["up"]), () => quiz.result(["left"]), () => quiz.pair(Array(9).fill("left")),
        () => openQuiz({}),
      ];
      const out = failing.map((one) => { try { one(); return null; } catch (error) { return error.message; } });
      return [...out, await loadQuiz("/none.js").catch((error) => error.message)];
    }""")
    assert said == [
        'an answer is up: give "left" or "right"',
        "the quiz continues after 1 answers",
        "the quiz ends before 9 answers",
        "this is not a quiz tree of version 1",
        "/none.js cannot be loaded: 404 File not found",
    ]


def test_the_example_of_the_docs_hands_over_answers_estimate_and_recommendations(visit, host) -> None:
    page = visit(f"{host}/page.html", **DESKTOP)
    messages = []
    page.on("console", lambda message: messages.append(message))
    page.get_by_role("button", name="Begin").click()
    search = ps.Search(ps.datasets.colours(), rng=0)
    for number in range(DEPTH):
        ready(page, number)
        page.get_by_role("button", name="Left: ").click()
        query = search.ask()
        search.tell(query, winner=query.left)
    best, share = by_share(search, 6)[0]
    page.get_by_text(f"After {DEPTH} answers we recommend {best.label}.").wait_for()
    first = search.history[0]
    logged = [[arg.json_value() for arg in message.args] for message in messages if message.type == "log"]
    assert logged[0] == [first.left, first.right, first.winner]
    np.testing.assert_allclose(logged[1][0], search.estimate().point, rtol=1e-6, atol=1e-7)
    assert logged[2] == [best.id, pytest.approx(share, abs=1e-5)]
    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]})
    assert found.violations_count == 0, found.generate_report()


def test_by_keyboard_with_undo_and_again(visit, folder) -> None:
    page = visit((folder / "quiz" / "index.html").as_uri(), **DESKTOP)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    ready(page, 0)
    first = labels(page)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")  # at once: meant for the pair before
    ready(page, 1)
    second = labels(page)
    page.keyboard.press("Backspace")
    ready(page, 0)
    assert labels(page) == first
    page.keyboard.down("ArrowRight")
    page.keyboard.down("ArrowRight")  # held
    page.keyboard.up("ArrowRight")
    ready(page, 1)
    assert labels(page) == second
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    ready(page, 2)
    assert page.evaluate("document.activeElement.shadowRoot.activeElement.className") == "pick"
    for number in (2, 3):
        ready(page, number)
        page.keyboard.press("ArrowLeft")
    page.get_by_role("heading", name="What we found").wait_for()
    assert page.evaluate("document.activeElement.shadowRoot.activeElement.tagName") == "H1"
    page.get_by_role("button", name="Change my last answer").click()
    ready(page, 3)
    page.keyboard.press("ArrowRight")
    page.get_by_role("button", name="Start again").click()
    ready(page, 0)
    assert labels(page) == first


def test_texts_in_german_end_where_the_rule_says(visit, folder) -> None:
    page = visit((folder / "texts" / "index.html").as_uri(), **PHONE)
    assert page.evaluate("document.documentElement.lang") == "de"
    assert page.get_by_text("Höchstens 3 Paare.").is_visible()
    page.get_by_role("button", name="Beginnen").tap()
    for number in range(2):
        ready(page, number)
        assert "für den Abend" in page.locator("#left-show").inner_text()
        page.get_by_role("button", name="Links: ").tap()
    page.get_by_role("heading", name="Was wir gefunden haben").wait_for()
    usable(page)


def test_pictures_are_shown_from_a_file_and_inside_another_page(visit, folder, host) -> None:
    page = visit((folder / "pictures" / "index.html").as_uri(), offline=True, **PHONE)
    page.get_by_role("button", name="Begin").tap()
    ready(page, 0)
    widths = "(root) => [...root.shadowRoot.querySelectorAll('.show img')].map((image) => image.naturalWidth > 0)"
    assert page.locator("#quiz").evaluate(widths) == [True, True]
    assert page.get_by_role("button", name=re.compile("Left: Picture")).is_visible()
    usable(page)
    page = visit(f"{host}/page.html", **DESKTOP)
    page.evaluate("""async () => {
      const { loadQuiz, mount } = await import('/pictures/quiz.js');
      const element = document.body.appendChild(document.createElement("div"));
      element.id = "art";
      const onfinish = (found) => (window.found = found);
      await mount(element, { quiz: await loadQuiz(), intro: false, result: false, onfinish });
    }""")
    for number in range(2):
        ready(page, number)
        assert page.locator("#art").evaluate(widths) == [True, True]
        page.locator("#art .pick").first.click()
    page.wait_for_function("() => window.found")
    assert page.locator("#art").inner_text() == ""
    assert len(page.evaluate("found.recommendations")) == 6


def test_a_page_without_scripts_says_so(browser, folder) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((folder / "quiz" / "index.html").as_uri())
    assert "The quiz needs JavaScript." in page.inner_text("body")
    context.close()
