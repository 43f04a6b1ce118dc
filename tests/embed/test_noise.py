"""Fits of the noise constant: convergence from any start, accuracy, and bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import pairseek as ps
from helpers.reference import naive_triplet_likelihood
from helpers.refusals import refused
from pairseek.embed import fit_noise, fit_noise_to_answers, simulate_triplets
from pairseek.errors import InvalidParameter, InvalidTriplets
from pairseek.model.noise import NOISES

KINDS = [(kind, noise) for kind in (ps.Logistic, ps.Probit) for noise in ("constant", "normalized", "decaying")]
TRUE = {"constant": 0.3, "normalized": 1.0, "decaying": 20.0}


@pytest.fixture(scope="module")
def items():
    return ps.Items(0.5 * np.random.default_rng(0).normal(size=(40, 2)))


@pytest.mark.parametrize(("kind", "noise"), KINDS)
def test_the_fit_agrees_with_a_naive_loop(kind, noise, items):
    triplets = simulate_triplets(items, 300, 1, response=kind(3.0, noise))
    fit = fit_noise(items, triplets, responses=[kind(noise=noise)], folds=None).best

    def cost(log_k):
        return -naive_triplet_likelihood(items.coordinates, triplets.rows, math.exp(log_k), noise, kind.name)

    expected = minimize_scalar(cost, bounds=(-4, 6), method="bounded", options={"xatol": 1e-9})
    # A minimum is accurate to the square root of the rounding error of its value.
    assert math.log(fit.k) == pytest.approx(expected.x, abs=1e-5)
    assert fit.log_likelihood == pytest.approx(-expected.fun, rel=1e-9)
    h = 1e-3 * fit.k
    bend = (cost(math.log(fit.k + h)) - 2 * cost(math.log(fit.k)) + cost(math.log(fit.k - h))) / h**2
    assert fit.standard_error == pytest.approx(1 / math.sqrt(bend), rel=1e-3)


def test_gaussian_constant_noise_converges_at_every_dimension(shared, monkeypatch):
    """The authors' optimiser stayed at its start; these starts are eight orders of magnitude apart."""
    if shared is not None:
        monkeypatch.setenv("PAIRSEEK_DATA", str(shared))
    for d in ps.datasets.food10k_dimensions():
        source = ps.datasets.synthetic(d, n=3000) if shared is None else ps.datasets.food10k(d)
        items = source.scaled()
        true = ps.Probit(0.3, "constant")
        triplets = simulate_triplets(items, 50_000, d, response=true)
        fits = [fit_noise(items, triplets, responses=[true], folds=None, start=k).best for k in (1e-4, 1.0, 1e4)]
        for fit in fits:
            assert fit.k == pytest.approx(fits[0].k, rel=1e-9)
            assert not fit.note
        assert abs(fits[0].k - 0.3) < 2 * fits[0].standard_error, f"d = {d}"


def test_errors_of_k_match_the_standard_error(items):
    ratios = []
    for seed in range(20):
        for kind, noise in KINDS:
            true = kind(TRUE[noise] if noise != "decaying" else 5.0, noise)
            triplets = simulate_triplets(items, 2000, [seed, 7], response=true)
            fit = fit_noise(items, triplets, responses=[true], folds=None).best
            ratios.append((fit.k - true.k) / fit.standard_error)
    # All six share the same 20 x 2000 uniform draws, so only 20 are independent: the mean square of a standard normal
    # has a standard deviation of sqrt(2/20) = 0.32; three of them are 0.95.
    assert np.mean(np.square(ratios)) == pytest.approx(1.0, abs=0.95)
    assert np.abs(np.mean(ratios)) < 3 / math.sqrt(20)


def test_the_best_fit_is_the_true_kind():
    items = ps.Items(0.7 * np.random.default_rng(0).normal(size=(200, 3)))
    for kind, noise in KINDS[:3]:
        triplets = simulate_triplets(items, 40_000, 3, response=kind(TRUE[noise] * 3, noise))
        fits = fit_noise(items, triplets)
        assert (fits.response.name, fits.response.noise) == (kind.name, noise)
        assert len(fits) == 2 * len(NOISES)
        likelihoods = [fit.log_likelihood for fit in fits]
        assert likelihoods == sorted(likelihoods, reverse=True)
        assert fits[kind.name, noise] is fits.best
        # Fitting one constant costs about half a nat in total on held-out answers.
        assert 0 <= fits.best.mean_log_likelihood - fits.best.cross_validated < 10 / 40_000
    with refused("key"):
        fits["cauchy", "constant"]


def test_a_search_takes_the_response(items):
    triplets = simulate_triplets(items, 500, 1, response=ps.Logistic(3.0, "normalized"))
    fits = fit_noise(items, triplets)
    search = ps.Search(items, response=fits.response, posterior=ps.Particles(200), rng=1)
    assert search.response.k == fits.best.k
    assert f"k = {fits.best.k:.4g}" in str(fits)


def test_answers_of_known_people_with_appeal_and_ties():
    rng = np.random.default_rng(2)
    items = ps.Items(rng.normal(size=(60, 2)), appeal=rng.normal(size=60))
    true = ps.Logistic(1.4, "normalized")
    people = []
    for person in range(60):
        point = rng.normal(size=2)
        user = ps.SimulatedUser(point, true, rng=person)
        events = []
        for number in range(40):
            left, right = (int(i) for i in rng.choice(60, 2, replace=False))
            query = ps.Query(f"q{number}", left, right)
            events.append(ps.Event(left, right, "answer", user.answer(items, query), query))
        people.append((point, events))
    fit = fit_noise_to_answers(items, people, responses=[true]).best
    assert fit.count == 2400
    assert abs(fit.k - 1.4) < 3 * fit.standard_error
    # Without the appeal the model is wrong.
    bare = ps.Items(items.coordinates)
    assert fit_noise_to_answers(bare, people, responses=[true]).best.log_likelihood < fit.log_likelihood - 50

    point = people[0][0]
    tie = (point, [ps.Event(0, 1, "tie"), ps.Event(0, 1, "skip")])
    both = (point, [ps.Event(0, 1, "answer", 0), ps.Event(0, 1, "answer", 1)])
    halved, twice = (
        fit_noise_to_answers(items, [*people, extra], responses=[true], folds=None).best for extra in (tie, both)
    )
    assert halved.count == 2401
    answered = fit_noise_to_answers(items, people, responses=[true], folds=None).best.log_likelihood
    # A tie counts as half of each answer, and hardly changes k.
    assert halved.log_likelihood - answered == pytest.approx((twice.log_likelihood - answered) / 2, abs=1e-3)


def test_separable_answers_are_reported_with_the_bound(items):
    triplets = simulate_triplets(items, 200, 1)
    fits = fit_noise(items, triplets)
    for fit in fits:
        assert fit.bound == "infinity"
        assert math.isinf(fit.standard_error)
        assert "k runs to infinity" in fit.note
        assert f"stopped at {fit.k:.3g}" in fit.note
        assert fit.record()["standard_error"] is None


def test_answers_that_contradict_the_items_are_reported(items):
    rows = simulate_triplets(items, 200, 1).rows[:, [0, 2, 1]]
    assert all(fit.bound == "zero" and "k runs to zero" in fit.note for fit in fit_noise(items, rows))


def test_items_too_far_apart_for_decaying_noise_are_reported():
    far = ps.Items(1e4 * np.random.default_rng(0).normal(size=(20, 2)))
    triplets = simulate_triplets(far, 200, 1)
    fit = fit_noise(far, triplets)["logistic", "decaying"]
    assert fit.bound == "flat"
    assert "scale the items first" in fit.note
    assert fit.mean_log_likelihood == pytest.approx(-math.log(2))


def test_what_cannot_be_fitted_is_refused(items):
    with pytest.raises(InvalidTriplets):
        fit_noise(items, [[0, 1, 99]])
    with pytest.raises(InvalidTriplets):
        fit_noise(items, [[0, 1, float("nan")]])
    with refused("start"):
        fit_noise(items, [[0, 1, 2]], start=0)
    with refused("folds"):
        fit_noise(items, [[0, 1, 2]], folds=1)
    for answers, message in (([], "no answers to fit"), ([([0.0], [])], "give 2 finite numbers")):
        with pytest.raises(InvalidParameter, match=message):
            fit_noise_to_answers(items, answers)


def test_threads_change_no_bit(items, on_threads):
    triplets = simulate_triplets(items, 60_000, 1, response=ps.Logistic(3.0, "normalized"))

    def fitted():
        return [(fit.k, fit.standard_error, fit.log_likelihood) for fit in fit_noise(items, triplets, folds=None)]

    assert on_threads(1, fitted) == on_threads(2, fitted)
