"""Terminal graphics of colours: swatches, cards and bars."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text


@dataclass(frozen=True, slots=True)
class Colour:
    """Colour with its name and its code ``#rrggbb``."""

    name: str
    hex: str


def in_true_colour(console: Console) -> bool:
    """Return whether the terminal has true colour. A palette would map different colours to the same one."""
    return console.color_system == "truecolor" and not console.no_color


def ink(hex_code: str) -> str:
    """Return black or white, whichever has the higher contrast ratio with this colour (WCAG 2).

    Examples
    --------
    >>> ink("#ffff14"), ink("#00035b")
    ('#000000', '#ffffff')
    """
    # The two ratios, (y + 0.05)/0.05 and 1.05/(y + 0.05), are equal at this luminance.
    return "#000000" if luminance(hex_code) + 0.05 > (1.05 * 0.05) ** 0.5 else "#ffffff"


def luminance(hex_code: str) -> float:
    """Return the relative luminance of an sRGB colour, from 0 (black) to 1 (white)."""
    channels = [int(hex_code[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def swatch(colour: Colour, width: int, height: int, *, title: str = "") -> list[Text]:
    """Draw a block of the colour with its name and code at the bottom, as lines of equal width.

    Parameters
    ----------
    colour
        The colour.
    width, height
        Size in cells, at least 8 by 2.
    title
        Text in the top left corner.
    """
    words = _foot(colour, width, height)
    blank_below = 1 if height > len(words) + 1 else 0
    head = ["", f"  {title}"] if title and height > len(words) + 3 else []
    gap = [""] * (height - len(head) - len(words) - blank_below)
    lines = [*head, *gap, *words, *[""] * blank_below]
    style = f"{ink(colour.hex)} on {colour.hex}"
    name_rows = range(height - blank_below - len(words), height - blank_below - 1)
    return [
        Text(line.ljust(width), style=f"bold {style}" if row in name_rows else style) for row, line in enumerate(lines)
    ]


def card(colour: Colour, width: int, height: int, *, title: str = "") -> list[Text]:
    """Draw a frame with the name and code, for terminals without true colour."""
    words = _foot(colour, width - 2, min(height, 6) - 2)
    lines = [f"  {title}", *words] if title and height > len(words) + 2 else words
    edge = "─" * (width - 2)
    rows = [Text(f"┌{edge}┐", style="dim")]
    rows += [Text.assemble(("│", "dim"), line.ljust(width - 2), ("│", "dim")) for line in lines]
    return [*rows, Text(f"└{edge}┘", style="dim")]


def side_by_side(blocks: Sequence[Sequence[Text]], gap: int) -> list[Text]:
    """Place blocks of lines next to each other, and pad the shorter ones."""
    height = max(map(len, blocks))
    widths = [block[0].cell_len for block in blocks]
    rows = []
    for row in range(height):
        cells = [
            block[row] if row < len(block) else Text(" " * width) for block, width in zip(blocks, widths, strict=True)
        ]
        rows.append(Text(" " * gap).join(cells))
    return rows


def bar(share: float, width: int) -> str:
    """Draw a bar that fills this share of the width, to half a cell.

    Examples
    --------
    >>> bar(0.625, 4)
    '━━╸ '
    """
    full, half = divmod(round(2 * width * min(max(share, 0.0), 1.0)), 2)
    return ("━" * full + "╸" * half).ljust(width)


def _foot(colour: Colour, width: int, height: int) -> list[str]:
    """Return the wrapped name and the code, indented; shorten the name if the height is too small."""
    lines = textwrap.wrap(colour.name, width - 4)[: max(1, height - 1)]
    return [f"  {line}" for line in [*lines, colour.hex]][: max(1, height)]
