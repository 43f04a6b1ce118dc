"""Active and random similarity judgements: judgements needed for the same error, and time to choose.

    python benchmarks/similarity.py                      simulated judges: six settings, 8 seeds (several minutes)
    python benchmarks/similarity.py --seeds 2 --settings 2
    python benchmarks/similarity.py --zappos ../shared/data/triplets/zappos85/deconflicted_triplets.csv
    python benchmarks/similarity.py --time

Items are standard normal, and judges answer with constant logistic noise. The error is that of positions fitted to all
judgements, on 20,000 further simulated ones. Active judgements include the tenth that is random and held out. The ratio
is the number of active judgements at which the error (made monotone, linearly interpolated) reaches that of 15 random
judgements per item, divided by 15 per item; it is 1.1 if 15 active ones per item do not suffice.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from scipy.optimize import isotonic_regression

from pairseek.core.types import FloatArray, IntArray
from pairseek.embed import ActiveTriplets, Placement, Triplets
from pairseek.embed.active import CANDIDATE_TRIPLETS, JUDGEMENTS_PER_ITEM, most_informative
from pairseek.embed.placement import random_triplets

# Items, dimensions, k. In two dimensions, true positions violate about 9 % of judgements with k = 2, 22 % with k = 0.5.
SETTINGS = ((30, 2, 2.0), (30, 3, 0.5), (60, 2, 0.5), (60, 3, 2.0), (100, 2, 2.0), (100, 3, 0.5))
NEVER = 1.1


def judged(truth: FloatArray, rows: IntArray, k: float, rng: np.random.Generator) -> IntArray:
    """Return the triplets as judged by simulated people."""
    anchor, first, second = (truth[column] for column in rows.T)
    logits = k * (((anchor - second) ** 2).sum(1) - ((anchor - first) ** 2).sum(1))
    swapped = rng.random(len(rows)) > 1.0 / (1.0 + np.exp(-logits))
    return np.where(swapped[:, None], rows[:, [0, 2, 1]], rows)


def error_of(placement: Placement, test: IntArray) -> float:
    """Return the fraction of test triplets that the positions violate."""
    return placement.error(Triplets(test, placement.ids))


def random_curve(truth: FloatArray, k: float, test: IntArray, seed: int) -> FloatArray:
    """Return the (steps, 2) numbers of judgements and errors with random triplets."""
    n, d = truth.shape
    rng, rows, placement, out = np.random.default_rng([seed, 1]), np.empty((0, 3), np.int64), None, []
    for _ in range(2 * JUDGEMENTS_PER_ITEM):
        rows = np.concatenate([rows, judged(truth, random_triplets(n, n // 2, rng), k, rng)])
        placement = Placement.fit(Triplets(rows, range(n)), d, start=placement, rng=seed)
        out.append((len(rows), error_of(placement, test)))
    return np.array(out)


def active_curve(truth: FloatArray, k: float, test: IntArray, seed: int) -> FloatArray:
    """Return the (steps, 2) numbers of judgements and errors with active choice."""
    n, d = truth.shape
    rng, active, out = np.random.default_rng([seed, 2]), ActiveTriplets(n, d, rng=seed), []
    for _ in range(2 * JUDGEMENTS_PER_ITEM):
        for _ in range(n // 2):
            query = active.ask()
            row = np.array([[query.anchor, query.left, query.right]])
            active.tell(int(judged(truth, row, k, rng)[0, 1]))
        out.append((len(active.triplets), error_of(active.embedding(), test)))
    return np.array(out)


def reached(curve: FloatArray, level: float) -> float:
    """Return the number of judgements at which the error reaches a level; NaN if it never does."""
    error = -isotonic_regression(-curve[:, 1]).x
    if error[-1] > level:
        return float("nan")
    step = int(np.argmax(error <= level))
    if step == 0:
        return float(curve[0, 0])
    share = (error[step - 1] - level) / (error[step - 1] - error[step])
    return float(curve[step - 1, 0] + share * (curve[step, 0] - curve[step - 1, 0]))


def simulated(settings: int, seeds: int) -> None:
    """Print the ratio of each setting, and their mean."""
    means = []
    print("  n  d    k   true  random  active   ratio  (standard error)   seconds")
    for n, d, k in SETTINGS[:settings]:
        began, ratios, ends = time.perf_counter(), [], []
        for seed in range(seeds):
            rng = np.random.default_rng([seed, n, d])
            truth = rng.standard_normal((n, d))
            test = judged(truth, random_triplets(n, 20_000, rng), k, rng)
            true = error_of(Placement(tuple(range(n)), truth, 0.5, test[:1]), test)
            chance, chosen = random_curve(truth, k, test, seed), active_curve(truth, k, test, seed)
            most = JUDGEMENTS_PER_ITEM * (n // 2 * 2)
            found = reached(chosen, -isotonic_regression(-chance[:, 1]).x[-1]) / most
            ratios.append(NEVER if np.isnan(found) else found)
            ends.append((true, chance[-1, 1], chosen[-1, 1]))
        true, random, active = np.mean(ends, axis=0)
        spread = np.std(ratios, ddof=1) / np.sqrt(seeds) if seeds > 1 else float("nan")
        means.append(np.mean(ratios))
        print(
            f"{n:3}  {d}  {k:3}  {true:.3f}   {random:.3f}   {active:.3f}   {means[-1]:.3f}  ({spread:.3f})"
            f"            {time.perf_counter() - began:6.0f}",
            flush=True,
        )
    print(f"mean ratio {np.mean(means):.3f}, target at most 0.75")


def recorded(path: Path, seeds: int, dimensions: int = 5) -> None:
    """Print the error on held-out recorded judgements when only recorded judgements can be asked."""
    data = Triplets.from_csv(path)
    n = data.n
    print(f"{len(data)} recorded judgements of {n} items, {dimensions} dimensions; error on a held-out fifth")
    curves = []
    for seed in range(seeds):
        pool, held = data.split(0.2, rng=seed)
        rng = np.random.default_rng(seed)
        chance = rng.permutation(len(pool))
        taken, free = chance[: 2 * n].tolist(), np.ones(len(pool), dtype=bool)
        free[taken] = False
        placement, errors = None, []
        while True:
            alike = Placement.fit(pool.take(chance[: len(taken)]), dimensions, rng=seed)
            placement = Placement.fit(pool.take(np.array(taken)), dimensions, start=placement, rng=seed)
            errors.append((len(taken), alike.error(held), placement.error(held)))
            if len(taken) + n > min(JUDGEMENTS_PER_ITEM * n, len(pool)):
                break
            recent: list[int] = []
            for _ in range(n):
                places = rng.choice(np.flatnonzero(free), size=min(CANDIDATE_TRIPLETS, int(free.sum())), replace=False)
                asked = pool.rows[np.array(recent, dtype=np.int64)]
                best = int(places[placement.information(pool.rows[places], asked).argmax()])
                free[best] = False
                recent.append(best)
            taken += recent
        curves.append(errors)
    for count, random, active in np.mean(curves, axis=0):
        print(f"{count:6.0f} judgements: random {random:.4f}, active {active:.4f}")
    last = np.array(curves)[:, 1:]
    difference = (last[:, :, 2] - last[:, :, 1]).mean(axis=1)
    error = difference.std(ddof=1) / np.sqrt(seeds) if seeds > 1 else float("nan")
    print(f"active minus random, mean over all steps: {difference.mean():+.4f} (standard error {error:.4f})")


def timed(n: int = 300, d: int = 3) -> None:
    """Print the time of a choice in a session with 20 answers."""
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((n, d))
    rows = judged(truth, random_triplets(n, 10 * n, rng), 1.0, rng)
    began = time.perf_counter()
    placement = Placement.fit(Triplets(rows, range(n)), d)
    fitted = time.perf_counter() - began
    began = time.perf_counter()
    asked = random_triplets(n, 20, rng)
    most_informative(placement, rng, asked=asked)
    first = time.perf_counter() - began
    times = []
    for _ in range(50):
        began = time.perf_counter()
        most_informative(placement, rng, asked=asked)
        times.append(1000 * (time.perf_counter() - began))
    print(
        f"n = {n}, d = {d}: fit {fitted:.2f} s, first choice {first:.2f} s, then median {np.median(times):.1f} ms, "
        f"95 % {np.quantile(times, 0.95):.1f} ms, target under 20 ms"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--settings", type=int, default=len(SETTINGS))
    parser.add_argument("--zappos", type=Path)
    parser.add_argument("--time", action="store_true")
    chosen = parser.parse_args()
    if chosen.time:
        timed()
    elif chosen.zappos:
        recorded(chosen.zappos, chosen.seeds)
    else:
        simulated(chosen.settings, chosen.seeds)
