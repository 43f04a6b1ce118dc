"""CSV and Parquet files and study bundles of triplets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from pairseek.core.column_names import Header
from pairseek.core.csv import table_rows
from pairseek.core.types import IntArray, ItemId
from pairseek.errors import InvalidTriplets
from pairseek.people.formats.bundle import ANSWERS_FILE, content_of, items
from pairseek.people.formats.table import Table

# Columns of files with anchor, near and far.
NEAR_FAR_COLUMNS = (("anchor", "near", "far"), ("head", "winner", "loser"))
# Columns of files with the anchor, the two items shown, and the chosen item.
CHOICE_COLUMNS = (
    ("anchor", "left", "right", "winner"),
    ("head", "left", "right", "winner"),
    ("center", "left", "right", "answer"),
)

ROLES = tuple(dict.fromkeys(name for required in (*NEAR_FAR_COLUMNS, *CHOICE_COLUMNS) for name in required))

_BUNDLE_COLUMNS = ("anchor", "winner", "loser", "kind", "simulated", "undone", "void")


def read_rows(
    path: Path,
    *,
    ids: Sequence[ItemId] | None = None,
    where: Mapping[str, str] | None = None,
    columns: Mapping[str, str] | None = None,
) -> tuple[IntArray, tuple[ItemId, ...]]:
    """Read rows and ids, the arguments of `Triplets`, from a CSV or Parquet file."""
    lines = table_rows(path, InvalidTriplets, "lines of anchor, near and far").lines
    header = [name.strip() for name in lines[0][1]]
    names = Header.of(header).with_roles(columns, ROLES, str(path), InvalidTriplets).names
    near_far_columns = next((required for required in NEAR_FAR_COLUMNS if set(required) <= set(names)), None)
    choice_columns = next((required for required in CHOICE_COLUMNS if set(required) <= set(names)), None)
    if near_far_columns is None and choice_columns is None:
        if len(header) != 3:
            raise InvalidTriplets(
                f"{path} has the columns {', '.join(header)}: name them anchor, near and far (or head, winner and "
                f"loser, or head, left, right and winner), or give three columns without a header"
            )
        if where:
            raise InvalidTriplets(
                f"{path} has no header, so its lines cannot be selected by {next(iter(where))!r}: add a header"
            )
        data_lines, column_indices = lines, [0, 1, 2]
    else:
        data_lines, column_indices = lines[1:], [names.index(name) for name in near_far_columns or choice_columns or ()]
    if where:
        data_lines = _selected_lines(path, header, data_lines, where)
    if not data_lines:
        raise InvalidTriplets(f"{path} holds no triplets{' with these values' if where else ''}: give at least one")
    for line, row in data_lines:
        if len(row) != len(header):
            raise InvalidTriplets(
                f"{path}, line {line}: {len(row)} cells, but {len(header)} in the first line; complete or remove it"
            )
    cells = [[row[column_index] for column_index in column_indices] for _, row in data_lines]
    line_numbers = [line for line, _ in data_lines]
    triplets = (
        [tuple(row) for row in cells]
        if near_far_columns or not choice_columns
        else _orient_by_choice(path, cells, line_numbers)
    )
    return rows_from_ids(triplets, ids, lambda row: f"{path}, line {line_numbers[row]}:")


def read_bundle(path: Path) -> tuple[IntArray, tuple[ItemId, ...]]:
    """Read rows and ids, the arguments of `Triplets`, from the bundle of a similarity study.

    Skips, attention checks, undone or voided answers, and simulated people are left out.
    """
    table = Table.read(f"{path}: {ANSWERS_FILE}", content_of(path, ANSWERS_FILE))
    if not table.has(_BUNDLE_COLUMNS):
        missing = next(name for name in _BUNDLE_COLUMNS if not table.has((name,)))
        raise InvalidTriplets(
            f"{path}: {ANSWERS_FILE} has no column {missing!r}: give the bundle of a similarity study from "
            f"pairseek export"
        )
    rows = [
        (anchor, winner, loser)
        for _, (anchor, winner, loser, kind, simulated, undone, void) in table.cells(_BUNDLE_COLUMNS)
        if winner and kind != "attention" and "true" not in (simulated, undone, void)
    ]
    if not rows:
        raise InvalidTriplets(f"{path} has no valid judgements of real people: collect some, and export it again")
    return rows_from_ids(rows, items(path).ids, lambda row: f"{path}, judgement {row + 1}:")


def _selected_lines(
    path: Path, header: Sequence[str], body: list[tuple[int, list[str]]], where: Mapping[str, str]
) -> list[tuple[int, list[str]]]:
    for name, value in where.items():
        if name not in header:
            raise InvalidTriplets(f"{path} has no column {name!r}: its columns are {', '.join(header)}")
        column = header.index(name)
        selected = [(line, row) for line, row in body if len(row) > column and row[column] == value]
        if not selected:
            values = sorted({row[column] for _, row in body if len(row) > column})[:6]
            raise InvalidTriplets(f"{path} has no line with {name} = {value!r}: use one of {', '.join(values)}")
        body = selected
    return body


def _orient_by_choice(path: Path, cells: list[list[str]], line_numbers: list[int]) -> list[tuple[str, ...]]:
    out: list[tuple[str, ...]] = []
    for line, (anchor, left, right, answer) in zip(line_numbers, cells, strict=True):
        if answer not in (left, right):
            raise InvalidTriplets(
                f"{path}, line {line}: the answer {answer!r} is neither {left!r} nor {right!r}; fix or remove the line"
            )
        out.append((anchor, answer, right if answer == left else left))
    return out


def rows_from_ids(
    triplets: Sequence[Sequence[ItemId]], ids: Sequence[ItemId] | None, where: Callable[[int], str]
) -> tuple[IntArray, tuple[ItemId, ...]]:
    """Convert triplets of ids to row indices; ``where(row)`` locates a triplet in error messages."""
    for number, row in enumerate(triplets):
        if any(isinstance(cell, str) and cell.lower() in ("", "nan", "none") for cell in row):
            raise InvalidTriplets(
                f"{where(number)} {', '.join(map(repr, row))} lacks an item; add it, or remove the line"
            )
        if len(set(map(str, row))) < 3:
            duplicate = next(cell for cell in row if list(map(str, row)).count(str(cell)) > 1)
            raise InvalidTriplets(
                f"{where(number)} {', '.join(map(repr, row))} names {duplicate!r} twice; a triplet needs three "
                f"different items; remove it"
            )
    if ids is None:
        used_ids = {cell for row in triplets for cell in row}
        if all(isinstance(cell, int) or cell.isdigit() for cell in used_ids):
            by_number = {int(cell): cell for cell in used_ids}
            if all(str(number) == str(cell) for number, cell in by_number.items()):
                ids = tuple(sorted(by_number))
        ids = tuple(sorted(used_ids, key=str)) if ids is None else ids
    positions = {str(name): index for index, name in enumerate(ids)}
    rows = np.empty((len(triplets), 3), dtype=np.int64)
    for number, row in enumerate(triplets):
        for column, cell in enumerate(row):
            position = positions.get(str(cell))
            if position is None:
                raise InvalidTriplets(
                    f"{where(number)} {cell!r} is not among the {len(ids)} items ({ids[0]!r} to {ids[-1]!r}); fix it, "
                    f"or give the items that the triplets are about"
                )
            rows[number, column] = position
    return rows, tuple(ids)
