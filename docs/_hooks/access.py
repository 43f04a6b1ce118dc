"""Corrections of the theme's pages: accessible names, table headers, widths of cells, types of the API reference."""

from __future__ import annotations

import re
from typing import Any

# Characters of a cell that stays on one line, of one that needs width on a phone, and of a name that may be broken.
_SHORT, _LONG, _NAME = 14, 60, 24
# A type of the API reference with its limit, inside of one code element.
_LIMITED = re.compile(
    r"<span[^>]*>Annotated</span>\[((?:(?!</code>).)*?), <span[^>]*>(?:Limit|[A-Z]+)</span>(?:(?!</code>).)*\]</code>"
)


def on_page_content(content: str, **_: Any) -> str:
    """Make empty header cells ordinary cells, because a header must name something, and mark cells by their width."""
    content = re.sub(r"<th([^>]*)></th>", r"<td\1></td>", content)
    return re.sub(r"<td>(.*?)</td>", _cell, content, flags=re.DOTALL)


def _cell(found: re.Match[str]) -> str:
    text = re.sub(r"<[^>]+>", "", found[1]).strip()
    content = re.sub(rf"<code>(\w{{{_NAME},}})</code>", _breakable, found[1])
    kind = ' class="short"' if len(text) <= _SHORT else ' class="long"' if len(text) >= _LONG else ""
    return f"<td{kind}>{content}</td>"


def _breakable(found: re.Match[str]) -> str:
    return f"<code>{found[1].replace('_', '_<wbr>')}</code>"


def on_post_page(output: str, **_: Any) -> str:
    """Name the dialogue of the search and its options, and show types without the limits that studies have."""
    output = _LIMITED.sub(r"\1</code>", output)
    output = output.replace(
        'data-md-component="search" role="dialog">', 'data-md-component="search" role="dialog" aria-label="Search">'
    )
    return output.replace(
        '<nav class="md-search__options" aria-label="Search">',
        '<nav class="md-search__options" aria-label="Search options">',
    )
