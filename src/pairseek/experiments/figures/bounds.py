"""Figure of simulations with the paper's bounds on EPMV's stopping time (Theorem 3.4) and on MSE (Theorem 3.2)."""

from __future__ import annotations

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.experiments.figure_style import COLOURS, FAINT, INK, NamedFigure, canvas, legend_outside, line_style
from pairseek.experiments.results import Results
from pairseek.experiments.specification import Setting
from pairseek.model.bounds import mse_lower_bound, stopping_time_bounds
from pairseek.model.priors import UniformBox

EPMV = "EPMV"
MAX_DRAWN_BOUND = 1e4
"""Upper bounds above this number of answers are uninformative and not drawn."""


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


def _draw_stopping_times(axes: object, results: Results, setting: Setting) -> None:
    from matplotlib.axes import Axes

    assert isinstance(axes, Axes)
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
    axes.plot(
        volumes[is_positive],
        lower[is_positive],
        color=INK,
        linestyle=(0, (1.2, 1.4)),
        linewidth=1.4,
        label="lower bound, any strategy",
    )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.8)
    axes.invert_xaxis()
    axes.set_xlabel("volume ε")
    axes.set_title(setting.label)


def _draw_error(axes: object, results: Results, setting: Setting, lag: int) -> None:
    from matplotlib.axes import Axes

    assert isinstance(axes, Axes)
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
