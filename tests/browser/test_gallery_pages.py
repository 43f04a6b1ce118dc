"""Items as people see them, edits and copies of a study in a real browser, on a phone and on a desk."""

from __future__ import annotations

import io

import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image

from helpers.browsers import DESKTOP, PHONE
from helpers.serving import configuration, served
from pairseek.model.items import Items
from pairseek.web.access import auth
from pairseek.web.studies.creation import create_study

DEVICES = pytest.mark.parametrize("device", [PHONE, DESKTOP], ids=["phone", "desktop"])
PASSWORD = "a long password"


@pytest.fixture(scope="module")
def visitors(tmp_path_factory):
    with served(tmp_path_factory.mktemp("gallery") / "a.db") as running:
        auth.set_password(running.service.database, "ann", PASSWORD)
        yield running


@pytest.fixture
def signed_in(visit, visitors):
    """Return a function that opens the studies of a researcher on a device."""

    def open_studies(**device):
        page = visit(f"{visitors.address}/login", **device)
        page.get_by_label("Name").fill("ann")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/studies")
        return page

    return open_studies


def picture(number: int, size=(300, 200), kind="PNG") -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, (12 * number, 250 - 12 * number, 90)).save(out, kind)
    return out.getvalue()


def files(count: int) -> list[dict]:
    return [{"name": f"fruit-{n}.png", "mimeType": "image/png", "buffer": picture(n)} for n in range(count)]


def check(page) -> None:
    """Check that everyone can use the page, and that it is not wider than the screen."""
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@DEVICES
def test_from_twenty_pictures_to_a_running_study_with_gallery_and_preview(signed_in, visitors, device) -> None:
    name = "phone" if device is PHONE else "desk"
    page = signed_in(**device)
    # Four steps to a study that is open, and shows its items.
    page.get_by_role("link", name="New study").click()
    page.get_by_label("Title").fill(f"Fruit {name}")
    page.locator("#f-images").set_input_files(files(20))
    page.get_by_role("button", name="Create the study", exact=True).click()
    page.wait_for_url(f"**/studies/fruit-{name}")
    assert visitors.service.catalogue.row(f"fruit-{name}").is_open
    page.get_by_text("20 items, 20 pictures, no coordinates, shown without names").wait_for()
    page.locator("#gallery img").nth(5).wait_for()
    check(page)
    # A fifth to all items, a sixth to their names.
    page.get_by_role("link", name="All items").click()
    page.wait_for_url("**/items")
    page.get_by_role("button", name="Show names").click()
    page.get_by_text("shown with names").wait_for()
    page.locator("#gallery img").first.wait_for()
    assert page.locator(".tile-name").first.inner_text() == "Fruit 0"
    check(page)
    # A seventh to the preview.
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Begin").click()
    page.locator("#stage[data-shown]").wait_for()
    assert page.locator("#left-label").inner_text().startswith("Fruit")
    page.get_by_text("Nothing is kept").wait_for()
    page.goto(f"{visitors.address}/studies/fruit-{name}/items?edit=1")
    page.get_by_label("Name of Fruit 0").fill("<b>Äpfel</b> & Co")
    page.get_by_label("Remove Fruit 1", exact=True).check()
    check(page)
    page.get_by_role("button", name="Save").click()
    page.get_by_text("19 items, 19 pictures").wait_for()
    assert page.locator(".tile-name").first.inner_text() == "<b>Äpfel</b> & Co"


@DEVICES
def test_texts_colour_and_logo_are_edited_and_a_refused_logo_stays_chosen(signed_in, visit, visitors, device) -> None:
    slug = f"edit-{'phone' if device is PHONE else 'desk'}"
    things = Items(None, [f"i{n}" for n in range(5)])
    create_study(visitors.service.database, configuration(slug=slug), things, is_open=True, who="test")
    page = signed_in(**device)
    page.goto(f"{visitors.address}/studies/{slug}")
    page.get_by_role("link", name="Edit", exact=True).click()
    page.get_by_label("Consent").fill("We keep **little**.")
    page.get_by_label("Colour", exact=True).fill("#ff9900")
    assert page.get_by_label("Use a colour of our own").is_checked()
    page.locator("#f-logo").set_input_files({"name": "a.png", "mimeType": "image/png", "buffer": b"no picture"})
    page.get_by_role("button", name="Save").click()
    page.get_by_role("alert").filter(has_text="logo").wait_for()
    assert page.evaluate("document.getElementById('f-logo').files[0].name") == "a.png"
    assert page.get_by_label("Consent").input_value() == "We keep **little**."
    check(page)
    logo = {"name": "logo.png", "mimeType": "image/png", "buffer": picture(3, (400, 100))}
    page.locator("#f-logo").set_input_files(logo)
    page.get_by_role("button", name="Save").click()
    page.wait_for_url(f"**/studies/{slug}")
    page.get_by_text("Before and after").click()
    page.locator(".changes ins", has_text="We keep **little**.").wait_for()
    check(page)
    guest = visit(f"{visitors.address}/s/{slug}", **device)
    assert guest.evaluate("document.querySelector('.logo').naturalWidth") > 0
    for scheme in ("light", "dark"):
        guest.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        check(guest)
    accent = guest.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--accent')")
    assert accent.strip() == "#ff9900"
    page.get_by_role("button", name="Duplicate").click()
    page.wait_for_url(f"**/studies/{slug}-2")
    assert page.get_by_role("heading", level=1).inner_text().startswith("Which one? (2)")


def test_refused_items_stay_chosen_and_the_error_says_what_to_do(signed_in, visitors) -> None:
    things = Items(None, [f"i{n}" for n in range(5)])
    create_study(visitors.service.database, configuration(slug="refused"), things, is_open=True, who="test")
    page = signed_in(**DESKTOP)
    page.goto(f"{visitors.address}/studies/refused/items")
    page.get_by_text("Add items").click()
    twice = {"name": "twice.csv", "mimeType": "text/csv", "buffer": b"id,label,id\na,A,a\nb,B,b\n"}
    page.locator("#more-file").set_input_files(twice)
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("alert").filter(has_text="2 columns named 'id'").wait_for()
    assert page.evaluate("document.getElementById('more-file').files[0].name") == "twice.csv"
    page.locator("#gallery .tile").nth(4).wait_for()
    rows = "id,label\nu,👩‍🚀 Astronautin\nv,שלום עולם\nw,<i>schräg</i>\nx," + "long words " * 36 + "\n"
    page.locator("#more-file").set_input_files({**twice, "name": "more.csv", "buffer": rows.encode()})
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_text("9 items, no coordinates").wait_for()
    names = page.locator(".tile-name").all_inner_texts()
    assert names[5:8] == ["👩‍🚀 Astronautin", "שלום עולם", "<i>schräg</i>"]
    check(page)


def test_a_large_catalogue_is_paged_and_its_pictures_load_when_they_come_near(signed_in, visitors) -> None:
    made = configuration(slug="large")
    rows = range(150)
    items = Items(None, [f"i{n}" for n in rows], data={"image": [f"{n}.png" for n in rows]})
    sent = {f"{n}.png": lambda n=n: picture(n % 20, (40 + n, 40)) for n in rows}
    create_study(visitors.service.database, made, items, is_open=True, who="test", files=sent)
    page = signed_in(**PHONE)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/media/" in request.url else None)
    page.goto(f"{visitors.address}/studies/large/items")
    page.locator("#gallery img").first.wait_for()
    page.wait_for_timeout(500)
    assert 0 < len(asked) < 40
    assert page.locator(".tile").count() == 60
    page.get_by_role("link", name="Next").click()
    page.get_by_text("61 to 120 of 150").wait_for()


@pytest.mark.parametrize("kind", ["preference", "similarity"])
@DEVICES
def test_undo_lies_below_labels_of_four_hundred_characters(visit, visitors, device, kind) -> None:
    slug = f"long-{kind}-{'phone' if device is PHONE else 'desk'}"
    labels = [("A label that needs all the room it gets, and more. " * 9)[:400] + str(n) for n in range(5)]
    made = configuration(slug=slug, kind=kind)
    things = Items(None, [f"i{n}" for n in range(5)], labels)
    create_study(visitors.service.database, made, things, is_open=True, who="test")
    page = visit(f"{visitors.address}/s/{slug}", **device)
    page.get_by_role("button", name="Begin").click()
    page.locator("#stage[data-shown]").wait_for()
    undo = page.locator("#undo").bounding_box()
    for side in ("left", "right"):
        shown = page.locator(f"#{side}").bounding_box()
        assert shown["y"] + shown["height"] <= undo["y"]
        label = page.locator(f"#{side}-label").bounding_box()
        assert label["y"] + label["height"] <= shown["y"] + shown["height"]


def test_attention_pairs_are_picked_from_pictures_alone_and_a_refused_form_keeps_picker_and_plan(signed_in) -> None:
    page = signed_in(**PHONE)
    page.get_by_role("link", name="New study").click()
    page.locator("#f-images").set_input_files(files(20))
    page.get_by_text("With 20 things, 30 people and 20 answers each").wait_for()
    page.get_by_label("Expected participants").fill("200")
    page.get_by_text("With 20 things, 200 people and 20 answers each").wait_for()
    page.get_by_text("Which pairs to ask").click()
    page.get_by_label("Correct answer", exact=True).select_option("fruit-3")
    page.get_by_label("Wrong answer", exact=True).select_option("fruit-9")
    page.get_by_role("button", name="Add this pair").click()
    assert page.locator("#f-attention").input_value() == "fruit-3; fruit-9; fruit-3"
    page.get_by_label("Show these items in attention pairs only").check()
    # The title is missing.
    page.locator("form.form").first.evaluate("form => { form.noValidate = true; }")
    page.get_by_role("button", name="Create the study", exact=True).click()
    page.locator(".problem[role=alert]").wait_for()
    page.get_by_text("With 20 things, 200 people and 20 answers each").wait_for()
    assert page.get_by_label("Correct answer", exact=True).locator("option").count() == 20
    check(page)
    page.get_by_label("Title").fill("Fruit to attend to")
    page.get_by_role("button", name="Create the study", exact=True).click()
    page.wait_for_url("**/studies/fruit-to-attend-to")
    page.get_by_text("18 items, 18 pictures").wait_for()
