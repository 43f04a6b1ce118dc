"""Continuous spaces, and searches in them with the paper's arbitrary planes."""

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
    smallest = 0.1
    space = ps.Space(low, high, min_separation=smallest, max_separation=2.0)
    normals = rng.normal(size=(20, d))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    inside = rng.uniform(low, high, size=(20, d))
    planes = Planes(normals, np.einsum("md,md->m", normals, inside))
    left, right = mirrored_pairs(space, planes, near=rng.uniform(low, high), response=ps.Logistic(1.0, noise))
    assert np.all((left >= low) & (left <= high) & (right >= low) & (right <= high))
    separation = np.linalg.norm(left - right, axis=1)
    assert np.all(separation >= smallest * (1 - 1e-9))
    assert np.all(separation <= 2.0 * (1 + 1e-9))
    along = np.einsum("md,md->m", left - right, normals)
    assert along == pytest.approx(separation, rel=1e-9)
    # The plane is the one asked for, unless it only grazed the box and was moved inwards.
    offset = np.einsum("md,md->m", (left + right) / 2, normals)
    centre, reach = normals @ (low + high) / 2, np.abs(normals) @ (high - low) / 2
    grazing = reach - np.abs(planes.offsets - centre) < smallest / 2
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
    """Compare mean posterior traces over 6 users after 15 answers; Random's is nearly twice as large."""
    traces = {}
    for tried in (strategy, ps.Random()):
        total = 0.0
        for seed in range(6):
            point = np.random.default_rng(seed).uniform(-1, 1, 3)
            search = ps.Search(BOX, response=ps.Logistic(6.0), posterior=FEW, strategy=tried, rng=seed)
            run(search, point, 15, seed)
            total += np.trace(search.estimate().covariance) / 6
        traces[tried.name] = total
    assert traces[strategy.name] < 0.8 * traces["random"]
    assert traces[strategy.name] < 0.35


def test_answers_are_points_and_there_are_no_items_to_recommend():
    search = ps.Search(BOX, posterior=FEW, rng=1)
    query = search.ask()
    assert isinstance(query.left, tuple)
    assert all(type(x) is float for x in query.left)
    search.tell(query, winner=np.array(query.left))
    search.observe([0, 0, 0], [1, 1, 1], winner=(0, 0, 0))
    with pytest.raises(Unsupported):
        search.recommend()
    with pytest.raises(UnknownItem):
        search.observe([0, 0], [1, 1, 1], winner=[0, 0])


@pytest.mark.parametrize(
    "strategy", [ps.ActRank(), ps.GaussCloud(2, 9), ps.GaussSearch(), ps.GreedyVolume()], ids=lambda s: s.name
)
def test_strategies_without_planes_are_rejected_by_name(strategy):
    with pytest.raises(Unsupported, match=f"'{strategy.name}' defines no planes"):
        ps.Search(BOX, strategy=strategy)


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


def test_a_user_defined_strategy_works_in_a_space_if_it_defines_planes():
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


class TestSpace:
    def test_holds_a_box(self):
        space = ps.Space((0, -1), (1.0, 2.0), max_separation=0.5)
        assert (space.d, space.low, space.high) == (2, (0.0, -1.0), (1.0, 2.0))
        assert space.point([0.25, 0.5]) == (0.25, 0.5)
        assert ps.Space(0.0, 1.0).d == 1

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            (((0, 0), (1,)), r"low and high have shapes \(2,\) and \(1,\)"),
            (((0, 0), (1, 0)), "is empty or infinite"),
            (((0, 0), (1, np.inf)), "is empty or infinite"),
            (((0, np.nan), (1, 1)), "is empty or infinite"),
            (((0.0,), (1.0,), 0.0, 0.0), "leave no pair"),
            (((0, 0), (1, 1), -0.1), "leave no pair: give 0 <= min <= max"),
            (((0, 0), (1, 1), 2.0), r"min at most the narrowest side \(1\)"),
            (((0, 0), (1, 1), 0.5, 0.2), "leave no pair"),
            (("a", "b"), "a Space from 'a' to 'b', .*: give one number per dimension"),
            (((0, 0), (1, 1j)), "they are complex"),
            (((0, 0), (1, 1), "wide"), "separation 'wide' to None"),
            (((0, 0), (1, 1), None), "separation None to None"),
        ],
    )
    def test_rejects_an_invalid_box(self, fields, message):
        with pytest.raises(InvalidParameter, match=message):
            ps.Space(*fields)

    @pytest.mark.parametrize("value", [(0.1,), (0.1, np.nan), ((0.1, 0.2),), "a", ("a", "b"), None, (1j, 0)])
    def test_rejects_an_invalid_point(self, value):
        with pytest.raises(UnknownItem):
            ps.Space((0, 0), (1, 1)).point(value)
