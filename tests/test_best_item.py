"""The probability that an item is the best, with an unknown k: what is said against what is true."""

import numpy as np
import pytest

import pairseek as ps
from pairseek.estimates import best_items, best_probabilities
from pairseek.strategies.features import typical_response

K = {"constant": 0.6, "normalized": 3.0, "decaying": 10.0}


def claims(noise, appeal, users, *, asked, seed=0):
    """For each user, after 5 and 20 answers: the probability of the likeliest item, and whether it is the best.

    Users and reliabilities are drawn from the prior, so that what is said is right on average, whatever is asked.
    """
    rng = np.random.default_rng([seed, 3])
    n, d = 25, 2
    items = ps.Items(rng.normal(size=(n, d)), appeal=appeal * rng.normal(size=n))
    response = ps.Logistic(ps.Unknown(ps.LogNormal(K[noise], 1.0)), noise)
    out = np.empty((2, users, 2))
    for user in range(users):
        w = rng.normal(size=d)
        person = ps.Logistic(K[noise], noise, reliability=float(np.exp(rng.normal())))
        best = best_items(items, w[None], person)[0]
        search = ps.Search(items, response=response, prior=ps.GaussianPrior(0.0, 1.0), rng=user)
        for count in range(1, 21):
            query = search.ask() if asked else None
            i, j = rng.choice(n, 2, replace=False).tolist() if query is None else (query.left, query.right)
            pair = items.coordinates[[i]], items.coordinates[[j]], items.appeal[[i]] - items.appeal[[j]]
            slopes, offsets = person.planes(*pair)
            winner = i if rng.random() < person.probability(slopes @ w + offsets)[0] else j
            if query is None:
                search.observe(i, j, winner=winner)
            else:
                search.tell(query, winner=winner)
            if count in (5, 20):
                found = best_probabilities(items, search.belief, typical_response(search.response, search.belief))
                out[int(count == 20), user] = found.max(), found.argmax() == best
    return out


def assert_calibrated(out, deviations):
    for said, true in (part.T for part in out):
        error = np.sqrt(np.sum(said * (1 - said))) / len(said)
        assert abs(said.mean() - true.mean()) < deviations * error


def test_the_probability_of_the_best_item_is_right_for_an_unknown_k():
    # A standard error of 0.06 for 60 users; three of them have a chance of 3 in 1000 of being exceeded by chance.
    assert_calibrated(claims("normalized", 2.0, 60, asked=False), 3.0)


@pytest.mark.long
@pytest.mark.parametrize("appeal", [0.0, 2.0])
@pytest.mark.parametrize("noise", ["constant", "normalized"])
def test_the_probability_of_the_best_item_is_right_for_many_users(noise, appeal):
    # A standard error of about 0.02 for 500 users. Eight figures in all: beyond 3 errors with a chance of 2 in 100.
    assert_calibrated(claims(noise, appeal, 500, asked=False), 3.0)


@pytest.mark.long
def test_the_probability_of_the_best_item_is_right_where_the_search_asks():
    # Users are drawn from the prior, so that the choice of questions cannot mislead.
    assert_calibrated(claims("normalized", 2.0, 200, asked=True), 3.0)


@pytest.mark.parametrize("reliability", [0.1, 1.0, 10.0])
def test_the_best_item_does_not_depend_on_the_reliability(reliability):
    rng = np.random.default_rng(1)
    items, points = ps.Items(rng.normal(size=(30, 3)), appeal=rng.normal(size=30)), rng.normal(size=(50, 3))
    one, other = (best_items(items, points, ps.Logistic(0.7, reliability=r)) for r in (1.0, reliability))
    assert np.array_equal(one, other)


def test_the_expected_utility_is_that_of_the_reference_k():
    rng = np.random.default_rng(2)
    items = ps.Items(rng.normal(size=(12, 2)), appeal=rng.normal(size=12))
    search = ps.Search(items, response=ps.Logistic(ps.Unknown(ps.LogNormal(1.5, 1.0)), "constant"), rng=1)
    for winner, loser in ((0, 1), (2, 1), (0, 5), (7, 4)):
        search.observe(winner, loser, winner=winner)
    belief = search.belief
    for found in search.recommend(3):
        row = items.index(found.id)
        square = np.sum((items.coordinates[row] - belief.mean) ** 2) + np.trace(belief.covariance)
        assert found.expected_utility == pytest.approx(items.appeal[row] - 1.5 * square)


def test_in_many_dimensions_the_best_item_is_the_nearest_too():
    """Where distances are computed as products of matrices: far from zero, with and without appeal."""
    rng = np.random.default_rng(8)
    points = 100.0 + rng.normal(size=(300, 12))
    for appeal in (np.zeros(300), rng.normal(size=300)):
        items = ps.Items(points, appeal=appeal)
        people = 100.0 + rng.normal(size=(130, 12))
        away = np.sum((people[:, None] - points) ** 2, axis=2)
        expected = np.argmax(appeal - 0.4 * away, axis=1)
        assert np.array_equal(best_items(items, people, ps.Logistic(0.4, "constant")), expected)
    # Without noise constant only appeal counts, and the nearer of equals.
    level = np.round(rng.normal(size=300))
    best = best_items(ps.Items(points, appeal=level), people, ps.Logistic(0.0, "constant"))
    assert np.array_equal(best, np.argmin(np.where(level == level.max(), away, np.inf), axis=1))
