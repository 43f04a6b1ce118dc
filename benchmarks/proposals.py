"""Information that cheaper sources of pairs give up, in questions; it justifies the default source.

    python benchmarks/proposals.py dimensions [--users 4]    # the default response in 4, 20, 32 and 64 dimensions
    python benchmarks/proposals.py unknown [--users 24]      # unknown k

Every source chooses a pair in the states of the same simulated users, over 20 questions. The output has the information
that each source gives up relative to the first, summed over 20 questions and divided by the mean information of one,
with its standard error over users; the largest loss of one question; and milliseconds of processor time on one thread.
With an unknown k, information is averaged over eight sets of samples that no source has seen.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import numpy as np
from scipy.special import expit

import pairseek as ps
from dimensions import catalogue
from food import items, response
from forecasts import utilities
from pairseek.pairs.context import SelectionContext
from pairseek.pairs.features import typical_response
from pairseek.pairs.sources import ProposedPairs

QUESTIONS = 20
SOURCES = {
    "dimensions": {
        "1024 promising items": ProposedPairs(items=1024, improved=8),
        "256 promising items": ProposedPairs(),
        "64 promising items": ProposedPairs(items=64, improved=2),
    },
    "unknown": {
        "20,000 drawn, best 512 again": ps.SampledPairs(count=20_000, rescore=512, shared=True),
        "256 promising, best 64 again": ProposedPairs(rescore=64),
        "256 promising": ProposedPairs(),
        "within 3 %, best 16 again": ps.AllPairs(gap=0.03, budget=2_000_000, rescore=16),
    },
}


def context_of(search: ps.Search) -> SelectionContext:
    typical = typical_response(search.response, search.belief)
    return SelectionContext.of(search.modelled_items, search.belief, typical, search.strategy)


def placed_states(catalogue: ps.Items, seed: int) -> Iterator[ps.Search]:
    """Yield a search with the default response before each question of a person drawn from its prior."""
    search, rng = ps.Search(catalogue, rng=seed), np.random.default_rng(seed)
    utility = utilities(search, rng)
    for _ in range(QUESTIONS):
        yield search
        query = search.ask()
        left, right = (utility[catalogue.index(side)] for side in (query.left, query.right))
        search.tell(query, winner=query.left if rng.random() < expit(left - right) else query.right)


def unknown_states(catalogue: ps.Items, seed: int) -> Iterator[ps.Search]:
    """Yield a search with an unknown k before every third question; k is 1/4, 1 or 4 times the guess."""
    guess, rng = response(4, "normalized").k, np.random.default_rng(seed)
    believed = ps.Logistic(ps.Unknown(ps.LogNormal.around(guess)), "normalized")
    parts = {"response": believed, "prior": ps.UniformBox(), "strategy": ps.InfoGain()}
    search = ps.Search(catalogue, candidates=list(SOURCES["unknown"].values())[seed % 2], rng=seed, **parts)
    k = guess * 4.0 ** (seed % 3 - 1)
    user = ps.SimulatedUser(rng.uniform(-1, 1, 4), ps.Logistic(k, "normalized"), rng=seed)
    for number in range(QUESTIONS):
        if number % 3 == 1:
            yield search
        query = search.ask()
        search.tell(query, winner=user.answer(catalogue, query, repeat=0))


def judged(search: ps.Search, pairs: list[tuple[int, int]]) -> np.ndarray:
    """Return the information of pairs, averaged over samples of which no source knows."""
    total = np.zeros(len(pairs))
    for number in range(8):
        judge = ps.Search(
            search.items,
            response=search.response,
            prior=search.prior,
            posterior=ps.EP(points=1024 + 64 * number),
            strategy=ps.InfoGain(),
            rng=0,
        ).continued(search.history)
        context = context_of(judge)
        total += context.rescored(context.features(*np.array(pairs).T))
    return total / 8


def compare(case: str, label: str, states, users: int) -> None:
    sources = SOURCES[case]
    losses, worst = np.zeros((users, len(sources))), np.zeros(len(sources))
    seconds: list[list[float]] = [[] for _ in sources]
    for seed in range(users):
        rows = []
        for search in states(seed):
            context, choices = context_of(search), []
            for source, times in zip(sources.values(), seconds, strict=True):
                began = time.process_time()
                choices.append(source.choose(context, np.random.default_rng(0)))
                times.append(time.process_time() - began)
            pairs = [(choice.first, choice.second) for choice in choices]
            rows.append([c.utility for c in choices] if case == "dimensions" else judged(search, pairs))
        information = np.array(rows)
        losses[seed] = QUESTIONS * (1.0 - information.mean(axis=0) / information[:, 0].mean())
        worst = np.maximum(worst, np.max(1.0 - information / information[:, :1], axis=0))
    errors = losses.std(axis=0, ddof=1) / np.sqrt(users)
    for name, loss, error, most, times in zip(sources, losses.mean(axis=0), errors, worst, seconds, strict=True):
        median = 1e3 * np.median(times)
        print(f"{label:10}{name:32}{loss:6.2f} ({error:.2f}){most:8.1%}{median:8.1f} ms", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=SOURCES)
    parser.add_argument("--users", type=int, default=None)
    arguments = parser.parse_args()
    ps.set_thread_count(1)
    print(f"{'':10}{'source':32}questions lost, worst, processor time")
    if arguments.case == "unknown":
        compare("unknown", "unknown k", lambda seed: unknown_states(items(4), seed), arguments.users or 24)
        return
    for d in (4, 20, 32, 64):
        shown = items(4) if d == 4 else catalogue(12_624, d)
        compare("dimensions", f"d = {d}", lambda seed, shown=shown: placed_states(shown, seed), arguments.users or 4)


if __name__ == "__main__":
    main()
