"""Input of recorded choices, and parsers for the options of a population fit."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, cast, get_args

from pairseek.cli.items import read_items, with_text_ids
from pairseek.errors import InvalidParameter
from pairseek.model.items import Items
from pairseek.people.formats import bundle
from pairseek.people.population import Choices
from pairseek.people.population.residual import ResidualSetting


def parse_setting(option: str, text: str) -> bool | Literal["auto"]:
    """Parse yes, no or auto."""
    if text == "auto":
        return "auto"
    if text not in ("yes", "no"):
        raise InvalidParameter(f"{option} is {text!r}: give yes, no or auto")
    return text == "yes"


def parse_dimension(option: str, text: str) -> int | Literal["auto"]:
    """Parse a number of dimensions, or auto."""
    if text == "auto":
        return "auto"
    if not text.isdecimal() or int(text) < 1:
        raise InvalidParameter(f"{option} is {text!r}: give a whole number, at least 1, or auto")
    return int(text)


def read_choices_and_items(
    data: Path, items: Path | None, coordinates: str | None, *, learns_coordinates: bool
) -> tuple[Choices, Items | None]:
    """Read choices, and their items unless coordinates are learned; a bundle contains its items."""
    if items is not None and learns_coordinates:
        raise InvalidParameter(
            "--items with --learn: coordinates are either given or learned; leave out one of the two"
        )
    if items is None and coordinates is not None:
        raise InvalidParameter("--coordinates without --items: it names columns of that file; leave it out")
    if items is not None:
        catalogue = with_text_ids(read_items(items, coordinates=coordinates))
        return Choices.read(data, ids=catalogue.ids), catalogue
    if learns_coordinates:
        return Choices.read(data), None
    if data.suffix.lower() == ".zip":
        return Choices.read(data), bundle.items(data)
    raise InvalidParameter(
        "the items have no coordinates: give --items FILE, or --learn 4 to learn coordinates in 4 dimensions"
    )


def parse_residual(text: str) -> float | ResidualSetting:
    """Parse the residual of a population: ``auto``, ``implied``, or a number of logits."""
    for setting in get_args(ResidualSetting):
        if text == setting:
            return cast(ResidualSetting, setting)
    try:
        return float(text)
    except ValueError:
        raise InvalidParameter(
            f"--residual is {text!r}: give auto, implied, or a number of logits, such as 1.5"
        ) from None
