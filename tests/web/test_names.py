"""Items that have a text or a picture and no label: pages and exports show what people see, and not an internal id."""

from __future__ import annotations

import csv
import io
import time
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from helpers.serving import answer, answer_to, begin, configuration, csrf_of, served
from pairseek import cli
from pairseek.core.messages import words
from pairseek.model.items import Items
from pairseek.web.access.auth import set_password
from pairseek.web.learning import populations
from pairseek.web.pages import render
from pairseek.web.sessions.service import Sessions
from pairseek.web.studies.cards import card
from pairseek.web.studies.catalogue import Catalogue
from pairseek.web.studies.creation import create_study
from pairseek.web.studies.items import pack_items, read_items, unpack_items
from pairseek.web.studies.names import MAX_NAME_LENGTH, name_of, named_items
from pairseek.web.views.researcher import columns_of, columns_part

IDS = [f"zq-{number:02}" for number in range(8)]
NAMES = ["Almond", "Basil", "Cocoa", "Dill", "Endive", "Fennel", "Ginger", "Hops"]
PASSWORD = "a long password"


def picture(number):
    file = io.BytesIO()
    Image.new("RGB", (40, 30), (30 * number, 90, 120)).save(file, "PNG")
    return file.getvalue()


def kinds():
    pictures = [f"{name.lower()}.png" for name in NAMES]
    texts = [f"{name} and a few words more." for name in NAMES]
    spread = np.random.default_rng(1).normal(size=(8, 2))
    yield pytest.param({"text": texts}, None, {}, id="texts")
    yield pytest.param({"text": texts}, spread, {}, id="texts with coordinates")
    yield pytest.param({"markdown": [f"**{text}**" for text in texts]}, None, {}, id="markdown")
    yield pytest.param({"image": pictures}, None, {}, id="pictures")
    yield pytest.param({"image": pictures}, spread, {}, id="pictures with coordinates")
    yield pytest.param({"text": texts}, None, {"kind": "similarity"}, id="similarity of texts")


class Visible(HTMLParser):
    """What a person reads on a page or hears of it."""

    def __init__(self):
        super().__init__()
        self.words, self._hidden = [], 0

    def handle_starttag(self, tag, attributes):
        self._hidden += tag in ("script", "style")
        self.words += [value for name, value in attributes if name in ("alt", "title", "aria-label") and value]

    def handle_endtag(self, tag):
        self._hidden -= tag in ("script", "style")

    def handle_data(self, data):
        if not self._hidden:
            self.words.append(data)


def visible(page):
    assert page.status_code == 200, page.text[:500]
    reader = Visible()
    reader.feed(page.text)
    return " ".join(reader.words)


def current(browser, address):
    """A page once the thread has computed what it shows."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        page = browser.get(address)
        if page.status_code == 200 and "Almond" in page.text:
            return page
        time.sleep(0.5)
    raise AssertionError(f"{address} shows no items")


def people(database, count=10):
    """Sessions of people who have answered all questions; the key of the last one."""
    sessions, study = Sessions(database, Catalogue(database)), Catalogue(database).by_slug("which")
    for number in range(count):
        key, _ = sessions.open(study, {})
        state = sessions.state(sessions.by_id(key))
        for turn in range(8):
            sent = answer_to(state["query"]["query"], ("left", "right")[(turn + number) % 3 == 0], 700)
            state = sessions.answer(sessions.by_id(key), sent)
        if sessions.by_id(key).finished_at is None:
            sessions.finish(sessions.by_id(key))
    populations.learn_if_due(database, study)
    return key


def researcher(visitors):
    set_password(visitors.service.database, "ann", PASSWORD)
    browser = visitors.browser(headers={"accept": "text/html"}, follow_redirects=True)
    page = browser.get("/login")
    browser.post("/login", data={"csrf": csrf_of(page), "name": "ann", "password": PASSWORD})
    return browser


def participant(visitors):
    """What a participant sees of the pages, and the cards of the questions."""
    person = visitors.browser()
    state = begin(person)
    seen, cards = {"run": visible(person.get("/s/which/run"))}, []
    while state["query"] is not None:
        cards += [state["query"][side] for side in ("left", "right")]
        state = answer(person, state).json()
    person.post("/s/which/finish", headers={"X-Pairseek": "1"})
    return seen | {"result": visible(person.get("/s/which/result", follow_redirects=True))}, cards


@pytest.mark.parametrize(("data", "coordinates", "settings"), list(kinds()))
def test_no_page_and_no_ranking_names_an_item_by_its_id(tmp_path, capsys, data, coordinates, settings):
    files = {f"{name.lower()}.png": lambda n=number: picture(n) for number, name in enumerate(NAMES)}
    items = Items._without_warnings(coordinates, IDS, None, None, data)
    with served(tmp_path / "n.db") as visitors:
        database, made = visitors.service.database, configuration(answers=8, seed=5, **settings)
        create_study(database, made, items, is_open=True, who="test", files=files if "image" in data else {})
        key = people(database)
        browser = researcher(visitors)
        seen, cards = participant(visitors)
        for address in ("/studies/which", f"/studies/which/people/{key}"):
            seen[address] = visible(browser.get(address))
        assert any(name in seen[f"/studies/which/people/{key}"] for name in NAMES)
        for address in () if settings else ("/studies/which/findings", "/studies/which/report.html"):
            seen[address] = visible(current(browser, address))
            assert "Almond" in seen[address]
        found = {address: [one for one in IDS if one in text] for address, text in seen.items()}
        assert found == {address: [] for address in seen}
        assert all(one["label"] is None and one["name"].split()[0] in NAMES for one in cards)
        if settings:
            return
        table = list(
            csv.DictReader(io.StringIO(browser.get("/studies/which/export/ranking.csv").content.decode("utf-8-sig")))
        )
        shown = "image_file" if "image" in data else next(iter(data))
        assert {row["id"] for row in table} == set(IDS)
        for row in table:
            place = IDS.index(row["id"])
            assert row["label"].split()[0] == NAMES[place]
            assert row[shown] == next(iter(data.values()))[place]
    with pytest.raises(SystemExit):
        cli.main(["rank", "which", "--database", str(tmp_path / "n.db"), "--everyone"])
    said = capsys.readouterr().out
    assert "Almond" in said
    assert not any(one in said for one in IDS)


@pytest.mark.parametrize(
    ("media", "name"),
    [
        ({"text": "  Oats \n and milk "}, "Oats and milk"),
        ({"markdown": "# Oats\n*and* milk"}, "Oats and milk"),
        ({"text": "word " * 40}, "word " * 15 + "word…"),
        ({"image": "red-oak.jpg", "alt": "An oak."}, "An oak."),
        ({"image": "3f2a", "image_file": "trees/red-oak.jpg"}, "Red oak"),
        ({"colour": "#ff0000"}, ""),
        ({}, ""),
    ],
)
def test_the_name_of_an_item_is_what_its_card_says(media, name):
    assert name_of(media) == name
    assert len(name_of(media)) <= MAX_NAME_LENGTH


@pytest.mark.parametrize(
    ("table", "labels", "column"),
    [
        ("id;nom;année\n1;Chêne;3,5\n2;Pin;4\n", ("Chêne", "Pin"), "nom"),
        ("id,name,x\na,Oak,1\nb,Pine,2\n", ("Oak", "Pine"), "name"),
        ("image;Bezeichnung\na.jpg;Eiche\nb.jpg;Kiefer\n", ("Eiche", "Kiefer"), "Bezeichnung"),
        (",nombre\n1,Roble\n2,Pino\n", ("Roble", "Pino"), "nombre"),
        ("id,label,title\na,Oak,x\nb,Pine,y\n", ("Oak", "Pine"), None),
        ("id,nom,titre\na,Oak,x\nb,Pine,y\n", ("a", "b"), None),
        ("id,nombre\na,3\nb,4\n", ("a", "b"), None),
    ],
)
def test_a_column_that_is_headed_like_names_gives_the_labels_and_pages_say_so(table, labels, column):
    items = read_items(Path("trees.csv"), content=table.encode())
    assert items.labels == labels
    assert columns_of(items)["names"] == column
    said = words("fr").say("columns.names", name=column)
    page = render("_columns", {**columns_part(items, None), "csrf": ""}, language="fr")
    assert (said in page) == (column is not None)


def test_the_only_column_of_names_is_the_id():
    items = read_items(Path("trees.csv"), content=b"nom,x\nOak,1\nPine,2\n")
    assert (items.ids, items.labels) == (("Oak", "Pine"), ("Oak", "Pine"))


def test_a_label_and_an_id_that_is_all_there_is_stay():
    data = {"text": ["One", "Two", ""]}
    items = named_items(Items([[0.0], [1.0], [2.0]], ["a", "b", "c"], ["Label", "b", "c"], None, data))
    assert items.labels == ("Label", "Two", "c")
    assert [card(items, row, {}, "")["label"] for row in range(3)] == ["Label", None, "c"]


def test_a_study_that_was_stored_with_ids_for_labels_has_names_now():
    stored = pack_items(Items(ids=["a", "b"], data={"text": ["One", "Two"]}))
    assert unpack_items(stored).labels == ("One", "Two")
