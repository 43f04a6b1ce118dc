"""HTML representations for notebooks: panels of facts, tables, maps and bars made from plain data.

All text is escaped. Styles are inline and colours come from the surrounding page, so panels stay readable on light and
dark backgrounds, and survive notebooks that strip style sheets.
"""

from __future__ import annotations

import base64
import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np

from pairseek.core.maps import Frame, Label, Mark, box_around, closed_path, map_plane, place_labels, thinned
from pairseek.core.media import MEDIA, medium_of
from pairseek.core.text import plural
from pairseek.core.types import FloatArray, ItemId

# Both colours have a contrast above 3:1 with white and with near-black.
POINT_COLOUR = "#1f83c7"
"""Colour of the estimate and its region."""
MARK_COLOUR = "#d0661b"
"""Colour of the rings around highlighted items."""
REGION_PROBABILITY = 0.95
"""Probability of the region around an estimate on a map."""
# Sizes of drawings, in pixels.
_DRAWING_WIDTH = 340
_MAX_HEIGHT = 300
_MARGIN = 14
_FONT_SIZE = 12
_MAX_DOTS = 600
_MAX_TABLE_ROWS = 10
# Larger pictures on disk are not embedded, because a notebook stores everything it shows.
_MAX_PICTURE_BYTES = 150_000
_PICTURE_TYPES = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".gif": "gif", ".webp": "webp"}
_CELL_STYLE = "text-align:left;padding:2px 12px 2px 0;vertical-align:middle;background:none"


class ShownItems(Protocol):
    """The part of `Items` that a representation reads."""

    @property
    def coordinates(self) -> FloatArray:
        """(n, d) coordinates."""

    @property
    def ids(self) -> tuple[ItemId, ...]:
        """Ids of the items."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Texts shown to people."""

    @property
    def appeal(self) -> FloatArray:
        """(n,) appeal."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the coordinates."""

    @property
    def data(self) -> Mapping[str, Sequence[object]]:
        """Further columns."""


class Html(str):
    """Text that is already HTML and must not be escaped again."""

    __slots__ = ()


def escaped(value: object) -> str:
    """Return a value as escaped, shortened text; floating-point numbers have three significant digits."""
    if isinstance(value, Html):
        return value
    if isinstance(value, float):
        value = f"{value:.3g}" if math.isfinite(value) else "–"
    text = str(value)
    return html.escape(text if len(text) <= 60 else f"{text[:59]}…")


def panel(title: str, *parts: str, note: str = "") -> str:
    """Return a titled group of parts, side by side where they fit."""
    inner = "".join(f'<div style="min-width:0">{part}</div>' for part in parts if part)
    below = f'<div style="opacity:.75">{html.escape(note)}</div>' if note else ""
    return (
        '<div style="font:13px/1.45 system-ui,sans-serif;max-width:64rem">'
        f'<div style="font-weight:600;margin-bottom:6px">{escaped(title)}</div>'
        f'<div style="display:flex;flex-wrap:wrap;gap:12px 28px;align-items:flex-start">{inner}</div>{below}</div>'
    )


def table(
    header: Sequence[str], rows: Sequence[Sequence[object]], *, limit: int = _MAX_TABLE_ROWS, omitted: int = 0
) -> Html:
    """Return a table of up to `limit` rows; `omitted` is the number of further rows that the caller left out."""
    omitted += max(len(rows) - limit, 0)
    head = "".join(f'<th scope="col" style="{_CELL_STYLE};font-weight:600">{escaped(name)}</th>' for name in header)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL_STYLE}">{escaped(cell)}</td>' for cell in row) + "</tr>"
        for row in rows[:limit]
    )
    footer = f'<div style="opacity:.75">and {omitted:,} more</div>' if omitted > 0 else ""
    return Html(
        f'<table style="border-collapse:collapse;margin:0;font-size:13px"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>{footer}"
    )


def facts(rows: Sequence[tuple[str, object]]) -> Html:
    """Return a table of names and values."""
    body = "".join(
        f'<tr><th scope="row" style="{_CELL_STYLE};font-weight:400;opacity:.75">{escaped(name)}</th>'
        f'<td style="{_CELL_STYLE}">{escaped(value)}</td></tr>'
        for name, value in rows
    )
    return Html(f'<table style="border-collapse:collapse;margin:0;font-size:13px"><tbody>{body}</tbody></table>')


def bar(fraction: float, low: float | None = None, high: float | None = None) -> Html:
    """Return a bar for a fraction, with its interval if given, and the fraction as text."""
    if not math.isfinite(fraction):
        return Html("–")
    width = 90
    length = width * min(max(fraction, 0.0), 1.0)
    line = ""
    text = f"{fraction:.0%}" if fraction >= 0.1 or fraction == 0 else f"{fraction:.1%}"
    if low is not None and high is not None:
        ends = [width * min(max(end, 0.0), 1.0) for end in (low, high)]
        line = f'<path d="M{ends[0]:.1f} 6H{ends[1]:.1f}" stroke="currentColor" stroke-width="2"/>'
        text = f"{fraction:.0%} ({low:.0%} to {high:.0%})"
    return Html(
        f'<svg width="{width}" height="12" role="img" aria-label="{text}" style="vertical-align:middle">'
        f'<rect width="{width}" height="12" fill="currentColor" opacity=".12"/>'
        f'<rect width="{length:.1f}" height="12" fill="{POINT_COLOUR}"/>{line}</svg> {text}'
    )


def curves(series: Mapping[str, tuple[Sequence[float], Sequence[float]]], *, x_label: str, y_label: str) -> Html:
    """Return a line chart of named (x, y) series, with the ranges of both axes as text."""
    colours = (POINT_COLOUR, MARK_COLOUR, "#2f9e63", "#b0579b", "#8a7a1f", "#7a7a85")
    xs = np.array([x for line in series.values() for x in line[0]], dtype=np.float64)
    ys = np.array([y for line in series.values() for y in line[1]], dtype=np.float64)
    finite = ys[np.isfinite(ys)]
    if not len(finite) or len(xs) < 2:
        return Html("")
    width, height, edge = _DRAWING_WIDTH, 170, 8
    inner_width, inner_height = width - 2 * edge, height - 2 * edge
    left, x_range = float(xs.min()), max(float(np.ptp(xs)), 1e-12)
    low, y_range = float(finite.min()), max(float(np.ptp(finite)), 1e-12)
    lines, legend = [], []
    for number, (name, (x_values, y_values)) in enumerate(series.items()):
        colour = colours[number % len(colours)]
        corners = [
            f"{edge + (x - left) / x_range * inner_width:.1f} {height - edge - (y - low) / y_range * inner_height:.1f}"
            for x, y in zip(x_values, y_values, strict=True)
            if math.isfinite(y)
        ]
        if corners:
            lines.append(f'<path d="M{"L".join(corners)}" fill="none" stroke="{colour}" stroke-width="2"/>')
        legend.append(f'<span style="white-space:nowrap"><b style="color:{colour}">●</b> {escaped(name)}</span>')
    ranges = escaped(f"{y_label} from {low:.3g} to {low + y_range:.3g}, over {left:g} to {left + x_range:g} {x_label}")
    return Html(
        f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" aria-label="{ranges}" style="max-width:100%">'
        f'<path d="M.5 .5H{width - 0.5}V{height - 0.5}H.5Z" fill="none" stroke="currentColor" opacity=".25"/>'
        f'{"".join(lines)}</svg><div>{" &nbsp; ".join(legend)}</div><div style="opacity:.75">{ranges}</div>'
    )


# Maps


def plane_map(
    points: FloatArray,
    *,
    description: str,
    colours: Sequence[str | None] | None = None,
    names: Mapping[int, str] | None = None,
    point: FloatArray | None = None,
    outline: FloatArray | None = None,
) -> Html:
    """Return a map of (n, 2) points with equal scales on both axes.

    Parameters
    ----------
    points
        The dots; a large set is thinned.
    description
        What the map shows, for screen readers.
    colours
        Colour of each dot as ``#rrggbb``, or None for the text colour.
    names
        Names of dots by row; these dots are highlighted.
    point, outline
        The estimate and the outline of its region.
    """
    names = names or {}
    shapes = [points, *([] if point is None else [point[None]]), *([] if outline is None else [outline])]
    corners = np.concatenate([[shape.min(axis=0), shape.max(axis=0)] for shape in shapes])
    frame = Frame.fitted(corners, (_DRAWING_WIDTH - 2 * _MARGIN, _MAX_HEIGHT - 2 * _MARGIN), (_MARGIN, _MARGIN))
    across, down = (np.ptp(corners, axis=0) * frame.scale).tolist()
    # A narrow map needs room for labels at its sides.
    width, height = max(int(across) + 2 * _MARGIN, 220), max(int(down), 24) + 2 * _MARGIN
    frame = replace(frame, corner=((width - across) / 2, _MARGIN))

    def drawing_points(rows: FloatArray) -> list[tuple[float, float]]:
        return [(round(x, 1), round(y, 1)) for x, y in (frame.place(*row) for row in rows.tolist())]

    parts = []
    drawn = thinned(range(len(points)), _MAX_DOTS)
    dots = drawing_points(points[drawn])
    for row, (x, y) in zip(drawn, dots, strict=True):
        colour = None if colours is None else colours[row]
        fill = 'fill="currentColor" opacity=".45"' if colour is None else f'fill="{html.escape(colour)}"'
        parts.append(f'<circle cx="{x}" cy="{y}" r="{3 if colour is None else 4}" {fill}/>')
    if outline is not None:
        path = closed_path(drawing_points(outline))
        parts.append(
            f'<path d="{path}" fill="{POINT_COLOUR}" fill-opacity=".12" stroke="{POINT_COLOUR}" stroke-width="1.5"/>'
        )
    cross = None if point is None else drawing_points(point[None])[0]
    if names:
        # Labels on coloured dots have an outline; otherwise they take the page's text colour.
        text_style = (
            'fill="currentColor"'
            if colours is None
            else 'fill="#fff" stroke="#222" stroke-width="3" paint-order="stroke"'
        )
        marks = [
            Mark(x, y, 6.5, names[row]) for row, (x, y) in zip(names, drawing_points(points[list(names)]), strict=True)
        ]
        obstacles = [] if cross is None else [box_around(*cross, 7)]
        avoided = [box_around(x, y, 3) for x, y in dots]
        labels = place_labels(marks, _FONT_SIZE, (0, 0, width, height), obstacles=obstacles, avoided=avoided)
        parts += _rings_and_labels(marks, labels, text_style)
    if cross is not None:
        x, y = cross
        parts.append(f'<path d="M{x - 6} {y}h12M{x} {y - 6}v12" stroke="{POINT_COLOUR}" stroke-width="3"/>')
    return Html(
        f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" aria-label="{html.escape(description)}" '
        f'style="max-width:100%;height:auto">{"".join(parts)}</svg>'
    )


def _rings_and_labels(marks: Sequence[Mark], labels: Sequence[Label | None], text_style: str) -> list[str]:
    """Return the circles around highlighted dots, and the labels that fit."""
    rings = [
        f'<circle cx="{mark.x}" cy="{mark.y}" r="5.5" fill="none" stroke="{MARK_COLOUR}" stroke-width="2"/>'
        for mark in marks
    ]
    return rings + [
        f'<text x="{label.x:.1f}" y="{label.y:.1f}" text-anchor="middle" font-size="{_FONT_SIZE}" {text_style}>'
        f"{html.escape(label.text)}</text>"
        for label in labels
        if label is not None
    ]


# Items


def items_panel(items: ShownItems) -> str:
    """Return the representation of items: a map and a table of the first rows."""
    n, d = items.coordinates.shape
    title = f"{n:,} items" + (f" in {plural(d, 'dimension')}" if d else " without coordinates")
    drawing, note = items_map(items)
    return panel(title, drawing, item_rows(items, range(min(n, 5)), {}, omitted=n - 5), note=note)


def item_rows(
    items: ShownItems, rows: Sequence[int], further: Mapping[str, Sequence[object]], *, omitted: int = 0
) -> Html:
    """Return a table of items with their pictures or colours, if any, and further columns."""
    columns: dict[str, Sequence[object]] = {}
    swatches = swatches_of(items.data, rows)
    if swatches is not None:
        columns[""] = swatches
    columns["id"] = [items.ids[row] for row in rows]
    if any(str(items.ids[row]).casefold() != items.labels[row].casefold() for row in rows):
        columns["label"] = [items.labels[row] for row in rows]
    if np.any(items.appeal):
        columns["appeal"] = items.appeal[list(rows)].tolist()
    if items.coordinates.shape[1] == 1:
        columns[items.columns[0]] = items.coordinates[list(rows), 0].tolist()
    columns |= further
    return table(list(columns), list(zip(*columns.values(), strict=True)), omitted=omitted)


def items_map(
    items: ShownItems,
    names: Mapping[int, str] | None = None,
    mean: FloatArray | None = None,
    covariance: FloatArray | None = None,
) -> tuple[Html, str]:
    """Return the map of items in two or more dimensions, with the estimate if given, and a note on its axes."""
    n, d = items.coordinates.shape
    if d < 2:
        return Html(""), ""
    plane = map_plane(items.coordinates)
    description, point, outline = f"Map of {n:,} items", None, None
    if mean is not None and covariance is not None:
        point, outline = plane.region(mean, covariance, REGION_PROBABILITY)
        description += ", the estimate, and the region that contains the user point with a probability of 95 %"
    drawing = plane_map(
        plane.project(items.coordinates),
        description=description,
        colours=colours_of(items.data),
        names=names,
        point=point,
        outline=outline,
    )
    note = f"The map shows the first two principal axes of {d}: {plane.share:.0%} of the variance." if d > 2 else ""
    return drawing, note


def colours_of(data: Mapping[str, Sequence[object]]) -> list[str | None] | None:
    """Return the valid colours of the items, or None if no data column holds colours."""
    for name, values in data.items():
        if medium_of(name) is MEDIA["colour"]:
            texts = [str(value) for value in values]
            return [text if MEDIA["colour"].advice(text) is None else None for text in texts]
    return None


def swatches_of(data: Mapping[str, Sequence[object]], rows: Sequence[int]) -> list[Html] | None:
    """Return a thumbnail or colour swatch for these items, or None if the data hold neither."""
    colours = colours_of(data)
    images = next((values for name, values in data.items() if medium_of(name) is MEDIA["image"]), None)
    if colours is None and images is None:
        return None
    out = []
    for row in rows:
        address = None if images is None else _picture_address(str(images[row]))
        if address is not None:
            out.append(
                Html(
                    f'<img src="{html.escape(address)}" alt="" loading="lazy" referrerpolicy="no-referrer" '
                    'style="max-width:56px;max-height:56px;border-radius:3px;margin:0">'
                )
            )
        elif colours is not None and colours[row] is not None:
            out.append(
                Html(
                    f'<span style="display:inline-block;width:28px;height:18px;border-radius:3px;'
                    f'border:1px solid rgba(128,128,128,.5);background:{colours[row]}"></span>'
                )
            )
        else:
            out.append(Html(""))
    return out


def _picture_address(value: str) -> str | None:
    """Return the address of a picture: an https URL, or a data URL of a small file on disk."""
    if value.startswith("https://"):
        return value
    picture_type = _PICTURE_TYPES.get(Path(value).suffix.lower())
    try:
        if picture_type is None or Path(value).stat().st_size > _MAX_PICTURE_BYTES:
            return None
        content = Path(value).read_bytes()
    except (OSError, ValueError):
        return None
    return f"data:image/{picture_type};base64,{base64.b64encode(content).decode()}"
