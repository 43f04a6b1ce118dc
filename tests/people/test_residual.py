"""The residual of a population: what is learned of it, and that it changes the unit of utilities alone."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

import pairseek as ps
from helpers.populations import simulated
from helpers.refusals import refused
from pairseek.people.population.model import FitOptions, fit_model
from pairseek.people.population.residual import RESIDUAL_SHARES, best_residual, predicted, residual_of, scale_of, splits


def people(residual, *, count=150, pairs=30, n=14, seed=1, scale=1.0):
    """Choices of people with residual utilities, answered pair by pair with logistic noise, and the items."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, 2))
    rows = []
    for person in range(count):
        who = rng.normal(size=2)
        utility = scale * -0.6 * np.sum((who - points) ** 2, axis=1) + residual * rng.normal(size=n)
        for _ in range(pairs):
            a, b = rng.choice(n, size=2, replace=False)
            won = rng.random() < expit(utility[a] - utility[b])
            rows.append((f"p{person}", f"i{a if won else b}", f"i{b if won else a}"))
    items = ps.Items(points, [f"i{row}" for row in range(n)])
    return ps.Choices.from_pairs(rows, ids=items.ids), items


def test_scale_and_residual_are_two_views_of_the_share():
    for share in RESIDUAL_SHARES["implied"]:
        residual = residual_of(share)
        assert scale_of(residual) == pytest.approx(1 / np.sqrt(1 - share))
        # Two residual utilities and the noise of an answer have the variance of logistic noise, times c².
        assert 2 * residual**2 + np.pi**2 / 3 == pytest.approx(np.pi**2 / 3 * scale_of(residual) ** 2)


def test_a_change_of_the_residual_leaves_first_choices_as_uncertain_as_they_were():
    """Gaussian and logistic noise of one variance differ by at most 0.02 in probability, and both occur in the sum."""
    truth = simulated(3, people=60)
    population = ps.Population.fit(truth.choices, truth.items, residual=0.0)
    other = population.with_residual(2.0)
    assert other.with_residual(0.0).k == pytest.approx(population.k)
    assert other.utilities()[0] == pytest.approx(population.utilities()[0])
    assert other.utilities()[1] == pytest.approx(population.utilities()[1])
    searches = [ps.Search(truth.items, population=one, rng=1) for one in (population, other)]
    ids = truth.items.ids
    for left, right in ((0, 1), (2, 9), (5, 13)):
        chances = [search.expect(ids[left], ids[right]).probability_left for search in searches]
        assert chances[0] == pytest.approx(chances[1], abs=0.02)
    reliability = [one.reliability(truth.choices) for one in (population, other)]
    assert reliability[0] == pytest.approx(reliability[1], abs=1e-9)


def test_residual_taste_is_told_from_noise():
    """Of people with a residual of 1.5, 58 % of what a plain fit calls noise is taste: ρ = σ²/(σ² + π²/6).

    A plain fit finds smaller utilities then, and the factor makes up for that. The variance of 150 people is known to
    12 %; residual tastes that happen to fit the coordinates add to it, so that half as much again is allowed.
    """
    spreads = []
    for residual, low, high in ((0.0, 0.0, 0.6), (1.5, 0.8, 2.6)):
        choices, items = people(residual)
        population = ps.Population.fit(choices, items)
        assert low <= population.residual <= high
        slopes = population.utilities()[1] * scale_of(population.residual)
        slopes = slopes - slopes.mean(axis=0)
        centred = 1.2 * (items.coordinates - items.coordinates.mean(axis=0))
        found = np.trace(slopes @ population.covariance @ slopes.T) / np.trace(centred @ centred.T)
        spreads.append(found)
    assert spreads == pytest.approx([1.0, 1.2], abs=0.5)


def test_the_residual_is_what_predicts_people_who_were_not_fitted():
    choices, items = people(1.5, seed=2)
    population = ps.Population.fit(choices, items)
    plain = population.with_residual(0.0)
    newcomers = splits(people(1.5, seed=2, count=300)[0].only(np.arange(150, 300)), 5)
    found = [
        predicted(newcomers, plain.items, plain.prior, plain.k, residual) for residual in (0.0, population.residual)
    ]
    gained = found[1] - found[0]
    assert gained.mean() > 3 * gained.std() / np.sqrt(len(gained))


def test_two_people_have_no_residual_and_few_claim_none_without_evidence():
    # What is left is open about the appeal of items, and no taste.
    for deviation, count in ((2.0, 2), (2.0, 9), (0.0, 12)):
        choices, items = people(deviation, count=count)
        assert ps.Population.fit(choices, items).residual == fit_model(choices, items, FitOptions())[0].item_deviation
    assert best_residual([], items, ps.GaussianPrior(), 0.6) == 0.0
    lines = []
    best_residual(splits(choices, 1), items, ps.GaussianPrior(0.0, 1.0), 0.6, lines.append)
    assert str(lines[0]).startswith("residual ")


def test_answers_and_predictions_are_disjoint_and_every_pair_occurs_once():
    choices, _ = people(1.0, count=10)
    for answers, others in splits(choices, 3):
        pairs = {frozenset(pair) for pair in [*answers.tolist(), *others.tolist()]}
        assert len(pairs) == len(answers) + len(others)
        assert len(answers) <= 15


def test_files_copies_and_searches_keep_the_residual(tmp_path):
    truth = simulated(3, people=40)
    population = ps.Population.fit(truth.choices, truth.items, residual=1.2)
    assert population.residual == 1.2
    population.save(tmp_path / "p.json")
    for same in (ps.Population.load(tmp_path / "p.json"), pickle.loads(pickle.dumps(population))):
        assert same.residual == 1.2
        assert same.items.hash == population.items.hash
    record = json.loads((tmp_path / "p.json").read_text())
    del record["residual"]
    assert ps.Population.from_record(record).residual == 0.0
    with refused("residual"):
        ps.Population.from_record({**record, "residual": -1})
    told = ps.Logistic(ps.Unknown(), "constant")
    assert ps.Search(truth.items, population=population).response.residual == 1.2
    assert ps.Search(truth.items, population=population, response=told).response.residual == 1.2
    assert ps.Search(truth.items, population=population, response=replace(told, residual=0.0)).response.residual == 0.0


@pytest.mark.parametrize("residual", [-1.0, float("nan"), "some", None])
def test_a_residual_must_be_a_number_from_0(residual):
    truth = simulated(3, people=10)
    with refused("residual"):
        ps.Population.fit(truth.choices, truth.items, residual=residual)
