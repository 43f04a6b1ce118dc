"""Figures of MSE and of triplet error against the number of dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from pairseek.datasets import food10k_dimensions, food10k_facts
from pairseek.experiments.figure_style import INK, NamedFigure, canvas, legend_outside, line_style, set_log_scale
from pairseek.experiments.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_dimensions(
    results: Results, *, noises: tuple[str, ...], answers: tuple[int, ...], lag: int = 0
) -> NamedFigure:
    """Draw MSE with error bars against dimension: a row for each number of answers, a column for each noise."""
    figure, axes = canvas(3.3 * len(noises) + 1.5, 2.9 * len(answers), len(answers), len(noises))
    for row, count in enumerate(answers):
        for column, noise in enumerate(noises):
            panel = axes[row * len(noises) + column]
            _draw_panel(panel, results, noise, count, lag)
            if column == 0:
                panel.set_ylabel("MSE")
    legend_outside(figure, axes[0])
    after = " and ".join(map(str, answers))
    caption = f"Mean squared error against dimension after {after} answers, with one standard error."
    return NamedFigure("dimensions", caption, figure)


def _draw_panel(panel: Axes, results: Results, noise: str, count: int, lag: int) -> None:
    labels = results.specification.labels
    settings = [setting for setting in results.specification.settings if setting.response.noise == noise]
    dimensions = np.array([setting.dimension or 0 for setting in settings])
    count_index = results.column(count)
    lowest, highest = np.inf, 0.0
    for index, label in enumerate(labels):
        curves = [results.curve(setting.label, label, "squared_error", lag=lag) for setting in settings]
        means, errors = (np.array([curve[row][count_index] for curve in curves]) for row in (0, 1))
        line = line_style(label, labels)
        panel.errorbar(
            # A small shift keeps the error bars of different strategies apart.
            dimensions + 0.03 * (index - len(labels) / 2),
            means,
            errors,
            color=line.colour,
            linestyle=line.dash,
            linewidth=1.4,
            marker=line.marker,
            markersize=4,
            elinewidth=0.9,
            label=label,
        )
        lowest, highest = min(lowest, float(means.min())), max(highest, float((means + errors).max()))
    panel.set_title(f"matched {noise} noise, {count} answers")
    panel.set_xlabel("dimension")
    panel.set_xticks(dimensions)
    set_log_scale(panel, [0.7 * lowest, 1.1 * highest])


def draw_triplet_error(measured: Mapping[int, float] | None = None) -> NamedFigure:
    """Draw the triplet error of the embeddings, as published and, if given, as measured."""
    figure, (axes,) = canvas(6.6, 3.4)
    dimensions = food10k_dimensions()
    published = [food10k_facts(d).triplet_error for d in dimensions]
    axes.plot(dimensions, published, color=INK, marker="o", markersize=5, linewidth=1.5, label="as published")
    if measured:
        axes.plot(
            list(measured),
            list(measured.values()),
            color="#D55E00",
            marker="s",
            markersize=5,
            linestyle="--",
            linewidth=1.5,
            label="on your triplets",
        )
    axes.set_xlabel("dimension")
    axes.set_ylabel("triplet error fraction")
    axes.set_xticks(dimensions)
    axes.set_ylim(bottom=0)
    legend_outside(figure, axes)
    caption = "Triplet error of the Food-10k embeddings: the fraction of training triplets that they violate."
    return NamedFigure("triplet-error", caption, figure)
