"""People whose k and lapse are not known: calibrated beliefs, two modes, and those who click at random."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import chisquare, norm

import pairseek as ps
from helpers.reference import reliability_grid
from helpers.situations import reliable_belief
from pairseek.core.types import Query

# Nobody answers at random always.
LAPSE = ps.Unknown(ps.Beta(1.0, 9.0, random=0.0))
BOTH = ps.Logistic(ps.Unknown(), lapse=ps.Unknown())

DRAWS = 15
# Ten tests in all: about one in a thousand that a sound posterior would fail with another seed.
LEAST_P = 1e-4


def calibration_ranks(believed, runs):
    """(runs, 5) ranks of the truth among draws: two coordinates, log k, lapse, log-likelihood."""
    out = np.empty((runs, 5), dtype=int)
    for run in range(runs):
        rng = np.random.default_rng([7, run])
        items = ps.Items(rng.uniform(-1.2, 1.2, size=(50, 2)))
        point, k, lapse = rng.uniform(-1, 1, size=2), 4.0 * np.exp(0.7 * rng.normal()), rng.beta(1.0, 4.0)
        user = ps.SimulatedUser(point, ps.Logistic(k, lapse=lapse), rng)
        search = ps.Search(
            items,
            response=believed,
            prior=ps.UniformBox(),
            posterior=ps.EP(512),
            candidates=ps.SampledPairs(count=60, rescore=8),
            rng=int(rng.integers(2**31)),
        )
        for number in range(14):
            # Every other question is of the search's own choice; equal chances would tell nothing of k.
            if number % 2:
                query = search.ask()
                search.tell(query, winner=user.answer(items, query))
            else:
                a, b = rng.choice(50, size=2, replace=False).tolist()
                winner = user.answer(items, Query(f"own {number}", a, b))
                search.observe(a, b, winner=winner)
        belief, known = search.belief, search.belief.reliability
        rows = rng.choice(len(belief.weights), size=DRAWS, replace=False, p=belief.weights)
        pairs = [(items.coordinates[e.winner], items.coordinates[e.loser]) for e in search.history]
        truth = np.array([*point, np.log(k), lapse])
        draws = np.column_stack([belief.samples, np.log(known.k), known.lapse])[rows]
        out[run, :4] = np.sum(draws < truth, axis=0)
        out[run, 4] = np.sum(lapsing_likelihood(draws, pairs) < lapsing_likelihood(truth[None], pairs))
    return out


def lapsing_likelihood(states, pairs):
    total = np.zeros(len(states))
    for p, q in pairs:
        gap = ((states[:, :2] - q) ** 2).sum(axis=1) - ((states[:, :2] - p) ** 2).sum(axis=1)
        f = expit(np.exp(states[:, 2]) / (2 * math.dist(p, q)) * gap)
        total += np.log(states[:, 3] / 2 + (1 - states[:, 3]) * f)
    return total


def p_values(found):
    """For each column: chi-square of the 16 ranks in 8 bins, and of the mean rank."""
    counts = [chisquare(np.bincount(column // 2, minlength=8)).pvalue for column in found.T]
    error = np.sqrt(((DRAWS + 1) ** 2 - 1) / 12 / len(found))
    return np.array([counts, 2 * norm.sf(np.abs(found.mean(axis=0) - DRAWS / 2) / error)])


class TestCalibration:
    """EP at every node of a grid of k and lapse, and samples of the mixture: 290 people in about two minutes."""

    @pytest.mark.long
    def test_the_truth_is_one_more_draw_of_point_k_and_lapse(self):
        believed = ps.Logistic(ps.Unknown(ps.LogNormal(4.0, 0.7)), lapse=ps.Unknown(ps.Beta(1.0, 4.0, random=0.0)))
        found = p_values(calibration_ranks(believed, 200))
        assert found.min() > LEAST_P, found

    @pytest.mark.long
    def test_a_belief_in_other_people_is_noticed(self):
        """The same check has the power to see it: those who are thought to lapse less and to be twice as reliable."""
        believed = ps.Logistic(ps.Unknown(ps.LogNormal(8.0, 0.7)), lapse=ps.Unknown(ps.Beta(1.0, 19.0, random=0.0)))
        assert p_values(calibration_ranks(believed, 90)).min() < LEAST_P


class TestTwoModes:
    """Seven answers that put w on the right, then seven that put it on the left, all about planes far apart."""

    ANSWERS = [([0.9], [0.1], "first", 0.0)] * 7 + [([-0.9], [-0.1], "first", 0.0)] * 7

    @pytest.mark.parametrize(
        ("response", "posterior"),
        [
            (ps.Logistic(40.0, lapse=ps.Unknown()), ps.EP()),
            (ps.Logistic(40.0, lapse=LAPSE), ps.Particles()),
            (ps.Logistic(40.0, lapse=0.2), ps.Particles()),
            (ps.Logistic(40.0, lapse=LAPSE), ps.EP()),
            (ps.Logistic(40.0, lapse=0.2), ps.EP()),
        ],
        ids=["unknown, ep", "unknown, particles", "known, particles", "nobody random, ep", "known, ep"],
    )
    def test_both_are_found_although_all_samples_had_left_one(self, response, posterior):
        # Somebody who always answers at random is a third mode, as wide as the prior, where that is believed possible.
        random = 0.0 if response.lapse_prior is None else response.lapse_prior.random
        on_the_right = reliable_belief(response, self.ANSWERS[:7], posterior=posterior)
        assert on_the_right.weights[on_the_right.samples[:, 0] < 0].sum() < (0.01 if random else 1e-3)
        belief = reliable_belief(response, self.ANSWERS, posterior=posterior)
        axes, weights, _ = grid_of_wide(response, self.ANSWERS)
        place = weights.sum(axis=(1, 2))
        for low, high in ((-1.0, -0.4), (-0.4, 0.4), (0.4, 1.0)):
            within = (axes[0] > low) & (axes[0] <= high)
            mine = (belief.samples[:, 0] > low) & (belief.samples[:, 0] <= high)
            # Masses of modes are right to a few parts in a hundred: particles hop between them by tempering alone.
            assert belief.weights[mine].sum() == pytest.approx(place[within].sum(), abs=0.06)
        assert place[axes[0] < -0.4].sum() > (0.25 if random else 0.3)
        assert place[axes[0] > 0.4].sum() > (0.25 if random else 0.3)


def grid_of_wide(response, answers):
    prior = response.lapse_prior
    if prior is None:
        return reliability_grid(answers, 40.0, "normalized", "logistic", lapse=response.lapse_rate)
    return reliability_grid(answers, 40.0, "normalized", "logistic", beta=(prior.a, prior.b), random=prior.random)


def coin(query, rng):
    return query.left if rng.random() < 0.5 else query.right


def asked(items, response, person, *, answers=40, seed=0, strategy=None):
    """A search after so many answers of a person, a function of the query."""
    search = ps.Search(
        items,
        response=response,
        prior=ps.UniformBox(),
        posterior=ps.EP(512),
        strategy=strategy,
        candidates=ps.SampledPairs(count=200, rescore=8),
        rng=seed,
    )
    for _ in range(answers):
        query = search.ask()
        search.tell(query, winner=person(query))
    return search


@pytest.fixture(scope="module")
def items():
    return ps.Items(np.random.default_rng(8).uniform(-1, 1, size=(80, 2)))


class TestPeople:
    def test_a_person_who_clicks_at_random_ends_with_a_wide_posterior(self, items):
        """Half of the prior's variance or more in the mean of eight, where a fixed k is sure of something wrong."""
        rng = np.random.default_rng(9)
        widths = {"unknown": [], "fixed": []}
        words = []
        for seed in range(8):
            for name, response in (("unknown", BOTH), ("fixed", ps.Logistic())):
                search = asked(items, response, lambda q: coin(q, rng), seed=seed, strategy=None)
                widths[name].append(np.trace(search.belief.covariance) / (2 / 3))
                if name == "unknown":
                    words.append(search.estimate().reliability.word)
        assert np.mean(widths["unknown"]) > 0.5
        assert np.mean(widths["fixed"]) < 0.15
        # Ten checks among forty coin tosses: one person in some dozens is lucky in nearly all of them.
        assert words.count("consistent") <= 1

    @pytest.mark.long
    def test_random_clickers_are_told_from_good_people(self, items):
        """Area under the curve of the reported agreement, 25 good people and 25 who toss a coin: 0.975 in 60 and 60."""
        rng = np.random.default_rng(10)
        good, bad = [], []
        for seed in range(50):
            user = ps.SimulatedUser(rng.uniform(-1, 1, size=2), ps.Logistic(3.5, lapse=0.05), rng)
            person = (lambda q: coin(q, rng)) if seed % 2 else (lambda q, u=user: u.answer(items, q))
            search = asked(items, BOTH, person, seed=seed, strategy=None)
            (bad if seed % 2 else good).append(search.estimate().reliability.agreement.median)
        assert np.mean(np.subtract.outer(good, bad) > 0) >= 0.95

    @pytest.mark.parametrize(("k", "word"), [(14.0, "consistent"), (1.7, "noisy")])
    def test_one_word_says_how_a_person_answers(self, items, k, word):
        found = []
        for seed in range(5):
            user = ps.SimulatedUser([0.2, -0.3], ps.Logistic(k), rng=seed)
            search = asked(
                items, BOTH, lambda q, u=user: u.answer(items, q), answers=60, seed=seed, strategy=ps.Random()
            )
            found.append(search.estimate().reliability)
        assert [estimate.word for estimate in found].count(word) >= 4
        assert sum(estimate.k.low <= k <= estimate.k.high for estimate in found) >= 4
        for estimate in found:
            assert 0 < estimate.lapse.low < estimate.lapse.median < estimate.lapse.high <= 1
            assert 0.5 <= estimate.agreement.low < estimate.agreement.median < estimate.agreement.high < 1

    def test_what_is_known_is_not_reported(self, items):
        assert ps.Search(items, rng=1).estimate().reliability is None
