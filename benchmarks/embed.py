"""Embeddings at the paper's size: time, memory, held-out error and scaling; real judgements; the noise fit.

python benchmarks/embed.py [--quick]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import scipy.optimize

import pairseek as ps
from food import items, name
from pairseek.embed import METHODS, Triplets, choose_dimension, fit_noise, simulate_triplets
from pairseek.embed.objective import Objective, padded

HERE = Path(__file__).resolve().parent
TRIPLETS, HELD = 958_479, 100_000
# A process for each fit, to measure its peak memory.
ONE_FIT = """
import json, sys, time
sys.path.insert(0, sys.argv[4])
from embed import METHODS, material
fitted, held = material(int(sys.argv[2]))
METHODS[sys.argv[1]](n_components=4, random_state=0, unseen="mean").fit(fitted.take(slice(0, 5000)))
cpu, wall = time.process_time(), time.perf_counter()
made = METHODS[sys.argv[1]](n_components=4, random_state=int(sys.argv[3])).fit(fitted)
cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
peak = next(int(x.split()[1]) / 1024 for x in open("/proc/self/status") if x.startswith("VmHWM"))
print(json.dumps({"seconds": wall, "cpu": cpu, "error": 1 - made.score(held), "steps": made.n_iter_, "peak": peak}))
"""


def material(count):
    """Return training and test triplets of the scaled embedding, with its fitted noise."""
    catalogue = items(4)
    response = ps.datasets.food10k_facts(4).response("logistic", "normalized")
    fitted = simulate_triplets(catalogue, count, 0, response=response)
    return fitted, simulate_triplets(catalogue, HELD, 1, response=response)


def one_fit(method, count, seed=0):
    done = subprocess.run(
        [sys.executable, "-c", ONE_FIT, method, str(count), str(seed), str(HERE)],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def plain(fitted, n, d, iterations):
    """Fit STE with NumPy sums over triplets and SciPy's L-BFGS, without shrinkage."""
    a, b, c = fitted.rows.T

    def loss(flat):
        x = flat.reshape(n, d)
        u, v = x[a] - x[b], x[a] - x[c]
        z = (v * v).sum(axis=1) - (u * u).sum(axis=1)
        wrong = 1 / (1 + np.exp(z))
        gradient = np.empty((n, d))
        for h in range(d):
            p, q = 2 * wrong * u[:, h], -2 * wrong * v[:, h]
            gradient[:, h] = np.bincount(a, p + q, n) - np.bincount(b, p, n) - np.bincount(c, q, n)
        return float(np.logaddexp(0, -z).sum()), gradient.ravel()

    start = 0.1 * np.random.default_rng(0).standard_normal(n * d)
    began = time.perf_counter()
    found = scipy.optimize.minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": iterations})
    return time.perf_counter() - began, found.x.reshape(n, d), found.nfev


def size(quick):
    fitted, held = material(TRIPLETS)
    catalogue = items(4)
    print(
        f"\n{TRIPLETS:,} triplets of {name()} (12,624 items, d = 4), {HELD:,} held out; load {os.getloadavg()[0]:.1f}"
    )
    print("targets: 20 s on two cores, 1 GB, error 0.215 for STE and CKL\n")
    truth = ps.metrics.triplet_error(catalogue, held.rows)
    print(f"{'':24}{'seconds':>9}{'of CPU':>9}{'error':>9}{'peak MB':>9}{'faster':>9}")
    print(f"{'the truth itself':24}{'':>18}{truth:9.4f}")
    seconds, points, _ = plain(fitted, catalogue.n, 4, 30 if quick else 80)
    wrong = ps.metrics.triplet_error(points, held.rows)
    print(f"{'plain STE, NumPy, SciPy':24}{seconds:9.1f}{'':>9}{wrong:9.4f}{'':>9}{1:8.1f}x")
    for method in ("ste", "ckl") if quick else METHODS:
        got = one_fit(method, TRIPLETS)
        print(
            f"{method.upper():24}{got['seconds']:9.1f}{got['cpu']:9.1f}{got['error']:9.4f}{got['peak']:9.0f}"
            f"{seconds / got['seconds']:8.1f}x"
        )


def growth(quick):
    print("\nTime by number of triplets (12,624 items, d = 4, STE)")
    print("gradient: one loss with its gradient, best of nine; fit: starts and path; few triplets need more steps\n")
    print(f"{'triplets':>12}{'gradient ms':>13}{'ns/triplet':>14}{'fit s':>8}{'of CPU':>8}{'error':>9}")
    points = padded(0.3 * items(4).coordinates)
    for count in (TRIPLETS // 8, TRIPLETS // 4, TRIPLETS // 2, TRIPLETS, *(() if quick else (2 * TRIPLETS,))):
        objective = Objective(material(count)[0].rows, len(points), METHODS["ste"].kind, 0.0)
        best = np.inf
        for _ in range(9):
            began = time.perf_counter()
            objective(points)
            best = min(best, time.perf_counter() - began)
        got = one_fit("ste", count)
        each = f"{1e3 * best:13.1f}{1e9 * best / count:14.1f}"
        print(f"{count:12,}{each}{got['seconds']:8.1f}{got['cpu']:8.1f}{got['error']:9.4f}")


def real(folder):
    print("\nReal judgements, held-out accuracy, means of three seeds\n")
    path = folder / "strange_fruit30" / "triplets.csv"
    arms = ("RandomSampling", "UncertaintySampling", "STE", "CrowdKernel")
    parts = [Triplets.from_csv(path, ids=range(30), where={"alg": arm}).rows for arm in arms]
    eggs = folder / "alien_eggs" / "responses.csv"
    ids = Triplets.from_csv(eggs).ids
    shoes = Triplets.from_csv(folder / "zappos85" / "deconflicted_triplets.csv")
    sets = {
        "strange_fruit30, d = 1": lambda _: (
            Triplets(np.concatenate(parts), range(30)),
            Triplets.from_csv(path, ids=range(30), where={"alg": "Test"}),
        ),
        "alien_eggs, d = 1": lambda _: tuple(
            Triplets.from_csv(eggs, ids=ids, where={"Alg.Label": arm}) for arm in ("Train", "Test")
        ),
        "zappos85, d = 5": lambda seed: shoes.split(0.2, seed),
    }
    print(f"{'':26}" + "".join(f"{method:>9}" for method in METHODS))
    for title, material_of in sets.items():
        d = int(title[-1])
        scores = {method: [] for method in METHODS}
        for seed in range(3):
            fitted, held = material_of(seed)
            for method, kind in METHODS.items():
                scores[method].append(kind(n_components=d, random_state=seed).fit(fitted).score(held))
        print(f"{title:26}" + "".join(f"{np.mean(values):9.4f}" for values in scores.values()))
    for title in list(sets)[:2]:
        chosen = [choose_dimension(sets[title](0)[0], (1, 2, 3, 4), rng=seed).chosen for seed in range(3)]
        print(f"{title.partition(',')[0]}: dimension by the one-standard-error rule, CKL, three seeds: {chosen}")


def noise():
    print("\nFit of k, probit with constant noise, true k 0.3, 100,000 triplets, starts 1e-4, 1 and 1e4\n")
    print(f"{'d':>4}{'k':>10}{'error/s.e.':>12}{'apart':>10}")
    for d in ps.datasets.food10k_dimensions():
        catalogue = items(d)
        true = ps.Probit(0.3, "constant")
        triplets = simulate_triplets(catalogue, 100_000, d, response=true)
        fits = [fit_noise(catalogue, triplets, responses=[true], folds=None, start=k).best for k in (1e-4, 1.0, 1e4)]
        apart = np.ptp([fit.k for fit in fits])
        print(f"{d:4d}{fits[0].k:10.5f}{(fits[0].k - 0.3) / fits[0].standard_error:12.2f}{apart:10.1e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer methods and sizes")
    quick = parser.parse_args().quick
    size(quick)
    growth(quick)
    folder = Path(os.environ.get("PAIRSEEK_DATA", ".")) / "data" / "triplets"
    if folder.is_dir():
        real(folder)
    else:
        print("\nReal judgements: not found; set PAIRSEEK_DATA to the folder that has data/triplets")
    noise()


if __name__ == "__main__":
    main()
