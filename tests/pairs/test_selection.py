"""The pair that is chosen, by tables and a short list, against the best candidate by many samples.

The claim is for InfoGain (with its short list) and EPMV (by table): short of the best candidate by at most 1 % of the
spread between best and median candidate, in the median over states, and 5 % in the worst. MCMV needs no samples and is
exact. GreedyMSE and GreedyVolume are measured beside them. benchmarks/fidelity.py measures the same in the setting of
the paper.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from helpers.shortfall import along_a_search
from helpers.situations import answers_from, evidence_of, last_belief
from pairseek.core.types import Evidence
from pairseek.model.items import Items
from pairseek.model.noise import PUBLISHED_NOISES
from pairseek.model.responses import Logistic
from pairseek.pairs.context import SelectionContext, best_of
from pairseek.pairs.rest import Resting
from pairseek.pairs.sources.sampled import sampled_pairs
from pairseek.pairs.strategies import EPMV, MCMV, GreedyMSE, GreedyVolume, InfoGain
from pairseek.posteriors import Grid, Particles

# Constants fitted to Food-10k.
CONSTANTS = {4: (0.2805, 1.5637, 9.7060), 12: (0.0832, 0.6085, 66.3200)}


@lru_cache(maxsize=8)
def shortfalls(d, noise):
    """Return losses in four states of a search, chosen with 4000 samples and judged with 40,000."""
    items = Items(np.random.default_rng(d).standard_normal((2000, d))).scaled()
    strategies = [InfoGain(), EPMV(items.spread)]
    if d == 4:
        strategies += [GreedyMSE(), GreedyVolume()]
    response = Logistic(CONSTANTS[d][PUBLISHED_NOISES.index(noise)], noise)
    return list(
        along_a_search(
            items, response, strategies, at=(0, 5, 30, 60), candidates=5000, samples=4000, judged=1000, seed=1
        )
    )


def of(strategy, dimensions=(4, 12)):
    found = [
        s for d in dimensions for noise in PUBLISHED_NOISES for s in shortfalls(d, noise) if s.strategy == strategy
    ]
    assert len(found) == 12 * len(dimensions)
    return found


@pytest.mark.long
def test_infogain_with_its_short_list_is_within_one_percent_and_five_in_the_worst_state():
    """In this run the loss is 0.0 % in the median and 1.5 % in the worst of 24 states."""
    found = [s.rescored for s in of("infogain")]
    assert np.median(found) <= 0.01
    assert max(found) <= 0.05


@pytest.mark.long
def test_infogain_needs_the_short_list():
    """The table alone is good in the median but not in the worst state: before any answer the belief is a cube."""
    found = [s.by_table for s in of("infogain")]
    assert np.median(found) <= 0.03
    assert max(found) > 0.05


def test_epmv_by_table_is_within_one_percent_and_five_in_the_worst_state():
    """In this run the loss is 0.0 % in the median and 1.2 % in the worst of 24 states."""
    found = [s.by_table for s in of("epmv")]
    assert np.median(found) <= 0.01
    assert max(found) <= 0.05


def test_epmv_gains_nothing_from_the_short_list():
    """In this run 6.7 % in the worst state: before any answer all pairs have the same variance under normalized noise.

    Then |E f - 1/2| alone decides, which the table knows by symmetry and the samples only to within their noise.
    """
    chosen, by_table = np.array([(s.rescored, s.by_table) for s in of("epmv")]).T
    assert np.median(chosen) <= 0.01
    assert max(chosen) <= 0.10
    assert by_table.mean() < chosen.mean()


def test_greedy_mse_keeps_close():
    """In this run the loss is 0.0 % in all of 12 states; with another seed it is 1.8 % in the worst."""
    found = [s.rescored for s in of("greedy_mse", [4])]
    assert np.median(found) <= 0.01
    assert max(found) <= 0.05


def test_greedy_volume_is_better_with_the_short_list_than_by_table():
    """In this run: 0 % in the median and 34 % in the worst of 12 states; with another seed 0.9 %.

    The log determinant after an answer feels the skew of the posterior to the same order as its spread, and the table
    knows no skew: among pairs that are all nearly as good, the best can be beyond the short list.
    """
    found = [(s.rescored, s.by_table) for s in of("greedy_volume", [4])]
    chosen, by_table = np.array(found).T
    assert np.median(chosen) <= 0.05
    assert chosen.mean() < 0.5 * by_table.mean()


STRATEGIES = [InfoGain(), EPMV(1.0), MCMV(), GreedyMSE(), GreedyVolume()]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=[strategy.name for strategy in STRATEGIES])
@pytest.mark.parametrize("answers", [0, 3, 12])
def test_in_two_dimensions_judged_by_a_grid_without_any_noise(strategy, answers):
    """Return the score of every candidate over all cells of a grid, without random draws."""
    rng = np.random.default_rng(answers)
    items = Items(rng.standard_normal((300, 2))).scaled()
    response = Logistic(2.2)
    evidence = Evidence(np.empty((0, 2)), np.empty(0), np.empty(0))
    if answers:
        evidence = evidence_of(response, answers_from(rng, [0.4, -0.1], answers, response))
    belief, exact = (last_belief(posterior, response, evidence) for posterior in (Particles(4000), Grid(101)))
    first, second = sampled_pairs(items.n, 3000, rng)
    scene, judge = (
        SelectionContext(items.coordinates, items.appeal, b, response, strategy, Resting.of(items.n, [], []))
        for b in (belief, exact)
    )
    choice = best_of(scene, first, second, rng, rescore=512, words="")
    candidates = judge.features(first, second)
    truth = (strategy.exact or strategy.score)(candidates, exact)
    chosen = truth[np.flatnonzero((first == choice.first) & (second == choice.second))[0]]
    assert (truth.max() - chosen) / (truth.max() - np.median(truth)) <= 0.05
