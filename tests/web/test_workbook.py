"""The Excel workbook and the person x item table of a study."""

import csv
import io

import numpy as np
import openpyxl
import pytest
from test_findings import PASSWORD, take_part, wines

from helpers.serving import configuration, csrf_of, served
from pairseek.core.messages import languages, words
from pairseek.web.access.auth import set_password
from pairseek.web.results import tables, workbook

FORMULA = '=HYPERLINK("http://evil.example", "x")'


@pytest.fixture(scope="module")
def visitors(tmp_path_factory):
    database = tmp_path_factory.mktemp("workbook") / "workbook.db"
    labels = [FORMULA, "+1", "-1", "@x", "Thé à la menthe", "same", "same", "bell\x07"]
    with served(f"sqlite:///{database}", studies=[(configuration(answers=9), _labelled(labels))]) as found:
        yield found


def _labelled(labels):
    items = wines()
    return type(items)._without_warnings(items.coordinates, items.ids, labels, None, None, ("sweetness", "body"))


@pytest.fixture(scope="module")
def sessions(visitors):
    return [take_part(visitors, number, fast=number == 3) for number in range(5)]


def book_of(service, language: str = "en") -> openpyxl.Workbook:
    out = io.BytesIO()
    workbook.write(service.database, service.catalogue.by_slug("which"), out, language=language)
    return openpyxl.load_workbook(out)


def records(sheet) -> list[dict]:
    header, *rows = sheet.iter_rows(values_only=True)
    return [dict(zip(header, row, strict=True)) for row in rows]


def test_before_anyone_has_answered_there_are_people_answers_and_codebook(visitors) -> None:
    book = book_of(visitors.service)
    assert book.sheetnames == ["People", "Answers", "Codebook"]
    study = visitors.service.catalogue.by_slug("which")
    assert list(tables.rows_of(visitors.service.database, study, "people")) == []


def test_the_sheets_hold_texts_weights_and_probabilities(visitors, sessions) -> None:
    service = visitors.service
    book, study = book_of(service), service.catalogue.by_slug("which")
    ranking = records(book["Ranking"])
    assert [row["place"] for row in ranking] == list(range(1, 9))
    assert next(iter(ranking[0])) == "place"
    people = {row["session"]: row for row in records(book["People"])}
    assert set(people) == set(sessions)
    assert people[sessions[3]]["weight"] == 0
    assert all(0 < people[session]["weight"] <= 1 for session in sessions if session != sessions[3])
    tastes, lows, highs = (records(book[f"Person x item{end}"]) for end in ("", ", low", ", high"))
    assert [row["Person"] for row in tastes] == ["p0", "p1", "p2", "p4"]
    rows = list(tables.rows_of(service.database, study, "people"))
    assert len(rows) == 4 * 8
    assert {row["id"] for row in rows} == set(study.items.ids)
    for row in rows:
        label = f"{row['label']} ({row['id']})" if row["label"] == "same" else row["label"].replace("\x07", "")
        at = [one["participant"] for one in rows[::8]].index(row["participant"])
        values = row["probability_low"], row["probability"], row["probability_high"]
        assert values == pytest.approx(tuple(sheet[at][label] for sheet in (lows, tastes, highs)))
        assert 0 <= values[0] <= values[1] <= values[2] <= 1
    seeds = {row.id: row.seed for row in tables.session_rows(service.database, study)}
    assert {session: int(row["seed"]) for session, row in people.items()} == {name: seeds[name] for name in people}
    answers = records(book["Answers"])
    labels = {item: label.replace("\x07", "") for item, label in zip(study.items.ids, study.items.labels, strict=True)}
    assert len(answers) == 45
    assert all(row["left_label"] == labels[row["left"]] for row in answers)
    assert all(row["winner_label"] == labels[row["winner"]] for row in answers)


def test_the_nearest_wine_is_liked_by_people_who_like_what_is_near(visitors, sessions) -> None:
    study = visitors.service.catalogue.by_slug("which")
    distance = np.sum(np.asarray(study.items.coordinates) ** 2, axis=1)
    mean = np.zeros(8)
    for row in tables.rows_of(visitors.service.database, study, "people"):
        mean[study.items.index(row["id"])] += row["probability"] / 4
    assert np.corrcoef(mean, -distance)[0, 1] > 0.7


def test_texts_that_look_like_formulas_are_texts(visitors, sessions) -> None:
    book = book_of(visitors.service)
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row]
    assert not [cell for cell in cells if cell.data_type == "f"]
    assert {FORMULA, "+1", "-1", "@x", "Thé à la menthe"} <= {cell.value for cell in cells}


def test_sheets_have_filters_and_print_across_the_width_of_a_page(visitors, sessions) -> None:
    for sheet in book_of(visitors.service):
        assert sheet.auto_filter.ref == sheet.dimensions
        assert sheet.page_setup.orientation == "landscape"
        assert (sheet.sheet_properties.pageSetUpPr.fitToPage, sheet.page_setup.fitToHeight) == (True, 0)
        assert sheet.print_title_rows == "$1:$1"
    header = {cell.value: cell.alignment.horizontal for cell in book_of(visitors.service)["Ranking"][1]}
    assert (header["label"], header["share"]) == ("left", "right")


def test_every_language_names_the_sheets_within_the_limits_of_excel() -> None:
    for language in languages():
        titles = [str(text) for text in words(language).with_prefix("sheet.").values()]
        assert all(len(title) <= 31 and not set(title) & set("[]:*?/\\") for title in titles), language


def test_downloads_for_excel_begin_with_a_mark_and_programs_get_none(visitors, sessions) -> None:
    set_password(visitors.service.database, "ann", PASSWORD, is_admin=False)
    browser = visitors.browser()
    browser.post("/login", data={"name": "ann", "password": PASSWORD, "csrf": csrf_of(browser.get("/login"))})
    sent = browser.get("/studies/which/export/people.csv").content
    assert sent.startswith("\N{BYTE ORDER MARK}".encode())
    assert len(list(csv.DictReader(io.StringIO(sent.decode("utf-8-sig"))))) == 32
    study = visitors.service.catalogue.by_slug("which")
    rows = tables.rows_of(visitors.service.database, study, "people")
    assert b"".join(tables.as_csv(rows, tables.columns_of(study, "people"))).startswith(b"study,session,")
    reply = browser.get("/studies/which/workbook.xlsx?language=de")
    assert reply.headers["content-type"] == workbook.MEDIA_TYPE
    assert openpyxl.load_workbook(io.BytesIO(reply.content)).sheetnames[0] == "Rangliste"
