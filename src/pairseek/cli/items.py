"""Input of items: one reader for all commands."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from pairseek.core.csv import ID_COLUMNS, LABEL_COLUMN, read_table
from pairseek.core.frames import is_parquet
from pairseek.core.types import ItemId
from pairseek.errors import InvalidItems
from pairseek.model.items import Items


def read_items(path: Path, *, scaled: bool = False, quiet: bool = False) -> Items:
    """Read items with coordinates.

    Columns of a CSV file that describe the appearance of items, such as ``image``, are data and not coordinates. The
    service reads the same files in the same way.

    Parameters
    ----------
    path
        A file in one of the formats of `Items.from_file`.
    scaled
        Whether to centre and scale the items.
    quiet
        Whether to suppress the `ScaleWarning` about uneven scales.
    """
    items = Items._of_file(path, media=True)
    items = items if quiet else items._warned()
    return items.scaled() if scaled else items


def with_text_ids(items: Items) -> Items:
    """Return the items with ids as text, because ids in a file of choices are text."""
    if all(isinstance(name, str) for name in items.ids):
        return items
    ids = [str(name) for name in items.ids]
    return Items._unwarned(items.coordinates, ids, items.labels, items.appeal, items.data)


@dataclass(frozen=True)
class ItemNames:
    """Ids and labels of items without coordinates."""

    ids: tuple[ItemId, ...]
    labels: tuple[str, ...]


def read_item_names(path: Path) -> ItemNames:
    """Read ids and labels. A CSV or Parquet file needs no coordinates."""
    if path.suffix.lower() != ".csv" and not is_parquet(path):
        items = read_items(path, quiet=True)
        return ItemNames(items.ids, items.labels)
    header, body = read_table(path)
    names = [name.casefold() for name in header]
    column = next((names.index(name) for name in ID_COLUMNS if name in names), 0)
    ids = tuple(row[column].strip() for _, row in body)
    twice = next((one for one, count in Counter(ids).items() if count > 1), None)
    if twice is not None:
        raise InvalidItems(f"{path} has two items with the id {twice!r}: make the ids unique")
    labels = tuple(row[names.index(LABEL_COLUMN)].strip() for _, row in body) if LABEL_COLUMN in names else ids
    return ItemNames(ids, labels)
