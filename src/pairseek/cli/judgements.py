"""What the commands about judgements have in common: options for triplets, and how they are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from pairseek.core.csv import ID_COLUMNS, LABEL_COLUMN, read_table
from pairseek.core.types import ItemId
from pairseek.embed import Triplets
from pairseek.errors import InvalidItems, InvalidParameter
from pairseek.model.items import Items
from pairseek.model.responses import Logistic, Noise, Probit, Response

Where = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN=VALUE", help="Only triplets with this value in this column; may be repeated."),
]
AsJson = Annotated[bool, typer.Option("--json", metavar="", help="Write JSON, for programs.")]
Scaled = Annotated[
    bool, typer.Option("--scaled", metavar="", help="Centre and scale the items by the paper's rule first.")
]


@dataclass(frozen=True)
class ItemNames:
    """The items that there are, by name: before they have coordinates."""

    ids: tuple[ItemId, ...]
    labels: tuple[str, ...]


def read_item_names(path: Path) -> ItemNames:
    """Ids and labels of a CSV file, with or without coordinates; or of any other file of items."""
    if path.suffix.lower() != ".csv":
        items = Items._of_file(path)
        return ItemNames(items.ids, items.labels)
    header, body = read_table(path)
    names = [name.casefold() for name in header]
    column = next((names.index(name) for name in ID_COLUMNS if name in names), 0)
    ids = tuple(row[column].strip() for _, row in body)
    twice = next((one for one, count in Counter(ids).items() if count > 1), None)
    if twice is not None:
        raise InvalidItems(f"{path} has two items with the id {twice!r}: make ids unique")
    labels = tuple(row[names.index(LABEL_COLUMN)].strip() for _, row in body) if LABEL_COLUMN in names else ids
    return ItemNames(ids, labels)


def conditions(option: str, texts: Sequence[str] | None) -> dict[str, str]:
    """COLUMN=VALUE as a mapping."""
    out = {}
    for text in texts or ():
        column, equals, value = text.partition("=")
        if not equals or not column.strip():
            raise InvalidParameter(f"{option} is {text!r}: give COLUMN=VALUE, such as alg=Test")
        out[column.strip()] = value.strip()
    return out


def read(path: Path, ids: Sequence[ItemId] | None, option: str, where: Sequence[str] | None) -> Triplets:
    """The triplets of a CSV file."""
    return Triplets.from_csv(path, ids=ids, where=conditions(option, where) or None)


def catalogue(path: Path, *, scaled: bool) -> Items:
    """The items of a file."""
    items = Items.from_file(path)
    return items.scaled() if scaled else items


def response_of(name: str, noise: Noise, k: float) -> Response:
    """A response model by name."""
    return (Probit if name == "probit" else Logistic)(k, noise)
