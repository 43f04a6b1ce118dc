import io
import zipfile
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from pairseek.core import workbooks
from pairseek.core.csv import is_table, table_rows
from pairseek.errors import InvalidItems

NAME = Path("items.xlsx")


def saved(fill: Callable[[Any], object]) -> bytes:
    book = openpyxl.Workbook()
    fill(book)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def of_rows(*rows: list[object]) -> bytes:
    return saved(lambda book: [book.active.append(row) for row in rows])


def with_part(content: bytes, name: str, part: bytes | Callable[[bytes], bytes]) -> bytes:
    """Add or replace a part of a workbook."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.namelist():
            if entry != name:
                new.writestr(entry, old.read(entry))
        new.writestr(name, part if isinstance(part, bytes) else part(old.read(name)))
    return out.getvalue()


def test_a_workbook_reads_like_the_csv_file_with_the_same_cells() -> None:
    content = of_rows(
        ["id", "label", "price", "new", "since"],
        ["thé", "Thé à la menthe 🍵", 2, True, date(2026, 5, 1)],
        [],
        ["  café", "=not a formula?"[1:], 2.5, None, None],
    )
    rows = table_rows(NAME, InvalidItems, "rows", content)
    assert rows.lines == [
        (1, ["id", "label", "price", "new", "since"]),
        (2, ["thé", "Thé à la menthe 🍵", "2", "true", "2026-05-01"]),
        (4, ["café", "not a formula?", "2.5", "", ""]),
    ]
    assert not rows.decimal_comma
    assert is_table(NAME)
    assert is_table(Path("old.xls")), "so that its own message appears"


def test_hidden_and_empty_sheets_do_not_count() -> None:
    def fill(book: Any) -> None:
        book.create_sheet("Empty")
        hidden = book.create_sheet("Lists")
        hidden.append(["x"])
        hidden.sheet_state = "hidden"
        sheet = book.create_sheet("Items")
        sheet.append(["id"])
        sheet.append(["tea"])

    assert [row for _, row in table_rows(NAME, InvalidItems, "rows", saved(fill)).lines] == [["id"], ["tea"]]


def _formula(content: bytes) -> bytes:
    return content.replace(b"<v></v>", b"<v>42</v>").replace(b"<v />", b"<v>42</v>").replace(b"<v/>", b"<v>42</v>")


def test_a_formula_counts_by_its_stored_value() -> None:
    content = of_rows(["id", "price"], ["tea", "=6*7"])
    computed = with_part(content, "xl/worksheets/sheet1.xml", _formula)
    assert table_rows(NAME, InvalidItems, "rows", computed).lines[1] == (2, ["tea", "42"])


def _two_sheets(book: Any) -> None:
    book.active.append(["id"])
    book.create_sheet("Notes").append(["see above"])


def _merged(book: Any) -> None:
    for row in (["id", "group"], ["tea", "hot"], ["coffee", None]):
        book.active.append(row)
    book.active.merge_cells("B2:B3")


def _far(book: Any) -> None:
    book.active.append(["id"])
    for row in range(1, 400):
        book.active.cell(row, 16_384, "x")


def _archive(**parts: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


_LAUGHS = b"""<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "%s">%s]><worksheet>&z;</worksheet>""" % (
    b"&a;" * 10,
    b"".join(b'<!ENTITY %c "%s">' % (letter, b"&%c;" % (letter - 1) * 10) for letter in range(ord("c"), ord("z") + 1)),
)
TEA = of_rows(["id"], ["tea"])
REFUSED_KINDS = {
    "formula": (of_rows(["id", "price"], ["tea", "=6*7"]), "the cell B2 is a formula without a stored value"),
    "error": (of_rows(["id", "price"], ["tea", "#REF!"]), "the cell B2 has the error #REF!"),
    "two sheets": (saved(_two_sheets), "has 2 sheets with content, 'Sheet', 'Notes': keep only"),
    "merged": (saved(_merged), "the cells B2:B3 of the sheet 'Sheet' are merged"),
    "empty": (saved(lambda book: None), "is empty: give a header row"),
    "macros": (with_part(TEA, "xl/vbaProject.bin", b"x"), "contains macros"),
    "encrypted": (workbooks.OLE_SIGNATURE + b"x" * 600, "is encrypted, or a workbook of Excel 97"),
    "pdf": (b"%PDF-1.7 ...", "is not an Excel workbook, despite its name"),
    "zip": (_archive(a=b"x"), "is a zip archive, but not an Excel workbook"),
    "cut off": (TEA[: len(TEA) // 2], "is not an Excel workbook"),
    "other parts": (_archive(**{"[Content_Types].xml": b"<x/>"}), "is damaged, or not an Excel workbook"),
    "bomb": (with_part(TEA, "xl/media/a.bin", b"\0" * 70_000_000), "unpacks to 70,"),
    "far cells": (saved(_far), "has more than 5,000,000 cells"),
    "entities": (with_part(TEA, "xl/worksheets/sheet1.xml", _LAUGHS), "is damaged, or not an Excel workbook"),
}


@pytest.mark.parametrize("kind", REFUSED_KINDS)
def test_what_cannot_be_read_is_named(kind: str) -> None:
    content, message = REFUSED_KINDS[kind]
    with pytest.raises(InvalidItems, match=message) as refused:
        table_rows(NAME, InvalidItems, "rows", content)
    assert refused.value.field == "items"


@pytest.mark.parametrize("ending", workbooks.REFUSED_KINDS)
def test_other_spreadsheets_are_refused_by_name(ending: str) -> None:
    with pytest.raises(InvalidItems, match=f"items{ending} is .* save it as an Excel workbook"):
        table_rows(Path(f"items{ending.upper()}").with_suffix(ending), InvalidItems, "rows", b"PK\x03\x04")
