"""A French study from a list with semicolons and decimal commas, created in a real browser."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe

from helpers.browsers import DESKTOP, PHONE
from helpers.serving import cheap_passwords, served
from pairseek.web.access.auth import set_password
from pairseek.web.results.tables import rows_of

PASSWORD = "a long password"
GUARD_MS = 300  # the page ignores presses meant for what it showed before
CIDERS = "id;nom;douceur;acidité\r\n" + "".join(f"c{n};Cidre n° {n};{n % 5},5;{n % 3},25\r\n" for n in range(10))
LABELLED = CIDERS.replace("nom", "label") + "oui;Choisir celui-ci;0,5;0,25\r\nnon;Pas celui-ci;1,5;1,25\r\n"


def check(page) -> None:
    """Nothing overflows, and axe-core finds nothing."""
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide == 0
    found = Axe().run(page).response["violations"]
    assert found == [], [(one["id"], one["nodes"][0]["html"]) for one in found]


def create(page, path) -> None:
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
    page.fill("[name='completion.address']", "https://app.prolific.com/submissions/complete?cc={code}")
    page.fill("[name='completion.wait']", "0")
    page.fill("[name='completion.codes.finished']", "FINI")
    page.fill("#f-quota", "50")
    page.fill("#f-closes", "2099-01-31T18:00")


@pytest.mark.parametrize("screen", [PHONE, DESKTOP], ids=["phone", "desk"])
def test_a_french_study_is_created_with_the_form_alone_and_opens_from_a_panels_link(tmp_path, visit, screen):
    path = tmp_path / "cidres.csv"
    path.write_bytes(LABELLED.encode("cp1252"))
    with cheap_passwords(), served(tmp_path / "p.db") as visitors:
        set_password(visitors.service.database, "ann", PASSWORD)
        page = visit(f"{visitors.address}/login?next=/studies/new", locale="fr-FR", **screen)
        page.fill("input[name=name]", "ann")
        page.fill("input[name=password]", PASSWORD)
        page.click("main button.primary")
        page.wait_for_url("**/studies/new")
        create(page, path)
        check(page)
        page.click("form.form >> nth=0 >> button.primary")
        page.wait_for_url("**/studies/quel-cidre")
        study = visitors.service.catalogue.by_slug("quel-cidre")
        assert (study.items.n, study.items.d) == (10, 2)
        assert study.items.coordinates[1].tolist() == [1.5, 1.25]
        assert page.evaluate("document.getElementById('recruitment').open")
        check(page)
        link = page.inner_text("#panel-prolific")
        # What Prolific does with the link.
        for name, value in [("PROLIFIC_PID", "abc123"), ("STUDY_ID", "st1"), ("SESSION_ID", "se1")]:
            link = link.replace(f"{{{{%{name}%}}}}", value)
        assert "{" not in link
        person = visit(f"{link}&source=mail", **screen)
        assert person.inner_text("main button.primary") == "C'est parti !"
        check(person)
        person.click("main button.primary")
        person.wait_for_url("**/questions")
        check(person)
        # The panel, whose site the tests do not reach.
        person.route("https://app.prolific.com/**", lambda route: route.fulfill(body="Merci !"))
        person.get_by_label("Quel âge avez-vous ?").fill("34")
        person.click("main button.primary")
        person.wait_for_url("**/run")
        for number in range(10):
            person.get_by_text(f"{number} sur 10").wait_for()
            person.locator("#stage[data-shown]").wait_for()
            person.wait_for_timeout(GUARD_MS)
            person.locator("#left .card-pick").click()
        person.locator("#done").wait_for()
        person.wait_for_timeout(GUARD_MS)
        person.click("#done")
        person.wait_for_url("**/questions")
        check(person)
        person.get_by_label("À la campagne").check()
        person.click("main button.primary")
        person.wait_for_url("https://app.prolific.com/submissions/complete?cc=FINI")
        (row,) = rows_of(visitors.service.database, study, "participants")
        assert (row["PROLIFIC_PID"], row["STUDY_ID"], row["url_source"]) == ("abc123", "st1", "mail")
        # The address of the study leads back as well: the form of its start page ends at the panel.
        person.goto(link)
        check(person)
        person.click("main button.primary")
        person.wait_for_url("https://app.prolific.com/submissions/complete?cc=FINI")
