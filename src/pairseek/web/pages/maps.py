"""A map of the items as a small drawing: few enough dots for a phone, the same scale both ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pairseek.web.pages.data import Dot, MapData

WIDTH = 1000
MARGIN = 60
MOST_DOTS = 160


@dataclass(frozen=True)
class Drawing:
    """In the units of its view box, rounded: ``dots`` are (x, y, colour)."""

    width: int
    height: int
    dots: tuple[tuple[int, int, str | None], ...]
    plain: str
    outline: str
    point: tuple[int, int]


def drawn_map(data: MapData) -> Drawing:
    """Scale the map to its view box, and thin it where it is crowded."""
    everything = [*((dot[0], dot[1]) for dot in data["items"]), tuple(data["point"]), *map(tuple, data["ellipse"])]
    left, right = min(x for x, _ in everything), max(x for x, _ in everything)
    low, high = min(y for _, y in everything), max(y for _, y in everything)
    scale = (WIDTH - 2 * MARGIN) / max(right - left, (high - low) / 1.1, 1e-12)
    width, height = round((right - left) * scale) + 2 * MARGIN, round((high - low) * scale) + 2 * MARGIN

    def place(x: float, y: float) -> tuple[int, int]:
        return round((x - left) * scale) + MARGIN, round((high - y) * scale) + MARGIN

    dots = tuple((*place(dot[0], dot[1]), dot[2]) for dot in thinned(data["items"], MOST_DOTS))
    # A dot without a colour is a line of no length with a round end: seven characters each.
    plain = "".join(f"M{x} {y}h0" for x, y, colour in dots if colour is None)
    corners = [place(x, y) for x, y in data["ellipse"]]
    outline = "M" + "L".join(f"{x} {y}" for x, y in corners) + "Z" if corners else ""
    coloured = tuple(dot for dot in dots if dot[2] is not None)
    return Drawing(width, height, coloured, plain, outline, place(*data["point"]))


def thinned(items: Sequence[Dot], most: int) -> list[Dot]:
    """At most so many of the items, evenly through their order, so that crowded places stay crowded."""
    if len(items) <= most:
        return list(items)
    return [items[index * len(items) // most] for index in range(most)]
