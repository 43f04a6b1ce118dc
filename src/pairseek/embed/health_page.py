"""HTML report of a health check."""

from __future__ import annotations

import html
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pairseek.core.maps import principal_plane
from pairseek.core.types import FloatArray
from pairseek.embed.findings import MIN_INFORMATIVE_BITS
from pairseek.embed.health import Health
from pairseek.experiments.figure_style import FAINT, INK, canvas, drawing
from pairseek.experiments.html_report import image, write_html

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BLUE = "#0072B2"
_RED = "#D55E00"
_GREEN = "#009E73"
_LEVEL_LABELS = {"good": "good", "note": "note", "act": "fix"}
_MAX_DRAWN_ITEMS = 5000
_STYLE = """
table { width: 100%; margin: 1.2rem 0; }
th, td { text-align: left; vertical-align: top; padding: .45rem .9rem .45rem 0; border-bottom: 1px solid #e4e4e8; }
td:first-child { white-space: nowrap; } .act { color: #a33f00; font-weight: 600; } .note { color: #6b5200; }
.good { color: #00664b; } td p { margin: .2rem 0 0; color: #44444e; }
"""


def write_health(health: Health, path: Path) -> Path:
    """Write the report of a health check."""
    with drawing():
        figure = _draw_figure(health)
        picture = io.BytesIO()
        figure.savefig(picture, format="svg", metadata={"Date": None})
    verdict = "Nothing to do." if health.good else "Some problems should be fixed before people are asked."
    rows = "\n".join(
        f'<tr><td>{html.escape(finding.name)}</td><td class="{finding.level}">{_LEVEL_LABELS[finding.level]}</td>'
        f"<td>{html.escape(finding.found)}{f'<p>{html.escape(finding.advice)}</p>' if finding.advice else ''}</td></tr>"
        for finding in health.findings
    )
    alt = "Items, spread along each direction, information of random pairs, and agreement"
    body = [
        f"<p>{verdict}</p>",
        f"<table><thead><tr><th>checked</th><th></th><th>finding</th></tr></thead>\n<tbody>\n{rows}\n</tbody></table>",
        image(picture.getvalue(), ".svg", alt),
    ]
    return write_html(path, "A catalogue, checked", body, subtitle=f"items {health.items.hash[:16]}", style=_STYLE)


def _draw_figure(health: Health) -> Figure:
    figure, (items_axes, spread_axes, information_axes, reliability_axes) = canvas(10, 7.2, 2, 2)
    _draw_items(items_axes, health)
    deviations = health.numbers["spread"]
    spread_axes.bar(range(1, len(deviations) + 1), deviations, color=_BLUE, width=0.6)
    spread_axes.set_xticks(range(1, len(deviations) + 1))
    spread_axes.set_xlabel("direction, widest first")
    spread_axes.set_title("standard deviation of the items")
    information_axes.hist(health.information, bins=40, range=(0, 1), color=_BLUE)
    information_axes.axvline(MIN_INFORMATIVE_BITS, color=INK, linewidth=1, linestyle=(0, (1.2, 1.4)))
    information_axes.set_xlabel("expected information of the first answer, in bits")
    information_axes.set_ylabel("random pairs")
    information_axes.set_title("how informative pairs are")
    if len(health.calibration):
        _draw_agreement(reliability_axes, health.calibration)
    else:
        _draw_reliability(reliability_axes, health)
    return figure


def _draw_items(axes: Axes, health: Health) -> None:
    points = health.items.coordinates
    projected = principal_plane(points).project(points)
    if health.items.d == 1:
        projected[:, 1] = np.linspace(-1, 1, len(projected))
    step = max(1, len(projected) // _MAX_DRAWN_ITEMS)
    marker_style: dict[str, Any] = {"linestyle": "none", "marker": "."}
    axes.plot(*projected[::step].T, color=FAINT, markersize=3, alpha=0.6, label="items", **marker_style)
    for mask, colour, label in (
        (health.outside, _GREEN, "outside the prior"),
        (health.duplicates, _BLUE, "near-duplicates"),
        (health.outliers, _RED, "outliers"),
    ):
        if mask.any():
            rows = np.flatnonzero(mask)
            rows = rows[:: max(1, len(rows) // _MAX_DRAWN_ITEMS)]
            size = 3 if len(rows) > len(projected) / 10 else 5
            axes.plot(*projected[rows].T, color=colour, markersize=size, alpha=0.7, label=label, **marker_style)
    axes.set_xlabel("widest direction")
    axes.set_ylabel("second" if health.items.d > 1 else "(spread out for visibility)")
    axes.set_title("the items")
    axes.legend(loc="best", fontsize=8)


def _draw_agreement(axes: Axes, calibration: FloatArray) -> None:
    predicted, observed, counts = calibration.T
    error = np.sqrt(np.maximum(observed * (1 - observed), 0.25 / counts) / counts)
    axes.plot([0.5, 1], [0.5, 1], color=FAINT, linewidth=1)
    axes.errorbar(predicted, observed, 2 * error, color=_BLUE, marker="o", markersize=5, linewidth=1.2, capsize=2)
    axes.set_xlabel("predicted fraction of agreeing triplets")
    axes.set_ylabel("observed (two standard errors)")
    axes.set_title("does the noise model fit people?")


def _draw_reliability(axes: Axes, health: Health) -> None:
    widest = float(np.max(health.numbers["spread"]))
    gaps = np.linspace(0, 2 * widest, 200)
    # Two items two standard deviations apart, and a person at each distance from the plane between them.
    length = np.full(len(gaps), 4.0 * widest)
    logits = health.response.pair_constant(length) * length * gaps
    axes.plot(gaps / widest, health.response.probability(logits), color=_BLUE, linewidth=1.6)
    axes.set_xlabel("distance from the plane, in widest deviations")
    axes.set_ylabel("probability of the nearer item")
    axes.set_ylim(0.5, 1.01)
    axes.set_title("assumed reliability of answers")
