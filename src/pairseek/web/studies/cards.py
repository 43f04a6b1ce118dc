"""Item cards: sanitized plain data that pages show."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import nh3
from markdown_it import MarkdownIt

from pairseek.core.media import MEDIA, is_address
from pairseek.model.items import Items
from pairseek.web.pages.contexts.shared import CardSchema, ImageSchema
from pairseek.web.studies.names import name_of

_TAGS = {
    "p", "br", "em", "strong", "del", "ul", "ol", "li", "blockquote", "code", "pre", "h1", "h2", "h3", "h4", "hr", "a",
    "table", "thead", "tbody", "tr", "th", "td", "sub", "sup",
}  # fmt: skip
# HTML is escaped, and images are disabled, because they could load from other hosts.
_markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")


@lru_cache(maxsize=4096)
def safe_html(text: str) -> str:
    """Render Markdown as sanitized HTML without scripts, styles or pictures; links may be http(s) or mailto."""
    return nh3.clean(
        _markdown.render(text),
        tags=_TAGS,
        attributes={"a": {"href"}},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )


def card(
    items: Items, row: int, pictures: dict[str, list[tuple[int, int]]], base: str, *, names: bool | None = None
) -> CardSchema:
    """Return the card of an item.

    Parameters
    ----------
    items, row
        Items, and the row of the item.
    pictures
        Available (width, height) of each picture by name, smallest first.
    base
        Base URL of the stored pictures, sounds and videos.
    names
        Whether to show the label; None if somebody wrote it. A card without anything else always shows it.
    """
    item_id, label = str(items.ids[row]), items.labels[row]
    values = {name: str(items.data[name][row]) for name in MEDIA if name in items.data}
    media: dict[str, str | ImageSchema] = {}
    for name, value in values.items():
        conversion = MEDIA[name].conversion
        if conversion == "picture" and pictures.get(value):
            media[name] = picture(value, pictures[value], base, values.get("alt") or label)
        elif conversion == "recording" and value:
            media[name] = value if is_address(value) else f"{base}/{value}"
        elif conversion in ("text", "markdown") and value:
            media[name] = safe_html(value) if conversion == "markdown" else value
    # The card hides a label that nobody wrote: the id, or a name derived from the card's content.
    is_shown = shows_name(items, row) if names is None else names
    return {"id": item_id, "label": label if is_shown or not media else None, "name": label, "media": media}


def shows_name(items: Items, row: int) -> bool:
    """Return whether somebody wrote the label of an item, so that it is neither its id nor made from its content."""
    content = {name: str(items.data[name][row]) for name in items.data}
    return items.labels[row] not in (str(items.ids[row]), name_of(content))


def picture(name: str, sizes: Sequence[tuple[int, int]], base: str, alt: str) -> ImageSchema:
    """Return a stored picture with its (width, height) in all sizes, smallest first."""
    width, height = sizes[-1]
    return {
        "src": f"{base}/{name}/{width}",
        "srcset": ", ".join(f"{base}/{name}/{pixels} {pixels}w" for pixels, _ in sizes),
        "width": width,
        "height": height,
        "alt": alt,
    }
