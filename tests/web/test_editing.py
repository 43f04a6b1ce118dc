"""Changes of a study after its creation: texts with their record, items until somebody answers, copies."""

import io
import json
import re
import zipfile

import numpy as np
import pytest

from helpers.serving import answer, begin, cheap_passwords, configuration, csrf_of, served
from pairseek.errors import InvalidItems, InvalidParameter
from pairseek.model.items import Items
from pairseek.store.counts import totals
from pairseek.web.access import auth
from pairseek.web.errors import Problem
from pairseek.web.results import bundle
from pairseek.web.sessions import simulated
from pairseek.web.studies import duplication, editing
from pairseek.web.studies.creation import create_study
from pairseek.web.studies.items import study_items

PASSWORD = "a long password"
TEAS = Items(None, [f"t{n}" for n in range(6)], [f"Tea {n}" for n in range(6)])


@pytest.fixture(scope="module")
def visitors(tmp_path_factory):
    database = tmp_path_factory.mktemp("editing") / "a.db"
    with cheap_passwords(), served(database) as running:
        auth.set_password(running.service.database, "ann", PASSWORD, is_admin=False)
        yield running


@pytest.fixture
def new(visitors, request):
    """Return a function that creates a study and returns its slug."""

    def create(items=TEAS, **changes):
        slug = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[-50:].strip("-")
        made = configuration(slug=slug, seed=None, **changes)
        return create_study(visitors.service.database, made, items, is_open=True, who="test")

    return create


@pytest.fixture
def ann(visitors):
    browser = visitors.browser()
    page = browser.get("/login")
    browser.post("/login", data={"name": "ann", "password": PASSWORD, "csrf": csrf_of(page)})
    return browser


def study(visitors, slug):
    return visitors.service.catalogue.by_slug(slug)


def post(browser, path, **data):
    files = {"nothing": ("", b"")} | data.pop("files", {})
    page = browser.get("/studies/new")
    return browser.post(path, data={"csrf": csrf_of(page), **data}, files=files)


def exported(visitors, slug):
    out = io.BytesIO()
    bundle.write(visitors.service.database, study(visitors, slug), out)
    return zipfile.ZipFile(out)


def test_a_change_of_the_consent_is_recorded_and_the_bundle_tells_who_read_what(visitors, ann, new):
    slug = new(consent="We keep **everything**.", debrief="Bye")
    first = begin(visitors.browser(), slug)
    assert first["query"] is not None
    reply = post(
        ann, f"/studies/{slug}/edit", title="Teas", consent="We keep *little*.", instructions="", debrief="Bye"
    )
    assert (reply.status_code, reply.headers["location"]) == (303, f"/studies/{slug}")
    assert "<em>little</em>" in visitors.browser().get(f"/s/{slug}").text
    begin(visitors.browser(), slug)
    page = ann.get(f"/studies/{slug}").text
    for text in ("We keep **everything**.", "We keep *little*.", "Which one?", "<strong>ann</strong> edited"):
        assert text in page, text
    archive = exported(visitors, slug)
    versions = json.loads(archive.read("texts.json"))
    assert [(row["by"], row["settings"]["consent"], row["settings"]["title"]) for row in versions] == [
        ("test", "We keep **everything**.", "Which one?"),
        ("ann", "We keep *little*.", "Teas"),
    ]
    began = [json.loads(line)["created_at"] for line in archive.read("sessions.jsonl").splitlines()]
    assert versions[0]["since"] < began[0] < versions[1]["since"] < began[1]


def test_an_invalid_setting_changes_nothing_and_the_form_keeps_what_was_written(visitors, ann, new):
    slug = new()
    reply = post(ann, f"/studies/{slug}/edit", title="", consent="Kept words")
    assert reply.status_code == 422
    assert "Kept words" in reply.text
    assert study(visitors, slug).configuration.consent is None
    with pytest.raises(InvalidParameter) as caught:
        editing.edit_settings(visitors.service.database, study(visitors, slug), {"answers": 9}, who="ann")
    assert caught.value.field == "answers"
    assert (
        editing.edit_settings(visitors.service.database, study(visitors, slug), {"title": "Which one?"}, who="a") == []
    )


def test_whoever_read_earlier_texts_reads_the_new_ones_before_they_begin(visitors, new):
    slug = new(consent="First")
    browser = visitors.browser()
    page = browser.get(f"/s/{slug}", params={"participant": "p7"})
    texts = re.search(r'name="texts" value="(\w+)"', page.text)[1]
    editing.edit_settings(visitors.service.database, study(visitors, slug), {"consent": "Second"}, who="ann")
    again = browser.post(f"/s/{slug}/start", data={"csrf": csrf_of(page), "texts": texts})
    assert again.status_code == 200
    assert "Second" in again.text
    assert "The text has changed" in again.text
    assert visitors.service.database.read(lambda c: totals(c, study(visitors, slug).row.id)) == {}
    texts = re.search(r'name="texts" value="(\w+)"', again.text)[1]
    assert browser.post(f"/s/{slug}/start", data={"csrf": csrf_of(page), "texts": texts}).status_code == 303
    rows = visitors.service.overview.participants(study(visitors, slug))
    assert [row["name"] for row, _ in rows] == ["p7"]


def test_items_change_until_somebody_answers(visitors, ann, new):
    slug = new()
    service = visitors.service
    waiting = visitors.browser()
    state = begin(waiting, slug)
    simulated.simulate_session(service.sessions, service.gate, study(visitors, slug), np.random.default_rng(1))
    outdated = study(visitors, slug)
    reply = post(ann, f"/studies/{slug}/items/edit", **{"label-0": "Earl & Grey", "label-1": "Tea 1", "remove-5": "1"})
    assert reply.status_code == 303, reply.text
    items = study(visitors, slug).items
    assert items.labels == ("Earl & Grey", *(f"Tea {n}" for n in range(1, 5)))
    assert service.database.read(lambda c: totals(c, outdated.row.id)) == {}
    assert answer(waiting, state, slug=slug).status_code in (401, 404, 410)
    # A request that began before the change gets the items that are there now.
    session, _ = service.sessions.open(outdated, {})
    assert service.sessions.by_id(session).catalogue == study(visitors, slug).row.catalogue
    table = b"id,label,x,y\n" + b"".join(f"c{n},Coffee {n},{n},{n * n}\n".encode() for n in range(8))
    reply = post(ann, f"/studies/{slug}/items/edit", replace="1", files={"items": ("c.csv", table)})
    assert reply.status_code == 303, reply.text
    assert (study(visitors, slug).items.n, study(visitors, slug).items.d) == (8, 2)
    person = visitors.browser()
    state = begin(person, slug)
    assert state["query"]["left"]["label"].startswith("Coffee")
    assert answer(person, state, slug=slug).status_code == 200
    reply = post(ann, f"/studies/{slug}/items/edit", **{"label-0": "Late"})
    assert reply.status_code == 409
    assert "Duplicate the study" in reply.text
    assert study(visitors, slug).items.labels[0] == "Coffee 0"
    assert "Edit items" not in ann.get(f"/studies/{slug}/items").text


def test_two_people_who_edit_items_at_once_are_told(visitors, ann, new):
    slug = new()
    before = str(study(visitors, slug).row.additions)
    assert post(ann, f"/studies/{slug}/items/edit", additions=before, **{"label-0": "A"}).status_code == 303
    reply = post(ann, f"/studies/{slug}/items/edit", additions=before, **{"label-1": "B"})
    assert reply.status_code == 409
    assert study(visitors, slug).items.labels[:2] == ("A", "Tea 1")
    outdated = study(visitors, slug)
    editing.change_items(visitors.service.database, outdated, outdated.items, who="a")
    with pytest.raises(Problem):
        editing.change_items(visitors.service.database, outdated, outdated.items, who="b")


def test_a_study_keeps_enough_items_and_a_label_is_not_blank(visitors, ann, new):
    slug = new()
    reply = post(ann, f"/studies/{slug}/items/edit", **{f"remove-{row}": "1" for row in range(3)})
    assert reply.status_code == 422
    assert "at least 4" in reply.text
    with pytest.raises(InvalidItems):
        editing.relabelled(TEAS, {0: "  "}, set())
    assert study(visitors, slug).items.n == 6


def test_names_are_switched_on_and_off(visitors, ann, new):
    items = study_items(Items(None, ["a", "b", "c", "d"], data={"text": ["One", "Two", "Three", "Four"]}), scaled=False)
    slug = new(items)
    assert study(visitors, slug).card("a")["label"] is None
    assert "4 items, 4 texts, no coordinates, shown without names" in ann.get(f"/studies/{slug}").text
    reply = post(ann, f"/studies/{slug}/edit", names="true", back="items")
    assert reply.headers["location"] == f"/studies/{slug}/items"
    assert study(visitors, slug).card("a")["label"] == "One"
    assert "shown with names" in ann.get(f"/studies/{slug}/items").text
    assert study(visitors, slug).configuration.title == "Which one?"


def test_a_copy_has_the_settings_and_items_and_no_people(visitors, ann, new):
    slug = new(consent="Yes?", accent="#ffcc00")
    state = begin(visitors.browser(), slug)
    assert state["query"]
    reply = post(ann, f"/studies/{slug}/duplicate")
    copy = reply.headers["location"].removeprefix("/studies/")
    assert copy == f"{slug[:62].rstrip('-')}-2"
    made, source = study(visitors, copy), study(visitors, slug)
    assert (made.row.is_open, made.configuration.title) == (False, "Which one? (2)")
    assert made.items.record() == source.items.record()
    same = {"title", "slug"}
    assert made.configuration.model_dump(exclude=same) == source.configuration.model_dump(exclude=same)
    assert visitors.service.database.read(lambda c: totals(c, made.row.id)) == {}
    assert duplication.duplicate(visitors.service.database, source, who="a").endswith("-3")
    with pytest.raises(Problem):
        duplication.duplicate(visitors.service.database, source, who="a", slug=copy)


def test_programs_edit_and_duplicate(visitors, new):
    slug = new(consent="Yes?")
    token = auth.make_token(visitors.service.database, "t", ["write"], "test", None)
    client = visitors.browser(headers={"authorization": f"Bearer {token}"})
    reply = client.patch(f"/api/v1/studies/{slug}", json={"consent": None, "accent": "#123456"})
    assert reply.status_code == 200, reply.text
    configured = reply.json()["configuration"]
    assert (configured["consent"], configured["accent"], configured["title"]) == (None, "#123456", "Which one?")
    assert client.patch(f"/api/v1/studies/{slug}", json={"accent": "blue"}).status_code == 422
    reply = client.post(f"/api/v1/studies/{slug}/duplicate", json={"slug": f"{slug[:50]}-b"})
    assert (reply.status_code, reply.json()["open"]) == (201, False)


def test_a_preview_counts_nowhere(visitors, ann, new):
    slug = new()
    page = ann.get(f"/studies/{slug}/items")
    reply = ann.post(f"/studies/{slug}/preview", data={"csrf": csrf_of(page)})
    assert reply.headers["location"] == f"/s/{slug}"
    state = begin(ann, slug)
    while state["query"] is not None:
        state = answer(ann, state, slug=slug).json()
    assert ann.get(f"/s/{slug}/result").status_code == 200
    assert visitors.service.database.read(lambda c: totals(c, study(visitors, slug).row.id)) == {}
    archive = exported(visitors, slug)
    assert archive.read("sessions.jsonl") == b""
    assert len(archive.read("answers.csv").splitlines()) == 1
    assert "0" in ann.get(f"/studies/{slug}/live.json").text
    assert post(ann, f"/studies/{slug}/items/edit", **{"label-0": "Still"}).status_code == 303


def test_the_colour_is_on_the_pages_of_participants(visitors, ann, new):
    slug = new()
    assert "face.css" not in visitors.browser().get(f"/s/{slug}").text
    assert visitors.browser().get(f"/s/{slug}/face.css").status_code == 404
    assert post(ann, f"/studies/{slug}/edit", accent="#ffcc00").status_code == 303
    assert study(visitors, slug).configuration.accent is None
    post(ann, f"/studies/{slug}/edit", **{"accent": "#ffcc00", "accent.own": "true"})
    address = re.search(r'href="(/s/[^"]+/face\.css\?v=ffcc00)"', visitors.browser().get(f"/s/{slug}").text)[1]
    reply = visitors.browser().get(address)
    assert reply.headers["content-type"].startswith("text/css")
    assert "#ffcc00" in reply.text
    assert "light pages use" in ann.get(f"/studies/{slug}/edit").text
