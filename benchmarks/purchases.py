"""Populations learned from purchases, compared with populations learned from the ratings behind them.

    python benchmarks/purchases.py [--half choosing] [--people N] [--exponents 0,0.5,1] [--jobs N]

Needs the folder of recorded people that PAIRSEEK_DATA names. The other people of each person contribute either their
ratings, or only the items that they gave the top rating, as purchases without impressions. Everybody answers the same
questions, chosen at random, and predicts the same withheld pairs.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import pairseek as ps
from pairseek.experiments import Comparison, compare
from pairseek.experiments.comparison.entries import Entry
from pairseek.experiments.comparison.methods.search import PairseekSearch
from pairseek.people import events

ROOT = Path(__file__).resolve().parents[1]
DATA = ("music", "food", "music at .75", "food at .75")


@cache
def purchases(others: ps.Choices, exponent: float) -> ps.Choices:
    """Return the choices that the top ratings imply as purchases."""
    ratings = others.ratings
    assert ratings is not None
    top = np.flatnonzero(ratings.value == ratings.value.max())
    rows = [(others.people[ratings.person[row]], others.ids[ratings.item[row]], "purchase") for row in top]
    events._POPULARITY_EXPONENT = exponent
    return ps.Choices.from_events(rows, ids=others.ids)


@dataclass(eq=False)
class FromPurchases(PairseekSearch):
    """A search with random questions whose population is learned from purchases."""

    strategy: str | None = "random"
    exponent: float = events._POPULARITY_EXPONENT

    def begin(self, items: Any, vectors: Any, others: Any) -> None:
        """Begin a search."""
        super().begin(items, vectors, purchases(others, self.exponent))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=["choosing", "reporting"], default="reporting")
    parser.add_argument("--people", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--exponents", default=str(events._POPULARITY_EXPONENT))
    parser.add_argument("--out", type=Path, default=ROOT / "pairseek-results" / "purchases")
    given = parser.parse_args()
    methods = [Entry("ratings", PairseekSearch, {"strategy": "random"})]
    methods += [
        Entry(f"purchases, exponent {value}", FromPurchases, {"exponent": float(value)})
        for value in given.exponents.split(",")
    ]
    plan = Comparison(
        methods, [{"name": name, "answers": [0, 5, 10, 20]} for name in DATA], people=given.people, half=given.half
    )
    results = compare(plan, given.out, jobs=given.jobs)
    for data in results.labels:
        for method in results.methods:
            cells = []
            for score in ("accuracy", "log_loss"):
                values = results.scores(data, method, score)
                cells += [f"{mean:.3f}" for mean in np.nanmean(values, axis=0)]
            errors, claimed = results.calibration(data, method)
            print(
                f"{data:14} {method:24}",
                *cells,
                " calibration",
                *np.round(errors, 3),
                " claimed",
                *np.round(claimed, 3),
            )


if __name__ == "__main__":
    main()
