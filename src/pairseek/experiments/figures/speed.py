"""Figure of MSE against cumulative compute time."""

from __future__ import annotations

import numpy as np

from pairseek.experiments.figure_style import NamedFigure, canvas, legend_outside, line_style, set_log_scale
from pairseek.experiments.results import Results


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
            panel.plot(
                seconds[has_answers],
                mean[has_answers],
                color=line.colour,
                linestyle=line.dash,
                linewidth=1.4,
                marker=line.marker,
                markersize=4,
                markevery=marks,
                label=label,
            )
            lows.append(float(mean[has_answers].min()))
            highs.append(float(mean[has_answers].max()))
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
