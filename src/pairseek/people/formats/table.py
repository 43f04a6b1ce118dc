"""Tables with a header, whose error messages name line and column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pairseek.core.column_names import Header
from pairseek.core.csv import Rows, check_lengths, mixed_decimals, number, table_rows
from pairseek.core.frames import text_rows
from pairseek.errors import InvalidChoices


@dataclass(frozen=True)
class Table:
    """Header and numbered rows of a text or Parquet file."""

    path: str
    header: Header
    body: tuple[tuple[int, tuple[str, ...]], ...]
    decimal_comma: bool = False

    @classmethod
    def read(cls, path: Path | str, content: bytes | None = None) -> Table:
        """Read a text or Parquet file, or `content` in place of a file on disk."""
        expected = "a header row, then one row for each choice or rating"
        return cls._of(table_rows(path, InvalidChoices, expected, content), str(path))

    @classmethod
    def of_columns(cls, columns: Mapping[str, Sequence[Any]], path: str) -> Table:
        """Convert columns of any values to a table of text; `path` names it in error messages."""
        return cls._of(Rows(text_rows(columns)), path)

    @classmethod
    def _of(cls, rows: Rows, path: str) -> Table:
        check_lengths(path, rows, InvalidChoices)
        if len(rows.lines) == 1:
            raise InvalidChoices(f"{path} has a header but no rows: give one row for each choice or rating")
        (_, header), *body = rows.lines
        texts = tuple((line, tuple(map(str.strip, row))) for line, row in body)
        return cls(path, Header.of(header), texts, rows.decimal_comma)

    def with_roles(self, columns: Mapping[str, str] | None, roles: Sequence[str]) -> Table:
        """Return the table with roles assigned to its columns: see `Header.with_roles`."""
        return replace(self, header=self.header.with_roles(columns, roles, self.path, InvalidChoices))

    def has(self, columns: Sequence[str]) -> bool:
        """Return whether the table has all of these columns."""
        return set(columns) <= set(self.header.names)

    def cells(self, columns: Sequence[str]) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Iterate over the rows: line number and the cells of these columns."""
        positions = [self.header.names.index(name) for name in columns]
        for line, row in self.body:
            yield line, tuple(row[position] for position in positions)

    def check_decimals(self, column: str) -> None:
        """Reject a column that mixes decimal commas with decimal points: some of its numbers would be misread."""
        mixed = mixed_decimals(cell for _, (cell,) in self.cells((column,))) if self.decimal_comma else None
        if mixed is not None:
            raise InvalidChoices(
                f"{self.path}, column {column!r} contains the numbers {mixed[0]} and {mixed[1]}: write all with a "
                f"decimal comma, or all with a decimal point"
            )

    def number(self, cell: str) -> float:
        """Convert a cell to a number; raise a `ValueError` if it is not one."""
        return number(cell, decimal_comma=self.decimal_comma)

    def error(self, line: int, column: str, words: str) -> InvalidChoices:
        """Return an error about one cell."""
        written = self.header.renamed.get(column, column)
        return InvalidChoices(f"{self.path}, line {line}, column {written!r}: {words}")
