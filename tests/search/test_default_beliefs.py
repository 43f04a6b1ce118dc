"""What the default response promises: predictions no worse than a coin, and questions as good as exact ones."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import entr, expit, log_expit

import pairseek as ps
from pairseek.pairs.context import SelectionContext

COIN = np.log(2)


def world(people=40, n=40, d=4):
    """Return items, and (people, n) utilities: linear in the coordinates, with a residual for each person and item."""
    rng = np.random.default_rng(12)
    items = ps.Items(rng.normal(size=(n, d)) * np.array([1.5, 1.0, 0.8, 0.6])[:d])
    tastes = rng.normal(size=(people, d))
    return items, 0.7 * tastes @ items.coordinates.T + rng.normal(size=(people, n))


def log_losses(items, utilities, *, answers, response=None):
    """Return the mean log loss after each number of answers, over all pairs and noisy people, in expectation."""
    first, second = np.triu_indices(items.n, 1)
    out = np.zeros((len(utilities), len(answers)))
    for person, utility in enumerate(utilities):
        rng = np.random.default_rng([3, person])
        search = ps.Search(items, response=response, rng=person)
        true = expit(utility[first] - utility[second])
        for count in range(max(answers) + 1):
            if count in answers:
                context = SelectionContext.of(search.modelled_items, search.belief, search.response)
                chance = context.features(first, second).outcome_probabilities()[0]
                loss = -true * np.log(chance) - (1 - true) * np.log(1 - chance)
                out[person, answers.index(count)] = loss.mean()
            query = search.ask()
            left, right = items.index(query.left), items.index(query.right)
            won = query.left if rng.random() < expit(utility[left] - utility[right]) else query.right
            search.tell(query, winner=won)
    return out.mean(axis=0)


class TestPredictions:
    """In a world of linear tastes, which no middle of the items attracts. Fixed seeds; 40 people."""

    def test_before_any_answer_they_are_no_worse_than_a_coin_and_better_from_two_on(self):
        before, *after = log_losses(*world(), answers=(0, 2, 5, 10))
        assert before <= 0.694
        assert max(after) < COIN
        assert after == sorted(after, reverse=True)

    def test_a_prior_that_people_like_the_middle_would_be_worse_than_a_coin(self):
        """The curvature N(0.5, 0.8), which was the default, would fail the test above."""
        items, utilities = world()
        usual = ps.Search(items).response
        middle = replace(usual, curvature=ps.Unknown(ps.Normal(0.5, 0.8)))
        assert log_losses(items, utilities, answers=(0,), response=middle)[0] > 0.694

    def test_of_items_without_coordinates(self):
        utilities = 2.0 * np.random.default_rng(5).normal(size=(40, 10))
        before, *after = log_losses(ps.Items(ids=range(10)), utilities, answers=(0, 2, 4, 8))
        assert before == pytest.approx(COIN)
        assert max(after) < COIN
        assert after == sorted(after, reverse=True)


def drawn_utilities(search, count, rng):
    """Return (count, n) utilities of people who answered like this one, and their weights, by brute force.

    The utilities of all items are Gaussian under the prior of point, curvature and residuals. Draws from the Laplace
    approximation are weighted by the exact posterior.
    """
    prior, response = search.prior, search.response
    x = search.items.coordinates - prior.mean
    height = -response.k * np.sum(x**2, axis=1)
    curvature = response.curvature_prior
    covariance = 4 * response.k**2 * x @ prior.covariance @ x.T + response.residual**2 * np.eye(len(x))
    covariance += curvature.deviation**2 * np.outer(height, height)
    mean = curvature.mean * height
    signs = np.zeros((search.answers, len(x)))
    for row, event in enumerate(search.history):
        signs[row, search.items.index(event.winner)], signs[row, search.items.index(event.loser)] = 1.0, -1.0
    precision, mode = np.linalg.inv(covariance), mean.copy()
    for _ in range(30):
        slope = expit(-signs @ mode)
        hessian = precision + signs.T @ (signs * (slope * (1 - slope))[:, None])
        mode = mode + np.linalg.solve(hessian, signs.T @ slope - precision @ (mode - mean))
    normal = rng.normal(size=(count, len(x)))
    utilities = mode + normal @ np.linalg.cholesky(np.linalg.inv(hessian)).T
    away = utilities - mean
    logs = np.sum(log_expit(utilities @ signs.T), axis=1) - 0.5 * np.sum((away @ precision) * away, axis=1)
    weights = np.exp(logs + 0.5 * np.sum(normal**2, axis=1) - logs.max())
    return utilities, weights / weights.sum()


def evenly_drawn_utilities(search, count, rng):
    """Return `drawn_utilities`, drawn again while a few of them have most of the weight."""
    for _ in range(5):
        utilities, weights = drawn_utilities(search, count, rng)
        if 1.0 / np.sum(weights**2) > 0.1 * count:
            break
    return utilities, weights


def exact_information(utilities, weights, first, second):
    """Return the (m,) information of an answer about each pair, in bits, over weighted draws of the utilities."""
    chances = expit(utilities[:, first] - utilities[:, second])
    mean = weights @ chances
    return (entr(mean) + entr(1 - mean) - weights @ (entr(chances) + entr(1 - chances))) / np.log(2)


def against_brute_force(d, answers, seed):
    """Return reported over exact information of the next question, and its exact information over the best pair's.

    A person drawn from the prior of a search among 60 items has given this many answers.
    """
    rng = np.random.default_rng([d, answers, seed] if seed else [d, answers])
    items = ps.Items(rng.normal(size=(60, d)))
    search = ps.Search(items, rng=1)
    person = drawn_utilities(search, 1, rng)[0][0]
    for _ in range(answers):
        query = search.ask()
        left, right = items.index(query.left), items.index(query.right)
        won = query.left if rng.random() < expit(person[left] - person[right]) else query.right
        search.tell(query, winner=won)
    query = search.ask()
    first, second = np.triu_indices(60, 1)
    asked = {frozenset((event.left, event.right)) for event in search.history}
    free = [frozenset(pair) not in asked for pair in zip(first.tolist(), second.tolist(), strict=True)]
    first, second = first[free], second[free]
    # The best 30 pairs of some draws are compared on others, so that the best of them is not the luckiest.
    exact = exact_information(*drawn_utilities(search, 4000, rng), first, second)
    rows = np.argsort(-exact)[:30]
    pair = sorted((items.index(query.left), items.index(query.right)))
    first, second = np.append(first[rows], pair[0]), np.append(second[rows], pair[1])
    exact = exact_information(*evenly_drawn_utilities(search, 100_000, rng), first, second)
    return query.info.information / exact[-1], exact[-1] / exact.max()


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("answers", [0, 5, 10, 20])
def test_the_information_of_a_question_is_exact_and_no_pair_tells_much_more(d, answers):
    information, chosen = against_brute_force(d, answers, 0)
    assert information == pytest.approx(1.0, abs=0.05)
    assert chosen >= 0.98


@pytest.mark.long
@pytest.mark.parametrize("d", [1, 2])
def test_the_information_is_exact_for_many_people(d):
    """Six people after 0 to 40 answers each."""
    found = np.array(
        [against_brute_force(d, answers, seed) for answers in (0, 2, 5, 10, 20, 40) for seed in range(1, 7)]
    )
    assert np.abs(found[:, 0] - 1.0).max() < 0.05
    assert found[:, 1].min() >= 0.98
