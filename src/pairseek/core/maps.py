"""Geometry of maps: projection planes, Gaussian regions, drawing scales and label placement."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np

from pairseek.core.types import FloatArray

PlanePoint: TypeAlias = tuple[float, float]
Rectangle: TypeAlias = tuple[float, float, float, float]
"""Left, top, right and bottom of a rectangle in a drawing; the vertical axis points down."""

MAX_LABELLED_ITEMS = 40
"""Largest number of items that a page labels; more labels would not fit, and choosing some would be arbitrary."""
MAX_LABEL_LENGTH = 24
"""Largest number of characters in a label; longer labels are truncated."""
# Measures of a fairly wide sans-serif font, relative to the font size.
_LETTER_WIDTH = 0.6
_LINE_HEIGHT = 1.1
_ASCENT = 0.88
# Principal axes are computed from at most this many points, evenly spaced in order.
_MAX_AXIS_POINTS = 100_000
_ELLIPSE_POINTS = 48

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
        Fraction of the points' variance that the plane explains.
    """

    centre: FloatArray
    axes: FloatArray
    share: float

    def project(self, points: FloatArray) -> FloatArray:
        """Return the (m, 2) projections of (m, d) points."""
        return np.asarray((points - self.centre) @ self.axes)

    def region(self, mean: FloatArray, covariance: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the projected mean of a Gaussian, and the outline of its credible ellipse at this level."""
        point = self.project(mean)
        return point, ellipse_outline(point, self.axes.T @ covariance @ self.axes, level)


def map_plane(points: FloatArray) -> Plane:
    """Return the plane of a map of (n, d) points: the coordinates themselves, or two principal axes for d > 2."""
    d = points.shape[1]
    return Plane(np.zeros(d), np.eye(d, 2), 1.0) if d <= 2 else principal_plane(points)


def principal_plane(points: FloatArray) -> Plane:
    """Return the plane of the first two principal axes; in one dimension the second is zero."""
    n, d = points.shape
    subsample = points[:: max(-(-n // _MAX_AXIS_POINTS), 1)]
    centre = subsample.mean(axis=0)
    centred = subsample - centre
    values, vectors = np.linalg.eigh(centred.T @ centred)
    axes = np.zeros((d, 2))
    axes[:, : min(d, 2)] = vectors[:, ::-1][:, :2]
    # An eigenvector's sign is arbitrary; making the largest entry positive keeps maps reproducible.
    axes *= np.where(axes[np.argmax(np.abs(axes), axis=0), [0, 1]] < 0, -1.0, 1.0)
    total = float(values.sum())
    return Plane(centre, axes, float(values[-2:].sum() / total) if total > 0 else 1.0)


def ellipse_radius(level: float) -> float:
    """Return the Mahalanobis radius that contains this fraction of a two-dimensional Gaussian."""
    return math.sqrt(-2.0 * math.log1p(-level))


def ellipse_outline(mean: FloatArray, covariance: FloatArray, level: float) -> FloatArray:
    """Return (48, 2) points on the ellipse that contains this fraction of a two-dimensional Gaussian."""
    values, vectors = np.linalg.eigh(covariance)
    angles = np.linspace(0.0, 2.0 * np.pi, _ELLIPSE_POINTS, endpoint=False)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1) * ellipse_radius(level)
    return np.asarray(mean + circle * np.sqrt(np.maximum(values, 0.0)) @ vectors.T)


def bounds(points: Iterable[Sequence[float]]) -> tuple[PlanePoint, PlanePoint]:
    """Return the lower and upper corners of the bounding box of points."""
    points = list(points)
    across, up = [point[0] for point in points], [point[1] for point in points]
    return (float(min(across)), float(min(up))), (float(max(across)), float(max(up)))


@dataclass(frozen=True)
class Frame:
    """Transformation from a map to a drawing, with equal scales on both axes and a vertical axis that points down.

    Attributes
    ----------
    left, top
        Map coordinates of the upper left corner.
    scale
        Length in the drawing of one map unit.
    corner
        Position in the drawing of the map's upper left corner.
    """

    left: float
    top: float
    scale: float
    corner: PlanePoint

    @classmethod
    def fitted(cls, points: Iterable[Sequence[float]], size: PlanePoint, corner: PlanePoint) -> Frame:
        """Return the frame that fits points into an area of the drawing, given its width, height and corner."""
        (left, low), (right, top) = bounds(points)
        scale = 1.0 / max((right - left) / size[0], (top - low) / size[1], 1e-15)
        return cls(left, top, scale, corner)

    def place(self, x: float, y: float) -> PlanePoint:
        """Return the position in the drawing of a point of the map."""
        return self.corner[0] + self.scale * (x - self.left), self.corner[1] + self.scale * (self.top - y)

    def place_rounded(self, x: float, y: float) -> tuple[int, int]:
        """Return the position of a point, rounded to whole drawing units."""
        across, down = self.place(x, y)
        return round(across), round(down)


def closed_path(corners: Iterable[tuple[float, float]]) -> str:
    """Return the SVG path of a polygon; empty if it has no corners."""
    written = "L".join(f"{x:g} {y:g}" for x, y in corners)
    return f"M{written}Z" if written else ""


def thinned(values: Sequence[_T], limit: int) -> list[_T]:
    """Return at most `limit` values, evenly spaced in order, which preserves their relative density."""
    if len(values) <= limit:
        return list(values)
    return [values[index * len(values) // limit] for index in range(limit)]


@dataclass(frozen=True)
class Mark:
    """Mark on a map to be labelled: its position in the drawing, its radius and the text."""

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


def box_around(x: float, y: float, radius: float) -> Rectangle:
    """Return the square of this half-width around a point."""
    return x - radius, y - radius, x + radius, y + radius


def place_labels(
    marks: Sequence[Mark],
    font_size: float,
    area: Rectangle,
    *,
    obstacles: Iterable[Rectangle] = (),
    avoided: Sequence[Rectangle] = (),
) -> list[Label | None]:
    """Place a label for each mark; None where none fits.

    Marks are labelled in order. The candidate positions of a label are below its mark, above, right and left. A
    position must lie within the area and overlap no mark, no earlier label and no obstacle. The first that also
    avoids those in `avoided` is chosen or, failing that, the first.

    Parameters
    ----------
    marks
        Marks in order of importance.
    font_size
        Font size.
    area
        Rectangle that labels must stay within.
    obstacles
        Rectangles that labels must not overlap.
    avoided
        Rectangles that labels overlap only as a last resort.
    """
    occupied = [*obstacles, *(box_around(mark.x, mark.y, mark.radius) for mark in marks)]
    line, margin = _LINE_HEIGHT * font_size, 0.25 * font_size
    labels: list[Label | None] = []
    for mark in marks:
        text = mark.text if len(mark.text) <= MAX_LABEL_LENGTH else f"{mark.text[: MAX_LABEL_LENGTH - 1]}…"
        half_width, gap = _LETTER_WIDTH * font_size * len(text) / 2, mark.radius + 0.1 * font_size
        # Near the left or right edge, a label below or above moves inwards.
        inside = min(max(mark.x, area[0] + half_width + margin), area[2] - half_width - margin)
        sideways = half_width + gap + margin
        positions = (
            (inside, mark.y + gap),
            (inside, mark.y - gap - line),
            (mark.x + sideways, mark.y - line / 2),
            (mark.x - sideways, mark.y - line / 2),
        )
        boxes = [(x - half_width, top, x + half_width, top + line) for x, top in positions]
        free = [box for box in boxes if _within(box, area) and not _overlaps(box, occupied)]
        if not free:
            labels.append(None)
            continue
        chosen = next((box for box in free if not _overlaps(box, avoided)), free[0])
        occupied.append(chosen)
        labels.append(Label(chosen[0] + half_width, chosen[1] + _ASCENT * font_size, text))
    return labels


def _within(box: Rectangle, area: Rectangle) -> bool:
    return box[0] >= area[0] and box[1] >= area[1] and box[2] <= area[2] and box[3] <= area[3]


def _overlaps(box: Rectangle, others: Iterable[Rectangle]) -> bool:
    return any(box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3] for other in others)
