"""What the commands about recorded people have in common: options, and how files are read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from pairseek.errors import InvalidParameter
from pairseek.model.items import Items
from pairseek.population import Choices
from pairseek.population.formats import bundle

Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="CSV of person,item,rating or person,winner,loser; PrefLib .soc, .soi, .toc; a bundle .zip.",
    ),
]
Appeal = Annotated[str, typer.Option(metavar="yes|no|auto", help="Learn an appeal for each item.")]
Rescale = Annotated[str, typer.Option(metavar="yes|no|auto", help="Learn a factor for each given coordinate.")]
Curvature = Annotated[str, typer.Option(metavar="yes|no|auto", help="Add a coordinate for curvature.")]


def wish(option: str, text: str) -> bool | Literal["auto"]:
    """Yes, no or auto."""
    if text == "auto":
        return "auto"
    if text not in ("yes", "no"):
        raise InvalidParameter(f"{option} is {text!r}: give yes, no or auto")
    return text == "yes"


def dimension_of(option: str, text: str) -> int | Literal["auto"]:
    """A number of dimensions, or auto."""
    if text == "auto":
        return "auto"
    if not text.isdigit() or int(text) < 1:
        raise InvalidParameter(f"{option} is {text!r}: give a whole number, at least 1, or auto")
    return int(text)


def choices_and_items(data: Path, items: Path | None, *, learned: bool) -> tuple[Choices, Items | None]:
    """What people chose, and items with coordinates unless these are to be learned; a bundle has its own."""
    if items is not None and learned:
        raise InvalidParameter("--items with --learn: coordinates are given or learned; leave one of the two out")
    if items is not None:
        given = _with_text_ids(Items.from_file(items))
        return Choices.read(data, ids=given.ids), given
    if learned:
        return Choices.read(data), None
    if data.suffix.lower() == ".zip":
        return Choices.read(data), bundle.items(data)
    raise InvalidParameter("where are the items? give --items FILE with coordinates, or --learn 4 to learn them")


def _with_text_ids(items: Items) -> Items:
    """Items as a file of choices names them: arrays number their rows, and in a file numbers are text."""
    if all(isinstance(name, str) for name in items.ids):
        return items
    ids = [str(name) for name in items.ids]
    return Items._unwarned(items.coordinates, ids, items.labels, items.appeal, items.data)
