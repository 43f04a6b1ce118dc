"""Simulations that `unchanged.py` records: the search of the paper's figure 1, and mean curves of its figures."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import food
import pairseek as ps
from unchanged_crashes import kept

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from helpers import curves


def cases(wanted: str = "") -> Iterator[tuple[str, Any]]:
    data = "synthetic" if food.folder() is None else "food10k"
    if wanted in "figure 1, its search":
        yield "figure 1, its search", kept(lambda: figure1(data))
    for figure in curves.MARKS:
        settings = curves.specification(figure, data)
        for setting in settings.settings:
            for contender in settings.strategies:
                name = f"{figure}, {setting.label}, {contender.label}"
                if wanted in name:
                    labels = (setting.label, contender.label)
                    yield name, kept(lambda key=(figure, data, *labels): _curves(*key))


def _curves(figure: str, data: str, setting: str, label: str) -> Any:
    results = _simulated(figure, data)
    found: dict[str, Any] = {}
    for metric in results.specification.metrics:
        mean, error = results.curve(setting, label, metric)
        found[metric] = None if np.isnan(mean).any() else {"mean": mean.tolist(), "error": error.tolist()}
    return found


_simulated = cache(curves.simulated)


def figure1(data: str) -> Any:
    """Return the queries, answers and estimates of the search in figure 1."""
    items = (ps.datasets.food10k(2) if data == "food10k" else ps.datasets.synthetic(2)).scaled()
    response = ps.Logistic(8.0, "normalized")
    parts = {"prior": ps.UniformBox(-1.0, 1.0), "candidates": ps.SampledPairs(count=20_000)}
    search = ps.Search(items, response=response, strategy=ps.InfoGain(), rng=5, **parts)
    user = ps.SimulatedUser((0.35, -0.3), response, rng=5)
    steps = []
    for _ in range(12):
        query = search.ask()
        winner = user.answer(items, query)
        search.tell(query, winner=winner)
        steps.append([query.left, query.right, winner, *search.estimate().point.tolist()])
    return steps
