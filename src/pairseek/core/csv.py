"""Reader of delimited text tables that detects encoding, separator and decimal comma.

Depending on the locale, spreadsheets write commas, semicolons or tabs, in UTF-8, UTF-16 or Windows-1252, with decimal
points or commas.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pairseek.core.frames import MAX_CELLS, is_parquet, parquet_columns, text_rows
from pairseek.core.workbooks import OLE_SIGNATURE, REFUSED_KINDS, check_spreadsheet, is_workbook, workbook_rows
from pairseek.errors import PairseekError

TEXT_ENDINGS = (".csv", ".tsv", ".txt", ".inter", ".item")
"""Extensions of text tables; Excel's "Unicode text" is .txt, and RecBole's tables are .inter and .item."""
# If several fit equally well, the first is chosen: commas are common within cells, tabs and semicolons are not.
_SEPARATORS = ("\t", ";", ",")
# First line that tells Excel the separator.
_SEPARATOR_LINE = re.compile(r"sep=([,;\t])[,;\t]*\r?\n", re.IGNORECASE)
# First bytes of a zip archive, such as an Excel workbook.
_ZIP_SIGNATURE = b"PK\x03\x04"
_CONTROL_CHARACTER = re.compile(r"[\x00-\x08\x0e-\x1f]")
# Largest number of lines of an upload, whose cells may have several.
_MAX_LINES = 1_000_000
# Characters searched at once; other threads wait that long for the interpreter lock.
_SEARCHED_LENGTH = 1_000_000


def is_table(path: Path) -> bool:
    """Return whether the file extension belongs to a text table, Parquet table, or spreadsheet."""
    return path.suffix.lower() in (*TEXT_ENDINGS, *REFUSED_KINDS) or is_parquet(path) or is_workbook(path)


@dataclass(frozen=True)
class Rows:
    """Non-blank rows of a table as text.

    Attributes
    ----------
    lines
        Line number and stripped cells of each row.
    decimal_comma
        Whether numbers may have a decimal comma, because the separator is not a comma.
    """

    lines: list[tuple[int, list[str]]]
    decimal_comma: bool = False


def table_rows(path: Path | str, error: type[PairseekError], wanted: str, content: bytes | None = None) -> Rows:
    """Read the non-blank rows of a text file, or of a Parquet file or workbook as if it were the equivalent CSV file.

    Parameters
    ----------
    path
        The file, or a name for the content in error messages.
    error
        Type of error to raise.
    wanted
        Expected content, for the error about an empty file.
    content
        Content of an uploaded file.
    """
    check_spreadsheet(Path(path), error)
    if is_workbook(Path(path)):
        return Rows(workbook_rows(Path(path), error, content))
    if is_parquet(Path(path)):
        return Rows(text_rows(parquet_columns(Path(path), error, content)))
    if content is not None:
        _check_size(content, str(path), error)
    try:
        text = _decoded(Path(path).read_bytes() if content is None else content, str(path), error)
        rows = _separated(text)
    except FileNotFoundError:
        raise error(f"there is no file {path}") from None
    except (OSError, csv.Error) as problem:
        raise error(f"{path} cannot be read as CSV: {problem}") from None
    if not rows.lines:
        raise error(f"{path} is empty: give {wanted}")
    return rows


def check_lengths(path: Path | str, rows: Rows, error: type[PairseekError]) -> None:
    """Reject rows that are not as long as the first one."""
    width = len(rows.lines[0][1])
    for line, row in rows.lines:
        if len(row) != width:
            raise error(f"{path}, line {line}: expected {width} cells, received {len(row)}; fix the line")


def number(cell: object, *, decimal_comma: bool = False) -> float:
    """Return a cell as a number; raise a `ValueError` or `TypeError` if it is not one.

    Examples
    --------
    >>> number("1,5", decimal_comma=True)
    1.5
    """
    if decimal_comma and isinstance(cell, str) and "." not in cell:
        cell = cell.replace(",", ".", 1)
    return float(cell)  # type: ignore[arg-type]


def mixed_decimals(cells: Iterable[Any]) -> tuple[str, str] | None:
    """Return an example with a decimal comma and one with a decimal point if both occur, which makes them ambiguous."""
    comma = point = None
    for cell in cells:
        if isinstance(cell, str):
            if "," in cell and "." not in cell:
                comma = cell
            elif "." in cell and "," not in cell:
                point = cell
            if comma is not None and point is not None:
                return comma, point
    return None


def _check_size(content: bytes, path: str, error: type[PairseekError]) -> None:
    """Reject an upload that may have too many cells or lines, before any of them is read."""
    cells = max(content.count(separator) for separator in (b"\t", b";", b","))
    lines = max(content.count(end) for end in (b"\n", b"\r"))
    if cells > MAX_CELLS or lines > _MAX_LINES:
        raise error(
            f"{path} has {lines:,} lines and {cells:,} separators: an upload may have {_MAX_LINES:,} lines and "
            f"{MAX_CELLS:,} separators; give a smaller table"
        )


def _decoded(content: bytes, path: str, error: type[PairseekError]) -> str:
    """Decode UTF-8 or UTF-16, with or without a byte order mark; fall back to Windows-1252."""
    if content.startswith(_ZIP_SIGNATURE):
        raise error(f"{path} is a workbook or an archive: give a workbook the name .xlsx, or save its sheet as CSV")
    if content.startswith(OLE_SIGNATURE):
        raise error(f"{path} is an old or encrypted workbook: save its sheet as CSV, or as .xlsx without a password")
    try:
        text = content.decode(_unicode_encoding(content))
    except UnicodeDecodeError as problem:
        line = content.count(b"\n", 0, problem.start) + 1
        if b"\0" in content or _is_damaged(content):
            raise error(f"{path} is damaged in line {line}: save it again as CSV in UTF-8") from None
        text = content.decode("cp1252", errors="replace")
    starts = range(0, len(text), _SEARCHED_LENGTH)
    if (
        any(_CONTROL_CHARACTER.search(text, start, start + _SEARCHED_LENGTH) for start in starts)
        or "\N{REPLACEMENT CHARACTER}" in text
    ):
        raise error(f"{path} is not a text file: save it as CSV in UTF-8")
    return text


def _is_damaged(content: bytes) -> bool:
    """Return whether most non-ASCII characters are valid UTF-8, which is unlikely in Windows-1252 text."""
    text = content.decode("utf-8", errors="replace")
    invalid = text.count("\N{REPLACEMENT CHARACTER}")
    return sum(character > "\x7f" for character in text) > 2 * invalid


def _unicode_encoding(content: bytes) -> str:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    # In UTF-16, every second byte of a separator or an ASCII letter is zero.
    start = content[:1000]
    if 3 * start[1::2].count(0) > len(start[1::2]):
        return "utf-16-le"
    return "utf-16-be" if 3 * start[::2].count(0) > len(start[::2]) else "utf-8-sig"


def _separated(text: str) -> Rows:
    """Split text by the separator that gives rows of equal length, or failing that the most cells in the header."""
    separator_line = _SEPARATOR_LINE.match(text)
    if separator_line:
        return Rows(_split(text, separator_line[1])[1:], separator_line[1] != ",")
    header = _first_line(text)
    separators = [separator for separator in _SEPARATORS if separator in header] or [","]
    splits = [_split(text, separator) for separator in separators]
    best = max(range(len(splits)), key=lambda position: _quality(splits[position])) if len(splits) > 1 else 0
    return Rows(splits[best], separators[best] != ",")


def _first_line(text: str) -> str:
    """Return the first line that is not blank, without splitting the whole text into lines."""
    first = re.search(r"\S", text)
    if first is None:
        return ""
    start = max(text.rfind(end, 0, first.start()) for end in "\r\n") + 1
    line = re.compile(r"[^\r\n]*").match(text, start)
    assert line is not None
    return line[0]


def _split(text: str, separator: str) -> list[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    return [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(map(str.strip, row))]


def _quality(rows: Sequence[tuple[int, list[str]]]) -> tuple[bool, int]:
    """Return the sort key of a split: whether all rows are equally long, then the number of cells."""
    cells = len(rows[0][1])
    return cells > 1 and all(len(row) == cells for _, row in rows), cells
