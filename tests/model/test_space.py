"""A continuous space in place of items: the paper's arbitrary planes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pairseek as ps
from pairseek.errors import InvalidParameter, UnknownItem, Unsupported
from pairseek.pairs.planes import Planes
from pairseek.pairs.sources.continuous import mirrored_pairs

FEW = ps.Particles(1000)
BOX = ps.Space([-1.0, -1.0, -1.0], [1.0, 1.0, 1.0])


def run(search, point, answers, seed=1):
    user = ps.SimulatedUser(point, search.response, rng=seed)
    for _ in range(answers):
        query = search.ask()
        search.tell(query, winner=user.answer(search.items, query))
    return search


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), d=st.integers(1, 6), noise=st.sampled_from(["constant", "normalized", "decaying"]))
def test_pairs_are_mirrored_in_the_plane_inside_the_space_and_apart(seed, d, noise):
    rng = np.random.default_rng(seed)
    low = rng.uniform(-3, 0, size=d)
    high = low + rng.uniform(0.5, 4, size=d)
    least = 0.1
    space = ps.Space(low, high, min_separation=least, max_separation=2.0)
    normals = rng.normal(size=(20, d))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    inside = rng.uniform(low, high, size=(20, d))
    planes = Planes(normals, np.einsum("md,md->m", normals, inside))
    left, right = mirrored_pairs(space, planes, near=rng.uniform(low, high), response=ps.Logistic(1.0, noise))
    assert np.all((left >= low) & (left <= high) & (right >= low) & (right <= high))
    separation = np.linalg.norm(left - right, axis=1)
    assert np.all(separation >= least * (1 - 1e-9))
    assert np.all(separation <= 2.0 * (1 + 1e-9))
    along = np.einsum("md,md->m", left - right, normals)
    assert along == pytest.approx(separation, rel=1e-9)
    # The plane is the one asked for, unless it only grazed the box and was moved inwards.
    offset = np.einsum("md,md->m", (left + right) / 2, normals)
    centre, reach = normals @ (low + high) / 2, np.abs(normals) @ (high - low) / 2
    grazing = reach - np.abs(planes.offsets - centre) < least / 2
    assert offset[~grazing] == pytest.approx(planes.offsets[~grazing], abs=1e-7)


def test_epmv_asks_along_the_widest_direction_with_even_odds():
    search = run(
        ps.Search(BOX, response=ps.Logistic(3.0), posterior=FEW, strategy=ps.EPMV(), rng=1), [0.2, 0.1, -0.5], 4
    )
    query = search.ask()
    normal = np.subtract(query.left, query.right)
    normal /= np.linalg.norm(normal)
    _, vectors = np.linalg.eigh(search.belief.covariance)
    assert abs(normal @ vectors[:, -1]) == pytest.approx(1.0, abs=1e-9)
    slopes, offsets = search.response.planes(np.array([query.left]), np.array([query.right]), np.zeros(1))
    chance = search.belief.weights @ search.response.probability(search.belief.samples @ slopes[0] + offsets[0])
    assert chance == pytest.approx(0.5, abs=1e-6)


def test_mcmv_cuts_through_the_mean_along_the_widest_direction():
    search = run(
        ps.Search(BOX, response=ps.Logistic(3.0), posterior=FEW, strategy=ps.MCMV(), rng=1), [0.2, 0.1, -0.5], 4
    )
    query = search.ask()
    p, q = np.array(query.left), np.array(query.right)
    assert np.sum((p - search.belief.mean) ** 2) == pytest.approx(np.sum((q - search.belief.mean) ** 2), abs=1e-7)


def test_decaying_noise_is_asked_where_it_is_clearest():
    search = ps.Search(BOX, response=ps.Logistic(9.0, "decaying"), posterior=FEW, strategy=ps.MCMV(), rng=1)
    query = search.ask()
    # k|a| exp(-|a|) is largest at |a| = 2 |p - q| = 1.
    assert np.linalg.norm(np.subtract(query.left, query.right)) == pytest.approx(0.5)


@pytest.mark.parametrize("strategy", [ps.EPMV(), ps.MCMV(), ps.InfoGain(), ps.GreedyMSE()], ids=lambda s: s.name)
def test_active_strategies_find_the_point_and_beat_random(strategy):
    """Mean posterior trace over 6 users after 15 answers; Random is near twice as wide."""
    traces = {}
    for one in (strategy, ps.Random()):
        total = 0.0
        for seed in range(6):
            point = np.random.default_rng(seed).uniform(-1, 1, 3)
            search = ps.Search(BOX, response=ps.Logistic(6.0), posterior=FEW, strategy=one, rng=seed)
            run(search, point, 15, seed)
            total += np.trace(search.estimate().covariance) / 6
        traces[one.name] = total
    assert traces[strategy.name] < 0.8 * traces["random"]
    assert traces[strategy.name] < 0.35


def test_the_answer_is_a_point_and_items_have_no_place():
    search = ps.Search(BOX, posterior=FEW, rng=1)
    query = search.ask()
    assert isinstance(query.left, tuple)
    assert all(type(x) is float for x in query.left)
    search.tell(query, winner=np.array(query.left))
    search.observe([0, 0, 0], [1, 1, 1], winner=(0, 0, 0))
    with pytest.raises(Unsupported, match="has no items to recommend"):
        search.recommend()
    with pytest.raises(UnknownItem, match="give 3 finite numbers"):
        search.observe([0, 0], [1, 1, 1], winner=[0, 0])


@pytest.mark.parametrize(
    "strategy", [ps.ActRank(), ps.GaussCloud(2, 9), ps.GaussSearch(), ps.GreedyVolume()], ids=lambda s: s.name
)
def test_strategies_without_a_meaning_here_are_named(strategy):
    with pytest.raises(Unsupported, match=f"'{strategy.name}' defines no planes"):
        ps.Search(BOX, strategy=strategy)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (([0, 0], [1]), "as many lows as highs"),
        (([0, 1], [1, 1]), "is empty or infinite"),
        (([0.0], [np.inf]), "is empty or infinite"),
        (([0.0], [1.0], 2.0), "leave nothing"),
        (([0.0], [1.0], 0.5, 0.1), "leave nothing"),
        (([0.0], [1.0], 0.0, 0.0), "leave nothing"),
    ],
)
def test_bad_spaces_are_named(arguments, text):
    with pytest.raises(InvalidParameter, match=text):
        ps.Space(*arguments)


@pytest.mark.parametrize(("d", "volume"), [(2, 0.02), (2, 0.005), (4, 0.01)])
def test_epmv_stops_between_its_bounds_when_answers_are_nearly_noiseless(d, volume):
    """Theorem 3.4 with normalized noise, where k_i|a_i| = k exactly, and k = 1000.

    The number of answers until |Σ|^(1/2) < volume, over 12 users, lies between the two bounds. The lower one holds
    for any strategy; the upper one for EPMV.
    """
    k = 1000.0
    prior = ps.UniformBox()
    bounds = ps.bounds.stopping_time_bounds(volume, k, prior, d)
    times = []
    for seed in range(12):
        space = ps.Space([-1.0] * d, [1.0] * d)
        search = ps.Search(space, response=ps.Logistic(k), prior=prior, posterior=FEW, strategy=ps.EPMV(), rng=seed)
        user = ps.SimulatedUser(np.random.default_rng(seed).uniform(-1, 1, d), search.response, rng=seed)
        while np.linalg.det(search.belief.covariance) ** (1 / d) >= volume:
            query = search.ask()
            search.tell(query, winner=user.answer(space, query))
        times.append(search.answers)
    assert 0 < bounds.lower <= np.mean(times) <= bounds.upper < 300


def test_a_strategy_of_ones_own_works_in_a_space_if_it_declares_planes():
    class Upright:
        """Vertical planes, the one nearest to the mean."""

        name = "upright"

        def score(self, candidates, belief):
            return -np.abs(candidates.margin)

        def planes(self, space, belief, response, rng):
            return Planes(np.tile(np.eye(space.d)[0], (5, 1)), np.linspace(-0.8, 0.8, 5))

    query = ps.Search(BOX, strategy=Upright(), rng=1).ask()
    assert np.subtract(query.left, query.right)[1:] == pytest.approx(np.zeros(2))
    assert query.info.candidates == "5 sampled planes"
