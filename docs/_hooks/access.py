"""Corrections of the theme's pages: accessible names, tables and wide figures on phones, types of the API reference."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

from PIL import Image

# Characters of a cell that stays on one line, of one that needs width on a phone, and of a name that may be broken.
_SHORT, _LONG, _NAME = 14, 60, 24
# Letters of a cell that counts as prose, and characters of a word that fills a narrow column.
_PROSE, _WORD = 24, 18
# Pixels of a figure whose text is too small when it is fitted to a phone.
_WIDE = 1100
# A type of the API reference with its limit, inside of one code element.
_LIMITED = re.compile(
    r"<span[^>]*>Annotated</span>\[((?:(?!</code>).)*?), <span[^>]*>(?:Limit|[A-Z]+)</span>(?:(?!</code>).)*\]</code>"
)


def on_page_content(content: str, *, page: Any, config: Any, **_: Any) -> str:
    """Make empty header cells ordinary cells, because a header must name something, and prepare tables and figures."""
    content = re.sub(r"<th([^>]*)></th>", r"<td\1></td>", content)
    content = re.sub(r"<table>.*?</table>", _table, content, flags=re.DOTALL)
    folder = (Path(config.docs_dir) / page.file.src_uri).parent
    return re.sub(r'<p>(<img [^>]*src="([^"]+\.png)"[^>]*>)</p>', lambda found: _figure(found, folder), content)


def _table(found: re.Match[str]) -> str:
    """Mark the cells by their width, and the table by its layout on phones.

    Rows of prose become cards, two columns share the width of the screen, and tables of numbers scroll.
    """
    rows = [
        [_text(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)]
        for row in re.findall(r"<tr>.*?</tr>", found[0], re.DOTALL)
    ]
    if not rows:
        return found[0]
    prose = any(sum(map(str.isalpha, cell)) >= _PROSE for row in rows[1:] for cell in row[1:])
    words = any(len(word) >= _WORD for row in rows[1:] for word in " ".join(row[:1]).split())
    pair = len(rows[0]) == 2
    layout = "cards" if prose and (words or not pair) else "pair" if pair else "scroll"
    table = re.sub(r"<tr>(.*?)</tr>", lambda row: _row(row, rows[0]), found[0], flags=re.DOTALL)
    return table.replace("<table>", f'<table data-phone="{layout}">', 1)


def _row(found: re.Match[str], names: list[str]) -> str:
    """Mark the cells of a row by their width, and name the column of each but the first."""
    labels = iter(["", *names[1:]])

    def cell(one: re.Match[str]) -> str:
        name = next(labels, "")
        label = f' data-label="{html.escape(name)}"' if name and _text(one[1]) else ""
        return _cell(one).replace("<td", f"<td{label}", 1)

    return re.sub(r"<td>(.*?)</td>", cell, found[0], flags=re.DOTALL)


def _text(content: str) -> str:
    """Return the text of a cell."""
    return html.unescape(re.sub(r"<[^>]+>", "", content)).strip()


def _figure(found: re.Match[str], folder: Path) -> str:
    """Put a wide figure into a box that scrolls on phones."""
    path = folder / found[2]
    if not path.is_file():
        return found[0]
    with Image.open(path) as picture:
        wide = picture.width >= _WIDE
    return f'<p class="wide-figure">{found[1]}</p>' if wide else found[0]


def _cell(found: re.Match[str]) -> str:
    text = _text(found[1])
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
