"""What coordinates cost that explain nothing: searches with and without vectors that say nothing about taste.

    python benchmarks/unrelated.py [--half choosing] [--people 60] [--names music.npz food.npz]

Needs the folder of recorded people that PAIRSEEK_DATA names. Everybody answers the same questions, chosen at random,
and nothing is known of other people. Vectors are random or, from files with the arrays `ids` and `vectors`, those of
the items' names.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import pairseek as ps
from pairseek.experiments import Comparison, compare
from pairseek.experiments.comparison.entries import Entry
from pairseek.experiments.comparison.methods.search import PairseekSearch

ROOT = Path(__file__).resolve().parents[1]
DATA = ("music", "food")
LENGTH = 384


@dataclass(eq=False)
class WithVectors(PairseekSearch):
    """A search with random questions among items with vectors: random ones, or those of a file with these items."""

    knows: Any = "nothing"
    strategy: str | None = "random"
    paths: tuple[str, ...] = ()

    def begin(self, items: Any, vectors: Any, others: Any) -> None:  # noqa: ARG002
        """Begin a search."""
        super().begin(items, None, None)
        rows = np.random.default_rng(1).standard_normal((len(items), LENGTH))
        for path in self.paths:
            names = np.load(path)
            by_id = dict(zip(names["ids"].tolist(), names["vectors"], strict=True))
            if set(by_id) == set(items):
                rows = np.array([by_id[name] for name in items])
        self._items = ps.Items.from_vectors(rows, ids=list(items))
        self.search = self._new_search(None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=["choosing", "reporting"], default="reporting")
    parser.add_argument("--people", type=int, default=60)
    parser.add_argument("--names", nargs="*", default=[])
    parser.add_argument("--out", type=Path, default=ROOT / "pairseek-results" / "unrelated")
    given = parser.parse_args()
    methods = [
        Entry("without", PairseekSearch, {"knows": "nothing", "strategy": "random"}),
        Entry("random", WithVectors),
    ]
    if given.names:
        methods.append(Entry("names", WithVectors, {"paths": tuple(given.names)}))
    data = [{"name": name, "answers": [2, 5, 10, 20]} for name in DATA]
    results = compare(Comparison(methods, data, people=given.people, half=given.half), given.out, jobs=1)
    for label in results.labels:
        without = results.scores(label, "without", "accuracy")
        for method in results.methods:
            accuracy = results.scores(label, method, "accuracy")
            gain = accuracy - without
            error = np.nanstd(gain, axis=0, ddof=1) / np.sqrt(len(gain))
            cells = zip(np.nanmean(accuracy, axis=0), np.nanmean(gain, axis=0), error, strict=True)
            print(f"| {label} | {method} |", " | ".join(f"{a:.3f}, {g:+.3f} ({e:.3f})" for a, g, e in cells), "|")


if __name__ == "__main__":
    main()
