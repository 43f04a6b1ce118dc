"""Map of a group as an SVG drawing that stands alone: items, people, segments and axes on a light ground."""

from __future__ import annotations

from dataclasses import dataclass

from pairseek.web.pages.contexts import CardContext, GroupMap

WIDTH = 1000
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 40, 40, 88
_MOST_NAMES = 40
_LETTER, _LINE, _LONGEST = 8.2, 18, 22
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00")
"""Colours of the segments, after Okabe and Ito: people with a colour vision deficiency tell them apart."""


@dataclass(frozen=True)
class DrawnItem:
    """Item in view-box units; ``name`` is written below if there is room for it."""

    card: CardContext
    x: int
    y: int
    place: int
    size: int
    named: tuple[int, int, str] | None


@dataclass(frozen=True)
class DrawnPerson:
    """Person: the mark of a segment and the outline of the ellipse, as paths."""

    mark: str
    outline: str
    colour: str
    segment: int


@dataclass(frozen=True)
class GroupDrawing:
    """Drawing in view-box units, with the mark and the colour of each segment for the legend."""

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
    everything = [item["point"] for item in data["items"]] + [person["point"] for person in data["people"]]
    left, right = min(x for x, _ in everything), max(x for x, _ in everything)
    low, high = min(y for _, y in everything), max(y for _, y in everything)
    # Ellipses widen the picture, but the very uncertain ones not without end.
    wide, tall = max(right - left, 1e-9), max(high - low, 1e-9)
    left, right = _within(sorted(x for x, _ in corners), left, right, 0.15 * wide)
    low, high = _within(sorted(y for _, y in corners), low, high, 0.15 * tall)
    scale = (WIDTH - _LEFT - _RIGHT) / max(right - left, (high - low) / 0.9, 1e-12)
    height = max(round((high - low) * scale), 120) + _TOP + _BOTTOM
    size = 44 if len(data["items"]) <= 60 else 26

    def place(point: tuple[float, float]) -> tuple[int, int]:
        return round((point[0] - left) * scale) + _LEFT, round((high - point[1]) * scale) + _TOP

    spots = [(place(item["point"]), item) for item in data["items"]]
    # The template writes the name of the horizontal axis below the middle of the ground.
    reach, middle = (len(data["axes"][0]) + 2) * _LETTER / 2, (WIDTH + _LEFT - _RIGHT) / 2
    axis = (middle - reach, height - 44.0 - _LINE, middle + reach, height - 40.0)
    names = _names([(x, y, item["card"]["name"]) for (x, y), item in spots], size, axis)
    items = tuple(
        DrawnItem(item["card"], x, y, item["place"], size, name)
        for ((x, y), item), name in zip(spots, names, strict=True)
    )
    people = []
    for person in data["people"]:
        outline = "M" + "L".join("{} {}".format(*place(corner)) for corner in person["outline"]) + "Z"
        segment = person["segment"]
        mark = mark_path(*place(person["point"]), segment)
        people.append(DrawnPerson(mark, outline, colour_of(segment), segment))
    legend = tuple(
        (
            number,
            _LEFT + 14 + 150 * (number - 1),
            mark_path(_LEFT + 14 + 150 * (number - 1), height - 22, number),
            colour_of(number),
        )
        for number in range(1, data["segments"] + 1)
    )
    ground = (_LEFT - 24, _TOP - 24, WIDTH - _LEFT - _RIGHT + 48, height - _TOP - _BOTTOM + 48)
    return GroupDrawing(WIDTH, height, items, tuple(people), legend, data["axes"], ground)


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


def _within(values: list[float], low: float, high: float, most: float) -> tuple[float, float]:
    if not values:
        return low, high
    return max(min(values[0], low), low - most), min(max(values[-1], high), high + most)


def _names(
    places: list[tuple[int, int, str]], size: int, axis: tuple[float, float, float, float]
) -> list[tuple[int, int, str] | None]:
    """Return labels below or above their items where they overlap no other label or item, nor the name of the axis.

    The best-liked come first.
    """
    if len(places) > _MOST_NAMES:
        return [None] * len(places)
    half = size / 2
    taken = [axis, *((x - half, y - half, x + half, y + half) for x, y, _ in places)]
    out: list[tuple[int, int, str] | None] = []
    for x, y, label in places:
        text = label if len(label) <= _LONGEST else f"{label[: _LONGEST - 1]}…"
        reach = len(text) * _LETTER / 2
        middle = min(max(x, reach + 4), WIDTH - reach - 4)
        written = None
        for top in (y + half + 2, y - half - 2 - _LINE):
            box = (middle - reach, top, middle + reach, top + _LINE)
            if not any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in taken):
                taken.append(box)
                written = (round(middle), round(top) + 14, text)
                break
        out.append(written)
    return out
