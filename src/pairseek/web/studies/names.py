"""Names of items as people see them: the label, or a name derived from the card's content."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from pairseek.core.media import FILE_COLUMNS
from pairseek.model.items import Items

MAX_NAME_LENGTH = 80
"""Maximum number of characters of a name taken from the beginning of a text."""
_TEXT_COLUMNS = ("text", "markdown", "alt")
# Names of uploaded files come before addresses and the names of stored files.
_FILE_COLUMNS = (*FILE_COLUMNS.values(), *FILE_COLUMNS)


def readable_name(stem: str) -> str:
    """Return the stem of a file name as a person would write it: `red-oak` becomes Red oak."""
    words = " ".join(stem.replace("_", " ").replace("-", " ").split()) or stem
    return words[0].upper() + words[1:]


def name_of(media: Mapping[str, str]) -> str:
    """Return a name for an unlabelled item: the beginning of its text, or its file name; empty without either."""
    for medium in _TEXT_COLUMNS:
        words = " ".join(media.get(medium, "").replace("*", "").replace("#", "").split())
        if words:
            return words if len(words) <= MAX_NAME_LENGTH else f"{words[: MAX_NAME_LENGTH - 1].rstrip()}…"
    return next((readable_name(PurePosixPath(media[medium]).stem) for medium in _FILE_COLUMNS if media.get(medium)), "")


def named_items(items: Items) -> Items:
    """Return items with a readable name instead of each label that is just the id."""
    media = [name for name in (*_TEXT_COLUMNS, *_FILE_COLUMNS) if name in items.data]
    if not media or not any(label == str(name) for label, name in zip(items.labels, items.ids, strict=True)):
        return items
    labels = [
        label if label != str(name) else name_of({key: str(items.data[key][row]) for key in media}) or label
        for row, (name, label) in enumerate(zip(items.ids, items.labels, strict=True))
    ]
    coordinates = items.coordinates if items.d else None
    return Items._without_warnings(coordinates, items.ids, labels, items.appeal, items.data, items._columns, least=1)
