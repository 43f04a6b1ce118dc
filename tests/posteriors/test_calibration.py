"""Simulation-based calibration with active queries (Talts et al. 2018; Modrák et al. 2023).

A user is drawn from the prior and answers the questions that the search itself chooses. Whatever the strategy asks,
the truth is then one more draw from the posterior: its rank among draws is uniform, for each coordinate, and for any
function of user and answers. The log-likelihood of the truth is the sharpest of those: a posterior that takes the
answers for more or less than they are worth (a power of the likelihood, a wrong k) has it too high or too low.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from scipy.stats import chisquare, norm

from helpers.reference import naive_log_posterior
from pairseek.model.items import Items
from pairseek.model.priors import UniformBox
from pairseek.model.responses import Logistic
from pairseek.pairs.sources import SampledPairs
from pairseek.pairs.strategies import InfoGain
from pairseek.posteriors import Particles
from pairseek.search import Search
from pairseek.search.simulate import SimulatedUser

DRAWS = 15
ANSWERS = 10
# Twenty tests in all: with another seed, a correct posterior would fail with a probability of about 0.002.
LEAST_P = 1e-4


@lru_cache(maxsize=8)
def ranks(d, believed, runs):
    """Return (runs, d + 2) ranks of the truth among posterior draws: coordinates, log-likelihood, distance."""
    true = Logistic(3.0)
    response = Logistic(believed)
    out = np.empty((runs, d + 2), dtype=int)
    for run in range(runs):
        rng = np.random.default_rng([d, run])
        items = Items(rng.uniform(-1.3, 1.3, size=(60, d)))
        point = rng.uniform(-1, 1, size=d)
        user = SimulatedUser(point, true, rng)
        search = Search(
            items,
            response=response,
            prior=UniformBox(),
            posterior=Particles(500),
            strategy=InfoGain(),
            candidates=SampledPairs(count=200, rescore=0),
            rng=int(rng.integers(2**31)),
        )
        for _ in range(ANSWERS):
            query = search.ask()
            search.tell(query, winner=user.answer(items, query))
        belief = search.belief
        # A few draws from many particles are practically independent.
        draws = belief.samples[rng.choice(len(belief.weights), size=DRAWS, replace=False, p=belief.weights)]
        answers = [
            (items.coordinates[items.index(e.left)], items.coordinates[items.index(e.right)], outcome(e))
            for e in search.history
        ]
        values = [measures(x, answers, response, belief) for x in (point[None], draws)]
        out[run] = np.sum(values[1] < values[0], axis=0)
    return out


def outcome(event):
    return "first" if event.winner == event.left else "second"


def measures(points, answers, response, belief):
    """Return (n, d + 2) coordinates, log-likelihoods, and distances from the posterior mean in standard deviations."""
    centred = points - belief.mean
    distance = np.einsum("nd,de,ne->n", centred, np.linalg.inv(belief.covariance), centred)
    logs = naive_log_posterior(points, answers, response.k, response.noise, response.name)
    return np.column_stack([points, logs, distance])


def p_values(found):
    """Return p-values per column: chi-square of the 16 ranks in 8 bins, and the mean rank, which detects shifts."""
    counts = [chisquare(np.bincount(column // 2, minlength=8)).pvalue for column in found.T]
    error = np.sqrt(((DRAWS + 1) ** 2 - 1) / 12 / len(found))
    return counts, (2 * norm.sf(np.abs(found.mean(axis=0) - DRAWS / 2) / error)).tolist()


@pytest.mark.parametrize(("d", "runs"), [(2, 250), pytest.param(4, 200, marks=pytest.mark.long)])
def test_the_truth_is_one_more_draw_from_the_posterior(d, runs):
    """With the likelihood raised to 0.6 or 1.6 in the particles, this fails at p = 1e-8 and 7e-7."""
    counts, means = p_values(ranks(d, 3.0, runs))
    assert min(counts) > LEAST_P, counts
    assert min(means) > LEAST_P, means


@pytest.mark.parametrize("believed", [1.2, 5.0])
def test_a_search_that_believes_in_another_noise_is_not_calibrated(believed):
    """The check has power: it detects users with k = 3 under a posterior that assumes another k."""
    counts, means = p_values(ranks(2, believed, 120))
    assert min(counts + means) < LEAST_P
