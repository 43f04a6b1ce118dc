"""Item media: the ways in which a study can show an item.

A `Medium` names its column in the items file, which commands treat as data rather than as a coordinate. It also
defines how the service checks the values and puts them on a card. The message ``column.NAME`` describes
the column in the codebook, and the function NAME in ``web/pages/static/cards.js`` displays the medium.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

Conversion: TypeAlias = Literal["text", "markdown", "picture", "recording", "caption"]


def _colour_advice(value: str) -> str | None:
    return None if re.fullmatch(r"#[0-9a-fA-F]{6}", value) else "write it as #rrggbb"


def is_address(value: str) -> bool:
    """Return whether the value of a sound or video is an address; otherwise it names a file."""
    return bool(urlsplit(value).scheme) or value.startswith("/")


def _recording_advice(value: str) -> str | None:
    # The pages' content security policy blocks other addresses.
    is_blocked = urlsplit(value).scheme not in ("", "https") or value.startswith("//")
    return "give an address with https://, or the name of a file that you send" if is_blocked else None


@dataclass(frozen=True)
class Medium:
    """One way a card can show an item.

    Attributes
    ----------
    name
        Column of the items file and of exports, and key of the value on the card.
    conversion
        How the value gets onto the card: unchanged (``"text"``), as sanitized HTML (``"markdown"``), as the addresses
        of an uploaded picture (``"picture"``), as the given address or that of an uploaded file (``"recording"``), or
        as a property of another medium (``"caption"``).
    advice
        Function that returns what to write instead of an invalid value, and None for a valid value.
    aliases
        Alternative names of the column in items files.
    loads
        Whether a page must load a file to show the item.
    plays
        Whether the card has a player, which participants must play before they choose.
    """

    name: str
    conversion: Conversion = "text"
    advice: Callable[[str], str | None] = lambda _: None
    aliases: tuple[str, ...] = ()
    loads: bool = False
    plays: bool = False


MEDIA: dict[str, Medium] = {
    medium.name: medium
    for medium in (
        Medium("colour", advice=_colour_advice, aliases=("color", "hex")),
        Medium("image", "picture", loads=True),
        Medium("alt", "caption"),
        Medium("video", "recording", advice=_recording_advice, loads=True, plays=True),
        Medium("audio", "recording", advice=_recording_advice, loads=True, plays=True),
        Medium("text"),
        Medium("markdown", "markdown"),
    )
}
"""Media by name, in the order in which a card shows them."""


PICTURE_FILE = "image_file"
"""Data column with the original file name of each picture; the column ``image`` names the stored picture."""
FILE_COLUMNS = {"image": PICTURE_FILE, "video": "video_file", "audio": "audio_file"}
"""Data columns with the original file names, by the medium whose column names the stored files."""


def medium_of(column: str) -> Medium | None:
    """Return the medium that a column of an items file holds, regardless of case; None if it holds none."""
    name = column.lower()
    return next((medium for medium in MEDIA.values() if name in (medium.name, *medium.aliases)), None)


def loaded_media() -> list[str]:
    """Return the names of the media for which a page must load a file."""
    return [medium.name for medium in MEDIA.values() if medium.loads]


def played_media() -> list[str]:
    """Return the names of the media that have a player."""
    return [medium.name for medium in MEDIA.values() if medium.plays]


def inline_media() -> list[str]:
    """Return the names of the media that need no uploaded file: texts, and recordings by their address."""
    return [medium.name for medium in MEDIA.values() if medium.conversion in ("text", "markdown", "recording")]
