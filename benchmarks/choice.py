"""Benefit, in questions, of a closer search for the best pair and of a second score; it justifies the default source.

    python benchmarks/choice.py [--users 60] [--noise normalized] [--prior box]

Simulated users answer InfoGain's questions, whose pairs are certified to be within a gap of the best of all pairs. The
best may be scored a second time by samples. The output has the mean trace of the posterior covariance after some
answers; the difference from the first row for the same users, in questions (the difference of traces divided by the
reduction that one question brings), with its standard error; and milliseconds per question on one thread.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from functools import partial

import numpy as np

import pairseek as ps
from food import items, name, response

SOURCES = {
    "gap 0.3 %, best 512 again": ps.AllPairs(gap=0.003, rescore=512),
    "gap 1 %, best 32 again": ps.AllPairs(gap=0.01, rescore=32),
    "gap 1 %": ps.AllPairs(gap=0.01),
    "gap 3 %": ps.AllPairs(gap=0.03),
    "gap 10 %": ps.AllPairs(gap=0.10),
    "gap 30 %": ps.AllPairs(gap=0.30),
}
AT = (5, 10, 20, 40)


def traces(task, *, d, noise, prior):
    """Return the traces after 0, 1, ... answers of a user, and the median seconds per question."""
    label, seed = task
    ps.set_thread_count(1)
    catalogue = items(d)
    search = ps.Search(
        catalogue,
        response=response(d, noise),
        prior=ps.UniformBox() if prior == "box" else None,
        candidates=SOURCES[label],
        rng=seed,
    )
    point = search.prior.sample(1, d, np.random.default_rng([seed, d]))[0]
    user = ps.SimulatedUser(point, search.response, rng=seed)
    covariance_traces, spent = [float(np.trace(search.belief.covariance))], []
    for _ in range(max(AT) + 1):
        began = time.perf_counter()
        query = search.ask()
        spent.append(time.perf_counter() - began)
        search.tell(query, winner=user.answer(catalogue, query))
        covariance_traces.append(float(np.trace(search.belief.covariance)))
    return task, covariance_traces, float(np.median(spent))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=60)
    parser.add_argument("--d", type=int, default=4)
    parser.add_argument("--noise", default="normalized", choices=("constant", "normalized", "decaying"))
    parser.add_argument("--prior", default="default", choices=("default", "box"))
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    tasks = [(label, seed) for seed in range(options.users) for label in SOURCES]
    run = partial(traces, d=options.d, noise=options.noise, prior=options.prior)
    curves: dict[str, dict[int, list[float]]] = {label: {} for label in SOURCES}
    seconds: dict[str, list[float]] = {label: [] for label in SOURCES}
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for (label, seed), found, spent in pool.imap_unordered(run, tasks):
            curves[label][seed] = found
            seconds[label].append(spent)
    print(f"{name()}, d = {options.d}, {options.noise} noise, prior: {options.prior}, {options.users} users")
    print(f"{'':28}" + "".join(f"{f'after {n}':>24}" for n in AT) + f"{'per question':>13}")
    table = {label: np.array([curves[label][seed] for seed in range(options.users)]) for label in SOURCES}
    first = next(iter(table.values()))
    for label, found in table.items():
        cells = ""
        for n in AT:
            fall = first[:, n].mean() - first[:, n + 1].mean()
            more = (found[:, n] - first[:, n]) / fall
            cells += f"{found[:, n].mean():9.3f} {more.mean():+6.2f} ({more.std() / np.sqrt(len(more)):.2f}) "
        print(f"{label:28}{cells}{1e3 * np.median(seconds[label]):10.1f} ms")


if __name__ == "__main__":
    main()
