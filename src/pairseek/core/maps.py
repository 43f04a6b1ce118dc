"""Geometry of maps: the plane of a projection, regions of a Gaussian, the scale of a drawing, and where labels fit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np

from pairseek.core.types import FloatArray

Point: TypeAlias = tuple[float, float]
Box: TypeAlias = tuple[float, float, float, float]
"""Left, top, right and bottom of a rectangle in a drawing, whose vertical axis points down."""

MOST_LABELLED = 40
"""Largest number of items that a page labels; of more, labels would be a selection by chance."""
LONGEST_LABEL = 24
"""Largest number of characters of a label; longer ones are cut."""
# A letter's width and a line's height by the size of the font. Sans-serif fonts differ; this is one of the wider ones.
_LETTER, _LINE, _ASCENT = 0.6, 1.1, 0.88
# Principal axes are computed from at most this many points, evenly spaced in their order.
_MOST_POINTS = 100_000
_CORNERS = 48

_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class Plane:
    """Plane of a map.

    Attributes
    ----------
    centre
        (d,) point at the origin of the map.
    axes
        (d, 2) orthonormal axes.
    share
        Share of the points' variance that lies in the plane.
    """

    centre: FloatArray
    axes: FloatArray
    share: float

    def project(self, points: FloatArray) -> FloatArray:
        """Return the (m, 2) projections of (m, d) points."""
        return np.asarray((points - self.centre) @ self.axes)

    def region(self, mean: FloatArray, covariance: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the projected mean of a Gaussian, and the outline of the ellipse with this share of its projection."""
        point = self.project(mean)
        return point, ellipse_outline(point, self.axes.T @ covariance @ self.axes, level)


def map_plane(points: FloatArray) -> Plane:
    """Return the plane of a map of (n, d) points: up to two dimensions as they are, more by two principal axes."""
    d = points.shape[1]
    return Plane(np.zeros(d), np.eye(d, 2), 1.0) if d <= 2 else principal_plane(points)


def principal_plane(points: FloatArray) -> Plane:
    """Return the plane of the first two principal axes; the second is zero in one dimension."""
    n, d = points.shape
    some = points[:: max(-(-n // _MOST_POINTS), 1)]
    centre = some.mean(axis=0)
    centred = some - centre
    values, vectors = np.linalg.eigh(centred.T @ centred)
    axes = np.zeros((d, 2))
    axes[:, : min(d, 2)] = vectors[:, ::-1][:, :2]
    # The sign of an eigenvector is arbitrary. With the largest entry positive, equal points always give equal maps.
    axes *= np.where(axes[np.argmax(np.abs(axes), axis=0), [0, 1]] < 0, -1.0, 1.0)
    total = float(values.sum())
    return Plane(centre, axes, float(values[-2:].sum() / total) if total > 0 else 1.0)


def ellipse_radius(level: float) -> float:
    """Return the Mahalanobis radius within which this share of a Gaussian in two dimensions lies."""
    return math.sqrt(-2.0 * math.log1p(-level))


def ellipse_outline(mean: FloatArray, covariance: FloatArray, level: float) -> FloatArray:
    """Return (48, 2) points around the ellipse that contains this share of a Gaussian in two dimensions."""
    values, vectors = np.linalg.eigh(covariance)
    turn = np.linspace(0.0, 2.0 * np.pi, _CORNERS, endpoint=False)
    circle = np.stack([np.cos(turn), np.sin(turn)], axis=1) * ellipse_radius(level)
    return np.asarray(mean + circle * np.sqrt(np.maximum(values, 0.0)) @ vectors.T)


def bounds(points: Iterable[Sequence[float]]) -> tuple[Point, Point]:
    """Return the lower and the upper corner of the rectangle around points."""
    across, up = zip(*points, strict=True)
    return (float(min(across)), float(min(up))), (float(max(across)), float(max(up)))


@dataclass(frozen=True)
class Frame:
    """Drawing with equal scales on both axes, whose vertical axis points down.

    Attributes
    ----------
    left, high
        Coordinates of the map that lie at the corner.
    scale
        Length of one unit of the map.
    corner
        Place in the drawing of the left upper corner of the map.
    """

    left: float
    high: float
    scale: float
    corner: Point

    @classmethod
    def fitted(cls, points: Iterable[Sequence[float]], room: Point, corner: Point) -> Frame:
        """Return the frame in which points fit into a room of this width and height."""
        (left, low), (right, high) = bounds(points)
        scale = 1.0 / max((right - left) / room[0], (high - low) / room[1], 1e-15)
        return cls(left, high, scale, corner)

    def place(self, x: float, y: float) -> Point:
        """Return the place of a point of the map in the drawing."""
        return self.corner[0] + self.scale * (x - self.left), self.corner[1] + self.scale * (self.high - y)

    def place_rounded(self, x: float, y: float) -> tuple[int, int]:
        """Return the place of a point in whole units of the drawing."""
        across, down = self.place(x, y)
        return round(across), round(down)


def closed_path(corners: Iterable[tuple[float, float]]) -> str:
    """Return the SVG path of a polygon; empty without corners."""
    written = "L".join(f"{x:g} {y:g}" for x, y in corners)
    return f"M{written}Z" if written else ""


def thinned(values: Sequence[_T], most: int) -> list[_T]:
    """Return at most this many values, evenly spaced in their order, which preserves relative density."""
    if len(values) <= most:
        return list(values)
    return [values[index * len(values) // most] for index in range(most)]


@dataclass(frozen=True)
class Mark:
    """Mark on a map that wants a label: its place in the drawing, its radius and the text."""

    x: float
    y: float
    radius: float
    text: str


@dataclass(frozen=True)
class Label:
    """Label in a drawing: the middle of its baseline, and its text."""

    x: float
    y: float
    text: str


def box_around(x: float, y: float, radius: float) -> Box:
    """Return the square around a point."""
    return x - radius, y - radius, x + radius, y + radius


def place_labels(
    marks: Sequence[Mark], font: float, room: Box, *, taken: Iterable[Box] = (), crowd: Sequence[Box] = ()
) -> list[Label | None]:
    """Return a label for each mark, None where there is no room.

    A label stands below its mark, above it, or at its right or left: the first place at which it covers no mark, no
    earlier label and nothing that is taken, and does not leave the room; if possible, one without crowd. So the first
    marks have the best chance.

    Parameters
    ----------
    marks
        Marks in order of importance.
    font
        Size of the font.
    room
        Rectangle that labels must not leave.
    taken
        Rectangles that labels must not cover.
    crowd
        Rectangles that labels cover only where there is no other room.
    """
    occupied = [*taken, *(box_around(mark.x, mark.y, mark.radius) for mark in marks)]
    line, margin = _LINE * font, 0.25 * font
    labels: list[Label | None] = []
    for mark in marks:
        text = mark.text if len(mark.text) <= LONGEST_LABEL else f"{mark.text[: LONGEST_LABEL - 1]}…"
        half, off = _LETTER * font * len(text) / 2, mark.radius + 0.1 * font
        # Near the left or right border a label below or above moves inwards.
        inside = min(max(mark.x, room[0] + half + margin), room[2] - half - margin)
        beside = half + off + margin
        places = (
            (inside, mark.y + off),
            (inside, mark.y - off - line),
            (mark.x + beside, mark.y - line / 2),
            (mark.x - beside, mark.y - line / 2),
        )
        boxes = [(x - half, top, x + half, top + line) for x, top in places]
        free = [box for box in boxes if _within(box, room) and not _covers(box, occupied)]
        if not free:
            labels.append(None)
            continue
        chosen = next((box for box in free if not _covers(box, crowd)), free[0])
        occupied.append(chosen)
        labels.append(Label(chosen[0] + half, chosen[1] + _ASCENT * font, text))
    return labels


def _within(box: Box, room: Box) -> bool:
    return box[0] >= room[0] and box[1] >= room[1] and box[2] <= room[2] and box[3] <= room[3]


def _covers(box: Box, others: Iterable[Box]) -> bool:
    return any(box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3] for other in others)
