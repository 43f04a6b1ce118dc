"""What the commands about judgements have in common: options for triplets, and how they are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from pairseek._types import ItemId
from pairseek.embed import Triplets
from pairseek.errors import InvalidParameter
from pairseek.items import Items
from pairseek.responses import Logistic, Noise, Probit, Response

Where = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN=VALUE", help="Only triplets with this value in this column; may be repeated."),
]
AsJson = Annotated[bool, typer.Option("--json", metavar="", help="Write JSON, for programs.")]
Scaled = Annotated[
    bool, typer.Option("--scaled", metavar="", help="Centre and scale the items by the paper's rule first.")
]


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
