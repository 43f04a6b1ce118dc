"""Items of a study: reading, validation and storage format."""

from __future__ import annotations

import io
import zlib
from collections.abc import Sequence
from pathlib import Path

from pairseek.core.columns import ColumnRules
from pairseek.core.csv import is_table
from pairseek.core.json_pieces import JSONReader, written
from pairseek.core.media import MEDIA, medium_of
from pairseek.core.validation import obstacle_to_storing
from pairseek.core.workbooks import is_workbook
from pairseek.errors import InvalidItems, MissingExtra
from pairseek.model.item_records import items_from
from pairseek.model.items import Items
from pairseek.web.studies.configuration import MAX_DIMENSIONS, MAX_ITEMS, MAX_TEXT_LENGTH
from pairseek.web.studies.names import named_items

# The time to compute a result grows with this number.
MAX_COORDINATES = 1_000_000


def read_items(
    path: Path,
    *,
    scaled: bool = False,
    standardize: bool = False,
    coordinates: Sequence[str] | None = None,
    content: bytes | None = None,
    placed: bool = True,
) -> Items:
    """Read items from a file; media columns become data under the name of their medium, and ids become text.

    No `ScaleWarning` is given, because the commands and the study's page show ``items.scale_note``.

    Parameters
    ----------
    path
        The file, or the name that errors give to ``content``.
    scaled, standardize
        Whether to scale the coordinates by the paper's rule, and whether to standardize them.
    coordinates
        Columns that are coordinates; None for all numeric columns.
    content
        Content of an uploaded CSV file, workbook or Parquet file.
    placed
        Whether items may have coordinates. In a similarity study they have none.
    """
    is_upload = content is not None
    # A similarity study learns its map, so numeric columns are data.
    columns = coordinates if placed or not (is_upload or is_table(path)) else ()
    try:
        rules = ColumnRules(coordinates=columns, media=True, optional=True)
        items = Items._of_file(path, rules, content=content, as_table=is_upload)
    except MissingExtra as error:
        kind = "Excel workbooks" if is_workbook(path) else "Parquet"
        raise InvalidItems(f"this installation cannot read {kind}: send CSV, or install the extra ({error})") from None
    data = {_medium_name(name): values for name, values in items.data.items()}
    ids = [str(name) for name in items.ids]
    if not placed:
        return study_items(
            Items._without_warnings(None, ids, items.labels, None, data, items._columns, least=1), scaled=False
        )
    positions = items.coordinates if items.d else None
    items = Items._without_warnings(positions, ids, items.labels, items.appeal, data, items._columns, least=1)
    return study_items(items, scaled=scaled, standardize=standardize)


def _medium_name(column: str) -> str:
    medium = medium_of(column)
    return column if medium is None else medium.name


def study_items(items: Items, *, scaled: bool, standardize: bool = False) -> Items:
    """Validate the items of a study, then standardize and scale them as requested."""
    if items.n > MAX_ITEMS:
        raise InvalidItems(f"the study has {items.n:,} items, but at most {MAX_ITEMS:,} are allowed: use fewer")
    if items.d > MAX_DIMENSIONS:
        raise InvalidItems(
            f"the items have {items.d:,} dimensions, but at most {MAX_DIMENSIONS} are allowed: reduce them, for "
            f"example to their principal components"
        )
    if items.n * items.d > MAX_COORDINATES:
        raise InvalidItems(
            f"{items.n:,} items in {items.d} dimensions have {items.n * items.d:,} coordinates, but at most "
            f"{MAX_COORDINATES:,} are allowed: use fewer items or dimensions"
        )
    for item in items.ids:
        obstacle = obstacle_to_storing(str(item))
        if obstacle is not None:
            raise InvalidItems(f"the id {str(item)[:50]!r} cannot be used: {obstacle}; change it")
    for name in ("label", *items.data):
        values = items.labels if name == "label" else items.data[name]
        for row, value in enumerate(values):
            _check_value(name, str(value), items.ids[row])
    items = named_items(items)
    if not items.d:
        return items
    items = items.standardized() if standardize else items
    return items.scaled() if scaled else items


def _check_value(name: str, value: str, item: object) -> None:
    if len(value) > MAX_TEXT_LENGTH:
        raise InvalidItems(
            f"column {name!r} of item {item!r} has {len(value):,} characters: shorten it to at most {MAX_TEXT_LENGTH:,}"
        )
    obstacle = obstacle_to_storing(value, None)
    if obstacle is not None:
        raise InvalidItems(f"the {name} of item {item!r} cannot be used: {obstacle}; change it")
    advice = MEDIA[name].advice(value) if value and name in MEDIA else None
    if advice is not None:
        raise InvalidItems(f"the {name} of item {item!r} is {value[:100]!r}: {advice}")


def pack_items(items: Items) -> bytes:
    """Serialize items and their column names for the store."""
    packing = zlib.compressobj(6)
    pieces = [packing.compress(piece.encode()) for piece in written({**items.record(), "columns": items.columns})]
    return b"".join([*pieces, packing.flush()])


def unpack_items(content: bytes) -> Items:
    """Deserialize items from `pack_items`."""
    record = JSONReader(io.BytesIO(zlib.decompress(content))).tree()
    columns = record.pop("columns", None)
    items = items_from(record)
    assert isinstance(items, Items)
    coordinates = items.coordinates if items.d else None
    return named_items(Items._without_warnings(coordinates, items.ids, items.labels, items.appeal, items.data, columns))
