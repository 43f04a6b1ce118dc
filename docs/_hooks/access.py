"""Corrections of the theme's pages: accessible names and table headers."""

from __future__ import annotations

import re
from typing import Any


def on_page_content(content: str, **_: Any) -> str:
    """Make empty header cells ordinary cells, because a header must name something."""
    return re.sub(r"<th([^>]*)></th>", r"<td\1></td>", content)


def on_post_page(output: str, **_: Any) -> str:
    """Name the dialogue of the search, and tell its options from a section called Search."""
    output = output.replace(
        'data-md-component="search" role="dialog">', 'data-md-component="search" role="dialog" aria-label="Search">'
    )
    return output.replace(
        '<nav class="md-search__options" aria-label="Search">',
        '<nav class="md-search__options" aria-label="Search options">',
    )
