"""Item media: one record for each way in which a study shows an item.

The record names the column of the items file, which is data and not a coordinate in every command. The service reads
the rest of the record: it checks the values and puts them on the card. The codebook describes the column by the message
``column.NAME``. The page shows a medium by the function of its name in ``web/pages/static/cards.js``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

Conversion: TypeAlias = Literal["text", "markdown", "picture", "caption"]


def _any_text(_: str) -> None:
    return None


def _colour(value: str) -> str | None:
    return None if re.fullmatch(r"#[0-9a-fA-F]{6}", value) else "write it as #rrggbb"


def _address(value: str) -> str | None:
    parts = urlsplit(value)
    # The content security policy of the pages blocks other addresses.
    local = not parts.scheme and value.startswith("/") and not value.startswith("//")
    return None if parts.scheme == "https" or local else "give an address with https://"


@dataclass(frozen=True)
class Medium:
    """One way in which a card shows an item.

    Attributes
    ----------
    name
        The column of the items file and of exports, and the key of the value on the card.
    conversion
        How the value gets onto the card: as it is (``"text"``), as sanitized HTML (``"markdown"``), as the address of
        an uploaded file (``"picture"``), or as a property of another medium (``"caption"``).
    advice
        The function that returns what to write instead of an invalid value, and None for a valid one.
    aliases
        Further names of the column in items files.
    loads
        Whether a page must load a file to show it.
    plays
        Whether the card has a player, so that people choose after they have played it.
    """

    name: str
    conversion: Conversion = "text"
    advice: Callable[[str], str | None] = _any_text
    aliases: tuple[str, ...] = ()
    loads: bool = False
    plays: bool = False


MEDIA: dict[str, Medium] = {
    medium.name: medium
    for medium in (
        Medium("colour", advice=_colour, aliases=("color", "hex")),
        Medium("image", "picture", loads=True),
        Medium("alt", "caption"),
        Medium("video", advice=_address, loads=True, plays=True),
        Medium("audio", advice=_address, loads=True, plays=True),
        Medium("text"),
        Medium("markdown", "markdown"),
    )
}
"""The media by name, in the order in which a card shows them."""


PICTURE_FILE = "image_file"
"""Column of data with the name of each picture's file, where the column ``image`` names the stored picture."""


def medium_of(column: str) -> Medium | None:
    """Return the medium that a column of an items file holds, in capitals or not; None if it holds none."""
    name = column.lower()
    return next((medium for medium in MEDIA.values() if name in (medium.name, *medium.aliases)), None)


def loaded_media() -> list[str]:
    """Return the names of the media for which a page must load a file."""
    return [medium.name for medium in MEDIA.values() if medium.loads]


def played_media() -> list[str]:
    """Return the names of the media that have a player."""
    return [medium.name for medium in MEDIA.values() if medium.plays]


def inline_media() -> list[str]:
    """Return the names of the media whose value is a text, so that they can be sent without a file."""
    return [medium.name for medium in MEDIA.values() if medium.conversion in ("text", "markdown")]
