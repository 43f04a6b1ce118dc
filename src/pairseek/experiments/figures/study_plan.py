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
    line_style,
    save,
    set_log_scale,
)
from pairseek.model.bounds import mse_lower_bound
from pairseek.model.defaults import default_prior

if TYPE_CHECKING:
    from pairseek.experiments.study_plan import StudyPlan


def draw_plan(plan: StudyPlan, folder: Path) -> list[SavedFigure]:
    """Draw the credible radius and the error against the number of questions, as PNG and SVG."""
    with drawing():
        return save([_plan_figure(plan)], folder / "figures")


def _plan_figure(plan: StudyPlan) -> NamedFigure:
    labels = plan.results.specification.labels
    counts = plan.results.counts
    figure, (left, right) = canvas(9.6, 3.6, 1, 2)
    for required in plan.required_answers:
        line = line_style(required.strategy, labels)
        style = {"color": line.colour, "linestyle": line.dash, "linewidth": 1.5}
        radius = plan.results.trials("plan", required.strategy, "credible_radius")
        left.plot(counts, required.radius, label=required.strategy, **style)
        low, high = np.quantile(radius, (0.1, 0.9), axis=0)
        left.fill_between(counts, low, high, color=line.colour, alpha=0.1, linewidth=0)
        right.plot(counts, required.error, **style)
    left.axhline(plan.target, color=INK, linewidth=1, linestyle=(0, (1.2, 1.4)))
    left.annotate(f"target {plan.target:.3g}", (0, plan.target), xytext=(4, 4), textcoords="offset points")
    left.set_title("95 % radius: mean and central 80 % of users")
    right.set_title("distance from the truth (root mean square)")
    prior = plan.results.specification.settings[0].prior or default_prior(plan.items)
    bound = np.sqrt([mse_lower_bound(int(count), prior, plan.items.d) for count in counts])
    is_shown = bound > 0.5 * min(float(required.error.min()) for required in plan.required_answers)
    right.plot(
        counts[is_shown], bound[is_shown], color=FAINT, linewidth=1.2, linestyle=(0, (1.2, 1.4)), label="lower bound"
    )
    for axes in (left, right):
        axes.set_xlabel("questions answered")
        axes.set_xlim(0, int(counts[-1]))
        low, high = axes.get_ylim()
        set_log_scale(axes, [max(low, 1e-3 * high), high])
    legend_outside(figure, left, right)
    caption = (
        f"{plan.results.specification.trials} simulated users on {plan.items.n} items in {plan.items.d} "
        f"dimensions, k = {plan.response.constant:.3g} with {plan.response.noise} noise. Dotted on the right: "
        f"the lower bound for any strategy (Theorem 3.2)."
    )
    return NamedFigure("plan", caption, figure)
