"""Figure of a study plan: credible radius and error against the number of questions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pairseek.experiments.figure_style import (
    FAINT,
    INK,
    NamedFigure,
    SavedFigure,
    canvas,
    drawing,
    legend_outside,
    line_of,
    plain_log,
    save,
)
from pairseek.model.bounds import mse_lower_bound
from pairseek.model.defaults import default_prior

if TYPE_CHECKING:
    from pairseek.experiments.study_plan import StudyPlan


def draw_plan(planned: StudyPlan, folder: Path) -> list[SavedFigure]:
    """Draw the credible radius and the error against the number of questions, as PNG and SVG."""
    with drawing():
        return save([_drawing(planned)], folder / "figures")


def _drawing(planned: StudyPlan) -> NamedFigure:
    labels = planned.results.specification.labels
    counts = planned.results.counts
    figure, (left, right) = canvas(9.6, 3.6, 1, 2)
    for need in planned.needs:
        line = line_of(need.strategy, labels)
        look = {"color": line.colour, "linestyle": line.dash, "linewidth": 1.5}
        radius = planned.results.trials("plan", need.strategy, "credible_radius")
        left.plot(counts, need.radius, label=need.strategy, **look)
        low, high = np.quantile(radius, (0.1, 0.9), axis=0)
        left.fill_between(counts, low, high, color=line.colour, alpha=0.1, linewidth=0)
        right.plot(counts, need.error, **look)
    left.axhline(planned.target, color=INK, linewidth=1, linestyle=(0, (1.2, 1.4)))
    left.annotate(f"target {planned.target:.3g}", (0, planned.target), xytext=(4, 4), textcoords="offset points")
    left.set_title("95 % radius: mean and central 80 % of users")
    right.set_title("distance from the truth (root mean square)")
    prior = planned.results.specification.settings[0].prior or default_prior(planned.items)
    bound = np.sqrt([mse_lower_bound(int(count), prior, planned.items.d) for count in counts])
    shown = bound > 0.5 * min(float(need.error.min()) for need in planned.needs)
    right.plot(counts[shown], bound[shown], color=FAINT, linewidth=1.2, linestyle=(0, (1.2, 1.4)), label="lower bound")
    for axes in (left, right):
        axes.set_xlabel("questions answered")
        axes.set_xlim(0, int(counts[-1]))
        low, high = axes.get_ylim()
        plain_log(axes, [max(low, 1e-3 * high), high])
    legend_outside(figure, left, right)
    caption = (
        f"{planned.results.specification.trials} simulated users on {planned.items.n} items in {planned.items.d} "
        f"dimensions, k = {planned.response.constant:.3g} with {planned.response.noise} noise. Dotted on the right: "
        f"the lower bound for any strategy (Theorem 3.2)."
    )
    return NamedFigure("plan", caption, figure)
