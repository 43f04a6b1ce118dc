"""Figures of MSE and triplet error against the dimension, of MSE against compute time, and of the paper's bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.datasets import food10k_dimensions, food10k_facts
from pairseek.experiments.figure_style import (
    COLOURS,
    FAINT,
    INK,
    NamedFigure,
    canvas,
    legend_outside,
    line_style,
    set_log_scale,
)
from pairseek.experiments.results import Results
from pairseek.experiments.specification import Setting
from pairseek.model.bounds import mse_lower_bound, stopping_time_bounds
from pairseek.model.priors import UniformBox

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EPMV = "EPMV"
MAX_DRAWN_BOUND = 1e4
"""Upper bounds above this number of answers are uninformative and not drawn."""


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
        # A small shift keeps the error bars of different strategies apart.
        shifted = dimensions + 0.03 * (index - len(labels) / 2)
        panel.errorbar(shifted, means, errors, **line.options, linewidth=1.4, elinewidth=0.9, label=label)
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
        errors = list(measured.values())
        axes.plot(list(measured), errors, "s--", color="#D55E00", markersize=5, linewidth=1.5, label="on your triplets")
    axes.set_xlabel("dimension")
    axes.set_ylabel("triplet error fraction")
    axes.set_xticks(dimensions)
    axes.set_ylim(bottom=0)
    legend_outside(figure, axes)
    caption = "Triplet error of the Food-10k embeddings: the fraction of training triplets that they violate."
    return NamedFigure("triplet-error", caption, figure)


def draw_speed(results: Results, *, lag: int = 0) -> NamedFigure:
    """Draw a panel for each setting; each curve begins at the first answer."""
    specification = results.specification
    settings = specification.settings
    figure, axes = canvas(3.5 * len(settings) + 2.0, 3.3, 1, len(settings))
    for panel, setting in zip(axes, settings, strict=True):
        lows, highs = [], []
        for label in specification.labels:
            mean, _ = results.curve(setting.label, label, "squared_error", lag=lag)
            seconds = results.time(setting.label, label)
            has_answers = results.counts >= 1
            line = line_style(label, specification.labels)
            marks = [i for i, count in enumerate(results.counts[has_answers]) if count % 20 == 0]
            x, y = seconds[has_answers], mean[has_answers]
            panel.plot(x, y, **line.options, linewidth=1.4, markevery=marks, label=label)
            lows.append(float(y.min()))
            highs.append(float(y.max()))
        set_log_scale(panel, [0.9 * min(lows), 1.05 * max(highs)])
        panel.set_xscale("log")
        panel.set_title(setting.label)
        panel.set_xlabel("processor seconds so far")
    axes[0].set_ylabel("MSE")
    legend_outside(figure, axes[0])
    total = max(float(np.max(results.time(s.label, label))) for s in settings for label in specification.labels)
    caption = (
        f"Mean squared error against cumulative processor time, {specification.queries} answers, one thread; the "
        f"slowest curve ends at {total:.1f} s. Markers every 20 answers. Error bars are omitted, as in the paper."
    )
    return NamedFigure("speed", caption, figure)


def stopping_times(results: Results, setting: str, volumes: FloatArray) -> FloatArray:
    """Return the (volumes, trials) first answer counts with a smaller posterior volume; NaN where there is none."""
    volume = results.trials(setting, EPMV, "posterior_volume")
    below = volume[None] < volumes[:, None, None]
    first = np.where(below.any(axis=2), results.counts[below.argmax(axis=2)], np.nan)
    return np.asarray(first, dtype=np.float64)


def volume_thresholds(results: Results, setting: str) -> FloatArray:
    """Return decreasing posterior volumes, from just below the prior's to the smallest that every trial reached."""
    volume = results.trials(setting, EPMV, "posterior_volume")
    start, end = float(volume[:, 0].mean()), float(volume.min(axis=1).max())
    return np.asarray(np.geomspace(0.9 * start, 1.05 * end, 40))


def draw_bounds(results: Results, *, lag: int = 0) -> NamedFigure:
    """Draw a column for each setting: stopping time with bounds (top), and MSE with its lower bound (bottom)."""
    settings = results.specification.settings
    figure, axes = canvas(3.5 * len(settings) + 2.2, 6.2, 2, len(settings))
    for column, setting in enumerate(settings):
        _draw_stopping_times(axes[column], results, setting)
        _draw_error(axes[len(settings) + column], results, setting, lag)
    axes[0].set_ylabel("answers until volume < ε")
    axes[len(settings)].set_ylabel("MSE")
    legend_outside(figure, axes[0], axes[len(settings)], over="users")
    caption = (
        "Above: answers that EPMV needs until the posterior volume is below ε (mean with one standard error), with "
        "the lower bound for any strategy and the upper bound for EPMV, in a continuous space with little noise. Upper "
        f"bounds above {MAX_DRAWN_BOUND:,.0f} answers are left out. Below: mean squared error, with the lower bound "
        "for any strategy."
    )
    return NamedFigure("bounds", caption, figure)


def _box_prior(setting: Setting) -> UniformBox:
    assert isinstance(setting.prior, UniformBox)
    return setting.prior


def _draw_stopping_times(axes: Axes, results: Results, setting: Setting) -> None:
    d = setting.dimension or 2
    volumes = volume_thresholds(results, setting.label)
    times = stopping_times(results, setting.label, volumes)
    mean = times.mean(axis=1)
    error = times.std(axis=1, ddof=1) / np.sqrt(times.shape[1]) if times.shape[1] > 1 else np.zeros(len(mean))
    k = setting.response_model(d).constant
    bounds = [stopping_time_bounds(float(v), k, _box_prior(setting), d) for v in volumes]
    lower, upper = np.array([b.lower for b in bounds]), np.array([b.upper for b in bounds])
    upper[upper > MAX_DRAWN_BOUND] = np.nan
    axes.plot(volumes, upper, color=INK, linestyle=(0, (5, 1.6)), linewidth=1.2, label="upper bound for EPMV")
    axes.plot(volumes, mean, color=COLOURS[EPMV], linewidth=1.6, label="EPMV, simulated")
    axes.fill_between(volumes, mean - error, mean + error, color=COLOURS[EPMV], alpha=0.2, linewidth=0)
    is_positive = lower > 0
    style: dict[str, Any] = {"color": INK, "linestyle": (0, (1.2, 1.4)), "linewidth": 1.4}
    axes.plot(volumes[is_positive], lower[is_positive], **style, label="lower bound, any strategy")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.8)
    axes.invert_xaxis()
    axes.set_xlabel("volume ε")
    axes.set_title(setting.label)


def _draw_error(axes: Axes, results: Results, setting: Setting, lag: int) -> None:
    d = setting.dimension or 2
    counts = results.counts
    for label in results.specification.labels:
        mean, error = results.curve(setting.label, label, "squared_error", lag=lag)
        line = line_style(label, results.specification.labels)
        name = "_" if label == EPMV else f"{label}, simulated"
        axes.plot(counts, mean, color=line.colour, linestyle=line.dash, linewidth=1.5, label=name)
        axes.fill_between(counts, mean - error, mean + error, color=line.colour, alpha=0.18, linewidth=0)
    bound = [mse_lower_bound(max(int(count) - lag, 0), _box_prior(setting), d) for count in counts]
    axes.plot(counts, bound, color=INK, linestyle=(0, (1.2, 1.4)), linewidth=1.4)
    axes.fill_between(counts, bound, np.min(bound) / 3, color=FAINT, alpha=0.12, linewidth=0)
    axes.set_yscale("log")
    axes.set_xlim(0, int(counts[-1]))
    axes.set_ylim(bottom=float(np.min(bound)) / 3)
    axes.set_xlabel("answers")
