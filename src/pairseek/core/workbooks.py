"""Reader of Excel workbooks: the rows of the only sheet with content, as text. Needs openpyxl, of the extra ``web``.

Workbooks come from strangers. They are zip archives, so what they unpack to is limited before anything is parsed, and
formulas count by the values that the spreadsheet program stored.
"""

from __future__ import annotations

import datetime
import io
import re
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pairseek.core.archives import ARCHIVE_ERRORS
from pairseek.core.frames import MAX_CELLS
from pairseek.core.text import listed
from pairseek.errors import MissingExtra, PairseekError

EXTENSION = ".xlsx"
REFUSED_KINDS = {
    ".xls": "a workbook of Excel 97 to 2003",
    ".xlsm": "a workbook with macros",
    ".xlsb": "a binary workbook",
    ".xltx": "a template of Excel",
    ".xltm": "a template of Excel with macros",
    ".ods": "a spreadsheet of LibreOffice",
    ".numbers": "a spreadsheet of Numbers",
}
"""What other spreadsheets are, by extension; they are not read."""
MAX_UNPACKED_BYTES = 64_000_000
"""Largest unpacked size of all parts of a workbook."""
# First bytes of old workbooks, and of encrypted ones.
OLE_SIGNATURE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_MERGED = re.compile(rb"<(?:\w+:)?mergeCell\s[^>]*ref=\"([A-Z0-9:]{2,20})\"")

NumberedRows = list[tuple[int, list[str]]]


def is_workbook(path: Path) -> bool:
    """Return whether the file has the extension ``.xlsx``."""
    return path.suffix.lower() == EXTENSION


def check_spreadsheet(path: Path, error: type[PairseekError]) -> None:
    """Reject spreadsheets of other kinds by their extension."""
    kind = REFUSED_KINDS.get(path.suffix.lower())
    if kind is not None:
        raise error(f"{path} is {kind}, which cannot be read: save it as an Excel workbook (.xlsx) or as CSV")


def workbook_rows(path: Path, error: type[PairseekError], content: bytes | None = None) -> NumberedRows:
    """Return the row number and the cells of each row with content, in rows of equal length."""
    try:
        import openpyxl  # noqa: F401 - tells whether it is there before the file is read
    except ModuleNotFoundError:
        raise MissingExtra(f"reading {path.name}", "web") from None
    try:
        packed = path.read_bytes() if content is None else content
    except FileNotFoundError:
        raise error(f"there is no file {path}") from None
    except OSError as problem:
        raise error(f"{path} cannot be read: {problem}") from None
    _check_archive(path, packed, error)
    try:
        with warnings.catch_warnings():
            # About validation rules and other extensions, which do not matter here.
            warnings.simplefilter("ignore")
            return _rows(path, packed, error)
    except PairseekError:
        raise
    except Exception as problem:  # noqa: BLE001 - openpyxl raises many types for damaged files
        raise error(
            f"{path} is damaged, or not an Excel workbook ({type(problem).__name__}): save it again as .xlsx, or as CSV"
        ) from None


def _check_archive(path: Path, packed: bytes, error: type[PairseekError]) -> None:
    """Reject content that is not a workbook, and parts that would unpack to too many bytes."""
    if packed.startswith(OLE_SIGNATURE):
        raise error(
            f"{path} is encrypted, or a workbook of Excel 97 to 2003: save it as .xlsx without a password, or as CSV"
        )
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            parts = archive.infolist()
    except ARCHIVE_ERRORS:
        raise error(f"{path} is not an Excel workbook, despite its name: save the table as .xlsx or CSV") from None
    names = {part.filename for part in parts}
    if any(name.lower().endswith("vbaproject.bin") for name in names):
        raise error(f"{path} contains macros: save it as an Excel workbook (.xlsx) without macros, or as CSV")
    if "[Content_Types].xml" not in names:
        raise error(f"{path} is a zip archive, but not an Excel workbook: save the table as .xlsx or CSV")
    # The declared sizes are safe to trust: zipfile stops reading there.
    size = sum(part.file_size for part in parts)
    if size > MAX_UNPACKED_BYTES:
        raise error(
            f"{path} unpacks to {size:,} bytes, but at most {MAX_UNPACKED_BYTES:,} are read: remove pictures and other "
            f"sheets, or save it as CSV"
        )


def _rows(path: Path, packed: bytes, error: type[PairseekError]) -> NumberedRows:
    book = _opened(packed, values=False)
    visible = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
    filled = [sheet for sheet in visible if next(_filled(path, sheet, error), None) is not None]
    if not filled:
        raise error(f"{path} is empty: give a header row, then one row per item")
    if len(filled) > 1:
        names = listed(repr(sheet.title) for sheet in filled)
        raise error(f"{path} has {len(filled)} sheets with content, {names}: keep only the sheet with the table")
    sheet = filled[0]
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        merged = _MERGED.search(archive.read(sheet._worksheet_path))
    if merged is not None:
        raise error(
            f"{path}: the cells {merged[1].decode()} of the sheet {sheet.title!r} are merged: unmerge them, and fill "
            f"in every cell"
        )
    lines = list(_filled(path, sheet, error))
    if any(cell.data_type == "f" for _, row in lines for cell in row):
        values = dict(_filled(path, _opened(packed, values=True)[sheet.title], error))
        lines = [(line, [_calculated(path, cell, values.get(line, []), error) for cell in row]) for line, row in lines]
    width = max(len(row) for _, row in lines)
    texts = [(line, [_text(path, cell, error) for cell in row]) for line, row in lines]
    return [(line, [*row, *[""] * (width - len(row))]) for line, row in texts]


def _opened(packed: bytes, *, values: bool) -> Any:
    import openpyxl

    return openpyxl.load_workbook(io.BytesIO(packed), read_only=True, data_only=values, keep_links=False)


def _filled(path: Path, sheet: Any, error: type[PairseekError]) -> Iterator[tuple[int, list[Any]]]:
    """Yield the number and the cells of every row with content, up to its last filled cell."""
    # The size that a sheet declares may be wrong.
    sheet.reset_dimensions()
    read = 0
    for line, row in enumerate(sheet.iter_rows(), 1):
        # A row far below, or a cell far to the right, counts for the empty ones before it.
        read += len(row) + 1
        if read > MAX_CELLS:
            raise error(f"{path} has more than {MAX_CELLS:,} cells: delete empty rows and columns, or save it as CSV")
        last = max((place for place, cell in enumerate(row) if _is_filled(cell)), default=-1)
        if last >= 0:
            yield line, list(row[: last + 1])


def _is_filled(cell: Any) -> bool:
    return cell.value is not None and str(cell.value).strip() != ""


def _calculated(path: Path, cell: Any, values: list[Any], error: type[PairseekError]) -> Any:
    """Return a cell, with its stored value if it is a formula."""
    if cell.data_type != "f":
        return cell
    # Empty cells have no column.
    stored = next((value for value in values if value.value is not None and value.column == cell.column), None)
    if stored is None:
        raise error(
            f"{path}: the cell {cell.coordinate} is a formula without a stored value: open the workbook in a "
            f"spreadsheet program and save it, or replace the formula by its value"
        )
    return stored


def _text(path: Path, cell: Any, error: type[PairseekError]) -> str:
    value = cell.value
    if cell.data_type == "e":
        raise error(f"{path}: the cell {cell.coordinate} has the error {value}: correct it")
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        value = value.date()
    return value.isoformat() if isinstance(value, datetime.date | datetime.time) else str(value).strip()
