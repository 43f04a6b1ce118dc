"""No hidden dice: belief and next pair follow from configuration and answers, and later defaults change neither."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from typing import ClassVar

import numpy as np
import pytest

import pairseek as ps
from pairseek._version import MODEL_VERSION
from pairseek.pairs.strategies import UTILITIES

ITEMS = ps.Items(np.random.default_rng(0).standard_normal((700, 3)))  # more pairs than are scored one by one
SPACE = ps.Space((-1.0, -1.0), (1.0, 2.0))


class Longest:
    """A strategy of one's own, whose pairs are sampled because its score cannot be bounded."""

    name = "longest"

    def score(self, candidates, belief):
        return candidates.length * candidates.logit_deviation


def pairs(items, seed, count=5, **parts):
    """The pairs that a search asks of somebody who always prefers the item of the lower place, and its last belief."""
    search = ps.Search(items, rng=seed, **parts)
    asked = []
    for _ in range(count):
        query = search.ask()
        asked.append(frozenset((query.left, query.right)))
        search.tell(query, winner=min(query.left, query.right))
    return asked, search


DETERMINISTIC = [name for name in UTILITIES if name != "random"]


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_people_who_answer_alike_are_asked_alike_whatever_their_seed(name):
    runs = [pairs(ITEMS, seed, strategy=UTILITIES[name]()) for seed in (1, 2)]
    assert runs[0][0] == runs[1][0]
    assert np.array_equal(runs[0][1].belief.mean, runs[1][1].belief.mean)


@pytest.mark.parametrize("strategy", [ps.InfoGain(), ps.EPMV(), ps.MCMV(), ps.GreedyMSE()], ids=lambda s: s.name)
def test_a_continuous_space_asks_alike_too(strategy):
    assert pairs(SPACE, 1, strategy=strategy)[0] == pairs(SPACE, 2, strategy=strategy)[0]


PARTS = {
    "a strategy of one's own": {"strategy": Longest()},
    "a second score by samples": {"candidates": ps.AllPairs(gap=0.01, rescore=32)},
    "particles": {"posterior": ps.Particles(300)},
    "unknown k and lapse": {"response": ps.Logistic(ps.Unknown(), lapse=ps.Unknown()), "posterior": ps.Particles(300)},
}


@pytest.mark.parametrize("name", PARTS)
def test_samples_that_nobody_asked_for_do_not_depend_on_the_seed(name):
    items = ps.Items(np.random.default_rng(1).standard_normal((1100, 2)))
    assert pairs(items, 1, **PARTS[name])[0] == pairs(items, 2, **PARTS[name])[0]


def test_the_seed_decides_sides_and_what_is_random_by_name():
    sides = set()
    for seed in range(12):
        query = ps.Search(ITEMS, rng=seed).ask()
        sides.add((query.left, query.right))
    assert len(sides) == 2
    for parts in ({"strategy": ps.Random()}, {"candidates": ps.SampledPairs(count=50)}):
        assert len({frozenset(pairs(ITEMS, seed, 1, **parts)[0]) for seed in range(12)}) > 6
    spaces = {frozenset(pairs(SPACE, seed, 1, strategy=ps.Random())[0]) for seed in range(12)}
    assert len(spaces) == 12


def test_the_samples_of_a_strategy_of_ones_own_change_with_the_answers():
    """Keyed by evidence, not fixed: otherwise the same few pairs would be scored every time."""
    words = pairs(ps.Items(np.random.default_rng(1).standard_normal((1100, 2))), 1, strategy=Longest())[1]
    assert len({frozenset((e.left, e.right)) for e in words.history}) == len(words.history)
    assert "drawn where good pairs are likely" in words.history[-1].query.info.candidates


class TestItemsWithoutCoordinates:
    """All pairs of items that were not shown tell as much, so the seed decides between them."""

    NAMES = ps.Items(ids=range(8))

    def test_people_are_asked_different_pairs_and_their_answers_connect_the_items(self):
        """Each is asked four disjoint pairs; together the pairs of ten people connect all eight items."""
        joined = np.eye(8, dtype=bool)
        for seed in range(10):
            asked = pairs(self.NAMES, seed, 4)[0]
            assert len(frozenset().union(*asked)) == 8
            for first, second in asked:
                joined[first, second] = joined[second, first] = True
        assert np.linalg.matrix_power(joined.astype(int), 7).all()
        assert len({frozenset(pairs(self.NAMES, seed, 1)[0]) for seed in range(30)}) > 15

    @pytest.mark.parametrize("n", [8, 500])
    def test_the_same_seed_asks_the_same_after_undo_and_load(self, n, tmp_path):
        """500 items have more pairs than are scored one by one."""
        asked, search = pairs(ps.Items(ids=range(n)), 3, 6)
        assert asked == pairs(ps.Items(ids=range(n)), 3, 6)[0]
        assert asked != pairs(ps.Items(ids=range(n)), 4, 6)[0]
        following = search.ask()
        search.save(tmp_path / "me.json")
        assert ps.Search.load(tmp_path / "me.json").ask() == following
        search.tell(following, winner=following.left)
        search.undo()
        assert search.ask() == following

    def test_once_pairs_differ_the_seed_decides_nothing(self):
        appealing = ps.Items(ids=range(8), appeal=np.linspace(0.0, 2.0, 8) ** 2)
        assert pairs(appealing, 1)[0] == pairs(appealing, 2)[0]


def test_equal_scores_are_told_apart_by_the_order_of_the_items():
    corners = ps.Items([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], ids=["d", "c", "b", "a"])
    query = ps.Search(corners, response=ps.Logistic(residual=1.0), rng=3).ask()
    # Under normalized noise every plane through the middle of the prior tells as much: the first pair that has one.
    assert {query.left, query.right} == {"d", "c"}


class TestLaterDefaults:
    """A search that has begun keeps every part with its numbers."""

    CHANGES: ClassVar = {
        "model.defaults.PRIOR_FACTOR": 9.0,
        "search.defaults.MAX_SCORED_PAIRS": 0,
        "search.defaults.ProposedPairs": partial(ps.AllPairs, gap=0.5),
    }

    def begun(self, tmp_path):
        _, search = pairs(ITEMS, 4)
        search.save(tmp_path / "me.json")
        return search

    @pytest.mark.parametrize("name", CHANGES)
    def test_change_nothing_that_was_saved(self, tmp_path, monkeypatch, name):
        search = self.begun(tmp_path)
        before = search.ask(), search.configuration
        monkeypatch.setattr(f"pairseek.{name}", self.CHANGES[name])
        again = ps.Search.load(tmp_path / "me.json")
        assert (again.ask(), again.configuration) == before
        assert np.array_equal(again.belief.mean, search.belief.mean)
        # A new search takes the new default, or the test would say nothing.
        assert ps.Search(ITEMS, rng=4).configuration != before[1]

    def test_every_part_stands_in_the_file(self, tmp_path):
        self.begun(tmp_path)
        saved = json.loads((tmp_path / "me.json").read_text())["configuration"]
        assert saved["model"] == MODEL_VERSION
        assert saved["posterior"] == {"name": "ep", "points": 2048}
        assert saved["candidates"] == {
            "name": "proposed_pairs",
            "items": 256,
            "improved": 4,
            "rescore": 0,
            "listed": 100_000,
        }
        assert saved["prior"]["name"] == "gaussian"
        assert len(saved["prior"]["covariance"]) == 3
        assert saved["response"]["k"] > 0
        assert None not in saved.values()


class TestDefaultPrior:
    def test_has_the_moments_of_the_items(self):
        prior = ps.Search(ITEMS).prior
        assert prior.mean == pytest.approx(ITEMS.coordinates.mean(axis=0))
        assert prior.covariance == pytest.approx(np.cov(ITEMS.coordinates.T))

    def test_a_flat_direction_gets_a_thousandth_of_the_widest_deviation(self):
        points = np.column_stack([np.linspace(-3, 3, 40), np.full(40, 7.0), np.linspace(-3, 3, 40)])
        values = np.linalg.eigvalsh(ps.Search(points).prior.covariance)
        assert np.sqrt(values[:2] / values[-1]) == pytest.approx([1e-3, 1e-3], rel=1e-6)

    def test_an_answer_one_deviation_away_is_right_88_times_in_100(self):
        search = ps.Search(ITEMS, response=ps.Logistic())
        spread = np.sqrt(np.trace(search.prior.covariance) / 3)
        assert 1 / (1 + np.exp(-search.response.k * spread)) == pytest.approx(0.88, abs=0.001)

    @pytest.mark.parametrize("d", [1, 3, 12])
    def test_the_logit_of_two_random_items_has_a_root_mean_square_of_1_7(self, d):
        """For a random person and a curvature of 1, in any number of dimensions."""
        rng = np.random.default_rng(0)
        items = ps.Items(rng.standard_normal((2000, d)))
        people, first, second = (items.coordinates[rng.permutation(2000)] for _ in range(3))
        k = ps.Search(items).response.k
        logits = k * (np.sum((people - second) ** 2, axis=1) - np.sum((people - first) ** 2, axis=1))
        # The standard error of the root mean square of 2000 logits is about 2 %.
        assert np.sqrt(np.mean(logits**2)) == pytest.approx(np.sqrt(3), rel=0.1)

    @pytest.mark.parametrize("d", [4, 12])
    def test_it_suits_people_where_the_items_are(self, d):
        """The rank of the pick after ten answers; with the box that the items fill it was 0.3 and 0.48, where 0.5 is
        chance. Sixteen people: the mean rank was 0.10 to 0.12, with a standard error of about 0.02."""
        rng = np.random.default_rng(d)
        items = ps.Items(rng.standard_normal((600, d)) * np.linspace(1.5, 0.7, d))
        ranks = []
        for person in range(16):
            point = items.coordinates[rng.integers(items.n)]
            search = ps.Search(items, rng=person)
            user = ps.SimulatedUser(point, ps.Logistic(2.0 / items.spread * np.sqrt(d)), rng=person)
            for _ in range(10):
                query = search.ask()
                search.tell(query, winner=user.answer(items, query))
            distance = np.linalg.norm(items.coordinates - point, axis=1)
            pick = np.argmin(np.linalg.norm(items.coordinates - search.estimate().point, axis=1))
            ranks.append(np.mean(distance < distance[pick]))
        assert np.mean(ranks) < 0.18


SEARCH = """
import hashlib
import numpy as np
import pairseek as ps

rng = np.random.default_rng(0)
items = ps.Items(rng.normal(size=(60, 3)), appeal=0.2 * rng.normal(size=60))
search = ps.Search(items, response=ps.Logistic(1.2, "constant"), prior=ps.UniformBox(-2, 2), rng=5)
digest = hashlib.sha256()
for i in range(8):
    query = search.ask()
    search.tell(query, tie=True) if i % 4 == 3 else search.tell(query, winner=(query.left, query.right)[i % 4 == 2])
    belief = search.belief
    for array in (belief.mean, belief.covariance, belief.samples, belief.weights):
        digest.update(array.tobytes())
print(digest.hexdigest())
"""


@pytest.mark.long
def test_kernels_give_the_same_bits_compiled_and_loaded_from_disk(tmp_path):
    """The first process compiles the kernels, the second loads them."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = (
        subprocess.run([sys.executable, "-c", SEARCH], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    )
    assert first.stdout == second.stdout
