"""Map of a group as a self-contained SVG drawing: items, people, segments and axes on a light ground."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pairseek.core.maps import MAX_LABELLED_ITEMS, Frame, Mark, closed_path, place_labels
from pairseek.web.pages.contexts.maps import GroupItem, GroupMap
from pairseek.web.pages.contexts.shared import CardSchema

WIDTH = 1000
# Margins of the drawing.
_LEFT = 64
_RIGHT = 40
_TOP = 40
_BOTTOM = 88
_FONT_SIZE = 15
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00")
"""Colours of the segments, after Okabe and Ito, chosen for people with a colour vision deficiency."""


@dataclass(frozen=True)
class DrawnItem:
    """Item in view-box units; ``label`` is (centre of the baseline, text), or None for lack of room."""

    card: CardSchema
    x: int
    y: int
    place: int
    radius: int
    label: tuple[int, int, str] | None


@dataclass(frozen=True)
class DrawnPerson:
    """Person as two paths: the mark of the segment and the outline of the ellipse."""

    mark: str
    outline: str
    colour: str
    segment: int


@dataclass(frozen=True)
class GroupDrawing:
    """Drawing in view-box units; ``legend`` contains the number, x, mark and colour of each segment."""

    width: int
    height: int
    items: tuple[DrawnItem, ...]
    people: tuple[DrawnPerson, ...]
    legend: tuple[tuple[int, int, str, str], ...]
    axes: tuple[str, str]
    ground: tuple[int, int, int, int]


def draw_group_map(data: GroupMap) -> GroupDrawing:
    """Scale the map to its view box, with equal scales on both axes."""
    corners = [corner for person in data["people"] for corner in person["outline"]]
    points = [item["point"] for item in data["items"]] + [person["point"] for person in data["people"]]
    left, right = min(x for x, _ in points), max(x for x, _ in points)
    low, high = min(y for _, y in points), max(y for _, y in points)
    # Ellipses may enlarge the map, but only up to a limit.
    width, height = max(right - left, 1e-9), max(high - low, 1e-9)
    left, right = _extended(left, right, [x for x, _ in corners], 0.15 * width)
    low, high = _extended(low, high, [y for _, y in corners], 0.15 * height)
    inner_width = WIDTH - _LEFT - _RIGHT
    frame = Frame.fitted([(left, low), (right, high)], (inner_width, 0.9 * inner_width), (_LEFT, _TOP))
    view_height = max(round((high - low) * frame.scale), 120) + _TOP + _BOTTOM
    ground = (_LEFT - 24, _TOP - 24, inner_width + 48, view_height - _TOP - _BOTTOM + 48)
    items = _drawn_items(data["items"], frame, ground)
    people = []
    for person in data["people"]:
        outline = closed_path(frame.place_rounded(*corner) for corner in person["outline"])
        segment = person["segment"]
        mark = mark_path(*frame.place_rounded(*person["point"]), segment)
        people.append(DrawnPerson(mark, outline, colour_of(segment), segment))
    legend = tuple(
        (
            number,
            _LEFT + 14 + 150 * (number - 1),
            mark_path(_LEFT + 14 + 150 * (number - 1), view_height - 22, number),
            colour_of(number),
        )
        for number in range(1, data["segments"] + 1)
    )
    return GroupDrawing(WIDTH, view_height, items, tuple(people), legend, data["axes"], ground)


def _drawn_items(items: Sequence[GroupItem], frame: Frame, ground: tuple[int, int, int, int]) -> tuple[DrawnItem, ...]:
    """Place the items; if they are few, label them within the ground, best-liked first."""
    picture_radius = 22 if len(items) <= 60 else 13
    marks = [
        Mark(*frame.place_rounded(*item["point"]), _radius(item["card"], picture_radius), item["card"]["name"])
        for item in items
    ]
    left, top, width, height = ground
    has_labels = len(items) <= MAX_LABELLED_ITEMS
    labels = (
        place_labels(marks, _FONT_SIZE, (left, top, left + width, top + height)) if has_labels else [None] * len(marks)
    )
    rounded = [None if label is None else (round(label.x), round(label.y), label.text) for label in labels]
    return tuple(
        DrawnItem(item["card"], round(mark.x), round(mark.y), item["place"], round(mark.radius), label)
        for item, mark, label in zip(items, marks, rounded, strict=True)
    )


def _radius(card: CardSchema, picture_radius: int) -> int:
    """Return the radius of an item's picture (half of its side), coloured disc or small circle."""
    return picture_radius if "image" in card["media"] else picture_radius - 4 if "colour" in card["media"] else 7


def colour_of(segment: int) -> str:
    """Return the colour of a segment, counted from 1."""
    return COLOURS[(segment - 1) % len(COLOURS)]


def mark_path(x: int, y: int, segment: int) -> str:
    """Return the mark of a segment as a path: circle, square, triangle, diamond or cross."""
    shape = (segment - 1) % 5
    if shape == 0:
        return f"M{x - 7} {y}a7 7 0 1 0 14 0a7 7 0 1 0 -14 0Z"
    if shape == 1:
        return f"M{x - 6} {y - 6}h12v12h-12Z"
    if shape == 2:
        return f"M{x} {y - 8}l8 14h-16Z"
    if shape == 3:
        return f"M{x} {y - 9}l8 9l-8 9l-8 -9Z"
    return f"M{x - 3} {y - 8}h6v5h5v6h-5v5h-6v-5h-5v-6h5Z"


def _extended(low: float, high: float, values: list[float], margin: float) -> tuple[float, float]:
    """Extend an interval to contain values, by at most a margin on either side."""
    return max(min([low, *values]), low - margin), min(max([high, *values]), high + margin)
