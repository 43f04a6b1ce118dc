"""The source of pairs by dimension: time, and expected information relative to the best of many random pairs.

    python benchmarks/dimensions.py                          # d = 8 to 64, constant and normalized noise
    python benchmarks/dimensions.py --d 32 64 --pairs 50000000
    python benchmarks/dimensions.py --n 50000 --d 384 --raw  # a search in many dimensions, whole questions

Items are normal, with variances that fall as 1/i. States come from a simulated user who answers the questions of the
default source. "cpu" is the time summed over all threads, which is less sensitive to other work on the machine.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings

import numpy as np

import pairseek as ps
from pairseek.numerics.covariances import principal_root
from pairseek.numerics.jit import kernel, next_uniform
from pairseek.numerics.pair_kernels import pair_constant
from pairseek.numerics.parallel import for_ranges, thread_count
from pairseek.pairs.context import SelectionContext
from pairseek.pairs.sources import ProposedPairs
from pairseek.pairs.sources.branch_and_bound.bounds import utility_value
from pairseek.pairs.sources.branch_and_bound.view import utility_model

_CHUNK = 100_000


def catalogue(n: int, d: int) -> ps.Items:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ps.Items(np.random.default_rng(d).standard_normal((n, d)) / np.sqrt(np.arange(1, d + 1)))


@kernel
def _random_pairs(start, stop, points, projections, costs, model, out):
    """Write the best utility of random pairs start to stop to the piece of `out` that begins there."""
    shape, noise, k, penalty, table, _ = model
    n, d = points.shape
    state = np.empty(1, dtype=np.uint64)
    state[0] = start + 1
    best = -np.inf
    for _ in range(start, stop):
        i, j = int(next_uniform(state) * n), int(next_uniform(state) * n)
        square, variance = 0.0, 0.0
        for h in range(d):
            square += (points[i, h] - points[j, h]) ** 2
            variance += (projections[i, h] - projections[j, h]) ** 2
        if square > 0.0:
            length = 2.0 * math.sqrt(square)
            constant = pair_constant(length, k, noise)
            m = abs(constant * (costs[j] - costs[i]))
            best = max(best, utility_value(shape, penalty, table, m, 2.0 * constant * math.sqrt(variance), m, 0.0))
    out[start // _CHUNK] = best


def best_of_random(context: SelectionContext, pairs: int) -> float:
    """Return the utility of the best of random pairs, by a compiled loop over the same table."""
    centred = context.points - context.belief.mean
    projections = np.ascontiguousarray(centred @ principal_root(context.belief.covariance))
    costs = np.sum(centred**2, axis=1)
    out = np.full(-(-pairs // _CHUNK), -np.inf)
    model = utility_model(context, context.strategy.shape(), 0.0)
    for_ranges(_random_pairs, pairs, _CHUNK, np.array(context.points), projections, costs, model, out)
    return float(out.max())


def timed(source, context, repeats=3):
    source.choose(context, np.random.default_rng(0))
    wall, cpu = [], []
    for _ in range(repeats):
        began, worked = time.perf_counter(), time.process_time()
        choice = source.choose(context, np.random.default_rng(0))
        wall.append(1e3 * (time.perf_counter() - began))
        cpu.append(1e3 * (time.process_time() - worked))
    return choice, float(np.median(wall)), float(np.median(cpu))


def states(items, noise, answers):
    search = ps.Search(items, response=ps.Logistic(noise=noise), candidates=ProposedPairs(), rng=7)
    scale = 1.0 / np.sqrt(np.arange(1, items.d + 1))
    user = ps.SimulatedUser(np.random.default_rng(3).standard_normal(items.d) * scale, search.response, rng=5)
    for number in range(max(answers) + 1):
        if number in answers:
            yield number, SelectionContext.of(items, search.belief, search.response, ps.InfoGain())
        query = search.ask()
        search.tell(query, winner=user.answer(items, query))


def compare(arguments):
    print(
        f"n = {arguments.n:,}, InfoGain, {thread_count()} threads; reference: best of {arguments.pairs:,} random pairs"
    )
    print(
        f"{'noise':11}{'d':>4}{'answers':>8}{'reference':>10} | {'all pairs: ms':>14}{'cpu':>6}{'ratio':>7}{'gap':>7}"
        f" | {'proposed: ms':>13}{'cpu':>6}{'ratio':>7}{'gap':>7}"
    )
    for d in arguments.d:
        items = catalogue(arguments.n, d)
        for noise in arguments.noise:
            for number, context in states(items, noise, arguments.answers):
                reference = best_of_random(context, arguments.pairs)
                cells = []
                for source in (ps.AllPairs(gap=0.03, listed=100_000), ProposedPairs()):
                    choice, wall, cpu = timed(source, context, arguments.repeats)
                    gap = "-" if choice.gap is None else f"{choice.gap:.0%}"
                    cells.append(f"{wall:>13.0f}{cpu:>7.0f}{choice.utility / reference:>7.3f}{gap:>7}")
                print(f"{noise:11}{d:>4}{number:>8}{reference:>10.4f} | {' | '.join(cells)}", flush=True)


def questions(arguments):
    """Time whole questions, an answer and the next pair, with the default response and the paper's."""
    for d in arguments.d:
        items = catalogue(arguments.n, d)
        answer(arguments, items, ps.Search(items, rng=1), "default response")
        for noise in arguments.noise:
            answer(arguments, items, ps.Search(items, response=ps.Logistic(noise=noise), rng=1), f"{noise} noise")


def answer(arguments, items, search, words):
    """Answer the questions of a search, and print the time of an answer and the next question."""
    point = np.random.default_rng(3).standard_normal(items.d) / np.sqrt(np.arange(1, items.d + 1))
    user = ps.SimulatedUser(point, search.response, rng=5)
    wall, cpu = [], []
    query = search.ask()
    for _ in range(max(arguments.answers)):
        began, worked = time.perf_counter(), time.process_time()
        search.tell(query, winner=user.answer(items, query))
        query = search.ask()
        wall.append(1e3 * (time.perf_counter() - began))
        cpu.append(1e3 * (time.process_time() - worked))
    print(
        f"{words}, n = {items.n:,}, d = {items.d}, {len(wall)} answers: an answer and the next question "
        f"{np.median(wall):.0f} ms (median), {max(wall):.0f} ms (max); cpu {np.median(cpu):.0f}, "
        f"{max(cpu):.0f} ms; {query.info.candidates}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--d", type=int, nargs="+", default=[8, 12, 16, 24, 32, 64])
    parser.add_argument("--noise", nargs="+", default=["constant", "normalized"])
    parser.add_argument("--answers", type=int, nargs="+", default=[0, 10])
    parser.add_argument("--pairs", type=int, default=50_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--raw", action="store_true", help="time whole questions instead")
    arguments = parser.parse_args()
    (questions if arguments.raw else compare)(arguments)


if __name__ == "__main__":
    main()
