"""Benefit of the default prior: the rank of the pick of a plain `ps.Search(items)` for simulated people.

    python benchmarks/defaults.py choose     # the data for choosing the factor: synthetic items, shoes
    python benchmarks/defaults.py report     # the data for reporting it: Food-10k and colours
    python benchmarks/defaults.py report --factor 1.5 0     # a factor of 0 means a uniform box

A person is at a random item, 1.5 times as far from the centre, or anywhere in the bounding box of the items. Their
reliability is unknown to the search: 88 % correct answers about a plane one standard deviation of the items away, or
the published noise on Food-10k. The pick is the item nearest to the estimate. Its rank in the person's own order of all
items is given as a fraction of the catalogue: 0 is best, and 0.5 is chance. The squared error is in units of the items'
total variance.
"""

from __future__ import annotations

import argparse

import numpy as np

import food
import pairseek as ps
from pairseek.model import defaults

ANSWERS = (10, 20, 30)
FACTORS = (0.5, 1.0, 1.5, 2.0, 3.0)


def synthetic(kind: str, d: int, n: int = 1500) -> ps.Items:
    rng = np.random.default_rng([d, n])
    if kind == "normal":
        points = rng.standard_normal((n, d)) * np.linspace(1.5, 0.5, d)
    elif kind == "uniform":
        points = rng.uniform(-1, 1, size=(n, d))
    elif kind == "clusters":
        points = 2 * rng.standard_normal((12, d))[rng.integers(12, size=n)] + 0.4 * rng.standard_normal((n, d))
    else:
        points = rng.standard_t(3, size=(n, d))
    return ps.Items(points)


def shoes(d: int) -> ps.Items | None:
    """Return shoes embedded from people's triplets, or None without the data."""
    from pairseek.embed import STE, Triplets

    where = food.folder()
    if where is None:
        return None
    triplets = Triplets.from_csv(where / "data" / "triplets" / "zappos85" / "deconflicted_triplets.csv")
    return STE(n_components=d, random_state=0).fit(triplets).to_items()


def people(items: ps.Items, count: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(count)
    points, centre = items.coordinates, items.coordinates.mean(axis=0)
    at = points[rng.choice(items.n, count)]
    return {
        "at items": at,
        "1.5 x out": centre + 1.5 * (at - centre),
        "in the box": rng.uniform(points.min(axis=0), points.max(axis=0), size=(count, items.d)),
    }


def measured(items: ps.Items, person: np.ndarray, response: ps.Logistic, seed: int, factor: float) -> list[list[float]]:
    defaults.PRIOR_FACTOR = factor if factor else 1.0
    prior = None
    if not factor:
        low, high = items.coordinates.min(axis=0), items.coordinates.max(axis=0)
        prior = ps.UniformBox(tuple(low.tolist()), tuple(high.tolist()))
    search = ps.Search(items, prior=prior, rng=seed)
    user = ps.SimulatedUser(person, response, rng=seed)
    distance = np.linalg.norm(items.coordinates - person, axis=1)
    rows = []
    for count in range(1, max(ANSWERS) + 1):
        query = search.ask()
        search.tell(query, winner=user.answer(items, query))
        if count in ANSWERS:
            point = search.estimate().point
            pick = int(np.argmin(np.linalg.norm(items.coordinates - point, axis=1)))
            rank = float(np.mean(distance < distance[pick]))
            rows.append([rank, float(np.sum((point - person) ** 2)) / items.spread**2])
    return rows


def table(name: str, items: ps.Items, response: ps.Logistic, factors: list[float], count: int) -> None:
    print(f"\n{name}: {items.n} items, d = {items.d}; {count} people each; rank (standard error), squared error")
    for kind, points in people(items, count).items():
        for factor in factors:
            found = np.array([measured(items, point, response, i, factor) for i, point in enumerate(points)])
            mean, error = found.mean(axis=0), found.std(axis=0) / np.sqrt(count)
            cells = "   ".join(
                f"{n}: {mean[i, 0]:.3f} ({error[i, 0]:.3f}) {mean[i, 1]:.2f}" for i, n in enumerate(ANSWERS)
            )
            print(f"  {kind:10s}  {'box' if not factor else f'x {factor:g}':6s} {cells}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["choose", "report"])
    parser.add_argument("--factor", type=float, nargs="+", default=None)
    parser.add_argument("--people", type=int, default=40)
    options = parser.parse_args()
    if options.what == "choose":
        factors = options.factor or list(FACTORS)
        for kind in ("normal", "uniform", "clusters", "heavy tails"):
            for d in (3, 8):
                items = synthetic(kind, d)
                table(kind, items, typical(items), factors, options.people)
        items = shoes(4)
        if items is not None:
            table("shoes", items, typical(items), factors, options.people)
        return
    factors = options.factor or [defaults.PRIOR_FACTOR, 0.0]
    for d in (4, 12):
        items = food.items(d)
        table(food.name(), items, food.response(d, "normalized"), factors, options.people)
    items = ps.datasets.colours()
    table("colours", items, typical(items), factors, options.people)


def typical(items: ps.Items) -> ps.Logistic:
    """Return a response with 88 % correct answers about a plane one standard deviation of the items away."""
    return ps.Logistic(2.0 / (items.spread / np.sqrt(items.d)), "normalized")


if __name__ == "__main__":
    main()
