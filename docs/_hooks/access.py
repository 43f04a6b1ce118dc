"""Corrections of the theme's pages: accessible names, table headers, and cells that need little width."""

from __future__ import annotations

import re
from typing import Any

# Characters of a cell that stays on one line.
_SHORT = 14


def on_page_content(content: str, **_: Any) -> str:
    """Make empty header cells ordinary cells, because a header must name something, and mark short cells."""
    content = re.sub(r"<th([^>]*)></th>", r"<td\1></td>", content)
    return re.sub(r"<td>(.*?)</td>", _cell, content, flags=re.DOTALL)


def _cell(found: re.Match[str]) -> str:
    text = re.sub(r"<[^>]+>", "", found[1]).strip()
    return f'<td class="short">{found[1]}</td>' if len(text) <= _SHORT else found[0]


def on_post_page(output: str, **_: Any) -> str:
    """Name the dialogue of the search, and tell its options from a section called Search."""
    output = output.replace(
        'data-md-component="search" role="dialog">', 'data-md-component="search" role="dialog" aria-label="Search">'
    )
    return output.replace(
        '<nav class="md-search__options" aria-label="Search">',
        '<nav class="md-search__options" aria-label="Search options">',
    )
