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
# Font size of the labels.
_FONT_SIZE = 34
# Radius of the dot of an item.
_DOT_RADIUS = 10
# Radius of the dot of the estimate.
_ESTIMATE_RADIUS = 24


@dataclass(frozen=True)
class MapDrawing:
    """Drawing in view-box units: ``dots`` are (x, y, colour), ``names`` are (centre x, y, text).

    ``pictures`` are (left, top, address), each `PICTURE_SIDE` wide and high.
    """

    width: int
    height: int
    dots: tuple[tuple[int, int, str | None], ...]
    plain: str
    outline: str
    point: tuple[int, int]
    names: tuple[tuple[int, int, str], ...]
    pictures: tuple[tuple[int, int, str], ...] = ()


def map_frame(points: Iterable[tuple[float, float]]) -> tuple[Frame, int, int]:
    """Return the frame of a map that shows these points, with its width and height."""
    shown = list(points)
    room = WIDTH - 2 * MARGIN
    frame = Frame.fitted(shown, (room, 1.1 * room), (MARGIN, MARGIN))
    across, down = zip(*(frame.place_rounded(*point) for point in shown), strict=True)
    return frame, max(across) + MARGIN, max(down) + MARGIN


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
    # A dot without a colour is drawn as a zero-length line with a round cap, which is compact.
    plain = "".join(f"M{x} {y}h0" for x, y, colour in dots if colour is None)
    outline = closed_path(frame.place_rounded(*corner) for corner in data["ellipse"])
    you = frame.place_rounded(*data["point"])
    # Pictures replace the names, for which they leave no room.
    names = () if data.get("pictures") else placed_names(data["items"], frame, you, (width, height))
    half = PICTURE_SIDE // 2
    pictures = []
    for x, y, address in data.get("pictures", ()):
        middle = frame.place_rounded(x, y)
        pictures.append((middle[0] - half, middle[1] - half, address))
    coloured = tuple(dot for dot in dots if dot[2] is not None)
    return MapDrawing(width, height, coloured, plain, outline, you, names, tuple(pictures))


def placed_names(
    items: list[Dot], frame: Frame, you: tuple[int, int], size: tuple[int, int]
) -> tuple[tuple[int, int, str], ...]:
    """Place the labels in order of the items' distance from the estimate; return none if there are too many items."""
    if len(items) > MAX_LABELLED_ITEMS:
        return ()
    marks = [Mark(*frame.place_rounded(x, y), _DOT_RADIUS, label) for x, y, _, label in items if label]
    marks.sort(key=lambda mark: math.hypot(mark.x - you[0], mark.y - you[1]))
    labels = place_labels(marks, _FONT_SIZE, (0, 0, *size), taken=[box_around(*you, _ESTIMATE_RADIUS)])
    return tuple((round(label.x), round(label.y), label.text) for label in labels if label is not None)
