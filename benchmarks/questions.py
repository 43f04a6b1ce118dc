"""Questions needed against the fraction of pairs searched: the figure of docs/benchmarks/index.md.

    python benchmarks/questions.py --out docs/figures/candidates.png        # about ten minutes on two cores

Simulated users answer InfoGain's questions, chosen from random samples of the pairs or from all pairs. The table counts
the answers until the mean trace of the posterior covariance falls to given values.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import pairseek as ps
from food import items, name, response

RATES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
TARGETS = {0.4: "#7b9fd4", 0.2: "#3b6fb6", 0.1: "#16325c"}
D = 4


def curve(task, *, answers):
    """Return the traces after 0, 1, ... answers of a user, and the mean fraction of pairs searched; rate None: all."""
    noise, rate, seed = task
    ps.set_thread_count(1)
    catalogue = items(D)
    search = ps.Search(
        catalogue,
        response=response(D, noise),
        prior=ps.UniformBox(),
        candidates=ps.AllPairs() if rate is None else ps.SampledPairs(rate=rate, rescore=0),
        rng=seed,
    )
    user = ps.SimulatedUser(np.random.default_rng([seed, D]).uniform(-1, 1, D), search.response, rng=seed)
    traces, looked = [float(np.trace(search.belief.covariance))], []
    for _ in range(answers):
        query = search.ask()
        search.tell(query, winner=user.answer(catalogue, query))
        traces.append(float(np.trace(search.belief.covariance)))
        looked.append(query.info.considered)
    return task, traces, np.mean(looked) / (catalogue.n * (catalogue.n - 1) / 2)


def needed(traces, target):
    """Return the answers until the mean trace reaches the target, linearly interpolated; NaN if it never does."""
    below = np.flatnonzero(traces <= target)
    if not len(below):
        return np.nan
    after = below[0]
    return after - (target - traces[after]) / (traces[after - 1] - traces[after])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=40)
    parser.add_argument("--answers", type=int, default=60)
    parser.add_argument("--noise", default="constant", choices=("constant", "normalized", "decaying"))
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out", type=Path, default=Path("candidates.png"))
    options = parser.parse_args()
    tasks = [(options.noise, rate, seed) for seed in range(options.users) for rate in (*RATES, None)]
    traces: dict[float | None, list] = {}
    shares: dict[float | None, list] = {}
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for task, found, share in pool.imap_unordered(partial(curve, answers=options.answers), tasks):
            traces.setdefault(task[1], []).append(found)
            shares.setdefault(task[1], []).append(share)
    mean = {rate: np.mean(found, axis=0) for rate, found in traces.items()}
    share = {rate: float(np.mean(found)) for rate, found in shares.items()}
    print(f"{name()}, d = {D}, {options.noise} noise, {options.users} users: answers until the mean trace is")
    print(f"{'pairs searched':>24}" + "".join(f"{target:>10}" for target in TARGETS))
    for rate in (*RATES, None):
        label = "best of all, " * (rate is None) + f"{share[rate]:.1e}"
        print(f"{label:>24}" + "".join(f"{needed(mean[rate], target):>10.1f}" for target in TARGETS))
    draw(mean, share, options)


def draw(mean, share, options):
    plt.rcParams.update(
        {"font.family": "DejaVu Sans", "font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
    )
    figure, axes = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
    for target, colour in TARGETS.items():
        x = [share[rate] for rate in RATES]
        y = [needed(mean[rate], target) for rate in RATES]
        axes.plot(x, y, "o-", color=colour, lw=1.8, ms=5)
        axes.plot(share[None], needed(mean[None], target), "*", color=colour, ms=15, zorder=5)
        last = np.flatnonzero(np.isfinite(y))[-1]
        axes.annotate(
            f"trace {target}", (x[last], y[last]), (10, 0), textcoords="offset points", color=colour, va="center"
        )
    for marker, size, label in (("o", 5, "best of a random sample"), ("*", 13, "best of all pairs")):
        axes.plot([], [], marker, color="#444", ms=size, label=label)
    axes.legend(loc="lower left", frameon=False)
    axes.set(
        xscale="log", ylim=(0, None), xlabel="fraction of pairs searched for a question", ylabel="questions needed"
    )
    axes.grid(axis="y", color="#e4e4e4", lw=0.8)
    axes.set_title(
        f"{name()}, d = {D}, {options.noise} noise, {options.users} users", fontsize=10, loc="left", color="#444"
    )
    figure.savefig(options.out, dpi=140)


if __name__ == "__main__":
    main()
