"""Group rankings next to those of other packages: Kendall's tau, coverage of rank intervals, claims about the top item.

    python benchmarks/group_rankings.py [--questions random|active] [--worlds N] [--people N] [--items N] [--answers N]
    python benchmarks/group_rankings.py --votes    # votes of data/votes/llmfao in the folder PAIRSEEK_DATA

Packages of the extra `rivals` take part if they are installed: choix, crowd-kit, openskill, evalica and arena-rank. The
true ranking of a simulated group is known. Its people answer random pairs, or the pairs that a default search without
coordinates asks each of them. For votes, each half of the workers is ranked, and tau compares that ranking with the
fractions of comparisons that items win among the other half.
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
from ranking import group, is_won, tastes

_BOOTSTRAPS, _COVERED, _ALPHA = 100, 0.9, 0.01


@dataclass(frozen=True, eq=False)
class Ranked:
    """A ranking of n items: scores, (n, 2) ranks of the 90 % intervals, and (n,) probabilities of being the best."""

    score: Any
    ranks: Any = None
    best: Any = None


def by_pairseek(choices: ps.Choices) -> Ranked:
    rows = {item.id: item for item in ps.rank(choices)}
    order = [rows[name] for name in choices.ids]
    ranks = np.array([(item.rank_low, item.rank_high) for item in order])
    return Ranked(np.array([-item.rank for item in order]), ranks, np.array([item.top_1 for item in order]))


def by_wins(choices: ps.Choices) -> Ranked:
    n = len(choices.ids)
    wins, losses = (np.bincount(rows, minlength=n) for rows in (choices.winner, choices.loser))
    return Ranked(wins / np.maximum(wins + losses, 1))


def bradley_terry(choices: ps.Choices, weight: Any = None) -> Any:
    """Return the (n,) strengths by choix, with the regularization that sparse data need."""
    import choix

    pairs = np.stack([choices.winner, choices.loser], axis=1)
    if weight is not None:
        pairs = np.repeat(pairs, weight, axis=0)
    return choix.ilsr_pairwise(len(choices.ids), pairs.tolist(), alpha=_ALPHA)


def from_draws(score: Any, drawn: Any) -> Ranked:
    """Return a ranking with the intervals of (draws, n) bootstrap scores."""
    ranks = 1 + np.argsort(np.argsort(-drawn, axis=1), axis=1)
    tails = 100 * (1 - _COVERED) / 2
    best = np.bincount(np.argmax(drawn, axis=1), minlength=drawn.shape[1]) / len(drawn)
    return Ranked(score, np.percentile(ranks, [tails, 100 - tails], axis=0).T, best)


def by_bootstrap(choices: ps.Choices) -> Ranked:
    """Rank by Bradley-Terry, with intervals from resampled people."""
    rng = np.random.default_rng(0)
    people = len(choices.people)
    samples = (rng.integers(people, size=people) for _ in range(_BOOTSTRAPS))
    counts = (np.bincount(sample, minlength=people)[choices.person] for sample in samples)
    return from_draws(bradley_terry(choices), np.array([bradley_terry(choices, count) for count in counts]))


def by_evalica(choices: ps.Choices) -> Ranked:
    """Rank by Bradley-Terry, with intervals from resampled votes, as evalica's own bootstrap makes them.

    A tie of small weight between each two items keeps the strengths finite where an item wins or loses all comparisons.
    """
    import evalica
    import pandas as pd

    n, count = len(choices.ids), len(choices.winner)
    first, second = np.triu_indices(n, 1)
    left, right = np.concatenate([choices.winner, first]), np.concatenate([choices.loser, second])
    outcomes = [evalica.Winner.X] * count + [evalica.Winner.Draw] * len(first)
    weights = np.repeat([1.0, _ALPHA], [count, len(first)])
    options = {"n_resamples": _BOOTSTRAPS, "bootstrap_method": "percentile", "random_state": 0}
    votes = (left.tolist(), right.tolist(), outcomes)
    result = evalica.bootstrap(evalica.bradley_terry, *votes, weights=weights, index=pd.Index(range(n)), **options)
    score, drawn = result.result.scores.reindex(range(n)), result.distribution.reindex(columns=range(n))
    return from_draws(score.to_numpy(), drawn.to_numpy())


def by_arena_rank(choices: ps.Choices) -> Ranked:
    """Rank by Bradley-Terry, with the sandwich intervals of ratings that become ranks on LMArena's leaderboard."""
    import pandas as pd
    from arena_rank.models.bradley_terry import BradleyTerry
    from arena_rank.utils.data_utils import PairDataset

    votes = pd.DataFrame({"model_a": choices.winner, "model_b": choices.loser, "winner": "model_a"})
    dataset = PairDataset.from_pandas(votes)
    model = BradleyTerry(n_competitors=len(dataset.competitors))
    result = model.compute_ratings_and_cis(dataset, significance_level=1 - _COVERED)
    columns = np.full((3, len(choices.ids)), np.nan)
    columns[:, dataset.competitors] = [result[name] for name in ("ratings", "rating_lower", "rating_upper")]
    # An item that nobody compared may have any rank.
    score, low, high = np.where(np.isnan(columns), [[np.nanmin(columns)], [-np.inf], [np.inf]], columns)
    best = 1 + np.sum(low[:, None] > high, axis=0)
    worst = len(score) - np.sum(high[:, None] < low, axis=0)
    return Ranked(score, np.stack([best, worst], axis=1))


def by_crowdkit(choices: ps.Choices) -> Ranked:
    import pandas as pd
    from crowdkit.aggregation import NoisyBradleyTerry

    columns = {"worker": choices.person, "left": choices.winner, "right": choices.loser, "label": choices.winner}
    scores = NoisyBradleyTerry(n_iter=100, random_state=0).fit_predict(pd.DataFrame(columns))
    return Ranked(scores.reindex(range(len(choices.ids))).fillna(scores.min()).to_numpy())


def by_openskill(choices: ps.Choices) -> Ranked:
    from openskill.models import PlackettLuce

    model = PlackettLuce()
    ratings = [model.rating() for _ in choices.ids]
    for winner, loser in zip(choices.winner.tolist(), choices.loser.tolist(), strict=True):
        [[ratings[winner]], [ratings[loser]]] = model.rate([[ratings[winner]], [ratings[loser]]])
    return Ranked(np.array([rating.mu for rating in ratings]))


RANKERS: dict[str, tuple[str | None, Callable[[ps.Choices], Ranked]]] = {
    "pairseek": (None, by_pairseek),
    "Bradley-Terry (choix), bootstrap over people": ("choix", by_bootstrap),
    "evalica, bootstrap over votes": ("evalica", by_evalica),
    "arena-rank, sandwich": ("arena_rank", by_arena_rank),
    "crowd-kit NoisyBradleyTerry": ("crowdkit", by_crowdkit),
    "openskill": ("openskill", by_openskill),
    "counting wins": (None, by_wins),
}


def rankers() -> dict[str, Callable[[ps.Choices], Ranked]]:
    return {name: rank for name, (package, rank) in RANKERS.items() if package is None or find_spec(package)}


def asked_actively(seed: int, items: int, people: int, answers: int) -> tuple[ps.Choices, Any]:
    """Return choices about the pairs that a default search without coordinates asks, and the true mean utilities."""
    rng = np.random.default_rng(seed)
    _, utility, truth = tastes(rng, items, people, 1)
    catalogue, rows = ps.Items(ids=range(items)), []
    for person in range(people):
        search = ps.Search(catalogue, rng=np.random.default_rng([seed, person]))
        for _ in range(answers):
            query = search.ask()
            pair = (query.left, query.right)
            winner, loser = pair if is_won(utility[person], *pair, rng) else pair[::-1]
            search.tell(query, winner=winner)
            rows.append((person, winner, loser))
    return ps.Choices.from_pairs(rows, ids=catalogue.ids), truth


def measured(ranking: Ranked, truth: Any) -> list[float]:
    """Return tau, coverage, width, the probability claimed for the item ranked first, and whether it is the best."""
    place = 1 + np.argsort(np.argsort(-truth))
    first = int(np.argmax(ranking.score))
    out = [float(kendalltau(ranking.score, truth).statistic), np.nan, np.nan, np.nan, float(place[first] == 1)]
    if ranking.ranks is not None:
        out[1] = float(np.mean((ranking.ranks[:, 0] <= place) & (place <= ranking.ranks[:, 1])))
        out[2] = float(np.mean(ranking.ranks[:, 1] - ranking.ranks[:, 0] + 1) / len(place))
    if ranking.best is not None:
        out[3] = float(ranking.best[first])
    return out


def simulated(worlds: int, people: int, items: int, answers: int, *, active: bool) -> None:
    rows: dict[str, list[list[float]]] = {name: [] for name in rankers()}
    for seed in range(worlds):
        if active:
            choices, truth = asked_actively(seed, items, people, answers)
        else:
            _, choices, truth = group(seed, items, people, 1, answers=answers)
        for name, rank in rankers().items():
            began = time.process_time()
            ranking = rank(choices)
            rows[name].append([*measured(ranking, truth), time.process_time() - began])
    kind = "active" if active else "random"
    print(f"{worlds} groups of {people} people, {items} items, {answers} answers each to {kind} questions\n")
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
    parser.add_argument("--questions", choices=["random", "active"], default="random")
    parser.add_argument("--votes", action="store_true")
    given = parser.parse_args()
    if given.votes:
        voted()
    else:
        simulated(given.worlds, given.people, given.items, given.answers, active=given.questions == "active")


if __name__ == "__main__":
    main()
