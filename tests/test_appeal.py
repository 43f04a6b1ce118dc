"""Appeal: a part of the utility that k does not scale, in every posterior and strategy."""

import numpy as np
import pytest
from scipy.special import expit, ndtr

import pairseek as ps
from pairseek.strategies import PROCEDURES, UTILITIES
from pairseek.strategies.features import PairFeatures

POSTERIORS = [ps.EP(), ps.Particles(2000), ps.Grid()]
LINE = np.array([[-1.0], [-0.4], [0.1], [0.7], [1.2]])
APPEAL = np.array([2.0, 1.0, 0.0, -1.0, -2.0])


def asked(items, **parts):
    search = ps.Search(items, rng=11, **parts)
    for _ in range(4):
        query = search.ask()
        search.tell(query, winner=min(query.left, query.right))
    return search


@pytest.mark.parametrize("posterior", POSTERIORS, ids=lambda p: p.name)
@pytest.mark.parametrize("response", [ps.Logistic(1.3), ps.Probit(0.8, "constant")], ids=lambda r: r.name)
def test_every_posterior_takes_it_as_quadrature_does(posterior, response):
    items = ps.Items(LINE, appeal=APPEAL)
    box = isinstance(posterior, ps.Grid)
    prior = ps.UniformBox(-2, 2) if box else ps.GaussianPrior(0.1, 0.5)
    search = ps.Search(items, response=response, prior=prior, posterior=posterior, rng=2)
    answers = [(0, 3), (1, 4), (1, 2), (0, 4), (3, 2)]
    for winner, loser in answers:
        search.observe(winner, loser, winner=winner)
    w = np.linspace(-2, 2, 4001) if box else np.linspace(-5, 5, 8001)
    density = np.ones_like(w) if box else np.exp(-0.5 * (w - 0.1) ** 2 / 0.5)
    link = expit if response.name == "logistic" else ndtr
    for winner, loser in answers:
        p, q = LINE[winner, 0], LINE[loser, 0]
        scale = 1 / abs(2 * (p - q)) if response.noise == "normalized" else 1.0
        utility = APPEAL[winner] - APPEAL[loser] + response.k * ((w - q) ** 2 - (w - p) ** 2)
        density = density * link(scale * utility)
    density /= density.sum()
    mean = density @ w
    deviation = np.sqrt(density @ (w - mean) ** 2)
    # Sampling noise of 2000 and more is a fiftieth of a deviation, less after control variates; EP errs by as much.
    tolerance = 0.05
    assert search.belief.mean[0] == pytest.approx(mean, abs=tolerance * deviation)
    assert np.sqrt(search.belief.covariance[0, 0]) == pytest.approx(deviation, rel=tolerance)
    # Without it the posterior is another one: the test could fail.
    plain = ps.Search(ps.Items(LINE), response=response, prior=search.prior, posterior=posterior, rng=2)
    for winner, loser in answers:
        plain.observe(winner, loser, winner=winner)
    assert abs(plain.belief.mean[0] - mean) > 2 * tolerance * deviation


@pytest.mark.parametrize("name", UTILITIES)
@pytest.mark.parametrize("posterior", [ps.EP(), ps.Particles(500), ps.Grid(21)], ids=lambda p: p.name)
def test_zero_appeal_is_the_papers_model_to_the_bit(name, posterior):
    points = np.random.default_rng(3).normal(size=(20, 2))
    searches = [
        asked(items, strategy=UTILITIES[name](), posterior=posterior)
        for items in (ps.Items(points), ps.Items(points, appeal=np.zeros(20)))
    ]
    assert searches[0].history == searches[1].history
    assert np.array_equal(searches[0].belief.samples, searches[1].belief.samples)
    assert np.array_equal(searches[0].belief.mean, searches[1].belief.mean)
    assert searches[0].ask() == searches[1].ask()


@pytest.mark.parametrize("name", [name for name in UTILITIES if name != "random"])
def test_every_utility_sees_it(name):
    points = np.random.default_rng(4).normal(size=(20, 2))
    appeal = np.random.default_rng(5).normal(size=20) * 3
    search = ps.Search(ps.Items(points, appeal=appeal), strategy=UTILITIES[name](), rng=1)
    first, second = np.triu_indices(20, 1)
    with_it, without = (
        PairFeatures.of(points, first, second, belief=search.belief, response=search.response, appeal=offsets)
        for offsets in (appeal, None)
    )
    scores = [np.asarray(search.strategy.score(pairs, search.belief)) for pairs in (with_it, without)]
    assert np.mean(np.abs(scores[0] - scores[1]) > 1e-6) > 0.9


@pytest.mark.parametrize("noise", ["constant", "normalized", "decaying"])
def test_mcmv_measures_to_the_shifted_plane(noise):
    rng = np.random.default_rng(6)
    points, appeal = rng.normal(size=(8, 3)), rng.normal(size=8)
    search = ps.Search(ps.Items(points, appeal=appeal), response=ps.Logistic(0.9, noise), strategy=ps.MCMV(), rng=1)
    first, second = np.triu_indices(8, 1)
    pairs = PairFeatures.of(
        points, first, second, belief=search.belief, response=search.response, appeal=np.asarray(appeal)
    )
    scores = ps.MCMV(2.0).score(pairs, search.belief)
    mean = search.belief.mean
    for row, (i, j) in enumerate(zip(first, second, strict=True)):
        a, b = 2 * (points[i] - points[j]), points[i] @ points[i] - points[j] @ points[j]
        k = pairs.constant[row]
        # The foot of the perpendicular from the mean onto k(a·w - b) + appeal = 0.
        foot = mean - a * (a @ mean - b + (appeal[i] - appeal[j]) / k) / (a @ a)
        assert k * (a @ foot - b) + appeal[i] - appeal[j] == pytest.approx(0, abs=1e-9)
        deviation = k * np.sqrt(a @ search.belief.covariance @ a)
        assert scores[row] == pytest.approx(deviation - 2.0 * np.linalg.norm(foot - mean), rel=1e-9)


@pytest.mark.parametrize("name", PROCEDURES)
def test_procedures_look_at_places_alone_and_the_belief_takes_it(name):
    points = np.random.default_rng(7).normal(size=(15, 2))
    make = {"gausscloud": lambda: ps.GaussCloud(2, 8)}.get(name, PROCEDURES[name])
    plain, offset = (
        asked(ps.Items(points, appeal=appeal), strategy=make(), posterior=ps.Particles(500))
        for appeal in (None, np.linspace(-2, 2, 15))
    )
    assert [(e.left, e.right) for e in plain.history] == [(e.left, e.right) for e in offset.history]
    assert not np.array_equal(plain.belief.mean, offset.belief.mean)
