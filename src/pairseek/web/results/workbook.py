"""Excel workbook of a study: ranking, people, the person x item table, answers and codebook, for people who read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, BinaryIO

from pairseek.core.lazy import cached_property
from pairseek.core.messages import DEFAULT, words
from pairseek.core.types import JSON
from pairseek.core.validation import is_number
from pairseek.errors import InvalidChoices, MissingExtra
from pairseek.store.database import Database
from pairseek.web.results import tables
from pairseek.web.results.findings import GroupFindings, findings_of
from pairseek.web.sessions.history import iterate_histories
from pairseek.web.studies.catalogue import Study

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
# Limits of the format: rows of a sheet without the header, and characters of a cell.
_MAX_ROWS = 1_048_575
_MAX_CHARACTERS = 32_767
# Largest whole number that a spreadsheet keeps exactly; larger ones, such as seeds, are written as text.
_MAX_WHOLE_NUMBER = 999_999_999_999_999
# Smallest and largest width of a column in characters, and number of rows from which it follows.
_COLUMN_WIDTHS = (9, 44)
_SAMPLED_ROWS = 50
# Colours of the probabilities 0, 1/2 and 1.
_PROBABILITY_COLOURS = ("F2C9B8", "FFFFFF", "B7D7E8")
_ITEM_COLUMNS = ("left", "right", "winner")


def write(
    database: Database,
    study: Study,
    out: BinaryIO,
    findings: tables.FindingsSource | None = None,
    language: str = DEFAULT,
) -> None:
    """Write the workbook of a study; ``findings``, if given, returns its findings, which are otherwise computed."""
    try:
        import openpyxl
    except ModuleNotFoundError:
        raise MissingExtra("an export as a workbook", "web") from None
    book, content = openpyxl.Workbook(write_only=True), _Content(database, study, findings, language)
    for name, columns, rows in content.sheets():
        _add_sheet(book, content.say(f"sheet.{name}"), columns, rows, shaded=name == "tastes")
    book.save(out)


class _Content:
    """Columns and rows of the sheets."""

    def __init__(self, database: Database, study: Study, findings: tables.FindingsSource | None, language: str) -> None:
        self._database, self._study, self._words = database, study, words(language)
        self._findings = findings or (lambda study: findings_of(database, study))

    def say(self, key: str) -> str:
        """Return a message in the language of the workbook."""
        return self._words.say(key)

    def sheets(self) -> Iterator[tuple[str, Sequence[str], Iterable[JSON]]]:
        """Yield the name, columns and rows of each sheet; sheets that need a ranking are left out if there is none."""
        group = self._group
        if group is not None:
            yield "ranking", self._ranking_columns, tables.ranking_rows(self._study, lambda _: group)
        yield "people", self._person_columns, self._people()
        if group is not None:
            names = _unique_labels(group)
            for name, bound in (("tastes", "chance"), ("lows", "low"), ("highs", "high")):
                yield name, [self.say("sheet.person"), *names.values()], self._tastes(group, names, bound)
        labels = [f"{name}_label" for name in _ITEM_COLUMNS]
        yield "answers", [*labels, *tables.columns_of(self._study, "answers", self._variables)], self._answers(labels)
        yield "codebook", ("table", "column", "meaning"), self._codebook()

    @cached_property
    def _group(self) -> GroupFindings | None:
        try:
            return self._findings(self._study)
        except InvalidChoices:
            return None

    @cached_property
    def _variables(self) -> list[str]:
        return tables.variables_of(self._database, self._study)

    @property
    def _ranking_columns(self) -> list[str]:
        """Columns of the ranking, with the label before the id."""
        first = ("place", "label", "share", "share_low", "share_high", "tier")
        others = (name for name in tables.columns_of(self._study, "ranking") if name not in (*first, "id"))
        return [*first, *others, "id"]

    @property
    def _person_columns(self) -> list[str]:
        columns = [*tables.columns_of(self._study, "participants", self._variables), "segment", "weight"]
        return [
            *columns,
            *(name for name in tables.columns_of(self._study, "estimates") if name in tables.RELIABILITY_COLUMNS),
        ]

    def _people(self) -> Iterator[JSON]:
        group = self._group
        rows = {} if group is None else {name: place for place, name in enumerate(group.segments.people)}
        for session in iterate_histories(self._database, self._study):
            standing: JSON = {"segment": None, "weight": 0.0}
            if group is not None and session.row.id in rows:
                standing = tables.standing(group, rows[session.row.id])
            estimate = {} if self._study.configuration.is_similarity else tables.estimate_row(self._study, session)
            yield {**estimate, **tables.participant_row(self._study, session), **standing}

    def _tastes(self, group: GroupFindings, names: Mapping[Any, str], bound: str) -> Iterator[JSON]:
        rows = tables.session_rows(self._database, self._study)
        people = {row.id: row.participant_name or row.id for row in rows}
        indices = {item: place for place, item in enumerate(group.tastes.ids)}
        for person in group.tastes.chances():
            if person.person in people:
                values = getattr(person, bound)
                cells = {label: float(values[indices[item]]) for item, label in names.items()}
                yield {**cells, self.say("sheet.person"): people[person.person]}

    def _answers(self, columns: Sequence[str]) -> Iterator[JSON]:
        """Yield answers with the labels of the two items and of the chosen item."""
        items = self._study.all_items
        labels = dict(zip(map(str, items.ids), items.labels, strict=True))
        for session in iterate_histories(self._database, self._study):
            for row in tables.answer_rows(self._study, session):
                shown = (labels.get(row[name] or "") for name in _ITEM_COLUMNS)
                yield {**row, **dict(zip(columns, shown, strict=True))}

    def _codebook(self) -> Iterator[JSON]:
        for table, columns in tables.codebook(self._study, self._words.language, self._variables).items():
            for name, text in columns.items():
                yield {"table": table, "column": name, "meaning": text}


def _unique_labels(group: GroupFindings) -> dict[Any, str]:
    """Return the headers of the items' columns by id, best-ranked first: labels, with the id where labels repeat."""
    items = group.ranking.items[: tables.MAX_PERSONAL_ITEMS]
    labels = [item.label for item in items]
    return {item.id: f"{item.label} ({item.id})" if labels.count(item.label) > 1 else item.label for item in items}


def _add_sheet(book: Any, title: str, columns: Sequence[str], rows: Iterable[JSON], *, shaded: bool) -> None:
    from openpyxl.formatting.rule import ColorScaleRule
    from openpyxl.styles import Alignment, Font
    from openpyxl.utils import get_column_letter
    from openpyxl.worksheet.properties import PageSetupProperties

    sheet, remaining = book.create_sheet(title), iter(rows)
    # The file has the widths before the rows, so they follow from the first rows only.
    sampled = list(islice(remaining, _SAMPLED_ROWS))
    for number, name in enumerate(columns, 1):
        longest = max(len(name), *(len(row[name]) for row in sampled if isinstance(row.get(name), str)), 0)
        sheet.column_dimensions[get_column_letter(number)].width = min(
            max(longest + 2, _COLUMN_WIDTHS[0]), _COLUMN_WIDTHS[1]
        )
    sheet.freeze_panes, sheet.print_title_rows = "B2", "1:1"
    sheet.page_setup.orientation, sheet.page_setup.fitToHeight = "landscape", 0
    sheet.sheet_properties.pageSetUpPr = PageSetupProperties(fitToPage=True)
    header = [_cell(sheet, name) for name in columns]
    for cell in header:
        holds_numbers = any(is_number(_kept(row.get(cell.value))) for row in sampled)
        cell.font = Font(name="Calibri", size=11, bold=True)
        cell.alignment = Alignment("right" if holds_numbers else "left", "top", wrap_text=True)
    sheet.append(header)
    count = 0
    for row in islice(chain(sampled, remaining), _MAX_ROWS):
        sheet.append([_cell(sheet, row.get(name)) for name in columns])
        count += 1
    end = f"{get_column_letter(len(columns))}{count + 1}"
    sheet.auto_filter.ref = f"A1:{end}"
    if shaded and count:
        low, middle, high = (
            ("num", value, colour) for value, colour in zip((0, 0.5, 1), _PROBABILITY_COLOURS, strict=True)
        )
        sheet.conditional_formatting.add(f"B2:{end}", ColorScaleRule(*low, *middle, *high))


def _kept(value: Any) -> Any:
    """Return a value that a spreadsheet keeps exactly: a whole number of more than 15 digits as text."""
    return str(value) if isinstance(value, int) and abs(value) > _MAX_WHOLE_NUMBER else value


def _cell(sheet: Any, value: Any) -> Any:
    """Return a cell; a text stays a text, even if it looks like a formula or an error."""
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    value = _kept(value)
    if isinstance(value, str):
        cell = WriteOnlyCell(sheet, ILLEGAL_CHARACTERS_RE.sub("", value)[:_MAX_CHARACTERS])
        cell.data_type = "s"
        return cell
    cell = WriteOnlyCell(sheet, value)
    if isinstance(value, float):
        cell.number_format = "0.00"
    return cell
