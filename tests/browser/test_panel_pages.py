"""A French study from a list with semicolons and decimal commas, and a participant from a panel, in a real browser."""

from __future__ import annotations

import http.server
import re
import threading

import pytest
from axe_playwright_python.sync_playwright import Axe

from helpers.browsers import DESKTOP, PHONE
from helpers.serving import cheap_passwords, served
from pairseek.web.access.auth import set_password

PASSWORD = "a long password"
CIDERS = "id;nom;douceur;acidité\r\n" + "".join(f"c{n};Cidre n° {n};{n % 5},5;{n % 3},25\r\n" for n in range(10))
LABELLED = CIDERS.replace("nom", "label") + "oui;Choisir celui-ci;0,5;0,25\r\nnon;Pas celui-ci;1,5;1,25\r\n"


@pytest.fixture
def panel():
    """A panel's page of completion on this machine; yields its address."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>Back</title><h1>Back at the panel</h1>")

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def check(page, name: str) -> None:
    """Nothing overflows, and axe-core finds nothing."""
    del name
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide == 0
    found = Axe().run(page).response["violations"]
    assert found == [], [(one["id"], one["nodes"][0]["html"]) for one in found]


def create(page, path, panel) -> None:
    """Create the study as a French researcher does, with the form alone."""
    page.set_input_files("#f-items", str(path))
    page.wait_for_selector("#columns input[value=douceur]")
    page.fill("#f-title", "Quel cidre ?")
    page.select_option("#f-language", "fr")
    page.fill("#f-answers", "10")
    page.click("#texts > summary")
    page.wait_for_selector("[data-usual='texts.start.begin'][lang=fr]")
    page.fill("[name='texts.start.begin']", "C'est parti !")
    page.click("#questions > summary")
    page.fill("[name='questions.0.text']", "Où habitez-vous ?")
    page.fill("[name='questions.0.options']", "En ville\nÀ la campagne")
    page.check("[name='questions.0.required']")
    page.click("#questions details:nth-of-type(2) > summary")
    page.fill("[name='questions.1.text']", "Quel âge avez-vous ?")
    page.select_option("[name='questions.1.kind']", "number")
    page.select_option("[name='questions.1.when']", "before")
    page.evaluate("document.getElementById('f-attention').closest('details').open = true")
    page.select_option("#attention-right", "Choisir celui-ci")
    page.select_option("#attention-other", "Pas celui-ci")
    page.click("#attention-add")
    page.check("[name='attention.apart']")
    page.evaluate("document.getElementById('f-quota').closest('details').open = true")
    page.fill("[name='completion.address']", f"{panel}/submissions/complete?cc={{code}}&who={{participant}}")
    page.fill("[name='completion.wait']", "0")
    page.fill("[name='completion.codes.finished']", "FINI")
    page.fill("#f-quota", "50")
    page.fill("#f-closes", "2099-01-31T18:00")


@pytest.mark.parametrize("screen", [PHONE, DESKTOP], ids=["phone", "desk"])
def test_a_french_study_and_a_round_trip_from_a_panel(tmp_path, visit, panel, screen):
    path = tmp_path / "cidres.csv"
    path.write_bytes(LABELLED.encode("cp1252"))
    with cheap_passwords(), served(tmp_path / "p.db") as visitors:
        set_password(visitors.service.database, "ann", PASSWORD)
        page = visit(f"{visitors.address}/login?next=/studies/new", locale="fr-FR", **screen)
        page.fill("input[name=name]", "ann")
        page.fill("input[name=password]", PASSWORD)
        page.click("main button.primary")
        page.wait_for_url("**/studies/new")
        create(page, path, panel)
        check(page, "form")
        page.click("form.form >> nth=0 >> button.primary")
        page.wait_for_url("**/studies/quel-cidre")
        study = visitors.service.catalogue.by_slug("quel-cidre")
        assert (study.items.n, study.items.d) == (10, 2)
        assert study.items.coordinates[1].tolist() == [1.5, 1.25]
        assert page.evaluate("document.getElementById('recruitment').open")
        check(page, "study")
        link = page.inner_text("#panel-prolific")
        # What Prolific does with the link.
        for name, value in [("PROLIFIC_PID", "abc123"), ("STUDY_ID", "st1"), ("SESSION_ID", "se1")]:
            link = link.replace(f"{{{{%{name}%}}}}", value)
        assert "{" not in link
        person = visit(f"{link}&source=mail", **screen)
        assert person.inner_text("main button.primary") == "C'est parti !"
        check(person, "start")
        person.click("main button.primary")
        person.wait_for_url("**/questions")
        person.click("button.primary")
        person.wait_for_url("**/run")
        take_part(person)
        person.wait_for_url("**/questions")
        check(person, "questions")
        person.click("button.primary")
        person.wait_for_selector("[role=alert]")
        check(person, "questions-wrong")
        # By keyboard alone.
        person.focus("input[type=radio] >> nth=0")
        person.keyboard.press("Space")
        person.keyboard.press("Enter")
        person.wait_for_url(re.compile(re.escape(panel)))
        assert person.url == f"{panel}/submissions/complete?cc=FINI&who=abc123"
        assert person.inner_text("h1") == "Back at the panel"


def take_part(person) -> None:
    """Answer all pairs, attention pairs correctly."""
    person.wait_for_selector(".stage:not([aria-busy])")
    while person.is_visible("#stage"):
        count = person.inner_text("#count")
        side = "right" if person.inner_text("#right-label") == "Choisir celui-ci" else "left"
        person.wait_for_timeout(300)
        person.click(f"#{side} .card-pick")
        person.wait_for_function(
            "before => run.hidden || document.getElementById('count').textContent !== before",
            arg=count,
        )
        person.wait_for_timeout(50)
    person.click("#done")
