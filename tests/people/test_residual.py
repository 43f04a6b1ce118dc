"""The residual and the scale of a population: what is learned of them, and whom they call random."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

import pairseek as ps
from helpers.populations import simulated
from helpers.refusals import refused
from pairseek.people.population.held_out import evidence_of, held_out_predictions, sample_answers
from pairseek.people.population.leave_one_out import FitOfAll
from pairseek.people.population.model import FitOptions
from pairseek.people.population.residual import Calibration, calibrate, honest_share, residual_of, scale_of


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
    for share in (0.0, 0.2, 0.6, 0.9):
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


def test_residual_taste_is_told_from_noise():
    """Of people with a residual of 1.5, 58 % of what a plain fit calls noise is taste: ρ = σ²/(σ² + π²/6).

    The share is known to about 0.05 from 150 people. A plain fit finds smaller utilities then, and the factor makes up
    for that. The variance of 150 people is known to 12 %; residual tastes that happen to fit the coordinates add to it,
    so that half as much again is allowed.
    """
    spreads = []
    for residual, low, high in ((0.0, 0.0, 0.6), (1.5, 1.1, 2.0)):
        choices, items = people(residual)
        population = ps.Population.fit(choices, items)
        assert low <= population.residual <= high
        slopes = population.utilities()[1] * scale_of(population.residual)
        slopes = slopes - slopes.mean(axis=0)
        centred = 1.2 * (items.coordinates - items.coordinates.mean(axis=0))
        found = np.trace(slopes @ population.covariance @ slopes.T) / np.trace(centred @ centred.T)
        spreads.append(found)
    assert spreads == pytest.approx([1.0, 1.2], abs=0.5)


def own_tastes(count, seed, *, n=12, pairs=30):
    """Choices of people whose utilities have nothing in common, with a standard deviation of 2 logits."""
    rng = np.random.default_rng(seed)
    rows = []
    for person in range(count):
        utility = 2.0 * rng.normal(size=n)
        for _ in range(pairs):
            a, b = rng.choice(n, size=2, replace=False)
            won = rng.random() < expit(utility[a] - utility[b])
            rows.append((f"p{person}", f"i{a if won else b:02}", f"i{b if won else a:02}"))
    return ps.Choices.from_pairs(rows, ids=[f"i{row:02}" for row in range(n)])


def test_learned_coordinates_do_not_hide_what_people_do_not_share():
    """Coordinates fit the people who shaped them; newcomers are predicted by the residual alone."""
    population = ps.Population.fit(own_tastes(80, 1), dimension=3)
    assert population.residual > 1.2
    newcomers = own_tastes(60, 2)
    pairs = np.stack([newcomers.winner, newcomers.loser], axis=1).reshape(60, 30, 2)
    halves = [(own[:15], own[15:]) for own in pairs]
    scores = [
        held_out_predictions(one.items, one.prior, one.response, halves)[0]
        for one in (population, population.with_residual(0.0))
    ]
    gained = scores[0] - scores[1]
    assert gained.mean() > 3 * gained.std() / np.sqrt(len(gained))
    assert scores[0].mean() > -0.69


def test_evidence_agrees_with_quadrature():
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    choices = ps.Choices.from_pairs([("p", 0, 1)], ids=[0, 1, 2], tied=[("q", 1, 2)])
    base, factors, covariance = np.array([0.5, 0.0, -0.3]), np.array([[1.0], [-0.5], [0.2]]), np.array([[0.7]])
    residual, width = 0.8, 0.4
    evidence = evidence_of(choices, base, factors, covariance, residual, width)
    deviation = [np.sqrt((factors[a, 0] - factors[b, 0]) ** 2 * 0.7 + 2 * residual**2) for a, b in ((0, 1), (1, 2))]
    won = weights @ expit(0.5 + deviation[0] * nodes - width)
    z = 0.3 + deviation[1] * nodes
    tie = weights @ (expit(z + width) - expit(z - width))
    assert evidence == pytest.approx(np.log([won, tie]), abs=2e-3)
    plain = evidence_of(choices.rows(np.ones(1, dtype=bool)), base, np.zeros((3, 0)), np.zeros((0, 0)))
    assert plain == pytest.approx([np.log(expit(0.5)), 0.0], abs=1e-3)


def coins(count, seed, *, n=12, pairs=30):
    """Choices of people who toss a coin."""
    rng = np.random.default_rng(seed)
    rows = [
        (f"coin {person}", *(f"i{row:02}" for row in rng.choice(n, size=2, replace=False)))
        for person in range(count)
        for _ in range(pairs)
    ]
    return ps.Choices.from_pairs(rows, ids=[f"i{row:02}" for row in range(n)])


def test_people_whom_nothing_explains_are_told_from_coins():
    """After 100 answers at most 3 % of people with tastes of their own are called random, and 5 % of coins are not."""
    items = ps.Items(np.random.default_rng(3).normal(size=(12, 2)), [f"i{row:02}" for row in range(12)])
    honest = own_tastes(100, 4, pairs=40)
    for population in (ps.Population.fit(honest, items), ps.Population.fit(honest, dimension=2)):
        called = np.array(list(population.reliability(own_tastes(200, 5, pairs=100)).values())) < 0.5
        assert called.mean() <= 0.03
        called = np.array(list(population.reliability(coins(200, 6, pairs=100)).values())) >= 0.5
        assert called.mean() <= 0.05


def test_the_share_of_coins_is_found():
    evidence = np.array([10.0, -10.0, 8.0, 9.0, 12.0] * 20)
    assert honest_share(evidence, np.zeros(100)) == pytest.approx((80 + 9) / 110, abs=1e-3)


def test_few_people_say_little_about_the_residual():
    """The share stays near the mean of its prior, 0.47, and its error says how little is known."""
    for deviation, count in ((2.0, 2), (2.0, 3), (0.0, 3)):
        choices, items = people(deviation, count=count, pairs=6)
        found = calibrate(choices, items, FitOptions(), "auto")
        assert 0.2 < found.share < 0.8
        assert found.share_error > 0.15
        assert found.people == count
        population = ps.Population.fit(choices, items)
        assert population.residual == pytest.approx(residual_of(found.share))
        assert population.provenance["calibration"] == found.record()


def test_pairs_implied_by_ratings_or_rankings_are_not_judged():
    rankings = {f"p{row}": list(np.random.default_rng(row).permutation(8).tolist()) for row in range(12)}
    choices = ps.Choices.from_rankings(rankings, ids=range(8))
    items = ps.Items(np.random.default_rng(1).normal(size=(8, 2)))
    for setting, share in (("auto", 0.6), ("implied", 0.9)):
        assert calibrate(choices, items, FitOptions(), setting) == Calibration(share)
        assert ps.Population.fit(choices, items, residual=setting).residual == pytest.approx(residual_of(share))


def test_a_fit_reports_the_folds_of_its_residual():
    choices, items = people(0.5, count=12)
    steps = []
    ps.Population.fit(choices, items, progress=steps.append)
    assert [step.done for step in steps if step.stage == "residual"] == pytest.approx([1 / 3, 2 / 3, 1.0])


def test_a_sample_of_answers_has_at_most_so_many_of_each_person():
    choices, _ = people(1.0, count=10)
    drawn = sample_answers(choices, 12, np.random.default_rng(1), ties=True)
    assert np.diff(drawn.starts).tolist() == [12] * 10
    assert drawn.people == choices.people
    all_pairs = [set(zip(one.person, one.winner, one.loser, strict=True)) for one in (choices, drawn)]
    assert all_pairs[1] <= all_pairs[0]
    assert len(sample_answers(choices, 100, np.random.default_rng(1), ties=True)) == len(choices)


def test_a_person_who_is_left_out_does_not_count_for_residual_and_scale():
    """A person who is sure to have tastes of their own moves the averages; without them, these do not change."""
    choices, items = people(1.0, count=12)
    population = ps.Population.fit(choices, items)
    fit_of_all = FitOfAll.of(population, choices, items)
    evidence = fit_of_all.evidence
    assert evidence is not None
    assert evidence.calibration().record() == population.provenance["calibration"]
    other = fit_of_all.without(3)
    found = other.provenance["calibration"]
    assert found["people"] == 11
    changed = replace(evidence, answers=evidence.answers + 50.0 * (evidence.rows == 3) * np.arange(6)[:, None, None])
    assert changed.calibration().share > evidence.calibration().share + 0.1
    assert changed.without(3).calibration().record() == found
    assert other.residual == pytest.approx(residual_of(found["share"]))


def test_a_residual_that_was_given_stays_when_somebody_is_left_out():
    choices, items = people(1.0, count=12)
    population = ps.Population.fit(choices, items, residual=1.3)
    assert FitOfAll.of(population, choices, items).without(3).residual == pytest.approx(1.3)


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
