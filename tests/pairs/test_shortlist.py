"""Tests of Shortlist: its formula against Bayes' rule over draws, its use, and its errors."""

import numpy as np
import pytest
from scipy.special import expit

import pairseek as ps
from helpers.refusals import refused
from pairseek.pairs.context import SelectionContext


def catalogue(n, d, seed=1):
    rng = np.random.default_rng(seed)
    return ps.Items(rng.normal(size=(n, d)), appeal=0.5 * rng.normal(size=n))


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("residual", [0.0, 1.0])
def test_the_score_is_the_gain_of_the_list_by_an_answer(size, residual):
    """Bayes' rule over 100,000 draws of all utilities, whose expectations have an error of 0.01."""
    items = catalogue(9, 2)
    response = ps.Logistic(0.6, "constant", residual=residual)
    search = ps.Search(items, response=response, prior=ps.GaussianPrior(), strategy=ps.Shortlist(size), rng=1)
    for left, right in ((0, 1), (2, 3), (0, 4), (5, 2)):
        search.observe(left, right, winner=left)
    belief, rng = search.belief, np.random.default_rng(3)
    count = 100_000
    if residual:
        residuals = belief.residuals
        joint = np.block([[belief.covariance, residuals.cross], [residuals.cross.T, residuals.covariance]])
        centre = np.concatenate([belief.mean, residuals.mean])
        drawn = rng.multivariate_normal(centre, joint, size=count, method="eigh")
        own = residual * rng.normal(size=(count, items.n))
        own[:, residuals.rows] = drawn[:, items.d :]
    else:
        drawn, own = rng.multivariate_normal(belief.mean, belief.covariance, size=count), 0.0
    utility = items.appeal - 0.6 * np.sum((drawn[:, None, : items.d] - items.coordinates) ** 2, axis=2) + own
    first, second = np.triu_indices(9, 1)
    features = SelectionContext.of(items, belief, search.response).features(first, second)

    def listed(weights):
        return np.sort(weights @ utility / weights.sum())[-size:].mean()

    gains = []
    for p, q in zip(first, second, strict=True):
        chance = expit(utility[:, p] - utility[:, q])
        after = chance.mean() * listed(chance) + (1 - chance.mean()) * listed(1 - chance)
        gains.append(after - listed(np.ones(count)))
    scores = ps.Shortlist(size).score(features, belief) - 1e-3 * features.tabulated("information")
    assert scores == pytest.approx(gains, abs=0.02)
    assert max(gains) > 0.02


def test_pairs_that_change_no_list_are_ordered_by_information():
    items = ps.Items(ids=["a", "b", "c", "d"])
    search = ps.Search(items, strategy=ps.Shortlist(1), rng=1)
    for loser in ("b", "c", "d"):
        for _ in range(12):
            search.observe("a", loser, winner="a")
    query = search.ask()
    assert query.info.utility > 0.0
    context = SelectionContext.of(items, search.belief, search.response)
    first, second = np.triu_indices(4, 1)
    bits = context.features(first, second).tabulated("information")
    row = [{items.ids[i], items.ids[j]} for i, j in zip(first, second, strict=True)].index({query.left, query.right})
    asked_before = {0, 1, 2}
    assert row == max(set(range(6)) - asked_before, key=lambda i: bits[i])


def test_it_finds_a_better_list_than_information_or_chance_does():
    """60 simulated people with residual tastes among 30 items: mean utility of their three items after 8 answers."""
    items = catalogue(30, 2, seed=4)
    response = ps.Logistic(0.5, "constant", residual=1.5)
    found = {"shortlist": [], "infogain": [], "random": []}
    for person in range(60):
        rng = np.random.default_rng([6, person])
        point = rng.normal(size=2)
        utility = items.appeal - 0.5 * np.sum((items.coordinates - point) ** 2, axis=1) + 1.5 * rng.normal(size=30)
        noise = np.random.default_rng([7, person]).random(8)
        for strategy in (ps.Shortlist(3), ps.InfoGain(), ps.Random()):
            search = ps.Search(items, response=response, prior=ps.GaussianPrior(), strategy=strategy, rng=person)
            for draw in noise:
                query = search.ask()
                chance = expit(utility[query.left] - utility[query.right])
                search.tell(query, winner=query.left if draw < chance else query.right)
            found[strategy.name].append(np.mean([utility[item.id] for item in search.recommend(3)]))
    for other in ("infogain", "random"):
        gained = np.array(found["shortlist"]) - np.array(found[other])
        assert gained.mean() > 2 * gained.std() / np.sqrt(60)


def test_many_items_are_compared_among_the_promising_ones():
    items = catalogue(400, 2)
    query = ps.Search(items, strategy=ps.Shortlist(5), rng=1).ask()
    assert query.info.candidates == "all 19,900 pairs of the 200 most promising of 400 items"


def test_threads_do_not_change_a_bit():
    items = catalogue(60, 2)
    scores = []
    for threads in (1, 3):
        ps.set_thread_count(threads)
        try:
            search = ps.Search(items, strategy=ps.Shortlist(3), rng=1)
            search.observe(0, 1, winner=0)
            scores.append(search.ask().info.utility)
        finally:
            ps.set_thread_count(None)
    assert scores[0] == scores[1]


@pytest.mark.parametrize("size", [0, 2.5])
def test_a_size_must_be_a_whole_number_above_zero(size):
    with refused("size"):
        ps.Shortlist(size)


def test_a_list_must_leave_an_item_out():
    with refused("size") as caught:
        ps.Search(catalogue(4, 2), strategy=ps.Shortlist(4))
    assert str(caught.value) == "Shortlist(size=4) is too long for 4 items: give a size below 4"
