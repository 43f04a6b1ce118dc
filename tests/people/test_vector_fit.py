"""`Population.fit(vectors=...)`: a map from vectors to coordinates and appeal, and items that nobody compared."""

from __future__ import annotations

import numpy as np
import pytest

import pairseek as ps
from pairseek.people.population.fit_state import Smoother
from pairseek.people.population.vector_fit import VectorFeatures, choose_shrinkage, without_items


def world(*, people=80, items=60, answers=20, deviation=0.3, seed=0):
    """Return choices, vectors by id, and utilities: linear in 12 numbers, plus what is special to an item."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((items, 12)) * np.linspace(2.0, 0.5, 12)
    taste = np.linalg.qr(rng.standard_normal((12, 2)))[0]
    factors = vectors @ taste + deviation * rng.standard_normal((items, 2))
    appeal = vectors @ rng.standard_normal(12) * 0.2 + deviation * rng.standard_normal(items)
    utility = appeal + rng.standard_normal((people, 2)) @ factors.T
    rows = []
    for person in range(people):
        for _ in range(answers):
            a, b = rng.choice(items, 2, replace=False)
            wins = rng.random() < 1.0 / (1.0 + np.exp(utility[person, b] - utility[person, a]))
            rows.append((f"u{person}", f"i{a if wins else b}", f"i{b if wins else a}"))
    return rows, {f"i{row}": vector for row, vector in enumerate(vectors)}, utility


def correlation(population, utility, names):
    rows = [population.items.index(name) for name in names]
    found = population.utilities()[0][rows]
    truth = utility.mean(axis=0)[[int(name[1:]) for name in names]]
    return np.corrcoef(found, truth)[0, 1]


def test_items_that_nobody_compared_are_placed_by_their_vectors():
    rows, vectors, utility = world()
    new = {f"i{row}" for row in range(12)}
    seen = [row for row in rows if not {row[1], row[2]} & new]
    population = ps.Population.fit(ps.Choices.from_pairs(seen), vectors=vectors, dimension=2, residual=0.0)
    assert population.items.n == 60
    assert population.provenance["vectors"]["compared"] == 48
    # Mean utilities of items that nobody compared, from 48 others: chance is 0 ± 0.3 for 12 items.
    assert correlation(population, utility, sorted(new)) > 0.7
    # People's covariance of the new items' utilities against the truth.
    places = [population.items.index(name) for name in sorted(new)]
    _, factors = population.utilities()
    found = np.corrcoef(
        (factors[places] @ population.covariance @ factors[places].T).ravel(),
        np.cov(utility.T)[np.ix_([int(n[1:]) for n in sorted(new)], [int(n[1:]) for n in sorted(new)])].ravel(),
    )[0, 1]
    assert found > 0.6
    search = ps.Search(population.items, population=population, rng=1)
    search.observe("i0", "i50", winner="i0")
    assert len(search.recommend(60)) == 60


def test_the_map_helps_where_choices_are_few_and_does_not_hurt_where_vectors_are_noise():
    rows, vectors, utility = world(people=60, answers=8)
    names = [f"i{row}" for row in range(60)]
    choices = ps.Choices.from_pairs(rows, ids=names)
    plain = ps.Population.fit(choices, dimension=2, residual=0.0)
    helped = ps.Population.fit(choices, vectors=vectors, dimension=2, residual=0.0)
    assert correlation(helped, utility, names) > correlation(plain, utility, names)
    noise = dict(zip(names, np.random.default_rng(5).standard_normal((60, 12)), strict=True))
    lost = ps.Population.fit(choices, vectors=noise, dimension=2, residual=0.0)
    assert lost.provenance["vectors"]["shrinkage"] > helped.provenance["vectors"]["shrinkage"]
    assert correlation(lost, utility, names) > correlation(plain, utility, names) - 0.05


def test_the_smoother_is_a_ridge_regression():
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((30, 5))
    known = VectorFeatures.of(vectors, list(range(30)))
    assert np.var(known.features, axis=0, ddof=1).sum() == pytest.approx(1.0, rel=1e-5)
    values = rng.standard_normal((30, 3))
    compared = np.arange(30) < 20
    smoother = known.smoother(compared, 2.0)
    assert isinstance(smoother, Smoother)
    coefficients = smoother.coefficients(values)
    # The stationary point of |y - Fb|² + 2|b|² but for the constant.
    design = np.column_stack([np.ones(20), known.features[:20]])
    gradient = design.T @ (values[:20] - design @ coefficients) - 2.0 * np.vstack([np.zeros(3), coefficients[1:]])
    assert np.abs(gradient).max() < 1e-6


def test_new_vectors_are_placed_as_in_the_fit(tmp_path):
    rows, vectors, _ = world(people=60)
    new = {f"i{row}" for row in range(10)}
    seen = [row for row in rows if not {row[1], row[2]} & new]
    choices = ps.Choices.from_pairs(seen)
    whole = ps.Population.fit(choices, vectors=vectors, dimension=2, residual=0.5)
    part = ps.Population.fit(
        choices, vectors={name: v for name, v in vectors.items() if name not in new}, dimension=2, residual=0.5
    )
    tomorrow = part.with_vectors(vectors)
    assert np.allclose(tomorrow.items.coordinates, whole.items.coordinates)
    assert np.allclose(tomorrow.items.appeal, whole.items.appeal)
    whole.save(tmp_path / "p.json")
    again = ps.Population.load(tmp_path / "p.json")
    assert again.with_vectors(vectors).items == whole.items
    assert again.items == whole.items
    # A service gets the placed items without their vectors.
    sent = ps.Items._without_warnings(tomorrow.items.coordinates, tomorrow.items.ids, None, tomorrow.items.appeal)
    assert part.for_items(sent).matched(sent).appeal.tolist() == tomorrow.items.appeal.tolist()
    assert part.for_items(part.items) is part
    # The factor of residual utilities scales placed items as the others.
    scaled = whole.with_residual(1.5).with_vectors(vectors)
    assert np.allclose(scaled.items.appeal, whole.with_residual(1.5).items.appeal)


@pytest.mark.long
def test_ratings_work_too():
    _, vectors, utility = world(people=80)
    rng = np.random.default_rng(0)
    rows = [
        (f"u{person}", f"i{item}", int(np.clip(np.round(3 + utility[person, item] + rng.gumbel()), 1, 5)))
        for person in range(80)
        for item in rng.choice(np.arange(10, 60), 20, replace=False)
    ]
    choices = ps.Choices.from_ratings(rows)
    population = ps.Population.fit(choices, vectors=vectors, dimension=2, residual=0.0)
    assert population.items.n == 60
    assert len(population.utility_error) == 60
    assert correlation(population, utility, [f"i{i}" for i in range(10)]) > 0.5


def test_arrays_in_the_order_of_the_choices_and_items_work_too():
    rows, vectors, _ = world(people=30, items=20)
    choices = ps.Choices.from_pairs(rows)
    array = np.array([vectors[name] for name in choices.ids])
    for given in (array, ps.Items(array, ids=choices.ids)):
        population = ps.Population.fit(choices, vectors=given, dimension=1, residual=0.0)
        assert population.items.ids == choices.ids


def test_left_out_items_leave_no_trace():
    rows, vectors, _ = world(people=30)
    choices = ps.Choices.from_pairs(rows)
    left_out = np.arange(len(choices.ids)) < 5
    rest = without_items(choices, left_out)
    assert not np.any(left_out[rest.winner] | left_out[rest.loser])
    known = VectorFeatures.of(np.array([vectors[name] for name in choices.ids]), choices.ids)
    from pairseek.people.population.model import FitOptions

    shrinkage = choose_shrinkage(choices, known, FitOptions(2))
    assert shrinkage.shrinkage == max(shrinkage.tried, key=lambda pair: pair[1])[0]


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"vectors": {"i1": [1.0, 2.0], "i2": [0.0, 1.0]}}, "InvalidChoices", "there is no vector for"),
        ({"vectors": np.zeros((3, 2))}, "InvalidParameter", "3 vectors without ids"),
        ({"vectors": np.full((60, 2), np.nan)}, "InvalidItems", "is nan"),
        (
            {"vectors": np.eye(60), "items": ps.Items(np.eye(60)[:, :2])},
            "InvalidParameter",
            "vectors is given with items",
        ),
    ],
)
def test_bad_vectors_are_named(given, error, words):
    rows, _, _ = world(people=20)
    more = {} if "items" in given else {"dimension": 2}
    with pytest.raises(getattr(ps.errors, error), match=words):
        ps.Population.fit(ps.Choices.from_pairs(rows), **more, **given)
    if "items" in given:
        plain = ps.Population.fit(ps.Choices.from_pairs(rows), dimension=0)
        with pytest.raises(ps.errors.Unsupported):
            plain.with_vectors(np.eye(60))
