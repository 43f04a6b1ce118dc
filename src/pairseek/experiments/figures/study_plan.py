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


def draw_plan(found: StudyPlan, folder: Path) -> list[SavedFigure]:
    """Draw credible radius and error against the number of questions."""
    with drawing():
        return save([_drawing(found)], folder / "figures")


def _drawing(found: StudyPlan) -> NamedFigure:
    labels = found.results.specification.labels
    counts = found.results.counts
    figure, (left, right) = canvas(9.6, 3.6, 1, 2)
    for need in found.needs:
        line = line_of(need.strategy, labels)
        look = {"color": line.colour, "linestyle": line.dash, "linewidth": 1.5}
        radius = found.results.trials("plan", need.strategy, "credible_radius")
        left.plot(counts, need.radius, label=need.strategy, **look)
        low, high = np.quantile(radius, (0.1, 0.9), axis=0)
        left.fill_between(counts, low, high, color=line.colour, alpha=0.1, linewidth=0)
        right.plot(counts, need.error, **look)
    left.axhline(found.target, color=INK, linewidth=1, linestyle=(0, (1.2, 1.4)))
    left.annotate(f"target {found.target:.3g}", (0, found.target), xytext=(4, 4), textcoords="offset points")
    left.set_title("95 % radius: mean, and 8 users in 10")
    right.set_title("distance from the truth (root mean square)")
    prior = found.results.specification.settings[0].prior or default_prior(found.items)
    least = np.sqrt([mse_lower_bound(int(count), prior, found.items.d) for count in counts])
    shown = least > 0.5 * min(float(need.error.min()) for need in found.needs)
    right.plot(
        counts[shown], least[shown], color=FAINT, linewidth=1.2, linestyle=(0, (1.2, 1.4)), label="least possible"
    )
    for axes in (left, right):
        axes.set_xlabel("questions answered")
        axes.set_xlim(0, int(counts[-1]))
        low, high = axes.get_ylim()
        plain_log(axes, [max(low, 1e-3 * high), high])
    legend_outside(figure, left, right)
    caption = (
        f"{found.results.specification.trials} simulated users on {found.items.n} items in {found.items.d} dimensions, "
        f"k = {found.response.constant:.3g} with {found.response.noise} noise. Dotted on the right: the least that any "
        f"strategy can have (Theorem 3.2)."
    )
    return NamedFigure("plan", caption, figure)
