"""Information of an answer with ties: tables, samples and the best of all pairs against plain sums."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import entr, expit, ndtr
from test_all_pairs import listed, random_scene, rng_of
from test_certificates import uncertain

import pairseek as ps
from helpers.situations import made_belief
from pairseek.model.noise import NOISES
from pairseek.numerics.mixtures import table
from pairseek.numerics.tables import look_up
from pairseek.pairs.features import PairFeatures
from pairseek.pairs.sources import AllPairs
from pairseek.pairs.sources.branch_and_bound import search as _branch
from pairseek.pairs.sources.branch_and_bound import tree as _tree

LINKS = {0: expit, 1: ndtr}


def chances(z, link, width, lapse=0.0):
    """Return the probabilities of "first", "second" and a tie, as rows."""
    f = LINKS[link]
    first, second = f(z - width), f(-z - width)
    return lapse / 3 + (1 - lapse) * np.stack([first, second, 1 - first - second])


def information(p, weights):
    """Return the entropy of the mean minus the mean entropy, in bits; outcomes first axis, samples last."""
    p = np.maximum(p, 0.0)
    return (entr(p @ weights).sum(axis=0) - entr(p).sum(axis=0) @ weights) / np.log(2)


def at(values, m, s):
    out = np.empty(1)
    look_up(0, 1, values, np.array([m]), np.array([s]), out)
    return out[0]


U = np.linspace(-8, 8, 4001)
NORMAL = np.exp(-0.5 * U**2) / np.exp(-0.5 * U**2).sum()


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("width", [0.4, 2.0, 5.0])
@pytest.mark.parametrize("lapse", [0.0, 0.1])
def test_the_table_is_that_of_quadrature(link, width, lapse):
    # Interpolation is good to one per cent, or to a few thousandths of a bit: the grid of m has steps of 0.5 at 5,
    # where the information of a narrow logit rises and falls within two units. The largest error here is 0.0022 bits.
    values = table(link, "information", 0.0, lapse, width)
    for m in (0.0, 0.3, width, 1.7 * width, 8.0, 40.0):
        for s in (0.01, 0.1, 0.7, 3.0, 9.0, 30.0):
            true = information(chances(m + s * U, link, width, lapse), NORMAL)
            assert at(values, m, s) == pytest.approx(true, rel=0.01, abs=0.003)


@pytest.mark.parametrize("link", LINKS)
def test_the_table_of_an_unknown_k_is_that_of_quadrature(link):
    x, weights = np.polynomial.hermite_e.hermegauss(15)
    width, lapse = 1.2, 0.1
    values = table(link, "information", 1.0, lapse, width)
    for m in (0.0, 1.2, 3.0):
        for s in (0.1, 1.0, 5.0, 20.0):
            z = (m + s * U)[:, None] * np.exp(x)
            p = np.stack([each @ (weights / weights.sum()) for each in chances(z, link, width, lapse)])
            assert at(values, m, s) == pytest.approx(information(p, NORMAL), rel=0.01, abs=0.001)


@pytest.mark.parametrize("width", [0.4, 2.0, 5.0])
def test_a_narrow_logit_has_the_fisher_information(width):
    # s²/2 times Σ p'²/p, by differences of p.
    values = table(0, "information", 0.0, 0.0, width)
    for m in (0.0, 0.5, 1.0, 2.0, 4.0):
        here, step = chances(np.array([m]), 0, width)[:, 0], 1e-5
        slope = np.diff(chances(np.array([m - step, m + step]), 0, width), axis=1)[:, 0] / (2 * step)
        assert at(values, m, 0.02) == pytest.approx(0.02**2 / 2 * np.sum(slope**2 / here) / np.log(2), rel=0.02)


def test_without_a_width_the_table_is_that_of_two_outcomes():
    assert table(0, "information", 0.0, 0.0, 0.0) is table(0, "information")
    # A narrow tie width is nearly none.
    for m, s in ((0.0, 0.5), (1.0, 2.0), (3.0, 1.0)):
        assert at(table(0, "information", 0.0, 0.0, 1e-6), m, s) == pytest.approx(
            at(table(0, "information"), m, s), rel=0.01
        )


def test_a_narrow_logit_tells_most_where_an_answer_turns_into_a_tie():
    values = table(0, "information", 0.0, 0.0, 5.0)
    assert at(values, 5.0, 0.3) > 5 * at(values, 0.0, 0.3)


@pytest.mark.parametrize("kind", [ps.Logistic, ps.Probit])
@pytest.mark.parametrize("lapse", [0.0, 0.2])
def test_samples_give_the_information_of_a_plain_sum(kind, lapse):
    rng = np.random.default_rng(3)
    belief, points, appeal = made_belief(rng, 300, 2), rng.uniform(-1, 1, size=(8, 2)), rng.normal(size=8)
    response = kind(2.5, lapse=lapse, tie_width=0.8)
    first, second = np.triu_indices(8, 1)
    pairs = PairFeatures.of(points, first, second, belief=belief, response=response, appeal=appeal)
    slopes, offsets = response.planes(points[first], points[second], appeal[first] - appeal[second])
    z = slopes @ belief.samples.T + offsets[:, None]
    exact = ps.InfoGain().exact(pairs, belief)
    assert exact == pytest.approx(information(chances(z, response.link, 0.8, lapse), belief.weights), abs=1e-9)


@pytest.mark.parametrize("noise", NOISES)
def test_the_best_of_all_pairs_is_that_of_brute_force_and_its_bound_holds(noise, monkeypatch):
    monkeypatch.setattr(_tree, "MAX_LEAF_ITEMS", 4)
    monkeypatch.setattr(_branch, "_ROUND", 16)
    for seed in range(12):
        rng = rng_of(seed, 13, NOISES.index(noise))
        width = float(rng.choice([0.3, 1.5, 6.0]))
        scene = random_scene(rng, int(rng.integers(5, 90)), (1, 2, 4)[seed % 3], strategy=ps.InfoGain(), noise=noise)
        scene = replace(scene, response=replace(scene.response, tie_width=width))
        if seed % 4 == 0:
            scene = uncertain(scene, 0.5, 0.1)
        _, _, scores = listed(scene)
        exact = AllPairs().choose(scene, rng)
        assert exact.gap == 0.0
        assert exact.utility == pytest.approx(scores.max(), rel=1e-12, abs=1e-15)
        near = AllPairs(gap=0.1, budget=2000).choose(scene, rng)
        assert near.bound >= scores.max() * (1 - 1e-12)
        assert near.utility >= (1 - near.gap) * scores.max() * (1 - 1e-9)


def test_a_query_says_how_probable_a_tie_is():
    items = ps.Items(np.random.default_rng(0).normal(size=(10, 2)))
    plain, tied = (ps.Search(items, response=ps.Logistic(2.0, tie_width=width), rng=1) for width in (0.0, 1.0))
    one, other = tied.expect(3, 7), tied.expect(7, 3)
    assert one.probability_left + one.probability_tie + other.probability_left == pytest.approx(1.0, abs=1e-9)
    assert one.probability_tie == pytest.approx(other.probability_tie)
    assert 0.05 < one.probability_tie < 0.5
    assert plain.expect(3, 7).probability_tie == 0.0
    slopes, offsets = tied.response.planes(items.coordinates[[3]], items.coordinates[[7]])
    samples, weights = tied.belief.draw(20_000)
    p = chances(samples @ slopes[0] + offsets[0], 0, 1.0)
    # Three standard errors of 20,000 draws whose probabilities have a standard deviation of up to 0.4.
    assert one.probability_left == pytest.approx(p[0] @ weights, abs=0.009)
    assert one.probability_tie == pytest.approx(p[2] @ weights, abs=0.009)
    assert one.information == pytest.approx(information(p, weights), abs=0.02)
