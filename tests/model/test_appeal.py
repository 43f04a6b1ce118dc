"""Appeal: a part of the utility that k does not scale, in every posterior and strategy."""

import numpy as np
import pytest
from scipy.special import expit, ndtr

import pairseek as ps
from pairseek.pairs.features import PairFeatures
from pairseek.pairs.strategies import UTILITIES
from pairseek.pairs.strategies.baselines import PROCEDURES
from pairseek.search.best_items import best_items

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
    # A grid cannot infer the residual of the default response.
    response = ps.Logistic() if posterior.name == "grid" else None
    searches = [
        asked(items, strategy=UTILITIES[name](), posterior=posterior, response=response)
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
    response = ps.Logistic(residual=1.0)
    search = ps.Search(ps.Items(points, appeal=appeal), response=response, strategy=UTILITIES[name](), rng=1)
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
        # The foot of the perpendicular from the mean onto k(a·w - b) + appeal = 0.
        foot = mean - a * (a @ mean - b + (appeal[i] - appeal[j]) / 0.9) / (a @ a)
        assert 0.9 * (a @ foot - b) + appeal[i] - appeal[j] == pytest.approx(0, abs=1e-9)
        deviation = pairs.constant[row] * np.sqrt(a @ search.belief.covariance @ a)
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


def logits(points, appeal, w, response):
    """Logits of all pairs at w, by the model: an (n, n) array, rows preferred to columns."""
    first, second = (index.ravel() for index in np.indices((len(points), len(points))))
    with np.errstate(invalid="ignore"):
        slopes, offsets = response.planes(points[first], points[second], appeal[first] - appeal[second])
    return (slopes @ w + offsets).reshape(len(points), len(points))


@pytest.mark.parametrize("noise", ["constant", "normalized", "decaying"])
@pytest.mark.parametrize("reliability", [0.2, 1.0, 7.0])
def test_the_best_item_beats_every_other_under_every_noise(noise, reliability):
    for seed in range(60):
        rng = np.random.default_rng([seed, 8])
        n, d = int(rng.integers(2, 25)), int(rng.integers(1, 4))
        points, appeal = rng.normal(size=(n, d)), rng.normal(size=n) * rng.choice([0.1, 1.0, 10.0])
        response = ps.Logistic(float(10.0 ** rng.uniform(-2, 2)), noise, reliability=reliability)
        items = ps.Items(points, appeal=appeal)
        users = rng.normal(size=(5, d))
        for w, best in zip(users, best_items(items, users, response), strict=True):
            z = logits(points, appeal, w, response)[best]
            assert np.all(np.delete(z, best) > -1e-12)
            utility = appeal - response.k * np.sum((points - w) ** 2, axis=1)
            assert best == np.argmax(utility)


@pytest.mark.parametrize("noise", ["constant", "normalized", "decaying"])
def test_preferences_are_transitive(noise):
    rng = np.random.default_rng(9)
    points, appeal = rng.normal(size=(12, 2)), rng.normal(size=12)
    z = logits(points, appeal, rng.normal(size=2), ps.Probit(0.7, noise))
    order = np.argsort(-(z > 0).sum(axis=1))
    beaten = (z > 0)[np.ix_(order, order)]
    assert np.array_equal(beaten, np.triu(np.ones((12, 12), bool), 1))


def test_without_k_the_best_item_is_one_of_highest_appeal():
    items = ps.Items([[0.0], [1.0], [2.0], [3.0]], appeal=[0.0, 1.0, 1.0, 0.5])
    users = np.array([[-5.0], [0.0], [1.4], [9.0]])
    assert best_items(items, users, ps.Logistic(0.0)).tolist() == [1, 1, 1, 2]
    first, second = np.triu_indices(4, 1)
    belief = ps.Search(items, response=ps.Logistic(), rng=1).belief
    pairs = PairFeatures.of(
        items.coordinates, first, second, belief=belief, response=ps.Logistic(0.0, "constant"), appeal=items.appeal
    )
    assert pairs.logit_mean == pytest.approx(items.appeal[first] - items.appeal[second])
    assert pairs.logit_deviation == pytest.approx(np.zeros(6))


@pytest.mark.parametrize(
    "unknown",
    [{}, {"reliability": ps.Unknown()}, {"reliability": ps.Unknown(), "lapse": ps.Unknown()}],
    ids=["known", "reliability", "reliability and lapse"],
)
def test_predictions_do_not_depend_on_the_gauge(unknown):
    """People moved by δ and appeal by -2k x·δ have the same differences of utilities, whatever is unknown.

    A reliability that multiplied distances alone would tell the two apart. Rounding alone may differ: 1e-6.
    """
    rng = np.random.default_rng(8)
    points, appeal, k, shift = rng.normal(size=(14, 3)), 1.1 * rng.normal(size=14), 0.4, np.array([0.7, -1.1, 0.3])
    searches = []
    for delta in (np.zeros(3), shift):
        items = ps.Items(points, appeal=appeal - 2.0 * k * points @ delta)
        prior = ps.GaussianPrior(delta, np.diag([1.0, 0.5, 2.0]))
        searches.append(ps.Search(items, response=ps.Logistic(k, "constant", **unknown), prior=prior, rng=3))
    utility = appeal - k * np.sum((points - np.array([0.5, 0.2, -0.6])) ** 2, axis=1)
    for _ in range(20):
        left, right = rng.choice(14, size=2, replace=False).tolist()
        for search in searches:
            search.observe(left, right, winner=left if utility[left] > utility[right] else right)
    pairs = [(i, j) for i in range(14) for j in range(i)]
    found = [np.array([search.expect(*pair).probability_left for pair in pairs]) for search in searches]
    assert found[0] == pytest.approx(found[1], abs=1e-6)
    assert np.ptp(found[0]) > 0.5
    best = [{item.id: item.probability for item in search.recommend(14)} for search in searches]
    assert best[0] == pytest.approx(best[1], abs=1e-6)
