"""Map of the items as a small SVG drawing with equal scales on both axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pairseek.web.pages.contexts import Dot, MapData

WIDTH = 1000
MARGIN = 72
MOST_DOTS = 160
PICTURE = 84
# Maximum number of items with labels, each drawn only where there is room for it.
MOST_NAMES = 40
_LETTER, _LINE = 17.5, 34
_LONGEST = 24


@dataclass(frozen=True)
class MapDrawing:
    """Drawing in view-box units: ``dots`` are (x, y, colour), ``names`` are (centre x, y, text).

    ``pictures`` are (left, top, address), each `PICTURE` wide and high.
    """

    width: int
    height: int
    dots: tuple[tuple[int, int, str | None], ...]
    plain: str
    outline: str
    point: tuple[int, int]
    names: tuple[tuple[int, int, str], ...]
    pictures: tuple[tuple[int, int, str], ...] = ()


def draw_map(data: MapData) -> MapDrawing:
    """Scale the map to its view box and thin crowded items."""
    everything = [*((dot[0], dot[1]) for dot in data["items"]), tuple(data["point"]), *map(tuple, data["ellipse"])]
    left, right = min(x for x, _ in everything), max(x for x, _ in everything)
    low, high = min(y for _, y in everything), max(y for _, y in everything)
    scale = (WIDTH - 2 * MARGIN) / max(right - left, (high - low) / 1.1, 1e-12)
    width, height = round((right - left) * scale) + 2 * MARGIN, round((high - low) * scale) + 2 * MARGIN

    def place(x: float, y: float) -> tuple[int, int]:
        return round((x - left) * scale) + MARGIN, round((high - y) * scale) + MARGIN

    dots = tuple((*place(dot[0], dot[1]), dot[2]) for dot in thinned(data["items"], MOST_DOTS))
    # A dot without a colour is a zero-length line with a round cap, which is compact.
    plain = "".join(f"M{x} {y}h0" for x, y, colour in dots if colour is None)
    corners = [place(x, y) for x, y in data["ellipse"]]
    outline = "M" + "L".join(f"{x} {y}" for x, y in corners) + "Z" if corners else ""
    coloured = tuple(dot for dot in dots if dot[2] is not None)
    you = place(*data["point"])
    places = [(*place(dot[0], dot[1]), dot[3]) for dot in data["items"] if dot[3]]
    # A picture says more than its name, and leaves no room for it.
    named = len(data["items"]) <= MOST_NAMES and not data.get("pictures")
    names = placed_names(places, you, width) if named else ()
    pictures = []
    for x, y, address in data.get("pictures", ()):
        middle = place(x, y)
        pictures.append((middle[0] - PICTURE // 2, middle[1] - PICTURE // 2, address))
    return MapDrawing(width, height, coloured, plain, outline, you, names, tuple(pictures))


def placed_names(
    places: Sequence[tuple[int, int, str]], you: tuple[int, int], width: int
) -> tuple[tuple[int, int, str], ...]:
    """Return labels below or above their dots without overlap, nearest to the estimate first."""
    taken = [(you[0] - 26.0, you[1] - 26.0, you[0] + 26.0, you[1] + 26.0)]
    written: list[tuple[int, int, str]] = []
    for x, y, label in sorted(places, key=lambda one: math.hypot(one[0] - you[0], one[1] - you[1])):
        text = label if len(label) <= _LONGEST else f"{label[: _LONGEST - 1]}…"
        half = len(text) * _LETTER / 2
        middle = min(max(x, half + 8), width - half - 8)
        for top in (y + 12.0, y + 28.0, y - 12.0 - _LINE):
            box = (middle - half, top, middle + half, top + _LINE)
            if not any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in taken):
                taken.append(box)
                written.append((round(middle), round(top) + 28, text))
                break
    return tuple(written)


def thinned(items: Sequence[Dot], most: int) -> list[Dot]:
    """Return at most ``most`` items, evenly spaced in their order, which preserves relative density."""
    if len(items) <= most:
        return list(items)
    return [items[index * len(items) // most] for index in range(most)]
