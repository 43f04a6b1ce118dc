"""Map of the items as a small SVG drawing with equal scales on both axes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from pairseek.core.maps import MAX_LABELLED_ITEMS, Frame, Mark, box_around, closed_path, place_labels, thinned
from pairseek.web.pages.contexts.maps import Dot, MapData

WIDTH = 1000
MARGIN = 72
MAX_DOTS = 160
PICTURE_SIDE = 84
_FONT_SIZE = 34
_ITEM_RADIUS = 10
_ESTIMATE_RADIUS = 24


@dataclass(frozen=True)
class MapDrawing:
    """Drawing in view-box units.

    ``dots`` are (x, y, colour), and ``plain_dots`` is the path of all dots without a colour. ``names`` are (centre x,
    y, text), and ``pictures`` are (left, top, address), each `PICTURE_SIDE` wide and high.
    """

    width: int
    height: int
    dots: tuple[tuple[int, int, str | None], ...]
    plain_dots: str
    outline: str
    point: tuple[int, int]
    names: tuple[tuple[int, int, str], ...]
    pictures: tuple[tuple[int, int, str], ...] = ()


def map_frame(points: Iterable[tuple[float, float]]) -> tuple[Frame, int, int]:
    """Return the frame of a map that shows these points, with its width and height."""
    points = list(points)
    inner_width = WIDTH - 2 * MARGIN
    frame = Frame.fitted(points, (inner_width, 1.1 * inner_width), (MARGIN, MARGIN))
    columns, rows = zip(*(frame.place_rounded(*point) for point in points), strict=True)
    return frame, max(columns) + MARGIN, max(rows) + MARGIN


def draw_map(data: MapData) -> MapDrawing:
    """Scale the map to its view box and thin crowded items."""
    frame, width, height = map_frame(
        [
            *((x, y) for x, y, _, _ in data["items"]),
            (data["point"][0], data["point"][1]),
            *((x, y) for x, y in data["ellipse"]),
        ]
    )
    dots = [(*frame.place_rounded(x, y), colour) for x, y, colour, _ in thinned(data["items"], MAX_DOTS)]
    # A zero-length line with a round cap is the most compact way to draw a dot.
    plain_dots = "".join(f"M{x} {y}h0" for x, y, colour in dots if colour is None)
    outline = closed_path(frame.place_rounded(*corner) for corner in data["ellipse"])
    estimate = frame.place_rounded(*data["point"])
    # Pictures leave no room for names.
    names = () if data.get("pictures") else placed_names(data["items"], frame, estimate, (width, height))
    half = PICTURE_SIDE // 2
    pictures = []
    for x, y, address in data.get("pictures", ()):
        middle = frame.place_rounded(x, y)
        pictures.append((middle[0] - half, middle[1] - half, address))
    coloured = tuple(dot for dot in dots if dot[2] is not None)
    return MapDrawing(width, height, coloured, plain_dots, outline, estimate, names, tuple(pictures))


def placed_names(
    items: list[Dot], frame: Frame, estimate: tuple[int, int], size: tuple[int, int]
) -> tuple[tuple[int, int, str], ...]:
    """Place the labels, starting with the items nearest to the estimate; place none if there are too many items."""
    if len(items) > MAX_LABELLED_ITEMS:
        return ()
    marks = [Mark(*frame.place_rounded(x, y), _ITEM_RADIUS, label) for x, y, _, label in items if label]
    marks.sort(key=lambda mark: math.hypot(mark.x - estimate[0], mark.y - estimate[1]))
    labels = place_labels(marks, _FONT_SIZE, (0, 0, *size), obstacles=[box_around(*estimate, _ESTIMATE_RADIUS)])
    return tuple((round(label.x), round(label.y), label.text) for label in labels if label is not None)
