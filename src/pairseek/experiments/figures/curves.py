"""Figures of metrics against the number of answers, with mean and standard error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pairseek.experiments.figure_style import NamedFigure, canvas, legend_outside, line_style, set_log_scale
from pairseek.experiments.measures import MEASURES
from pairseek.experiments.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Panel:
    """A panel with one metric in one setting."""

    setting: str
    metric: str
    title: str


def draw_panels(
    results: Results, panels: Sequence[Panel], *, name: str, caption: str, columns: int = 2, lag: int = 0
) -> NamedFigure:
    """Draw panels in rows with one legend; panels of the same metric share their scale."""
    rows = -(-len(panels) // columns)
    figure, axes = canvas(4.1 * columns + 1.5, 3.1 * rows + 0.2, rows, columns)
    for axis, panel in zip(axes, panels, strict=False):
        _draw_panel(axis, results, panel, lag)
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    _share_limits(axes, panels)
    legend_outside(figure, axes[0], over="users")
    return NamedFigure(name, caption, figure)


def _draw_panel(axes: Axes, results: Results, panel: Panel, lag: int) -> None:
    measure = MEASURES[panel.metric]
    labels = results.specification.labels
    counts = results.counts
    lowest, highest = np.inf, 0.0
    for label in labels:
        mean, error = results.curve(panel.setting, label, panel.metric, lag=lag)
        if not np.all(np.isfinite(mean)):
            continue
        line = line_style(label, labels)
        marks = [i for i, count in enumerate(counts) if count and count % max(1, counts[-1] // 4) == 0]
        axes.plot(counts, mean, **line.options, linewidth=1.5, markevery=marks, label=label)
        axes.fill_between(counts, mean - error, mean + error, color=line.colour, alpha=0.16, linewidth=0)
        # With few users a band can reach towards 0, which must not stretch a logarithmic scale.
        lowest = min(lowest, float(np.maximum(mean - error, 0.7 * mean).min()))
        highest = max(highest, float((mean + error).max()))
    axes.set_title(panel.title)
    axes.set_xlabel("answers")
    axes.set_ylabel(measure.axis)
    axes.set_xlim(0, int(counts[-1]))
    if measure.log and 0 < lowest < highest:
        set_log_scale(axes, [0.95 * lowest, 1.05 * highest])
    else:
        axes.set_ylim(0, 1.05 * highest or 1.0)


def _share_limits(axes: Sequence[Axes], panels: Sequence[Panel]) -> None:
    for metric in {panel.metric for panel in panels}:
        members = [axis for axis, panel in zip(axes, panels, strict=False) if panel.metric == metric]
        low = min(axis.get_ylim()[0] for axis in members)
        high = max(axis.get_ylim()[1] for axis in members)
        for axis in members:
            if axis.get_yscale() == "log":
                set_log_scale(axis, [low, high])
            axis.set_ylim(low, high)


def draw_all(results: Results, *, lag: int = 0) -> list[NamedFigure]:
    """Draw a figure for each setting, with a panel for each metric."""
    drawings = []
    for index, setting in enumerate(results.specification.settings):
        panels = [Panel(setting.label, metric, MEASURES[metric].title) for metric in results.specification.metrics]
        drawings.append(
            draw_panels(
                results,
                panels,
                name=f"{results.specification.name}-{index + 1}",
                caption=f"{setting.label}: mean over {results.specification.trials} users, with one standard error.",
                columns=min(2, len(panels)),
                lag=lag,
            )
        )
    return drawings
