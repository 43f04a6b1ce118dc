"""CSV table with a header, whose error messages name line and column."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pairseek.core.frames import is_parquet, parquet_columns, text_rows
from pairseek.errors import InvalidChoices

_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


@dataclass(frozen=True)
class Table:
    """Header and numbered rows of a CSV file."""

    path: str
    header: tuple[str, ...]
    body: tuple[tuple[int, tuple[str, ...]], ...]

    @classmethod
    def read(cls, path: Path) -> Table:
        """Read a CSV or Parquet file."""
        if is_parquet(path):
            return cls.of_columns(parquet_columns(path, InvalidChoices), str(path))
        try:
            text = path.read_bytes()
        except FileNotFoundError:
            raise InvalidChoices(f"there is no file {path}") from None
        except OSError as error:
            raise InvalidChoices(f"{path} cannot be read: {error.strerror or error}") from None
        return cls.parse(text, str(path))

    @classmethod
    def of_columns(cls, columns: Mapping[str, Sequence[Any]], path: str) -> Table:
        """Return columns of any values as a table of text; `path` names it in error messages."""
        (_, header), *rows = text_rows(columns)
        body = tuple((line, tuple(map(str.strip, row))) for line, row in rows)
        return cls(path, tuple(name.strip().casefold() for name in header), body)

    @classmethod
    def parse(cls, content: bytes, path: str) -> Table:
        """Parse the content of a CSV file; `path` names it in error messages."""
        try:
            reader = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""))
            rows = [(reader.line_num, tuple(map(str.strip, row))) for row in reader if any(map(str.strip, row))]
        except (UnicodeDecodeError, csv.Error) as error:
            raise InvalidChoices(
                f"{path} cannot be read as CSV in UTF-8: {error}; save the file as UTF-8 CSV"
            ) from None
        if not rows:
            raise InvalidChoices(f"{path} is empty: give a header row, then one row for each choice or rating")
        header = tuple(name.casefold() for name in rows[0][1])
        other = next((name for sign, name in _SEPARATORS.items() if len(header) == 1 and sign in header[0]), None)
        if other is not None:
            raise InvalidChoices(f"{path} uses {other} as separators: save it with commas")
        for line, row in rows[1:]:
            if len(row) != len(header):
                raise InvalidChoices(
                    f"{path}, line {line}: expected {len(header)} cells, received {len(row)}; fix the line"
                )
        if len(rows) == 1:
            raise InvalidChoices(f"{path} has a header but no rows: give one row for each choice or rating")
        return cls(path, header, tuple(rows[1:]))

    def has(self, columns: Sequence[str]) -> bool:
        """Return whether the table has all of these columns."""
        return set(columns) <= set(self.header)

    def cells(self, columns: Sequence[str]) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Iterate over the rows: line number and the cells of these columns."""
        places = [self.header.index(name) for name in columns]
        for line, row in self.body:
            yield line, tuple(row[place] for place in places)

    def error(self, line: int, column: str, words: str) -> InvalidChoices:
        """Return an error about one cell."""
        return InvalidChoices(f"{self.path}, line {line}, column {column!r}: {words}")
