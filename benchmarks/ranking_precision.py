"""Precision of rankings by size of the study: simulates studies, and writes the table behind `pairseek plan`.

    python benchmarks/ranking_precision.py src/pairseek/people/ranking/precision.json

Utilities are base_i + V_i z + residual: half of their variance is shared by everybody, and half is each person's own.
Pairs are balanced, as for the first people of a study without coordinates. Takes some ten minutes.
"""

from __future__ import annotations

import json
import sys
from itertools import product
from pathlib import Path

import numpy as np
from scipy.special import expit

import pairseek as ps

ITEMS = (4, 12, 40, 120)
PEOPLE = (4, 12, 40, 120)
ANSWERS = (3, 10, 30, 90)
# Standard deviations in logits: of mean utilities, of each of two tastes, and of residual utilities.
MEAN, TASTE, RESIDUAL = 1.0, 0.55, 0.63
RUNS = {4: 60, 12: 40, 40: 16, 120: 8}


def simulated_choices(items, people, answers, rng):
    """Return the choices of a simulated study, and the mean utilities behind them."""
    base = MEAN * rng.standard_normal(items)
    factors = TASTE * rng.standard_normal((items, 2))
    shown = np.zeros(items)
    rows = []
    for person in range(people):
        utility = base + factors @ rng.standard_normal(2) + RESIDUAL * rng.standard_normal(items)
        for _ in range(answers):
            order = rng.permutation(items)
            first, second = order[np.argsort(shown[order], kind="stable")[:2]].tolist()
            shown[[first, second]] += 1
            if rng.random() > expit(utility[first] - utility[second]):
                first, second = second, first
            rows.append((f"person {person}", first, second))
    return ps.Choices.from_pairs(rows, ids=range(items)), base


def measured(items, people, answers, rng):
    """Return the mean width of the rank intervals, the chance of the leading item, and whether it is the best."""
    choices, base = simulated_choices(items, people, answers, rng)
    ranking = ps.rank(choices, ps.Items(ids=range(items)))
    width = np.mean([row.rank_high - row.rank_low for row in ranking]) / (items - 1)
    return float(width), ranking.items[0].top_1, float(ranking.ids[0] == int(base.argmax()))


def simulated_cell(items, people, answers, runs, seed):
    """Return the means of `measured` over runs."""
    rng = np.random.default_rng([seed, items, people, answers])
    return np.mean([measured(items, people, answers, rng) for _ in range(runs)], axis=0)


def main(path: str) -> None:
    cells = {}
    for cell in product(ITEMS, PEOPLE, ANSWERS):
        cells[cell] = simulated_cell(*cell, RUNS[cell[0]], 2026)
        print(cell, *(f"{value:.3f}" for value in cells[cell]), flush=True)
    table = np.array(list(cells.values())).reshape(len(ITEMS), len(PEOPLE), len(ANSWERS), 3).round(4)
    record = {"items": ITEMS, "people": PEOPLE, "answers": ANSWERS}
    record |= {name: table[..., place].tolist() for place, name in enumerate(("width", "leading", "found"))}
    Path(path).write_text(json.dumps(record) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
