"""Tests of simulated users: pure functions of a seed and a query."""

import pickle

import numpy as np
import pytest

import pairseek as ps
from helpers.refusals import read_only, refused
from pairseek.errors import InvalidParameter

ITEMS = ps.Items([[0.0, 0.0], [1.0, 0.0], [0.3, 0.9]], appeal=[0.0, 0.5, 0.0])
RESPONSE = ps.Logistic(1.2, "constant")
POINT = np.array([0.4, 0.1])


def test_answers_come_as_often_as_the_model_says():
    user = ps.SimulatedUser(POINT, RESPONSE, rng=1)
    slopes, offsets = RESPONSE.planes(
        ITEMS.coordinates[[0]], ITEMS.coordinates[[1]], ITEMS.appeal[[0]] - ITEMS.appeal[[1]]
    )
    chance = RESPONSE.probability(slopes[0] @ POINT + offsets)[0]
    wins = [user.answer(ITEMS, ps.Query(f"q{i}", 0, 1)) == 0 for i in range(4000)]
    # Four standard errors of a share over 4000 answers.
    assert np.mean(wins) == pytest.approx(chance, abs=4 * 0.5 / np.sqrt(4000))
    again = [user.answer(ITEMS, ps.Query("q", 0, 1), repeat=i) == 0 for i in range(4000)]
    assert np.mean(again) == pytest.approx(chance, abs=4 * 0.5 / np.sqrt(4000))


def test_a_repeated_pair_depends_on_the_two_and_the_number_alone():
    user = ps.SimulatedUser(POINT, RESPONSE, rng=1)
    for repeat in range(50):
        winner = user.answer(ITEMS, ps.Query("a", 0, 2), repeat=repeat)
        assert winner == user.answer(ITEMS, ps.Query("b", 2, 0), repeat=repeat)
    assert len({user.answer(ITEMS, ps.Query("a", 0, 2), repeat=r) for r in range(50)}) == 2


def test_the_same_seed_is_the_same_user():
    queries = [ps.Query(f"q{i}", 0, 1) for i in range(40)]
    said = [[ps.SimulatedUser(POINT, RESPONSE, rng=s).answer(ITEMS, q) for q in queries] for s in (1, 1, 2)]
    assert said[0] == said[1]
    assert said[0] != said[2]


def test_a_user_without_error_names_the_nearer():
    user = ps.SimulatedUser(POINT, None, rng=1)
    assert user.answer(ITEMS, ps.Query("q", 0, 1)) == 0
    assert user.answer(ITEMS, ps.Query("q", 2, 0)) == 0
    space = ps.Space([0, 0], [1, 1])
    assert user.answer(space, ps.Query("q", (0.0, 1.0), (0.5, 0.0))) == (0.5, 0.0)


def test_points_must_be_finite_vectors():
    for point in ([np.nan], 1.0, "x", None, [1j], [[1.0]]):
        with refused("point") as caught:
            ps.SimulatedUser(point, RESPONSE)
        assert str(caught.value).startswith(f"a user's point is {point!r}: give d finite numbers")


def test_a_user_of_items_without_coordinates_has_residual_utilities_alone():
    items = ps.Items(ids=["a", "b"])
    response = ps.Logistic(1.0, "constant", residual=3.0)
    users = [ps.SimulatedUser([], response, rng=seed) for seed in range(200)]
    answers = [user.answer(items, ps.Query("q", "a", "b")) for user in users]
    # A fair coin over people; each is mostly of one mind.
    assert 70 < answers.count("a") < 130
    again = [user.answer(items, ps.Query("r", "b", "a")) for user in users]
    assert sum(one == other for one, other in zip(answers, again, strict=True)) > 140
    with refused("point"):
        ps.SimulatedUser([], response).answer(ITEMS, ps.Query("q", 0, 1))


def test_invalid_responses_seeds_and_dimensions_are_rejected():
    with refused("response") as caught:
        ps.SimulatedUser(POINT, "logistic")
    assert str(caught.value).startswith("a user's response is 'logistic': give an instance")
    with pytest.raises(InvalidParameter):
        ps.SimulatedUser(POINT, ps.Logistic())
    for rng in (-1, 1.5, "x"):
        with refused("rng"):
            ps.SimulatedUser(POINT, RESPONSE, rng=rng)
    for response in (RESPONSE, None):
        with refused("point") as caught:
            ps.SimulatedUser([0.5], response).answer(ITEMS, ps.Query("q", 0, 1))
        assert str(caught.value).startswith("the user's point has 1 number and the items have 2 dimensions")


def test_a_pickled_user_answers_the_same_and_stays_read_only():
    user = ps.SimulatedUser(POINT, RESPONSE, rng=1)
    twin = pickle.loads(pickle.dumps(user))
    queries = [ps.Query(f"q{i}", 0, 1) for i in range(20)]
    assert [twin.answer(ITEMS, q) for q in queries] == [user.answer(ITEMS, q) for q in queries]
    with read_only():
        twin.point[0] = 1.0


@pytest.mark.parametrize("repeat", [None, 0], ids=["by query", "by pair"])
def test_ties_are_as_frequent_as_the_response_says(repeat):
    response = ps.Logistic(1.0, "constant", tie_width=0.9)
    points = np.random.default_rng(5).normal(size=(60, 2))
    items, user = ps.Items(points), ps.SimulatedUser(POINT, response, rng=3)
    pairs = [(i, j) for i in range(60) for j in range(i)]
    given = [user.answer(items, ps.Query(f"q{i}-{j}", i, j), repeat=repeat) for i, j in pairs]
    slopes, offsets = response.planes(*(points[[pair[side] for pair in pairs]] for side in (0, 1)))
    logits = slopes @ np.asarray(POINT) + offsets
    # 1770 draws: three standard errors of a share are at most 0.036.
    assert np.mean([one is None for one in given]) == pytest.approx(response.tie_probability(logits).mean(), abs=0.036)
    left = np.mean([one == i for one, (i, _) in zip(given, pairs, strict=True)])
    assert left == pytest.approx(response.probability(logits).mean(), abs=0.036)
