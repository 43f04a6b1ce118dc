"""Input that is legal and extreme: tiny and huge units, contradictions, duplicates, many answers or dimensions."""

from functools import cache

import numpy as np
import pytest

import pairseek as ps
from helpers.refusals import refused

UNITS = [1e-40, 1e40]


@cache
def conversation(unit, *, n=30, d=2, answers=6, **parts):
    """Return the pairs asked, the recommended items, and numbers in this unit of a search whose coordinates have it."""
    items = ps.Items(unit * np.random.default_rng([n, d]).normal(size=(n, d)))
    search = ps.Search(items, stop=[], rng=1, **parts)
    asked = []
    for number in range(answers):
        query = search.ask()
        asked.append((query.left, query.right))
        search.tell(query, winner=min(query.left, query.right) if number % 3 else max(query.left, query.right))
    estimate, recommended = search.estimate(), search.recommend(3)
    numbers = [
        *estimate.point / unit,
        *np.ravel(estimate.covariance) / unit**2,
        estimate.credible_radius() / unit,
        search.belief.info.log_evidence,
        search.ask().info.information,
        *(item.probability for item in recommended),
        *(item.expected_utility for item in recommended),
    ]
    return asked, [item.id for item in recommended], np.array(numbers)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("goal", ["taste", "best", "list"])
@pytest.mark.parametrize("response", [None, ps.Logistic()], ids=["default", "paper"])
def test_the_unit_of_the_coordinates_changes_no_question(unit, goal, response):
    asked, recommended, numbers = conversation(unit, goal=goal, response=response)
    expected_pairs, expected_items, expected = conversation(1.0, goal=goal, response=response)
    assert asked == expected_pairs
    assert recommended == expected_items
    if response is not None:
        # Under normalized noise, expected utilities have the unit of the coordinates.
        numbers, expected = numbers[:-3], expected[:-3]
    assert numbers == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("unit", UNITS)
def test_nor_among_many_items_or_in_many_dimensions(unit):
    for n, d in ((2000, 4), (300, 30)):
        asked, recommended, numbers = conversation(unit, n=n, d=d)
        expected_pairs, expected_items, expected = conversation(1.0, n=n, d=d)
        assert (asked, recommended) == (expected_pairs, expected_items)
        assert numbers == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("unit", [1e-60, 1e60])
def test_units_whose_powers_overflow_are_refused(unit):
    items = ps.Items(unit * np.random.default_rng(1).normal(size=(30, 2)))
    with refused("items"):
        ps.Search(items)
    with refused("prior"):
        ps.Search(items, prior=ps.GaussianPrior(np.zeros(2), unit**2 * np.eye(2)), response=ps.Logistic(1.0))


def contradicting():
    """The same pair won by either item 20 times, and a circle of three pairs, ten times."""
    search = ps.Search(ps.Items(np.random.default_rng(5).normal(size=(40, 2))), rng=1)
    for number in range(40):
        search.observe(3, 7, winner=3 if number % 2 else 7)
    for winner, loser in 10 * [(1, 2), (2, 5), (5, 1)]:
        search.observe(winner, loser, winner=winner)
    return search


def answered(items, answers=12, **parts):
    search = ps.Search(items, rng=1, stop=[], **parts)
    for number in range(answers):
        query = search.ask()
        search.tell(query, winner=query.left if number % 2 else query.right)
    return search


def duplicates(**parts):
    return answered(ps.Items(np.repeat(np.random.default_rng(5).normal(size=(6, 3)), 10, axis=0)), **parts)


def thousand():
    """1,000 noisy answers about random pairs."""
    rng = np.random.default_rng(5)
    search, utility = ps.Search(ps.Items(rng.normal(size=(60, 3))), rng=1), rng.normal(size=60)
    for _ in range(1000):
        left, right = rng.choice(60, 2, replace=False).tolist()
        search.observe(left, right, winner=left if utility[left] + rng.logistic() > utility[right] else right)
    return search


SEARCHES = {
    "contradicting answers": contradicting,
    "duplicates": duplicates,
    "duplicates, best": lambda: duplicates(goal="best"),
    "duplicates, list": lambda: duplicates(goal="list"),
    "nearly all at one point": lambda: answered(ps.Items(np.vstack([np.zeros((50, 2)), np.eye(2)]))),
    "1,000 answers": thousand,
    "64 dimensions": lambda: answered(ps.Items(np.random.default_rng(5).normal(size=(1000, 64)))),
    "100,000 items": lambda: answered(ps.Items(np.random.default_rng(5).normal(size=(100_000, 8))), 5),
    "both": lambda: answered(ps.Items(np.random.default_rng(5).normal(size=(100_000, 64))), 3),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_results_are_finite_and_the_same_bits_on_any_number_of_threads(name, on_threads):
    def results():
        search = SEARCHES[name]()
        belief, query, recommended = search.belief, search.ask(), search.recommend(3)
        arrays = [belief.mean, belief.covariance, belief.samples, belief.residuals.mean, belief.residuals.covariance]
        numbers = [query.info.information, search.estimate().credible_radius(), belief.info.log_evidence]
        numbers += [number for item in recommended for number in (item.probability, item.expected_utility)]
        assert all(np.isfinite(array).all() for array in (*arrays, numbers))
        return [array.tobytes() for array in arrays], query.left, query.right, numbers, recommended

    assert on_threads(1, results) == on_threads(2, results)
