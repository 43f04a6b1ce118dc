"""What may be asked and what may be recommended: `askable`, `only`, `exclude`, `among`, diversity."""

from __future__ import annotations

import numpy as np
import pytest

import pairseek as ps
from helpers.refusals import refused
from pairseek.model.catalogues import askable_rows
from pairseek.pairs.features import typical_response
from pairseek.search import best_items

LINEAR = ps.Logistic(1.0, "constant", residual=1.0)


def catalogue(n=300, d=3, seed=0, **more):
    return ps.Items(np.random.default_rng(seed).standard_normal((n, d)), ids=[f"p{i}" for i in range(n)], **more)


def answered(search, answers=6):
    for _ in range(answers):
        query = search.ask()
        search.tell(query, winner=min(query.left, query.right))
    return search


@pytest.mark.parametrize("strategy", [None, ps.EUBO(), ps.Shortlist(3), ps.EPMV(), ps.Random()])
def test_only_askable_items_are_asked_and_all_are_recommended(strategy):
    items = catalogue()
    some = [f"p{i}" for i in range(40, 70)]
    search = answered(ps.Search(items, askable=some, strategy=strategy, rng=1))
    assert {side for event in search.history for side in (event.left, event.right)} <= set(some)
    assert len(search.recommend(300)) == 300
    assert search.askable.ids == tuple(some)


def test_a_restricted_search_asks_what_a_search_of_the_part_asks():
    items = catalogue()
    prior = ps.GaussianPrior(np.zeros(3), np.eye(3))
    part = items.subset(np.arange(40, 70))
    restricted = answered(ps.Search(items, askable=part.ids, response=LINEAR, prior=prior, rng=1))
    other = answered(ps.Search(part, response=LINEAR, prior=prior, rng=1))
    assert [(e.left, e.right) for e in restricted.history] == [(e.left, e.right) for e in other.history]
    assert np.allclose(restricted.belief.mean, other.belief.mean)


def test_observations_outside_of_the_askable_items_count():
    items = catalogue()
    search = ps.Search(items, askable=["p1", "p2", "p3"], response=LINEAR, rng=1, rest=ps.Rest(item=1))
    before = search.belief.mean.copy()
    search.observe("p200", "p201", winner="p200")
    assert not np.allclose(search.belief.mean, before)
    assert {search.ask().left, search.ask().right} <= {"p1", "p2", "p3"}


def test_masks_ids_and_numbers_mean_the_same():
    items = catalogue()
    rows = np.array([3, 5, 8])
    mask = np.zeros(300, dtype=bool)
    mask[rows] = True
    for askable in (mask, mask.tolist(), ["p8", "p3", "p5", "p3"], (items.ids[row] for row in rows)):
        assert np.array_equal(askable_rows(items, askable), rows)
    assert askable_rows(items, 300) is None
    assert askable_rows(items, 1000) is None


def test_a_number_of_items_covers_the_catalogue_and_prefers_appeal():
    appeal = np.random.default_rng(1).standard_normal(2000)
    items = catalogue(2000, 2, appeal=appeal)
    rows = askable_rows(items, 100)
    assert len(np.unique(rows)) == 100
    # Distances to the nearest chosen item: about those of cells of equal size, and below those of a random choice.
    chosen, drawn = (
        np.linalg.norm(items.coordinates[:, None] - items.coordinates[some], axis=2).min(axis=1).mean()
        for some in (askable_rows(catalogue(2000, 2), 100), np.random.default_rng(2).permutation(2000)[:100])
    )
    assert chosen < 0.9 * drawn
    # The best of 20 standard normal numbers has a mean of 1.87.
    assert 1.5 < appeal[rows].mean() < 2.2
    assert np.array_equal(askable_rows(items, 100), rows)


@pytest.mark.parametrize("residual", [0.0, 1.0])
def test_probabilities_are_those_of_what_may_be_recommended(residual):
    items = catalogue()
    search = answered(ps.Search(items, response=ps.Logistic(1.0, "constant", residual=residual), rng=1))
    for given in ({}, {"only": items.ids[:50]}, {"exclude": items.ids[:250]}):
        recommended = search.recommend(300, **given)
        assert sum(item.probability for item in recommended) == pytest.approx(1.0, abs=1e-9)
    assert {item.id for item in search.recommend(300, only=items.ids[:50])} == set(items.ids[:50])
    assert {item.id for item in search.recommend(300, exclude=items.ids[:250])} == set(items.ids[250:])
    assert [item.id for item in search.recommend(1, only=["p7"])] == ["p7"]
    assert search.recommend(1, only=["p7"])[0].probability == pytest.approx(1.0)
    everything = search.recommend(300)
    rest = [item.id for item in everything if item.id != everything[0].id]
    assert search.recommend(1, exclude=[everything[0].id])[0].id == rest[0] or residual == 0.0


def test_probabilities_with_residuals_agree_with_plain_draws():
    items = catalogue(200)
    search = answered(ps.Search(items, response=LINEAR, rng=1), 8)
    belief, response = search.belief, typical_response(search.response, search.belief)
    recommended = search.recommend(10)
    rng = np.random.default_rng(0)
    utilities = rng.standard_normal((len(belief.samples), 200)) * belief.residuals.deviation
    utilities[:, belief.residuals.rows] = belief.residuals.samples
    away = belief.samples[:, None] - items.coordinates
    utilities += items.appeal - response.typical_k * np.einsum("snd,snd->sn", away, away)
    best = np.bincount(np.argmax(utilities, axis=1), weights=belief.weights, minlength=200)
    for item in recommended:
        # 1024 samples of the point against some thousands of plain draws.
        assert item.probability == pytest.approx(best[items.index(item.id)], abs=0.03)


@pytest.mark.parametrize("count", [1, 3, 20, 200])
def test_probabilities_sum_to_one_over_what_may_be_recommended(count):
    items = catalogue()
    search = answered(ps.Search(items, response=LINEAR, rng=1))
    shown = [event.winner for event in search.history]
    allowed = list(dict.fromkeys([*shown[:2], *items.ids]))[:count]
    recommended = search.recommend(count, only=allowed)
    assert len(recommended) == count
    assert sum(item.probability for item in recommended) == pytest.approx(1.0, abs=1e-9)


def test_a_sample_represents_most_items_of_a_large_catalogue(monkeypatch):
    items = catalogue(30_000)
    search = answered(ps.Search(items, askable=200, response=LINEAR, rng=1), 4)
    # Use the same number of samples of the point both times; the second time, every item is treated exactly.
    monkeypatch.setattr(best_items, "_MAX_SAMPLES", 64)
    quick = [item.probability for item in search.recommend(5)]
    monkeypatch.setattr(best_items, "_MAX_EXACT_ITEMS", 30_000)
    exact = [item.probability for item in search.recommend(5)]
    assert quick != exact
    assert quick == pytest.approx(exact, rel=0.15)


def test_another_catalogue_keeps_what_is_known_of_its_items():
    items = catalogue()
    search = answered(ps.Search(items, response=LINEAR, rng=1))
    shown = search.history[0].winner
    rows = np.sort(np.r_[np.arange(100), items.index(shown)])
    rows = np.unique(rows)
    other = items.subset(rows[::-1])
    among = search.recommend(len(rows), among=other)
    only = search.recommend(len(rows), only=other.ids)
    assert {item.id: round(item.expected_utility, 9) for item in among} == {
        item.id: round(item.expected_utility, 9) for item in only
    }
    fresh = ps.Items(np.random.default_rng(9).standard_normal((50, 3)), ids=[f"new{i}" for i in range(50)])
    assert all(item.id.startswith("new") for item in search.recommend(5, among=fresh))


@pytest.mark.parametrize("residual", [0.0, 1.0])
def test_diversity_keeps_items_apart(residual):
    items = catalogue(1000)
    search = answered(ps.Search(items, response=ps.Logistic(1.0, "constant", residual=residual), rng=1))

    def nearest(found):
        points = items.coordinates[[items.index(item.id) for item in found]]
        away = np.linalg.norm(points[:, None] - points, axis=2)
        return np.min(away[np.triu_indices(len(points), 1)])

    plain, diverse = search.recommend(6), search.recommend(6, diversity=0.4)
    typical = np.sqrt(2.0) * items.spread
    assert nearest(plain) < 0.4 * typical <= nearest(diverse)
    assert diverse[0].id == plain[0].id
    assert len(search.recommend(1000, diversity=1.0)) == 1000


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"askable": []}, "InvalidParameter", "askable is empty"),
        ({"askable": ["p1"]}, "InvalidParameter", "contains only 'p1'"),
        ({"askable": 1}, "InvalidParameter", "askable is 1"),
        ({"askable": ["p1", "nothing"]}, "UnknownItem", "'nothing'"),
        ({"askable": [True, False]}, "InvalidParameter", "mask of shape"),
        ({"askable": "p1"}, "InvalidParameter", "askable is 'p1'"),
        ({"askable": True}, "InvalidParameter", "askable is True"),
        ({"askable": 10, "strategy": ps.GaussSearch()}, "Unsupported", "leave askable out"),
        ({"askable": 10, "candidates": ps.ListedPairs(((0, 1),))}, "Unsupported", "leave askable out"),
    ],
)
def test_bad_ask_sets_are_named(given, error, words):
    with pytest.raises(getattr(ps.errors, error), match=words):
        ps.Search(catalogue(), **given)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"only": []}, "InvalidParameter", "only leaves none of 300"),
        ({"exclude": catalogue().ids}, "InvalidParameter", "exclude leaves none"),
        ({"only": ["p1"], "exclude": ["p1"]}, "InvalidParameter", "only and exclude leave none"),
        ({"exclude": ["gone"]}, "UnknownItem", "'gone'"),
        ({"only": ["gone"], "missing": "ignore"}, "InvalidParameter", "only leaves none"),
        ({"missing": "skip", "only": ["p1"]}, "InvalidParameter", "missing is 'skip'"),
        ({"where": {"colour": "red"}}, "InvalidParameter", "no column 'colour'"),
        ({"where": ["colour"]}, "InvalidParameter", "where is a list"),
        ({"only": "p1"}, "InvalidParameter", "only is 'p1'"),
        ({"only": 3}, "InvalidParameter", "only is 3"),
        ({"diversity": 2}, "InvalidParameter", "diversity is 2"),
        ({"diversity": float("nan")}, "InvalidParameter", "diversity is nan"),
        ({"among": [[1, 2]]}, "InvalidParameter", "among is"),
        ({"among": ps.Items([[0.0], [1.0]])}, "InvalidParameter", "1 coordinates and the search has 3"),
    ],
)
def test_bad_recommendations_are_named(given, error, words):
    with pytest.raises(getattr(ps.errors, error), match=words):
        ps.Search(catalogue()).recommend(3, **given)


def test_ids_that_the_catalogue_lacks_are_skipped_on_request():
    search = ps.Search(catalogue(), rng=1)
    search.observe("p1", "p2", winner="p1")
    stock = ["p1", "p5", "sold long ago"]
    assert {item.id for item in search.recommend(9, only=stock, missing="ignore")} == {"p1", "p5"}
    rest = search.recommend(300, exclude=stock, missing="ignore")
    assert {item.id for item in rest} == set(catalogue().ids) - {"p1", "p5"}
    # Text where the ids are numbers is a mistake, not a list of missing items.
    numbered = ps.Search(ps.Items(catalogue().coordinates), rng=1)
    with pytest.raises(ps.errors.UnknownItem):
        numbered.recommend(3, exclude=["1", "2"], missing="ignore")


def test_recommendations_are_filtered_by_columns_of_the_data():
    plain = catalogue()
    data = {"in_stock": [row % 3 == 0 for row in range(plain.n)], "kind": ["red", "rosé", "white"] * (plain.n // 3)}
    items = ps.Items(plain.coordinates, plain.ids, data=data)
    search = ps.Search(items, rng=1)
    search.observe("p1", "p2", winner="p1")
    red = [item.id for item in search.recommend(300, where={"kind": ["red"]})]
    assert sorted(red) == sorted(plain.ids[::3])
    both = search.recommend(300, where={"in_stock": True, "kind": ["rosé", "red"]}, exclude=["p0"])
    assert {item.id for item in both} == set(plain.ids[::3]) - {"p0"}
    priced = ps.Items(plain.coordinates, plain.ids, data={"price": [None, *range(1, plain.n)]})
    search_priced = ps.Search(priced, rng=1)
    cheap = search_priced.recommend(300, where={"price": {"max": 3.0}})
    assert {item.id for item in cheap} == set(plain.ids[1:4])
    assert [item.id for item in search_priced.recommend(300, where={"price": {"min": 3.0, "max": 3}})] == [plain.ids[3]]
    # Probabilities are those of the best of the items that are left.
    assert sum(item.probability for item in search.recommend(300, where={"kind": "red"})) == pytest.approx(
        1.0, abs=0.02
    )


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"least": 3}, "or a range such as"),
        ({}, "or a range such as"),
        ({"min": float("nan")}, "or a range such as"),
        ({"min": 3}, "contains other things than numbers"),
    ],
)
def test_bad_ranges_are_named(value, words):
    items = ps.Items([[0.0], [1.0]], data={"kind": ["red", "white"]})
    with pytest.raises(ps.errors.InvalidParameter, match=words) as caught:
        ps.Search(items).recommend(1, where={"kind": value})
    assert caught.value.field == "where"


def test_a_space_has_no_ask_set():
    with refused("askable"):
        ps.Search(ps.Space([0, 0], [1, 1]), askable=5)
