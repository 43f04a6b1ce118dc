"""Input of items, their names and triplets, and the response model for the options --response, --noise and --k."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from pairseek.core.columns import ID_COLUMNS, LABEL_COLUMN, ColumnRules, ItemTable, named_columns
from pairseek.core.csv import is_table
from pairseek.core.frames import text_of
from pairseek.core.types import ItemId
from pairseek.embed import Triplets
from pairseek.errors import InvalidItems, InvalidParameter
from pairseek.model.items import Items
from pairseek.model.noise import Noise
from pairseek.model.responses import Logistic, Probit, Response


def read_items(path: Path, *, coordinates: str | None = None, scaled: bool = False, quiet: bool = False) -> Items:
    """Read items with coordinates, and print which columns are coordinates unless the option names them.

    As in the service, columns that describe the appearance of items, such as ``image``, are data and not coordinates.

    Parameters
    ----------
    path
        A file in one of the formats of `Items.from_file`.
    coordinates
        Value of the option ``--coordinates``.
    scaled
        Whether to centre and scale the items.
    quiet
        Whether to suppress the `ScaleWarning` about uneven scales.
    """
    columns = None if coordinates is None else named_columns(coordinates)
    if columns == []:
        raise InvalidItems("--coordinates names no column: the command needs items with coordinates")
    items = Items._of_file(path, ColumnRules(coordinates=columns, media=True))
    if columns is None and items.columns_note is not None:
        typer.echo(f"Columns of {path.name}: {items.columns_note}; choose with --coordinates.", err=True)
    items = items if quiet else items._with_warnings()
    return items.scaled() if scaled else items


def with_text_ids(items: Items) -> Items:
    """Return the items with text ids, because a file of choices has text ids."""
    if all(isinstance(name, str) for name in items.ids):
        return items
    ids = [str(name) for name in items.ids]
    return Items._without_warnings(items.coordinates, ids, items.labels, items.appeal, items.data, items._columns)


@dataclass(frozen=True)
class ItemNames:
    """Ids and labels of items without coordinates."""

    ids: tuple[ItemId, ...]
    labels: tuple[str, ...]


def read_item_names(path: Path) -> ItemNames:
    """Read ids and labels; a CSV or Parquet file needs no coordinates."""
    if not is_table(path):
        items = read_items(path, quiet=True)
        return ItemNames(items.ids, items.labels)
    table = ItemTable.read(path)
    names = {name.casefold(): name for name in table.columns}
    column = next((names[name] for name in ID_COLUMNS if name in names), next(iter(table.columns)))
    table.check_filled(column, "id")
    ids = tuple(map(text_of, table.columns[column]))
    duplicate = next((item for item, count in Counter(ids).items() if count > 1), None)
    if duplicate is not None:
        raise InvalidItems(f"{path} has two items with the id {duplicate!r}: make the ids unique")
    if LABEL_COLUMN not in names:
        return ItemNames(ids, ids)
    table.check_filled(names[LABEL_COLUMN], "label")
    return ItemNames(ids, tuple(map(text_of, table.columns[names[LABEL_COLUMN]])))


def read_triplets(path: Path, ids: Sequence[ItemId] | None, option: str, where: Sequence[str] | None) -> Triplets:
    """Read the triplets of a CSV file that match the conditions of an option."""
    return Triplets.from_csv(path, ids=ids, where=_conditions(option, where) or None)


def response_of(name: str, noise: Noise, k: float) -> Response:
    """Return the response model with this name."""
    return (Probit if name == "probit" else Logistic)(k, noise)


def _conditions(option: str, texts: Sequence[str] | None) -> dict[str, str]:
    """Parse conditions of the form COLUMN=VALUE."""
    conditions = {}
    for text in texts or ():
        column, equals, value = text.partition("=")
        if not equals or not column.strip():
            raise InvalidParameter(f"{option} is {text!r}: give COLUMN=VALUE, such as alg=Test")
        conditions[column.strip()] = value.strip()
    return conditions
