"""Measures of recommended and shown items, beside enumeration on small examples."""

import itertools
import re

import numpy as np
import pytest

import pairseek as ps
from pairseek.cli import app as _app
from pairseek.evaluate import evaluate
from pairseek.experiments.comparison.person import Person
from pairseek.experiments.comparison.picks import liked_items, pick_measures, top_mean, values_of
from pairseek.experiments.evaluation.figures import draw
from pairseek.experiments.evaluation.replay import Popularity, replayed
from pairseek.experiments.evaluation.specification import FIRST_MEASURES, MEASURES, PICK_MEASURES, POPULARITY, Arm

NAN = float("nan")


@pytest.fixture(scope="module")
def rated():
    """Return ratings of 40 people with two opposite tastes, of 7 items with 5 levels."""
    rng = np.random.default_rng(2)
    taste = rng.choice([-1.0, 1.0], 40)
    rows = [
        (f"p{p}", f"i{i}", float(np.clip(np.round(3 + taste[p] * (i - 3) / 1.5 + 0.7 * rng.normal()), 1, 5)))
        for p in range(40)
        for i in range(7)
        if rng.random() < 0.9
    ]
    return ps.Choices.from_ratings(rows)


@pytest.fixture(scope="module")
def results(rated, tmp_path_factory):
    folder = tmp_path_factory.mktemp("picks") / "x"
    return evaluate(rated, folder, learn=1, residual=0.5, answers=(0, 4), people=8, splits=1)


def brute_top(utility, value, count):
    """Mean value of the first `count` items, averaged over every order of the items that sorts utilities."""
    known = [i for i in range(len(value)) if np.isfinite(value[i])]
    orders = [
        o for o in itertools.permutations(known) if all(utility[a] >= utility[b] for a, b in itertools.pairwise(o))
    ]
    return np.mean([np.mean([value[i] for i in order[:count]]) for order in orders])


class TestOneList:
    @pytest.mark.parametrize("seed", range(8))
    def test_the_top_is_the_mean_over_all_orders_of_equal_utility(self, seed):
        rng = np.random.default_rng(seed)
        utility = rng.integers(0, 3, 6).astype(float)
        value = np.where(rng.random(6) < 0.8, rng.integers(1, 6, 6), NAN).astype(float)
        for count in range(1, 7):
            mean = top_mean(utility, value, count)
            if count <= np.isfinite(value).sum():
                assert mean == pytest.approx(brute_top(utility, value, count))
            else:
                assert np.isnan(mean)

    def test_regret_top_and_liked_items_by_hand(self):
        value = np.array([5.0, 3.0, NAN, 4.0, 1.0, 2.0])
        utility = np.array([0.1, 0.9, 2.0, 0.5, 0.3, -1.0])
        # Without the third item, which has no rating: ratings 3, 4, 1, 5, 2 in the order of utility; their mean is 3.
        shown = [0, 3, 4, 0, 1, 2]
        found = dict(zip(PICK_MEASURES, pick_measures(utility, value, shown), strict=True))
        assert found == {
            "regret": 5 - 3,
            "top_3": pytest.approx((3 + 4 + 1) / 3),
            "top_5": pytest.approx((3 + 4 + 1 + 5 + 2) / 5),
            "liked": pytest.approx(3 / 5),
        }
        assert liked_items(value).tolist() == [True, False, False, True, False, False]

    def test_without_values_nothing_is_claimed(self):
        assert np.isnan(pick_measures(np.arange(4.0), np.full(4, NAN), [0, 1])).all()
        assert np.isnan(pick_measures(np.arange(6.0), np.arange(6.0), [])[-1])


class TestValues:
    def test_ratings_are_the_values(self):
        choices = ps.Choices.from_ratings([("u", "a", 5), ("u", "c", 1), ("v", "b", 2), ("v", "c", 4)])
        assert np.array_equal(values_of(choices, 0), [5, NAN, 1], equal_nan=True)
        assert np.array_equal(values_of(choices, 1), [NAN, 2, 4], equal_nan=True)

    def test_a_complete_comparison_gives_shares_of_wins(self):
        # a and b were compared twice, with either outcome; c and d are a tie.
        pairs = [("a", "b"), ("b", "a"), ("a", "c"), ("a", "d"), ("b", "c"), ("d", "b")]
        choices = ps.Choices.from_pairs([("u", *pair) for pair in pairs], tied=[("u", "c", "d")], ids="abcde")
        assert np.allclose(values_of(choices, 0)[:4], [2.5 / 3, 1.5 / 3, 0.5 / 3, 1.5 / 3])
        assert np.isnan(values_of(choices, 0)[4])

    def test_a_ranking_is_complete_and_some_pairs_are_not(self):
        choices = ps.Choices.from_rankings({"u": ["b", ["a", "c"], "d"], "v": ["a", "b"]})
        assert np.allclose(values_of(choices, 0), [0.5, 1.0, 0.5, 0.0])
        some = ps.Choices.from_pairs([("u", "a", "b"), ("u", "b", "c"), ("v", "a", "c")])
        assert np.isnan(values_of(some, 0)).all()
        assert np.allclose(values_of(some, 1)[[0, 2]], [1.0, 0.0])


class TestReplay:
    @pytest.mark.parametrize("strategy", [ps.EUBO(), ps.Random()])
    def test_a_replay_measures_the_items_by_their_expected_utility(self, rated, strategy, monkeypatch):
        """Utilities are computed from every sample of the belief, apart from the formula that the replay uses."""
        population = ps.Population.fit(rated.only(range(30)), dimension=1, residual=0.0)
        searches = []
        start = ps.Search.__init__
        monkeypatch.setattr(
            ps.Search,
            "__init__",
            lambda search, *given, **more: (start(search, *given, **more), searches.append(search))[0],
        )
        person = Person.of(rated, 33)
        popular = Popularity.of(rated.only(range(30)))
        rows, _, _ = replayed(
            person, Arm("x", strategy), population, None, popular, answers=(0, 5), samples=None, seed=3
        )
        (search,) = searches
        items, belief = search.items, search.belief
        points = belief.samples[:, None, :] - items.coordinates
        utility = belief.weights @ (items.appeal - search.response.typical_k * np.sum(points**2, axis=2))
        own = {item: value for item, value in enumerate(person.value) if np.isfinite(value)}
        order = sorted(own, key=lambda item: -utility[item])
        shown = [items.index(side) for event in search.history for side in (event.left, event.right)]
        mean = sum(own.values()) / len(own)
        found = dict(zip(PICK_MEASURES, rows[1][-len(PICK_MEASURES) :], strict=True))
        assert found["regret"] == max(own.values()) - own[order[0]]
        assert found["top_3"] == pytest.approx(np.mean([own[item] for item in order[:3]]))
        assert found["top_5"] == pytest.approx(np.mean([own[item] for item in order[:5]]))
        assert len(shown) == 10
        assert found["liked"] == pytest.approx(np.mean([own[item] > mean for item in shown]))
        assert np.isnan(rows[0][-1])

    def test_files_hold_the_measures_with_standard_errors(self, results):
        summary = [row for row in results.summary() if row["answers"] == 4]
        assert results.valued
        for name in PICK_MEASURES:
            values = results.each("InfoGain", name)[:, 1]
            there = values[np.isfinite(values)]
            assert len(there) >= 6
            assert summary[0][name] == pytest.approx(there.mean())
            assert summary[0][f"{name}_se"] == pytest.approx(there.std(ddof=1) / np.sqrt(len(there)))
        popular = next(row for row in summary if row["arm"] == POPULARITY)
        assert np.isnan(popular["liked"])
        assert np.isfinite(popular["regret"])
        # Two opposite tastes: the most popular item is no more liked by somebody than others are, and answers help.
        assert summary[0]["regret"] < popular["regret"]

    @pytest.mark.parametrize("goal", FIRST_MEASURES)
    def test_the_goal_decides_what_the_figure_shows(self, results, goal, tmp_path):
        draw(results, tmp_path, goal=goal)
        text = (tmp_path / "evaluation.svg").read_text()
        assert ("Regret" in text) == (goal == "best")
        assert ("top 3" in text) == (goal != "taste")
        assert ("Log loss" in text) == (goal == "taste")

    def test_every_measure_is_shown_under_every_goal(self):
        assert len({frozenset(names) for names in FIRST_MEASURES.values()}) == 1
        assert set(FIRST_MEASURES["taste"]) < set(MEASURES)


def run(tmp_path, monkeypatch, capsys, lines, goal):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.csv").write_text("\n".join(lines) + "\n")
    words = f"evaluate c.csv --learn 1 --people 3 --splits 1 --answers 0,2 --jobs 1 --strategies eubo --goal {goal}"
    assert _app.run(words.split()) == 0
    return capsys.readouterr().out


def test_the_command_shows_the_measures_of_the_goal_first(rated, tmp_path, monkeypatch, capsys):
    ratings = rated.ratings
    rows = zip(ratings.person.tolist(), ratings.item.tolist(), ratings.value.tolist(), strict=True)
    lines = ["person,item,rating", *(f"p{p},i{i},{value}" for p, i, value in rows)]
    shown = run(tmp_path, monkeypatch, capsys, lines, "best")
    titles = re.findall(r"^(.*), after answers:", shown, re.MULTILINE)
    assert titles[0] == "Regret: rating of the person's best item minus the pick's"
    assert titles[1] == "Regret minus the regret of Random, person by person"
    assert titles.index("Accuracy of predicted choices") == 5
    assert re.search(r"^EUBO +\d\.\d+±0\.\d+ +\d\.\d+±0\.\d+$", shown, re.MULTILINE)


def test_the_command_says_which_measures_pairs_do_not_have(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(1)
    lines = ["person,winner,loser"]
    for person in range(24):
        for a, b in list(itertools.combinations(range(6), 2))[: 8 + person % 3]:
            first = rng.random() < 0.9
            lines.append(f"{person},i{a if first else b},i{b if first else a}")
    shown = run(tmp_path, monkeypatch, capsys, lines, "list")
    assert "Nobody rated the items or compared every pair of their items" in shown
    assert "Regret:" not in shown
    assert shown.startswith("Accuracy of predicted choices")
