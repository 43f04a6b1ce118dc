"""Accuracy: the width of the posterior after each number of answers by simulated users.

    python benchmarks/accuracy.py                                   # the paper's matched setting, all strategies
    python benchmarks/accuracy.py --noise constant --strategies infogain --candidates sampled all

With a matched model, the mean trace of the posterior covariance is the expected squared error, and varies far less
between users than the error itself. Both are printed, with standard errors over users, next to the figures of the
authors' program where they are known. All strategies have the same users. With several sources of candidates, the last
lines say how many answers the first source needs to reach the traces of the others.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time

import numpy as np

import pairseek as ps
from food import RATE, folder, items, name, response
from pairseek.pairs.strategies import UTILITIES

# Source of candidates, and rest of pairs and items.
SOURCES = {
    "sampled": (ps.SampledPairs(rate=RATE), ps.Rest(pair=0)),
    "table": (ps.SampledPairs(rate=RATE, rescore=0), ps.Rest(pair=0)),
    "all": (ps.AllPairs(), ps.Rest(pair=0)),
    "once": (ps.AllPairs(), ps.Rest()),
    "rest5": (ps.AllPairs(), ps.Rest(item=5)),
    "certified": (ps.AllPairs(gap=0.01), None),
    "default": (None, None),
}
_catalogues: dict[int, ps.Items] = {}


def trial(task):
    """Return the trace and squared error after each answer, for one user and one strategy."""
    d, noise, strategy, source, seed, answers, samples = task
    ps.set_thread_count(1)
    catalogue = _catalogues.setdefault(d, items(d))
    rng = np.random.default_rng([seed, d])
    # GaussSearch chooses its own pairs.
    own = strategy == "gausssearch"
    candidates, rest = (None, None) if own else SOURCES[source]
    search = ps.Search(
        catalogue,
        response=response(d, noise),
        prior=ps.UniformBox(),
        posterior=None if samples is None else ps.Particles(samples),
        strategy=ps.GaussSearch() if own else UTILITIES[strategy](),
        candidates=candidates,
        rest=rest,
        rng=seed,
    )
    user = ps.SimulatedUser(rng.uniform(-1, 1, d), search.response, rng=seed)
    out = {}
    began = time.perf_counter()
    asked: dict[frozenset, int] = {}
    for answer in range(1, answers + 1):
        query = search.ask()
        pair = frozenset((query.left, query.right))
        winner = user.answer(catalogue, query, repeat=asked.get(pair, 0))
        asked[pair] = asked.get(pair, 0) + 1
        search.tell(query, winner=winner)
        estimate = search.estimate()
        error = ps.metrics.squared_error(estimate.point, user.point)
        out[answer] = (float(np.trace(estimate.covariance)), error)
    return (strategy, source), out, (time.perf_counter() - began) / answers


def reference(d, noise):
    """Return the figures of the authors' program, where they were measured."""
    where = folder()
    path = None if where is None else where / "reference" / "accuracy.json"
    if path is None or not path.exists() or noise != "normalized":
        return {}
    record = json.loads(path.read_text()).get(f"d{d} matched normalized", {})
    return {key.lower(): value for key, value in record.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="number of the first user, such as 100")
    parser.add_argument("--answers", type=int, nargs="+", default=[20, 40, 60])
    parser.add_argument("--dimension", type=int, default=4)
    parser.add_argument("--noise", default="normalized", choices=("constant", "normalized", "decaying"))
    parser.add_argument("--strategies", nargs="+", default=[*UTILITIES, "gausssearch"])
    parser.add_argument("--candidates", nargs="+", default=["sampled"], choices=list(SOURCES))
    parser.add_argument("--samples", type=int, default=None, help="number of particles; EP if omitted")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    d, noise = options.dimension, options.noise
    tasks = [
        (d, noise, strategy, source, seed, max(options.answers), options.samples)
        for seed in range(options.first, options.first + options.users)
        for strategy in options.strategies
        for source in options.candidates
    ]
    results: dict[tuple[str, str], list] = {}
    speed: dict[tuple[str, str], list[float]] = {}
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for done, (key, out, seconds) in enumerate(pool.imap_unordered(trial, tasks), 1):
            results.setdefault(key, []).append(out)
            speed.setdefault(key, []).append(seconds)
            if sys.stderr.isatty():
                print(f"\r{done} of {len(tasks)} searches", end="", file=sys.stderr)
    print(f"\n{name()}, d = {d}, {noise} noise, {options.samples or 'EP, no'} samples, {options.users} users")
    print("mean posterior trace (standard error) / squared error (standard error); in brackets the authors' trace\n")
    print(f"{'':26}" + "".join(f"{f'{a} answers':>42}" for a in options.answers) + f"{'ms per query':>13}")
    known = reference(d, noise)
    for key in sorted(results, key=lambda key: (options.strategies.index(key[0]), key[1])):
        cells = []
        for answer in options.answers:
            values = np.array([out[answer] for out in results[key]])
            mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))
            theirs = known.get(key[0], {}).get(str(answer), {}).get("posterior_trace")
            cells.append(
                f"{mean[0]:.3f} ({error[0]:.3f}) / {mean[1]:.3f} ({error[1]:.3f})"
                + (f" [{theirs:.3f}]" if theirs else "")
            )
        print(f"{' '.join(key):26}" + "".join(f"{c:>42}" for c in cells) + f"{1e3 * np.mean(speed[key]):11.1f}")
    for strategy in options.strategies:
        mean = {
            source: np.array([[out[a][0] for a in range(1, max(options.answers) + 1)] for out in outs]).mean(axis=0)
            for (named, source), outs in results.items()
            if named == strategy
        }
        first = options.candidates[0]
        for source in options.candidates[1:]:
            equivalents = [f"{needed(mean[first], mean[source][a - 1])} for {a}" for a in options.answers]
            print(f"{strategy} {first} needs, where {source} needs: {', '.join(equivalents)}")


def needed(traces, trace):
    """Return the answers until a falling mean trace reaches this value, with log-linear interpolation."""
    if traces.min() > trace:
        return f"over {len(traces)}"
    falling = np.minimum.accumulate(traces)
    return f"{np.interp(-np.log(trace), -np.log(falling), np.arange(1, len(traces) + 1)):.1f}"


if __name__ == "__main__":
    main()
