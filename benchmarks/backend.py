"""Searches inside a back end: time and size with a catalogue of vectors, and items that nobody has compared.

    python benchmarks/backend.py                       # time and size; ratios to a matrix product in the same run
    python benchmarks/backend.py --people --splits 10  # recorded people: items left out of the fit
    python benchmarks/backend.py --ranks --count 60    # simulated people: rank of the pick after ten answers

People: vectors are eight item coordinates from a population fitted to one part of the choosing half. A population with
vectors is fitted to the other part, without a fifth of the items. People of the reporting half answer ten pairs of the
other items, and pairs with a left-out item are predicted in two ways: with the population, and by the utility that the
vectors imply for the mean person.

Ranks: the rank of the recommended item in a person's own order, 1 for the best, after a search with default settings.
Items are normal, with variances that fall as 1/i. People are drawn from the prior of the default model, with curvature
and residual utilities, or their taste depends only on the distance from their point.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
from scipy.special import expit

import pairseek as ps
from pairseek.experiments.comparison.datasets import half_of
from pairseek.experiments.comparison.sources import data_folder
from pairseek.model.curvature import extended_prior
from pairseek.people.population.selection import predict_choices
from pairseek.people.population.vector_fit import without_items

KEY = b"a key of the benchmark, 32 bytes"
DATA = ("gss_music", "food_world_cup")


def timed(work: Any) -> tuple[float, float]:
    """Return the wall-clock seconds of a call, and the processor seconds summed over all threads."""
    began, worked = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - began, time.process_time() - worked


def speed(n: int, length: int, people: int) -> None:
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((n, length), dtype=np.float32) / np.sqrt(np.arange(1, length + 1, dtype=np.float32))
    matrix = rng.standard_normal((1000, 1000))
    reference = min(timed(lambda: matrix @ matrix)[0] for _ in range(5))
    began = time.perf_counter()
    items = ps.Items.from_vectors(vectors, ids=[f"sku-{i}" for i in range(n)])
    print(f"from_vectors {n} x {length} to {items.d}: {time.perf_counter() - began:.2f} s")
    turns, lists = [], []
    for person in range(people):
        search = ps.Search(items, rng=person)
        query = search.ask()

        def turn() -> None:
            nonlocal query
            search.tell(query, winner=query.left)  # noqa: B023
            query = search.ask()  # noqa: B023

        for number in range(10):
            taken = timed(turn)
            if person or number:
                turns.append(taken)
            lists.append(timed(lambda: search.recommend(10, exclude=["sku-1"])))  # noqa: B023
    for name, values in (("answer and question", turns), ("recommend 10", lists[1:])):
        (middle, worked), most = np.median(values, axis=0), max(values)[0]
        print(
            f"{name}: {1e3 * middle:.1f} / {1e3 * most:.1f} ms, {middle / reference:.1f} products of 1000 x 1000; "
            f"processor time {1e3 * worked:.1f} ms (median)"
        )
    print(f"record {len(json.dumps(search.to_dict()))} bytes, token {len(search.to_token(key=KEY))} bytes")


def left_out(name: str, splits: int, people: int) -> None:
    choices = ps.Choices.read(data_folder() / "data" / "people" / name / "ratings.csv").usable()
    rng = np.random.default_rng(0)
    halves = {half: [] for half in ("choosing", "reporting")}
    for row, person in enumerate(choices.people):
        halves[half_of(person)].append(row)
    choosing, reporting = (rng.permutation(halves[half]) for half in ("choosing", "reporting"))
    teachers, others = (choices.only(np.sort(part[:people])) for part in np.array_split(choosing, 2))
    tested = choices.only(np.sort(reporting[:people]))
    vectors = ps.Population.fit(teachers, dimension=8, residual=0.0).items
    rows = []
    for split in range(splits):
        gone = np.zeros(len(choices.ids), dtype=np.bool_)
        gone[np.random.default_rng(split).permutation(len(gone))[: len(gone) // 5]] = True
        population = ps.Population.fit(without_items(others, gone), vectors=vectors, dimension=4, residual=0.0)
        population = population.with_vectors(vectors.coordinates, choices.ids)
        about = gone[tested.winner] | gone[tested.loser]
        shown = ~about & (np.random.default_rng(split).random(len(about)) < _share(tested, ~about))
        base, factors = population.utilities()
        flat = np.zeros_like(factors)
        answered = predict_choices(
            tested.rows(shown), tested.rows(about), base, factors, np.asarray(population.covariance)
        )
        alone = predict_choices(tested.rows(shown), tested.rows(about), base, flat, np.asarray(population.covariance))
        asked = np.bincount(tested.person[about], minlength=len(tested.people)) > 0
        rows.append([found[1][asked].mean() for found in (answered, alone)])
        print(f"{name} split {split}: population {rows[-1][0]:.3f}, vectors only {rows[-1][1]:.3f}", flush=True)
    mean, lead = np.mean(rows, axis=0), np.diff(np.array(rows)[:, ::-1], axis=1)
    error = lead.std(ddof=1) / np.sqrt(splits) if splits > 1 else float("nan")
    print(f"{name}: {mean[0]:.3f} and {mean[1]:.3f}, a lead of {lead.mean():.3f} ± {error:.3f} over {splits} splits")


def rank(items: ps.Items, seed: int, *, residual: bool) -> int:
    """Return the rank of the pick for a simulated person after ten answers."""
    search = ps.Search(items, rng=seed, stop=10)
    rng = np.random.default_rng([seed, items.n, items.d])
    response, d = search.response, items.d
    k = response.constant
    modelled = search.modelled_items if residual else items
    prior = extended_prior(search.prior, response, d) if residual else search.prior
    point = prior.sample(1, modelled.d, rng)[0]
    utility = modelled.appeal - k * np.sum((modelled.coordinates - point) ** 2, axis=1)
    if residual:
        utility = utility + response.residual_deviation * rng.standard_normal(items.n)
    while search.finished is None:
        query = search.ask()
        left, right = (utility[items.index(side)] for side in (query.left, query.right))
        search.tell(query, winner=query.left if rng.random() < expit(left - right) else query.right)
    return 1 + int(np.sum(utility > utility[items.index(search.recommend(1)[0].id)]))


def ranks(people: int, sizes: list[int], dimensions: list[int]) -> None:
    """Print a Markdown table of mean ranks and their standard errors."""
    print("| d | n | drawn from the default model | distance only |\n|---|---|---|---|")
    for d in dimensions:
        for n in sizes:
            points = np.random.default_rng(d).standard_normal((n, d)) / np.sqrt(np.arange(1, d + 1))
            items, cells = ps.Items(points), []
            for residual in (True, False):
                found = [rank(items, seed, residual=residual) for seed in range(people)]
                share = 100.0 * np.mean(found) / n
                error = np.std(found, ddof=1) / np.sqrt(people)
                cells.append(f"{np.mean(found):.0f} ± {error:.0f} (top {share:.1f} %)")
            print(f"| {d} | {n:,} | {' | '.join(cells)} |", flush=True)


def _share(choices: ps.Choices, usable: Any) -> Any:
    """Return, for each choice, the fraction of the person's usable choices that amounts to ten."""
    count = np.bincount(choices.person[usable], minlength=len(choices.people))
    return (10.0 / np.maximum(count, 1))[choices.person]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=50_000)
    parser.add_argument("--length", type=int, default=384)
    parser.add_argument("--shoppers", type=int, default=5)
    parser.add_argument("--people", action="store_true")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--ranks", action="store_true")
    parser.add_argument("--n", type=int, nargs="+", default=[200, 20_000])
    parser.add_argument("--d", type=int, nargs="+", default=[2, 4, 8, 16])
    given = parser.parse_args()
    if given.ranks:
        ranks(given.count, given.n, given.d)
    elif given.people:
        for name in DATA:
            left_out(name, given.splits, given.count)
    else:
        speed(given.items, given.length, given.shoppers)


if __name__ == "__main__":
    main()
