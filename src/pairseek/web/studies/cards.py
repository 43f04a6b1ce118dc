"""Cards: items as sanitized plain data for the pages."""

from __future__ import annotations

from functools import lru_cache

import nh3
from markdown_it import MarkdownIt

from pairseek.model.items import Items
from pairseek.web.pages.contexts import CardContext, ImageContext

_TAGS = {
    "p", "br", "em", "strong", "del", "ul", "ol", "li", "blockquote", "code", "pre", "h1", "h2", "h3", "h4", "hr", "a",
    "table", "thead", "tbody", "tr", "th", "td", "sub", "sup",
}  # fmt: skip
# HTML is escaped, and images are disabled because they could be loaded from other hosts.
_markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")


@lru_cache(maxsize=4096)
def safe_html(text: str) -> str:
    """Render Markdown as sanitized HTML without scripts, styles and pictures; links are http(s) or mailto."""
    return nh3.clean(
        _markdown.render(text),
        tags=_TAGS,
        attributes={"a": {"href"}},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )


def card(items: Items, row: int, pictures: dict[str, list[tuple[int, int]]], base: str) -> CardContext:
    """Return the card of an item.

    Parameters
    ----------
    items, row
        Items, and the row of the item.
    pictures
        Available (width, height) of each picture by name, smallest first.
    base
        Base URL of the pictures.
    """

    def value(name: str) -> str | None:
        column = items.data.get(name)
        return str(column[row]) or None if column is not None else None

    identity, label = str(items.ids[row]), items.labels[row]
    text, colour, audio, video = (value(name) for name in ("text", "colour", "audio", "video"))
    markdown, name = value("markdown"), value("image")
    sizes = pictures.get(name or "", [])
    image: ImageContext | None = None
    if sizes:
        width, height = sizes[-1]
        image = {
            "src": f"{base}/{name}/{width}",
            "srcset": ", ".join(f"{base}/{name}/{wide} {wide}w" for wide, _ in sizes),
            "width": width,
            "height": height,
            "alt": value("alt") or label,
        }
    seen = image is not None or markdown is not None or any((text, colour, audio, video))
    return {
        "id": identity,
        # An id that serves as label is hidden where the card shows something else.
        "label": None if label == identity and seen else label,
        "name": label,
        "text": text,
        "colour": colour,
        "audio": audio,
        "video": video,
        "html": None if markdown is None else safe_html(markdown),
        "image": image,
    }
