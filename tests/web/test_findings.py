"""Findings of a study: whose answers count, the ranking with and without them, the report, and names in exports."""

from __future__ import annotations

import io
import re
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from PIL import Image

from helpers.serving import answer_to, configuration, csrf_of, served
from pairseek.cli.app import run
from pairseek.core.messages import languages, words
from pairseek.errors import InvalidChoices
from pairseek.model.items import Items
from pairseek.people.ranking import utilities
from pairseek.store import findings as stored_findings
from pairseek.store import sessions as stored
from pairseek.store.database import Database
from pairseek.store.studies import StudyRow
from pairseek.web.access.auth import set_password
from pairseek.web.pages.group_map import draw_group_map
from pairseek.web.pages.map import PICTURE_SIDE, draw_map
from pairseek.web.pages.rendering import render_report
from pairseek.web.results import findings, findings_keeper, tables
from pairseek.web.results.findings import group_answers, ranking_of, study_findings
from pairseek.web.results.findings_process import packed_findings
from pairseek.web.studies.catalogue import Catalogue, Study
from pairseek.web.studies.items import pack_items, read_items, unpack_items
from pairseek.web.studies.media import with_pictures
from pairseek.web.views.findings import axis_names, report_page
from pairseek.web.views.result import _certainty

PASSWORD = "a long password"


def wines() -> Items:
    points = np.random.default_rng(2).normal(size=(8, 2))
    return Items._without_warnings(
        points, [f"w{k}" for k in range(8)], [f"Wine <{k}>" for k in range(8)], None, None, ("sweetness", "body")
    )


def take_part(visitors, person: int, *, fast: bool = False) -> str:
    """Answer as somebody who likes what is near the origin, or who presses left at once."""
    service = visitors.service
    study = service.catalogue.by_slug("which")
    session, _ = service.sessions.open(study, {"participant": f"p{person}"}, kind="person", seed=person)
    row = service.sessions.by_id(session)
    state = service.sessions.state(row)
    while state["query"] is not None:
        left, right = (study.items.index(state["query"][side]["id"]) for side in ("left", "right"))
        near = np.sum(np.asarray(study.items.coordinates)[[left, right]] ** 2, axis=1)
        outcome = "left" if fast or near[0] < near[1] else "right"
        state = service.sessions.answer(row, answer_to(state["query"]["query"], outcome, 100 if fast else 900))
        row = service.sessions.by_id(session)
    return session


@pytest.fixture(scope="module")
def visitors(tmp_path_factory):
    database = tmp_path_factory.mktemp("findings") / "findings.db"
    with served(f"sqlite:///{database}", studies=[(configuration(answers=9), wines())]) as found:
        yield found


@pytest.fixture(scope="module")
def sessions(visitors) -> list[str]:
    return [take_part(visitors, number, fast=number == 3) for number in range(5)]


def test_each_reason_for_no_ranking_has_words_in_both_languages() -> None:
    source = "".join(Path(module.__file__).read_text() for module in (findings, utilities))
    reasons = set(re.findall(r'reason="(\w+)"', source)) | {"ties", "no_pair"}
    assert len(reasons) == 7
    for reason in reasons:
        said = [words(language).say(f"findings.nothing.{reason}", count=2) for language in ("en", "de")]
        assert len(set(said)) == 2


def test_a_german_report_says_in_german_why_there_is_no_ranking(visitors) -> None:
    service = visitors.service
    study = service.catalogue.by_slug("which")
    found = study_findings(service.database, study)
    page = report_page(service.database, study, found, everyone=False, language="de")
    assert "Noch hat niemand geantwortet" in render_report(page, language="de")


def test_nothing_to_rank_is_said_and_exports_have_an_empty_table(visitors) -> None:
    service = visitors.service
    study = service.catalogue.by_slug("which")
    with pytest.raises(InvalidChoices, match="nobody has answered yet"):
        ranking_of(service.database, study)
    assert list(tables.rows_of(service.database, study, "ranking")) == []
    assert b"id,label,place" in b"".join(tables.as_csv(iter([]), tables.columns_of(study, "ranking")))


def test_conspicuous_people_are_left_out_unless_everyone_is_asked_for(visitors, sessions) -> None:
    service = visitors.service
    study = service.catalogue.by_slug("which")
    group = group_answers(service.database, study)
    assert [person.session for person in group.people if person.left_out] == [sessions[3]]
    assert "fast" in next(person for person in group.people if person.left_out).quality["flags"]
    found, everyone = ranking_of(service.database, study), ranking_of(service.database, study, everyone=True)
    assert (found.people, everyone.people) == (4, 5)
    nearest = int(np.argmin(np.sum(np.asarray(study.items.coordinates) ** 2, axis=1)))
    assert found[f"w{nearest}"].place <= 3
    rows = list(tables.rows_of(service.database, study, "ranking"))
    assert [row["id"] for row in rows] == list(found.ids)


def test_the_page_is_computed_outside_of_the_request_and_kept(visitors, sessions) -> None:
    service = visitors.service
    set_password(service.database, "ann", PASSWORD, is_admin=False)
    browser = visitors.browser()
    browser.post("/login", data={"name": "ann", "password": PASSWORD, "csrf": csrf_of(browser.get("/login"))})
    browser.get("/studies/which/findings")
    until = time.monotonic() + 60
    while not browser.get("/studies/which/findings.json").json()["current"]:
        assert time.monotonic() < until
        time.sleep(0.1)
    page = browser.get("/studies/which/findings")
    assert "From 36 answers of 4 people." in page.text
    assert "Wine &lt;" in page.text
    assert "sweetness" in page.text
    known = service.findings.look(service.catalogue.by_slug("which"))
    assert known.is_current
    assert service.findings.look(service.catalogue.by_slug("which")).findings is known.findings
    assert "From 45 answers of 5 people." in browser.get("/studies/which/findings?everyone=1").text
    report = browser.get("/studies/which/report.html?language=de")
    assert "attachment" in report.headers["content-disposition"]
    assert "Rangliste der Gruppe" in report.text
    assert "Kennung der Sitzung: eine Teilnahme einer Person." in report.text
    assert "Id of the session" not in report.text
    assert not re.findall(r"(?:src|href)=\"(?!#|data:)[^\"]*\"", report.text)
    assert browser.get("/studies/which/report.html?language=xx").status_code == 422
    # Findings change with the sessions.
    service.database.write(lambda c: stored.mark(c, sessions[0], None, "void", "a test", "ann"))
    outdated = service.findings.look(service.catalogue.by_slug("which"))
    assert (outdated.findings, outdated.is_current) == (known.findings, False)
    for session in sessions[1:]:
        service.database.write(lambda c, session=session: stored.mark(c, session, None, "void", "a test", "ann"))
    void = study_findings(service.database, service.catalogue.by_slug("which"))
    assert "all sessions are void" in str(void.careful)
    for session in sessions:
        service.database.write(lambda c, session=session: stored.mark(c, session, None, "restore", "a test", "ann"))


def test_downloads_wait_for_the_thread_that_computes_the_ranking(visitors, sessions, monkeypatch) -> None:
    service = visitors.service
    set_password(service.database, "ann", PASSWORD, is_admin=False)
    browser = visitors.browser()
    browser.post("/login", data={"name": "ann", "password": PASSWORD, "csrf": csrf_of(browser.get("/login"))})
    where = []

    def watched(*given):
        where.append(threading.current_thread().name)
        return packed_findings(*given)

    def outdate():
        number = service.catalogue.by_slug("which").row.id
        service.database.write(lambda c: stored_findings.discard(c, sa.select(sa.literal(number))))

    monkeypatch.setattr(findings_keeper, "findings_in_process", watched)
    outdate()
    rows = browser.get("/studies/which/export/ranking.csv").text.splitlines()
    assert len(rows) == 9
    assert browser.get("/studies/which/bundle.zip").status_code == 200
    assert browser.get("/studies/which/report.html").status_code == 200
    assert len(where) == 1, "it is computed once"
    assert where[0].startswith("pairseek-findings")
    # Answers that arrive in the meantime do not make a download wait again after its first byte.
    current = iter([service.findings.wait_for_current(service.catalogue.by_slug("which"))])
    with monkeypatch.context() as patch:
        patch.setattr(service.findings, "wait_for_current", lambda _: next(current))
        assert browser.get("/studies/which/export/ranking.csv").text.splitlines() == rows
    # A ranking that takes too long is not waited for.
    outdate()
    begun = threading.Event()
    monkeypatch.setattr(
        findings_keeper, "findings_in_process", lambda *given: begun.wait(60) and packed_findings(*given)
    )
    monkeypatch.setattr(findings_keeper, "_WAIT_SECONDS", 0.01)
    reply = browser.get("/studies/which/export/ranking.csv")
    begun.set()
    assert reply.status_code == 503
    assert reply.headers["retry-after"] == "10"
    assert "are being computed" in reply.text


def test_the_commands_rank_and_report(visitors, sessions, tmp_path, capsys, monkeypatch) -> None:
    url = str(visitors.service.database.url)
    assert run(["rank", "which", "--database", url, "--out", str(tmp_path / "r.csv")]) == 0
    said = capsys.readouterr().out
    assert "From 36 answers of 4 people." in said
    assert len((tmp_path / "r.csv").read_text(encoding="utf-8").splitlines()) == 9
    assert run(["export", "which", "--database", url, "--out", str(tmp_path / "which.zip")]) == 0
    capsys.readouterr()
    # The ranking of the bundle is that of the study.
    bundled = ["rank", str(tmp_path / "which.zip"), "--out", str(tmp_path / "b.csv")]
    assert run(bundled) == 0
    assert "From 36 answers of 4 people." in capsys.readouterr().out
    assert (tmp_path / "b.csv").read_text(encoding="utf-8") == (tmp_path / "r.csv").read_text(encoding="utf-8")
    assert run([*bundled, "--everyone", "--json"]) == 0
    assert '"people": 5' in capsys.readouterr().out
    assert run(["report", "which", "--database", url, "--out", str(tmp_path / "r.html"), "--language", "de"]) == 0
    assert "Bericht einer Präferenzstudie" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_names_on_the_map_stand_close_to_their_items_and_on_the_ground() -> None:
    def item(name, x, y, **media):
        return {"card": {"name": name, "media": media}, "point": (x, y), "place": 1}

    spots = [item("high", 0.0, 1.0, image={"src": "a.png"}), item("middle", 0.5, 0.5), item("low", 0.5, 0.0)]
    drawing = draw_group_map({"items": spots, "people": [], "axes": ("sweetness", "body"), "segments": 1})
    below = {one.card["name"]: one.label[1] - one.y - one.radius for one in drawing.items}
    assert 0 < below["high"] == below["middle"] < 20
    assert below["low"] < 0, "the name of the axis is below the ground"
    assert max(one.label[1] for one in drawing.items) < drawing.ground[1] + drawing.ground[3]
    assert [one.radius for one in drawing.items] == [22, 7, 7]


def test_exports_have_the_names_of_the_researcher(visitors, sessions) -> None:
    service = visitors.service
    study = service.catalogue.by_slug("which")
    for table in ("items", "estimates", "answers"):
        rows = list(tables.rows_of(service.database, study, table))
        assert list(rows[0]) == tables.columns_of(study, table)
        assert isinstance(rows[0]["sweetness"], float)
        assert isinstance(rows[0]["body"], float)
    assert "truth_body" in tables.columns_of(study, "estimates")
    assert "sweetness" in tables.codebook(study)["answers"]


def test_a_coordinate_does_not_hide_another_column(visitors) -> None:
    study = visitors.service.catalogue.by_slug("which")
    items = Items._without_warnings(study.items.coordinates, study.items.ids, None, None, None, ("radius", "seed"))
    other = replace(study, items=items)
    assert tables.coordinate_names(other) == ["radius_coordinate", "seed_coordinate"]


def test_the_file_names_of_pictures_stay_beside_their_hashes(tmp_path) -> None:
    out = io.BytesIO()
    Image.new("RGB", (20, 20), "red").save(out, "PNG")
    items = read_items(_written(tmp_path, "id,image,sweetness\na,red.png,1\nb,red.png,2\n"))
    made, _ = with_pictures(items, {"red.png": out.getvalue})
    kept = unpack_items(pack_items(made))
    assert kept.data["image_file"] == ("red.png", "red.png")
    assert len(str(kept.data["image"][0])) == 32
    assert kept.columns == ("sweetness",)


def _written(folder, text):
    path = folder / "items.csv"
    path.write_text(text)
    return path


def test_axes_are_named_after_columns() -> None:
    assert axis_names(wines()) == ("sweetness", "body")
    points = np.random.default_rng(0).normal(size=(50, 3)) * [5.0, 2.0, 0.1]
    names = axis_names(Items._without_warnings(points, None, None, None, None, ("salt", "acid", "bitter")))
    assert names[0].startswith("salt")
    assert names[1].startswith("acid")


def test_a_report_stands_alone(visitors, sessions) -> None:
    database: Database = visitors.service.database
    study = Catalogue(database).by_slug("which")
    data = report_page(database, study, study_findings(database, study), everyone=False)
    assert data["findings"]["people"] == 4
    assert {row["table"] for row in data["codebook"]} == set(tables.TABLES)


@pytest.mark.parametrize(("probability", "key"), [(0.95, "sure.high"), (0.5, "sure.some"), (0.1, "sure.low")])
def test_a_result_says_in_one_sentence_how_sure_it_is(probability, key) -> None:
    card = {"id": "a", "label": "Apple", "name": "Apple", "media": {}}
    assert _certainty({"card": card, "probability": probability}) == {"key": key, "values": {"label": "Apple"}}


def test_a_result_shows_pictures_in_place_of_dots() -> None:
    dots = [(0.0, 0.0, None, "Apple"), (1.0, 1.0, None, "Pear")]
    shown = {"items": dots, "point": (0.5, 0.5), "ellipse": [], "pictures": [(0.0, 0.0, "/media/s/a/320")]}
    drawing = draw_map(shown)
    x, y, address = drawing.pictures[0]
    assert address == "/media/s/a/320"
    assert (x + PICTURE_SIDE // 2, y + PICTURE_SIDE // 2) == (72, 72 + drawing.height - 144)
    assert drawing.names == ()


@pytest.mark.parametrize(
    "settings", [{}, {"kind": "similarity"}, {"response": {"name": "logistic", "k": "unknown", "lapse": "unknown"}}]
)
def test_the_codebook_describes_every_column_in_every_language(settings) -> None:
    made = configuration(**settings)
    names = ["a", "b", "c"]
    sounds = Items(None, names, None, None, {"audio": [f"https://x.test/{name}" for name in names]})
    items = sounds if "kind" in settings else wines()
    study = Study(StudyRow(1, "which", {}, True, "", ""), made, items, {}, None)
    for language in languages():
        for table, columns in tables.codebook(study, language).items():
            for column, text in columns.items():
                assert text, (table, column)
                assert language == "en" or text not in words().messages.values(), (table, column)
