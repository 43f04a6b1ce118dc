"""Figure of an evaluation: calibration, and the three most important measures for the goal of the search."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pairseek.experiments.evaluation.results import EvaluationResults
from pairseek.experiments.evaluation.specification import FIRST_MEASURES, PICK_MEASURES, PLAIN, POPULARITY
from pairseek.experiments.figure_style import (
    FAINT,
    INK,
    Line,
    NamedFigure,
    SavedFigure,
    canvas,
    drawing,
    legend_outside,
    line_style,
    save,
)
from pairseek.search.goals import Goal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BASELINE_LINES = {PLAIN: Line("#CC79A7", (0, (5, 1.6)), "s"), POPULARITY: Line("#7F7F7F", (0, (1.2, 1.4)), "")}
_TITLES = {
    "accuracy": "Share of choices predicted correctly",
    "log_loss": "Log loss, nats per choice",
    "gain": "Share of people who gain",
    "regret": "Regret: best item less the pick",
    "top_3": "Mean value of the top 3 items",
    "top_5": "Mean value of the top 5 items",
    "liked": "Share of shown items that are liked",
}


def draw(results: EvaluationResults, folder: Path, *, title: str = "", goal: Goal = "taste") -> list[SavedFigure]:
    """Write ``evaluation.png`` and ``evaluation.svg``."""
    first = [name for name in FIRST_MEASURES[goal] if results.valued or name not in PICK_MEASURES][:3]
    with drawing():
        figure, axes = canvas(10.4, 6.4, 2, 2)
        people = len({name for split in results.people for name in split})
        heading = f"{title}: {people} held-out people" if title else f"{people} held-out people"
        figure.suptitle(f"{heading}\n{results.plan.predicted.capitalize()}", x=0.01, ha="left", fontsize=11)
        axes_by_measure = dict(zip(first, (axes[0], axes[1], axes[3]), strict=True))
        for measure, panel in axes_by_measure.items():
            _draw_curves(panel, results, measure, _TITLES[measure])
        _draw_calibration(axes[2], results)
        if results.agreement is not None and "accuracy" in axes_by_measure:
            axes_by_measure["accuracy"].axhline(results.agreement.share, color=INK, linewidth=0.9)
            axes_by_measure["accuracy"].annotate(
                "agreement of people with themselves",
                (0.02, results.agreement.share),
                xycoords=("axes fraction", "data"),
                va="bottom",
                fontsize=8.5,
            )
        legend_outside(figure, axes[0], over="people")
        caption = (
            f"{people} held-out people. {results.plan.predicted.capitalize()}. Bands are one standard error over people"
        )
        return save([NamedFigure("evaluation", caption, figure)], folder)


def _line(results: EvaluationResults, arm: str) -> Line:
    return _BASELINE_LINES.get(arm) or line_style(arm, results.plan.labels)


def _draw_curves(axes: Axes, results: EvaluationResults, measure: str, title: str) -> None:
    counts = np.array(results.plan.answers)
    for arm in results.plan.labels:
        if measure in ("gain", "liked") and arm == POPULARITY:
            continue
        mean, error = results.curve(arm, measure)
        line = _line(results, arm)
        axes.plot(counts, mean, **line.options, label=arm)
        axes.fill_between(counts, mean - error, mean + error, color=line.colour, alpha=0.15, linewidth=0)
    axes.set_title(title)
    axes.set_xlabel("answers")
    axes.set_xticks(counts)


def _draw_calibration(axes: Axes, results: EvaluationResults) -> None:
    # The last count at which more than half of the people still had pairs to predict.
    present = np.isfinite(results.each(results.plan.labels[0], "accuracy")).mean(axis=0) > 0.5
    last = max(np.array(results.plan.answers)[present].tolist(), default=results.plan.answers[0])
    axes.plot([0.5, 1.0], [0.5, 1.0], color=FAINT, linewidth=0.9)
    for arm in results.plan.labels:
        bins = results.calibration(arm, last)
        if bins:
            line = _line(results, arm)
            predicted, share, _ = zip(*bins, strict=True)
            axes.plot(predicted, share, **{**line.options, "marker": line.marker or "x"})
    axes.set_title(f"Calibration after {last} answers")
    axes.set_xlabel("predicted probability")
    axes.set_ylabel("observed share")
