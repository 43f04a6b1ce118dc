"""Group rankings beside others: Kendall's tau, coverage of intervals of ranks, and claims about the top item.

    python benchmarks/group_rankings.py [--worlds N] [--people N] [--items N] [--answers N]
    python benchmarks/group_rankings.py --votes    # votes of data/votes/llmfao in the folder PAIRSEEK_DATA

Needs the extra ``rivals``; crowd-kit and openskill take part where they are installed. Simulated groups are those of
`benchmarks/ranking.py`, whose true ranking is known. Of the votes, each half of the workers is ranked from, and tau is
that with the shares of wins among the other half.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import kendalltau

import pairseek as ps
from ranking import group

_BOOTSTRAPS, _COVERED, _ALPHA = 100, 0.9, 0.01


@dataclass(frozen=True, eq=False)
class Ranked:
    """A ranking of n items: scores, (n, 2) ranks of the 90 % intervals, and (n,) probabilities of being the best."""

    score: Any
    ranks: Any = None
    best: Any = None


def by_pairseek(choices: ps.Choices) -> Ranked:
    found = ps.rank(choices)
    rows = {item.id: item for item in found}
    order = [rows[name] for name in choices.ids]
    ranks = np.array([(item.rank_low, item.rank_high) for item in order])
    return Ranked(np.array([-item.rank for item in order]), ranks, np.array([item.top_1 for item in order]))


def by_wins(choices: ps.Choices) -> Ranked:
    n = len(choices.ids)
    wins, losses = (np.bincount(rows, minlength=n) for rows in (choices.winner, choices.loser))
    return Ranked(wins / np.maximum(wins + losses, 1))


def bradley_terry(choices: ps.Choices, weight: Any = None) -> Any:
    """Return the (n,) strengths by choix, with the regularisation that sparse data need."""
    import choix

    pairs = np.stack([choices.winner, choices.loser], axis=1)
    if weight is not None:
        pairs = np.repeat(pairs, weight, axis=0)
    return choix.ilsr_pairwise(len(choices.ids), pairs.tolist(), alpha=_ALPHA)


def by_bootstrap(choices: ps.Choices) -> Ranked:
    """Rank by Bradley-Terry, with intervals by drawing people with replacement."""
    rng = np.random.default_rng(0)
    people = len(choices.people)
    drawn = np.array(
        [
            bradley_terry(choices, np.bincount(rng.integers(people, size=people), minlength=people)[choices.person])
            for _ in range(_BOOTSTRAPS)
        ]
    )
    ranks = 1 + np.argsort(np.argsort(-drawn, axis=1), axis=1)
    tails = 100 * (1 - _COVERED) / 2
    best = np.bincount(np.argmax(drawn, axis=1), minlength=drawn.shape[1]) / _BOOTSTRAPS
    return Ranked(bradley_terry(choices), np.percentile(ranks, [tails, 100 - tails], axis=0).T, best)


def by_crowdkit(choices: ps.Choices) -> Ranked:
    import pandas as pd
    from crowdkit.aggregation import NoisyBradleyTerry

    columns = {"worker": choices.person, "left": choices.winner, "right": choices.loser, "label": choices.winner}
    found = NoisyBradleyTerry(n_iter=100, random_state=0).fit_predict(pd.DataFrame(columns))
    return Ranked(found.reindex(range(len(choices.ids))).fillna(found.min()).to_numpy())


def by_openskill(choices: ps.Choices) -> Ranked:
    from openskill.models import PlackettLuce

    model = PlackettLuce()
    rating = [model.rating() for _ in choices.ids]
    for winner, loser in zip(choices.winner.tolist(), choices.loser.tolist(), strict=True):
        [[rating[winner]], [rating[loser]]] = model.rate([[rating[winner]], [rating[loser]]])
    return Ranked(np.array([one.mu for one in rating]))


RANKERS: dict[str, tuple[str | None, Callable[[ps.Choices], Ranked]]] = {
    "pairseek": (None, by_pairseek),
    "Bradley-Terry, bootstrap": ("choix", by_bootstrap),
    "NoisyBradleyTerry": ("crowdkit", by_crowdkit),
    "openskill": ("openskill", by_openskill),
    "counting wins": (None, by_wins),
}


def rankers() -> dict[str, Callable[[ps.Choices], Ranked]]:
    return {name: rank for name, (package, rank) in RANKERS.items() if package is None or find_spec(package)}


def measured(found: Ranked, truth: Any) -> list[float]:
    """Return tau, coverage, width, the probability claimed for the item ranked first, and whether it is the best."""
    place = 1 + np.argsort(np.argsort(-truth))
    first = int(np.argmax(found.score))
    out = [float(kendalltau(found.score, truth).statistic), np.nan, np.nan, np.nan, float(place[first] == 1)]
    if found.ranks is not None:
        out[1] = float(np.mean((found.ranks[:, 0] <= place) & (place <= found.ranks[:, 1])))
        out[2] = float(np.mean(found.ranks[:, 1] - found.ranks[:, 0] + 1) / len(place))
    if found.best is not None:
        out[3] = float(found.best[first])
    return out


def simulated(worlds: int, people: int, items: int, answers: int) -> None:
    rows: dict[str, list[list[float]]] = {name: [] for name in rankers()}
    for seed in range(worlds):
        _, choices, truth = group(seed, items, people, 1, answers=answers)
        for name, rank in rankers().items():
            began = time.process_time()
            found = rank(choices)
            rows[name].append([*measured(found, truth), time.process_time() - began])
    print(f"{worlds} groups of {people} people, {items} items, {answers} answers each\n")
    head = ["", "tau", "coverage of 90 %", "width", "claimed of the first", "first is best", "seconds"]
    print(f"| {' | '.join(head)} |\n{'|---' * len(head)}|")
    for name, values in rows.items():
        table = np.array(values)
        error = table.std(axis=0, ddof=1) / np.sqrt(worlds)
        cells = [f"{m:.3f} ({e:.3f})" if np.isfinite(m) else "" for m, e in zip(table.mean(axis=0), error, strict=True)]
        print(f"| {name} | {' | '.join(cells)} |")


def voted() -> None:
    path = Path(os.environ["PAIRSEEK_DATA"]) / "data" / "votes" / "llmfao" / "votes.csv"
    with path.open(newline="", encoding="utf-8") as file:
        lines = [row for row in csv.DictReader(file) if row["winner"] in ("left", "right")]
    rows = [(r["worker"], r[r["winner"]], r["right" if r["winner"] == "left" else "left"]) for r in lines]
    choices = ps.Choices.from_pairs(rows)
    print(f"{len(rows)} decided votes of {len(choices.people)} workers on {len(choices.ids)} models\n")
    print("| | tau with the wins of the other half |\n|---|---|")
    for name, rank in rankers().items():
        taus = []
        for seed in range(5):
            order = np.random.default_rng(seed).permutation(len(choices.people))
            halves = [choices.only(np.sort(part)) for part in np.array_split(order, 2)]
            for own, other in (halves, halves[::-1]):
                taus.append(kendalltau(rank(own).score, by_wins(other).score).statistic)
        print(f"| {name} | {np.mean(taus):.3f} ({np.std(taus, ddof=1) / np.sqrt(len(taus)):.3f}) |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=20)
    parser.add_argument("--people", type=int, default=30)
    parser.add_argument("--items", type=int, default=15)
    parser.add_argument("--answers", type=int, default=15)
    parser.add_argument("--votes", action="store_true")
    given = parser.parse_args()
    if given.votes:
        voted()
    else:
        simulated(given.worlds, given.people, given.items, given.answers)


if __name__ == "__main__":
    main()
