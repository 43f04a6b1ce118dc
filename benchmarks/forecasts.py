"""Forecasts and stop rules against people drawn from the prior of the default model.

    python benchmarks/forecasts.py [--people 40] [--items 30 1000] [--d 4] [--limit 100] [--rules gain default]

For each rule: the median forecast after 0, 5 and 10 answers, with the median number of further answers of the people
who went on for that long; the median number of answers until the rule was met; and the regret of the pick then, which
is how much better than the pick the person's best item is, in logits. A person who reaches the limit counts with it.
Items are normal in d dimensions.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
from functools import partial

import numpy as np
from scipy.special import expit

import pairseek as ps
from pairseek.model.curvature import extended_prior

RULES = {
    "gain": ("best", ps.GainBelow(0.2)),
    "default": ("best", None),
    "information": ("taste", ps.InformationBelow(0.15)),
    "best item": ("best", ps.BestItemFound(0.9)),
}
AT = (0, 5, 10)


def utilities(search: ps.Search, rng: np.random.Generator) -> np.ndarray:
    """Return the utilities of all items, in logits, for a person drawn from the model's prior."""
    response, items = search.response, search.modelled_items
    utility = response.residual_deviation * rng.standard_normal(items.n)
    if search.items.d:
        point = extended_prior(search.prior, response, search.items.d).sample(1, items.d, rng)[0]
        utility += items.appeal - response.constant * np.sum((items.coordinates - point) ** 2, axis=1)
    return utility


def person(task: tuple[str, int, int, int], *, limit: int) -> tuple:
    """Return the forecasts, the number of answers and the regret of a person."""
    rule, n, d, seed = task
    ps.set_thread_count(1)
    points = np.random.default_rng([1, n, d]).standard_normal((n, d))
    items = ps.Items(points) if d else ps.Items(ids=range(n))
    goal, stop = RULES[rule]
    search = ps.Search(items, goal=goal, stop=stop, rng=seed)
    rng = np.random.default_rng([2, seed])
    utility = utilities(search, rng)
    told = {}
    while search.finished is None and search.answers < limit:
        if search.answers in AT:
            told[search.answers] = search.forecast()
        query = search.ask()
        left, right = (utility[items.index(side)] for side in (query.left, query.right))
        search.tell(query, winner=query.left if rng.random() < expit(left - right) else query.right)
    pick = items.index(search.recommend(1)[0].id)
    return task, told, search.answers, search.finished is not None, float(utility.max() - utility[pick])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=40)
    parser.add_argument("--items", type=int, nargs="+", default=[30, 1000])
    parser.add_argument("--d", type=int, default=4)
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--rules", nargs="+", default=list(RULES), choices=RULES)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    cells = [(rule, n) for rule in options.rules for n in options.items]
    tasks = [(rule, n, options.d, seed) for rule, n in cells for seed in range(options.people)]
    results: dict[tuple[str, int], list] = {cell: [] for cell in cells}
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for (rule, n, _, _), *result in pool.imap_unordered(partial(person, limit=options.limit), tasks):
            results[rule, n].append(result)
    print("| rule | n | forecast / came after 0 | 5 | 10 | answers | stopped | regret |\n" + "|---" * 8 + "|")
    for (rule, n), people in results.items():
        cells = []
        for count in AT:
            both = [(told[count], answers - count) for told, answers, _, _ in people if count in told]
            forecasts = [forecast for forecast, _ in both if forecast is not None]
            forecast = f"{np.median(forecasts):g}" if 2 * len(forecasts) > len(both) > 0 else "none"
            cells.append(f"{forecast} / {np.median([came for _, came in both]):g} ({len(both)})" if both else "")
        answers, stopped, regret = (np.array(column) for column in list(zip(*people, strict=True))[1:])
        error = regret.std(ddof=1) / np.sqrt(len(regret))
        print(
            f"| {rule} | {n} | {' | '.join(cells)} | {np.median(answers):g} | {stopped.sum()} of {len(people)} "
            f"| {regret.mean():.2f} ({error:.2f}) |",
            flush=True,
        )


if __name__ == "__main__":
    main()
