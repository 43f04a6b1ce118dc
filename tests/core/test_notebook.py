"""HTML representations in notebooks: content, escaping, and ground of any colour."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import pairseek as ps
from pairseek.experiments import Contender, Results, Setting, Specification
from pairseek.experiments.runs.plan import Outcome, Task

BAD = "\"><script>alert(1)</script><b onmouseover='x'>&"
SAFE_TAGS = set(re.findall("[a-z]+", "div span table thead tbody tr th td svg circle path rect text img b"))


class Elements(HTMLParser):
    """Tags and attributes, as a browser would find them."""

    def __init__(self, text):
        super().__init__()
        self.found, self.text, self.open = [], "", []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag != "img":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def elements(thing):
    return Elements(thing._repr_html_())


def items_of(d, n=12, **more):
    return ps.Items(np.random.default_rng(3).normal(size=(n, d)), **more)


def answered(items, answers=2, **parts):
    search = ps.Search(items, response=ps.Logistic(k=1.0, noise="constant"), rng=1, **parts)
    for _ in range(answers):
        query = search.ask()
        search.tell(query, winner=query.left)
    return search


def results():
    settings = (Setting(data="synthetic", dimension=2, response=ps.Logistic(1.0, "constant"), label=BAD),)
    plan = Specification(
        name="test", settings=settings, strategies=(Contender(ps.InfoGain(), label=BAD),), queries=3, trials=2, seed=1
    )
    counts, metrics = len(plan.counts), len(plan.metrics)
    values = tuple(tuple(1.0 / (1 + row) for _ in range(metrics)) for row in range(counts))
    outcomes = {
        Task(0, 0, unit): Outcome(Task(0, 0, unit), values, tuple(map(float, range(counts))), 3) for unit in range(2)
    }
    return Results.of(plan, outcomes, {})


def things():
    named = {"ids": [f"{BAD}{i}" for i in range(12)], "labels": [f"</svg>{BAD}{i}" for i in range(12)]}
    data = {
        "image": ["javascript:alert(1)", f"https://x/{BAD}"] * 6,
        "colour": ["red;background:url(x)", "#ff0000"] * 6,
    }
    hostile = items_of(2, data=data, **named)
    search = answered(hostile)
    search.ask()
    rows = [(BAD, named["ids"][a], named["ids"][b]) for a in range(4) for b in range(a + 1, 4)] * 3
    recommended = search.recommend(3)
    ranking = ps.rank(ps.Choices.from_pairs([*rows, *((person, *row[1:]) for row in rows for person in "ab")]))
    return {
        "items": hostile,
        "search": search,
        "estimate": search.estimate(),
        "recommendations": recommended,
        "recommendation": recommended[0],
        "ranking": ranking,
        "results": results(),
    }


@pytest.fixture(scope="module")
def shown():
    return {name: elements(thing) for name, thing in things().items()}


NAMES = ("items", "search", "estimate", "recommendations", "recommendation", "ranking", "results")


@pytest.mark.parametrize("name", NAMES)
def test_hostile_labels_stay_text(shown, name):
    page = shown[name]
    assert {tag for tag, _ in page.found} <= SAFE_TAGS
    for tag, attributes in page.found:
        assert not [key for key in attributes if key.startswith("on")], tag
        assert "url(" not in attributes.get("style", "")
        assert not attributes.get("src", "https://").startswith("javascript")
    if name != "estimate":
        assert "<script>alert(1)</script>" in page.text


@pytest.mark.parametrize("name", NAMES)
def test_text_has_the_colour_of_the_page(shown, name):
    # A notebook is light or dark: no part sets a ground, nor the colour of text, other than marks of a legend.
    for tag, attributes in shown[name].found:
        style = attributes.get("style", "")
        assert not re.search(r"(?<![-\w])color:", style) or tag == "b"
        assert "background:#f" not in style or tag == "span"
    assert all("aria-label" in attributes for tag, attributes in shown[name].found if tag == "svg")


@pytest.mark.parametrize("d", [0, 1, 2, 3])
def test_a_map_is_shown_from_two_dimensions_on(d):
    items = items_of(d) if d else ps.Items(ids=list("abcdef"))
    for thing in (items, ps.Search(items, rng=1)):
        drawn = [attributes for tag, attributes in elements(thing).found if tag == "circle"]
        assert bool(drawn) == (d >= 2)
    note = "first two principal axes of 3" in elements(items).text
    assert note == (d == 3)


def test_items_show_colours_and_how_many_there_are():
    page = elements(ps.datasets.colours())
    assert "949 items in 3 dimensions" in page.text
    assert "and 944 more" in page.text
    assert any("background:#acc2d9" in attributes.get("style", "") for tag, attributes in page.found if tag == "span")
    assert sum(tag == "circle" for tag, _ in page.found) == 600


def test_small_pictures_on_disk_are_embedded(tmp_path):
    small, large = tmp_path / "a.png", tmp_path / "b.png"
    small.write_bytes(b"\x89PNG")
    large.write_bytes(bytes(200_000))
    images = [str(small), str(large), str(tmp_path / "missing.png"), "/etc/passwd", "https://x.example/y.jpg"]
    items = items_of(2, 5, data={"image": images})
    sources = [attributes["src"] for tag, attributes in elements(items).found if tag == "img"]
    assert sources == ["data:image/png;base64,iVBORw==", "https://x.example/y.jpg"]


def test_a_search_says_what_it_asks_and_why_it_stopped():
    items = items_of(2, ids=[f"wine {i}" for i in range(12)])
    search = answered(items, 1, stop=2)
    query = search.ask()
    assert f"{query.left} or {query.right}?" in elements(search).text
    search.tell(query, tie=True)
    assert "2 answers were given" in elements(search).text


def test_a_search_of_a_space_shows_its_estimate():
    search = ps.Search(ps.Space((0.0, 0.0), (1.0, 1.0)), rng=1)
    page = elements(search)
    assert "Estimate in 2 dimensions" in page.text
    assert sum(tag == "circle" for tag, _ in page.found) > 100


def test_recommendations_are_a_list():
    recommended = answered(items_of(2)).recommend(3)
    assert recommended == list(recommended)
    assert isinstance(recommended, list)
    assert [item.id for item in recommended[:2]] == [recommended[0].id, recommended[1].id]
