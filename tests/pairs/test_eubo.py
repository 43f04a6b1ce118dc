"""Tests of EUBO: its formula against sampling, its bound against enumeration, and its purpose."""

import numpy as np
import pytest
from scipy.special import expit

import pairseek as ps
from pairseek.pairs.context import SelectionContext
from pairseek.pairs.features import PairFeatures
from pairseek.pairs.item_utilities import expected_maximum, item_deviations, utility_covariance


def catalogue(n=60, d=3, seed=1):
    rng = np.random.default_rng(seed)
    return ps.Items(rng.normal(size=(n, d)), appeal=0.5 * rng.normal(size=n))


def answered(items, response, answers, **settings):
    search = ps.Search(items, response=response, strategy=ps.EUBO(), rng=1, **settings)
    rng = np.random.default_rng(2)
    for _ in range(answers):
        left, right = rng.choice(items.n, size=2, replace=False).tolist()
        search.observe(left, right, winner=left if rng.random() < 0.5 else right)
    return search


def test_the_expected_maximum_is_that_of_samples():
    rng = np.random.default_rng(1)
    drawn = rng.normal(size=400_000)
    for first, second, deviation in ((0.3, -0.2, 1.5), (2.0, -1.0, 0.7), (-5.0, -5.0, 3.0)):
        found = expected_maximum(np.array([first]), np.array([second]), np.array([deviation]))[0]
        # max(a, b) = (a + b + |a - b|)/2, whose mean over these draws has an error of 0.002.
        average = 0.5 * (first + second + np.mean(np.abs(first - second + deviation * drawn)))
        assert found == pytest.approx(average, abs=0.01)
    assert expected_maximum(np.array([1.0]), np.array([-2.0]), np.zeros(1))[0] == 1.0
    assert expected_maximum(np.array([1e8]), np.array([-1e8]), np.ones(1))[0] == 1e8


@pytest.mark.parametrize("residual", [0.0, 1.0])
def test_the_score_is_the_gain_over_the_best_pick(residual):
    """Against 60,000 joint draws of the point and all residual utilities, which have an error of 0.01."""
    items = catalogue(12)
    search = answered(items, ps.Logistic(0.5, "constant", residual=residual), 6)
    belief = search.belief
    first, second = (np.array(rows) for rows in zip((0, 1), (2, 9), (4, 11), strict=True))
    features = SelectionContext.of(items, belief, search.response).features(first, second)
    rng = np.random.default_rng(3)
    if residual:
        residuals = belief.residuals
        joint = np.block([[belief.covariance, residuals.cross], [residuals.cross.T, residuals.covariance]])
        centre = np.concatenate([belief.mean, residuals.mean])
        drawn = rng.multivariate_normal(centre, joint, size=60_000, method="eigh")
        own = residual * rng.normal(size=(60_000, items.n))
        own[:, residuals.rows] = drawn[:, items.d :]
    else:
        drawn = rng.multivariate_normal(belief.mean, belief.covariance, size=60_000)
        own = 0.0
    utility = items.appeal - 0.5 * np.sum((drawn[:, None, : items.d] - items.coordinates) ** 2, axis=2) + own
    gain = np.maximum(utility[:, first], utility[:, second]).mean(axis=0) - utility.mean(axis=0).max()
    assert ps.EUBO().score(features, belief) == pytest.approx(gain, abs=0.03)
    assert ps.EUBO().exact(features, belief) == pytest.approx(gain, abs=0.15)


@pytest.mark.parametrize("noise", ["constant", "normalized", "decaying"])
@pytest.mark.parametrize(("residual", "answers"), [(0.0, 0), (0.0, 12), (1.2, 0), (1.2, 12)])
def test_the_best_pair_of_many_items_is_among_the_promising_ones(noise, residual, answers):
    """Among 1,600 items, to 3 % of the best of all pairs; pairs already asked are excluded."""
    items = catalogue(1600, 2)
    search = answered(items, ps.Logistic(1.0, noise, residual=residual), answers)
    query = search.ask()
    assert "300 most promising of 1,600 items" in query.info.candidates
    context = SelectionContext.of(items, search.belief, search.response, search.strategy)
    first, second = np.triu_indices(items.n, 1)
    best = context.scores(context.features(first, second)).max()
    assert query.info.utility == pytest.approx(best, rel=0.03)
    # The certificate holds and is useful: within 45 % for independent residual utilities, else 15 %.
    assert best <= query.info.utility / (1.0 - query.info.gap) * (1.0 + 1e-9)
    assert query.info.gap < (0.45 if residual else 0.15)


@pytest.mark.parametrize("seed", range(8))
def test_no_pair_exceeds_the_bound(seed):
    """Against every pair with one of 20 random items out of 50, after a random number of answers."""
    rng = np.random.default_rng([9, seed])
    items = catalogue(50, int(rng.integers(1, 5)), seed=seed)
    response = ps.Logistic(float(rng.uniform(0.2, 2)), "constant", residual=float(rng.choice([0.0, 0.7, 2.0])))
    search = answered(items, response, int(rng.integers(0, 25)))
    context = SelectionContext.of(items, search.belief, search.response, search.strategy)
    others = np.sort(rng.choice(50, size=20, replace=False))
    first, second = np.triu_indices(50, 1)
    here = np.isin(first, others) | np.isin(second, others)
    features = context.features(first[here], second[here])
    bound = ps.EUBO().bound(features, search.belief, others)
    assert np.max(ps.EUBO().score(features, search.belief)) <= bound + 1e-12


@pytest.mark.parametrize("noise", ["constant", "normalized"])
def test_covariances_of_utilities_agree_with_the_deviations_of_pairs(noise):
    """Var(u_p - u_q) from the covariance of all utilities, and pair by pair from `PairFeatures`."""
    items = catalogue(15, 2)
    search = answered(items, ps.Logistic(1.0, noise, residual=1.1), 9)
    belief, rows = search.belief, np.arange(15)
    covariance = utility_covariance(items.coordinates, rows, rows, belief, search.response)
    first, second = np.triu_indices(15, 1)
    features = SelectionContext.of(items, belief, search.response).features(first, second)
    apart = covariance[first, first] + covariance[second, second] - 2.0 * covariance[first, second]
    if noise == "constant":
        assert np.sqrt(apart) == pytest.approx(features.utility_deviation, rel=1e-9)
    assert item_deviations(items.coordinates, belief, search.response) ** 2 == pytest.approx(np.diag(covariance))
    assert covariance == pytest.approx(covariance.T)


def test_few_items_are_all_compared():
    items = catalogue(40, 2)
    search = answered(items, ps.Logistic(1.0, "constant"), 3)
    assert search.ask().info.candidates == "all 780 pairs, each scored"
    first = search.ask()
    search.skip(first)
    assert {search.ask().left, search.ask().right} != {first.left, first.right}


def test_it_finds_a_better_item_than_information_or_chance_does():
    """60 simulated people with residual tastes among 40 items: utility lost by the pick after 6 answers.

    The two differ by far more than two standard errors of the paired difference.
    """
    items = catalogue(40, 2, seed=4)
    response = ps.Logistic(0.5, "constant", residual=1.5)
    lost = {"eubo": [], "infogain": [], "random": []}
    for person in range(60):
        rng = np.random.default_rng([6, person])
        point = rng.normal(size=2)
        utility = items.appeal - 0.5 * np.sum((items.coordinates - point) ** 2, axis=1) + 1.5 * rng.normal(size=40)
        noise = np.random.default_rng([7, person]).random(6)
        for strategy in (ps.EUBO(), ps.InfoGain(), ps.Random()):
            search = ps.Search(items, response=response, prior=ps.GaussianPrior(), strategy=strategy, rng=person)
            for draw in noise:
                query = search.ask()
                chance = expit(utility[query.left] - utility[query.right])
                search.tell(query, winner=query.left if draw < chance else query.right)
            lost[strategy.name].append(utility.max() - utility[search.recommend(1)[0].id])
    for other in ("infogain", "random"):
        gained = np.array(lost[other]) - np.array(lost["eubo"])
        assert gained.mean() > 2 * gained.std() / np.sqrt(60)


def test_it_works_without_coordinates_and_is_saved(tmp_path):
    search = ps.Search(ps.Items(ids=list("abcdef")), strategy=ps.EUBO(), rng=1)
    for _ in range(5):
        query = search.ask()
        search.tell(query, winner=query.left)
    search.save(tmp_path / "s.json")
    assert ps.Search.load(tmp_path / "s.json").ask() == search.ask()


def test_the_scale_of_gains_is_that_of_utilities_whatever_the_reliability():
    items = catalogue(12)
    gains = []
    for reliability in (1.0, 3.0):
        search = ps.Search(items, response=ps.Logistic(0.5, "constant", reliability=reliability, residual=0.8), rng=1)
        rows = np.arange(5)
        features = PairFeatures.of(
            items.coordinates, rows, rows + 5, belief=search.belief, response=search.response, appeal=items.appeal
        )
        gains.append(ps.EUBO().score(features, search.belief))
    assert gains[0] == pytest.approx(gains[1])
