"""Mean curves of quick versions of the paper's figures 1 and 2, as computed now and as committed.

python tests/helpers/curves.py       # rewrite tests/fidelity_curves.json after an intended change
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

import pairseek as ps
from pairseek.experiments import SPECIFICATIONS, Contender, Results, Setting, Specification, run

COMMITTED = Path(__file__).resolve().parents[1] / "fidelity_curves.json"
DATA = ("food10k", "synthetic")
MARKS = {"figure1": (4, 8, 12), "figure2": (20, 40, 60, 80)}
APART = 4.0
"""Difference, in standard errors, beyond which two means count as different."""

Curves = dict[str, dict[str, list[list[float]]]]


def specification(figure: str, data: str) -> Specification:
    """Return figure 2 as run by `pairseek reproduce --preset quick`, or figure 1 with 24 people instead of one."""
    if figure == "figure2":
        quick = SPECIFICATIONS["figure2"]("quick")
        return replace(quick, settings=tuple(replace(setting, data=data) for setting in quick.settings))
    setting = Setting("figure 1", data, 2, response=ps.Logistic(8.0, "normalized"))
    strategies = (Contender(ps.InfoGain()), Contender(ps.Random()))
    # 20,000 of the pairs of 12,624 items, as in the figure.
    return Specification("figure1", (setting,), strategies, rate=2.51e-4, queries=12, trials=24)


def simulated(figure: str, data: str) -> Results:
    with tempfile.TemporaryDirectory() as folder:
        return run(specification(figure, data), folder)


def curves_of(results: Results, marks: tuple[int, ...]) -> Curves:
    """Return the mean and standard error after the marked numbers of answers, by curve and measure."""
    curves: Curves = {}
    for setting in (setting.label for setting in results.specification.settings):
        for label in results.specification.labels:
            measures = {}
            for metric in results.specification.metrics:
                mean, error = results.curve(setting, label, metric)
                columns = [results.column(mark) for mark in marks]
                # Procedures have no posterior to measure.
                if not np.isnan(mean[columns]).any():
                    measures[metric] = [[float(mean[column]), float(error[column])] for column in columns]
            curves[f"{setting}, {label}"] = measures
    return curves


def apart(before: Curves, after: Curves, marks: tuple[int, ...]) -> list[str]:
    """Return the points at which two sets of curves differ by more than chance explains.

    Both are means over the same few people. A change that only affects the last bits still changes all but the first
    questions. Two means then differ at most like independent ones, with variance e1² + e2², and less because the people
    are the same. About one difference in 1500 exceeds 4 standard errors (t with 22 degrees of freedom). Figure 2
    compares 192 points, and the four points of a curve are highly correlated, so about one harmless change in twenty is
    reported.
    """
    if {name: set(measures) for name, measures in before.items()} != {
        name: set(measures) for name, measures in after.items()
    }:
        return [f"other curves: {sorted(before)} -> {sorted(after)}"]
    return [
        f"{name}, {measure} after {mark} answers: {then:.3f} ({error:.3f}) -> {now:.3f} ({other:.3f})"
        for name, measures in before.items()
        for measure, points in measures.items()
        for mark, (then, error), (now, other) in zip(marks, points, after[name][measure], strict=True)
        if not abs(now - then) <= APART * math.hypot(error, other)
    ]


def committed() -> dict[str, dict[str, Curves]]:
    return json.loads(COMMITTED.read_text(encoding="utf-8"))


def main() -> None:
    curves: dict[str, dict[str, Curves]] = {}
    for data in DATA:
        curves[data] = {figure: curves_of(simulated(figure, data), marks) for figure, marks in MARKS.items()}
    COMMITTED.write_text(_formatted(curves) + "\n", encoding="utf-8")


def _formatted(value: object, indent: str = "\n") -> str:
    """Return JSON with six significant digits and one line per curve."""
    if isinstance(value, dict):
        rows = ",".join(
            f"{indent} {json.dumps(name)}: {_formatted(part, indent + ' ')}" for name, part in value.items()
        )
        return f"{{{rows}{indent}}}"
    return json.dumps([[float(f"{number:.6g}") for number in point] for point in value])  # type: ignore[attr-defined]


if __name__ == "__main__":
    shared = Path(__file__).resolve().parents[3] / "shared"
    os.environ.setdefault("PAIRSEEK_DATA", str(shared))
    sys.exit(main())
