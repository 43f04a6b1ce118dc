"""Slide about a ranking: a self-contained SVG drawing in 16:9 on a light background, and its PNG version.

Pillow cannot draw SVG, and text in any script needs fonts for every character, joined letters and right-to-left order.
resvg does all of this in one small wheel, so the PNG is rendered from the SVG.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import cache

from pairseek.core.text import visible_characters
from pairseek.errors import MissingExtra, Unsupported
from pairseek.web.pages.contexts.slide import Slide, SlideRow

WIDTH = 1280
HEIGHT = 720
MAX_ROWS = 10
"""Largest number of items on a slide; the best-ranked are shown."""
# Pixels of the PNG per unit of the drawing.
_PIXELS_PER_UNIT = 1.5
_MARGIN = 56
_TITLE_SIZE = 34
_SENTENCE_SIZE = 21
# Vertical extent of the rows, and the largest height of a row.
_ROWS_TOP = 236
_ROWS_BOTTOM = 656
_MAX_ROW_HEIGHT = 64
# Left and right ends of the bars.
_BAR_LEFT = 640
_BAR_RIGHT = 1060
# Width of a character relative to the size of the text: a cautious mean of letters, and of wide characters.
_NARROW_EMS = 0.58
_WIDE_EMS = 1.1
# Width of bold text relative to plain text.
_BOLD_WIDTH_RATIO = 1.16

_FONTS = ("DejaVu Sans", "Noto Sans", "Liberation Sans", "Open Sans", "Roboto", "Helvetica", "Segoe UI", "Arial")

_EMOJI_FONTS = "'Noto Color Emoji', 'Apple Color Emoji', 'Segoe UI Emoji', sans-serif"
_CJK_FONTS = (
    "'Noto Sans CJK JP', 'Noto Sans CJK SC', 'PingFang SC', 'Hiragino Sans', 'Microsoft YaHei', 'Yu Gothic', sans-serif"
)


@dataclass(frozen=True)
class DrawnRow:
    """Item in view-box units: top and height, lines of its label, and the bar as (low, mark, high)."""

    row: SlideRow
    top: float
    height: float
    label: tuple[str, ...]
    bar: tuple[float, float, float]
    is_first_of_tier: bool
    is_shaded: bool


@dataclass(frozen=True)
class DrawnSlide:
    """Slide in view-box units; ``label_left`` is where labels begin, right of the pictures if there are any."""

    title: str
    sentences: tuple[str, ...]
    rows: tuple[DrawnRow, ...]
    further: int
    note: str
    side: float
    label_left: float
    label_size: float
    width: int = WIDTH
    height: int = HEIGHT
    margin: int = _MARGIN
    bar_left: int = _BAR_LEFT
    bar_right: int = _BAR_RIGHT


def draw_slide(slide: Slide) -> DrawnSlide:
    """Place the parts of a slide."""
    rows = slide["rows"][:MAX_ROWS]
    height = min(_MAX_ROW_HEIGHT, (_ROWS_BOTTOM - _ROWS_TOP) / max(len(rows), 1))
    shown = any(row["card"]["media"].get("image") or row["card"]["media"].get("colour") for row in rows)
    side = height - 8
    left = _MARGIN + 44 + (side + 14 if shown else 0)
    size = min(22.0, 0.42 * height)
    drawn = []
    for number, row in enumerate(rows):
        is_first = number == 0 or row["tier"] != rows[number - 1]["tier"]
        low, mark, high = (_on_bar(row[name]) for name in ("share_low", "share", "share_high"))
        label = wrap(row["card"]["name"], (_BAR_LEFT - 24 - left) / size, lines=2 if height > 2.3 * size else 1)
        top = _ROWS_TOP + number * height
        drawn.append(DrawnRow(row, top, height, label, (low, mark, high), is_first, row["tier"] % 2 == 1))
    inner = WIDTH - 2 * _MARGIN
    lines = [line for text in slide["sentences"] for line in wrap(text, inner / _SENTENCE_SIZE, lines=2)]
    title = wrap(slide["title"], inner / (_BOLD_WIDTH_RATIO * _TITLE_SIZE), lines=1)[0]
    return DrawnSlide(title, tuple(lines[:4]), tuple(drawn), slide["further"], slide["note"], side, left, size)


def _on_bar(share: float) -> float:
    return round(_BAR_LEFT + share * (_BAR_RIGHT - _BAR_LEFT), 1)


def wrap(text: str, ems: float, *, lines: int) -> tuple[str, ...]:
    """Break a text into lines of at most this width, in multiples of its size; an ellipsis ends a text cut short."""
    out: list[str] = []
    line, width = "", 0.0
    remaining = _words(" ".join(_printable(text).split()))
    while remaining:
        word = remaining.pop(0)
        if width + _width(word.rstrip()) <= ems or (not line and len(out) + 1 >= lines):
            line, width = line + word, width + _width(word)
        elif not line:
            # Break a word that is longer than a line.
            kept = _fitting(word, ems)
            remaining[:0] = [word[len(kept) :]]
            line, width = kept, ems
        else:
            out.append(line.rstrip())
            remaining.insert(0, word)
            line, width = "", 0.0
            if len(out) == lines:
                last = out.pop()
                line = f"{last} {''.join(remaining)}"
                break
    out.append(line.rstrip())
    if _width(out[-1]) > ems:
        out[-1] = _fitting(out[-1], ems - _width("…")).rstrip() + "…"
    return tuple(out)


def text_runs(text: str) -> list[tuple[str, str]]:
    """Split a text where the font changes; return the runs with their fonts, empty for the drawing's own.

    A renderer without fonts for every script, such as resvg, does not look for other fonts by itself.
    """
    out: list[tuple[str, str]] = []
    for character in visible_characters(text):
        fonts = _fonts_of(character)
        if out and out[-1][1] == fonts:
            out[-1] = out[-1][0] + character, fonts
        else:
            out.append((character, fonts))
    return out


def _fonts_of(character: str) -> str:
    if ord(character[0]) > 0x1F000 or "\N{VARIATION SELECTOR-16}" in character:
        return _EMOJI_FONTS
    return _CJK_FONTS if unicodedata.east_asian_width(character[0]) in "WF" else ""


def _words(text: str) -> list[str]:
    """Return words with the space that follows."""
    parts = text.split(" ")
    return [f"{part} " for part in parts[:-1]] + parts[-1:]


def _width(text: str) -> float:
    return sum(_character_width(character) for character in visible_characters(text))


def _character_width(character: str) -> float:
    return (
        _WIDE_EMS if unicodedata.east_asian_width(character[0]) in "WF" or ord(character[0]) > 0x1F000 else _NARROW_EMS
    )


def _fitting(text: str, ems: float) -> str:
    """Return the longest beginning of a text that fits, of whole visible characters."""
    kept, width = "", 0.0
    for character in visible_characters(text):
        width += _character_width(character)
        if width > ems:
            break
        kept += character
    return kept


def _printable(text: str) -> str:
    """Return a text without the control characters that XML cannot hold."""
    return "".join(ch for ch in text if unicodedata.category(ch) != "Cc" or ch in "\t\n").replace("\ufffe", "")


def png_of(svg: str) -> bytes:
    """Render a slide as PNG with the fonts of this computer."""
    try:
        import resvg_py
    except ModuleNotFoundError:
        raise MissingExtra("a slide as PNG", "web") from None
    family = _sans_serif()
    if family is None:
        raise Unsupported(
            "this computer has no fonts to draw a slide as PNG: install some, such as the package fonts-dejavu-core, "
            "or take the slide as SVG"
        )
    png = resvg_py.svg_to_bytes(svg_string=svg, zoom=_PIXELS_PER_UNIT, background="#ffffff", sans_serif_family=family)
    return bytes(png)


@cache
def _sans_serif() -> str | None:
    """Return a font of this computer; others serve only for the characters that it lacks."""
    import resvg_py

    drawing = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40">{}</svg>'
    letter = '<text x="5" y="30" font-size="30" font-family="{}">H</text>'
    blank = bytes(resvg_py.svg_to_bytes(svg_string=drawing.format("")))
    for family in _FONTS:
        if bytes(resvg_py.svg_to_bytes(svg_string=drawing.format(letter.format(family)))) != blank:
            return family
    return None
