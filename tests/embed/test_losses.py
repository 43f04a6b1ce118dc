"""Loss, gradient and optimiser of the embeddings against loops, finite differences and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.reference import naive_triplet_likelihood, naive_triplet_loss
from pairseek.embed import CKL, STE
from pairseek.embed.lbfgs import minimise
from pairseek.embed.losses import HINGE_LOSS, LOGISTIC_LOSS, POWER_LOSS, RATIO_LOSS
from pairseek.embed.noise_scale import best_scale, likelihood
from pairseek.embed.objective import Objective, distances, padded
from pairseek.model.responses import Logistic, Probit

METHODS = {"ste": LOGISTIC_LOSS, "ckl": RATIO_LOSS, "tste": POWER_LOSS, "gnmds": HINGE_LOSS}


def example(seed, n, d, m, spread=1.0):
    rng = np.random.default_rng(seed)
    rows = np.array([rng.choice(n, 3, replace=False) for _ in range(m)])
    return spread * rng.standard_normal((n, d)), rows


@pytest.mark.parametrize("method", METHODS)
@given(seed=st.integers(0, 10**6), d=st.integers(1, 9), parameter=st.floats(0.05, 20.0))
def test_twin_loss(method, seed, d, parameter):
    points, rows = example(seed, 7, d, 30, spread=1.5)
    value, _ = Objective(rows, 7, METHODS[method], parameter)(padded(points))
    # exp_minus has a relative error of 1e-11.
    assert value == pytest.approx(naive_triplet_loss(points, rows, method, parameter), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
@given(seed=st.integers(0, 10**6), d=st.integers(1, 5))
def test_twin_gradient_by_finite_differences(method, seed, d):
    points, rows = example(seed, 6, d, 20)
    _, gradient = Objective(rows, 6, METHODS[method], 1.7)(padded(points))
    step = 1e-5
    for i in range(6):
        for h in range(d):
            sides = []
            for sign in (1, -1):
                moved = points.copy()
                moved[i, h] += sign * step
                sides.append(naive_triplet_loss(moved, rows, method, 1.7))
            # Central differences have errors of step² times the third derivative, of order 100 here, and of 1e-15/step
            # times the value; with GNMDS, whose second derivative jumps, the error is of order step.
            expected = (sides[0] - sides[1]) / (2 * step)
            assert gradient[i, h] == pytest.approx(expected, rel=1e-4, abs=2e-3 if method == "gnmds" else 1e-6)


def test_twin_padding_has_no_gradient():
    points, rows = example(1, 8, 5, 40)
    for kind in METHODS.values():
        assert not Objective(rows, 8, kind, 1.0)(padded(points))[1][:, 5:].any()


def test_far_items_do_not_overflow():
    points, rows = example(2, 8, 3, 600, spread=1e3)
    for kind in METHODS.values():
        value, gradient = Objective(rows, 8, kind, 1e-3)(padded(points))
        assert np.isfinite(value)
        assert np.all(np.isfinite(gradient))


@pytest.mark.parametrize("kind", METHODS.values())
def test_threads_change_no_bit(kind, on_threads):
    points, rows = example(3, 50, 3, 5000)

    def both():
        value, gradient = Objective(rows, 50, kind, 1.3)(padded(points))
        return value, gradient.tobytes()

    assert on_threads(1, both) == on_threads(2, both) == on_threads(5, both)


@pytest.mark.parametrize("method", [CKL, STE])
def test_a_seed_gives_the_same_embedding_on_any_number_of_threads(method, on_threads):
    _, rows = example(4, 40, 2, 3000)

    def fitted():
        return method(random_state=5).fit(rows).embedding_.tobytes()

    assert on_threads(1, fitted) == on_threads(2, fitted)


def test_distances_are_those_of_numpy():
    points, rows = example(5, 9, 4, 50)
    near, far = distances(rows, points)
    assert near == pytest.approx(((points[rows[:, 0]] - points[rows[:, 1]]) ** 2).sum(axis=1), rel=1e-12)
    assert far == pytest.approx(((points[rows[:, 0]] - points[rows[:, 2]]) ** 2).sum(axis=1), rel=1e-12)


def test_the_optimiser_finds_the_minimum_of_a_stretched_bowl():
    widths = np.logspace(0, 3, 20)
    centre = np.arange(20.0)

    def bowl(x):
        return 1.0 + 0.5 * float((widths * (x - centre) ** 2).sum()), widths * (x - centre)

    minimum = minimise(bowl, np.zeros(20), step=0.1, tolerance=1e-15, iterations=500)
    assert minimum.converged
    # The value is 1 + quadratic: flat to rounding within sqrt(2e-16/1) of the centre along the widest direction.
    assert minimum.point == pytest.approx(centre, abs=1e-6)


def test_the_optimiser_crosses_a_curved_valley():
    def rosenbrock(x):
        a, b = x
        return (1 - a) ** 2 + 100 * (b - a * a) ** 2, np.array([2 * (a - 1) - 400 * a * (b - a * a), 200 * (b - a * a)])

    minimum = minimise(rosenbrock, np.array([-1.2, 1.0]), step=0.1, tolerance=1e-14, iterations=500)
    assert minimum.point == pytest.approx([1.0, 1.0], abs=1e-4)


def test_the_optimiser_reports_when_it_runs_out_of_steps():
    minimum = minimise(lambda x: (float(x @ x), 2 * x), np.full(3, 1e6), step=1e-3, tolerance=1e-12, iterations=1)
    assert not minimum.converged


@pytest.mark.parametrize("noise", ["constant", "normalized", "decaying"])
@pytest.mark.parametrize("response", [Logistic, Probit])
def test_twin_likelihood_of_triplets(response, noise):
    points, rows = example(6, 9, 2, 60, spread=0.6)
    unit = response(1.0, noise)
    near, far = distances(rows, points)
    length = 2 * np.linalg.norm(points[rows[:, 1]] - points[rows[:, 2]], axis=1)
    units = unit.pair_constant(length) * (far - near)
    ones, zeros = np.ones(60), np.zeros(60)
    for k in (0.01, 0.7, 9.0):
        value, slope, bend = likelihood(k, units, unit.link, offsets=zeros, weights=ones)
        assert value == pytest.approx(naive_triplet_likelihood(points, rows, k, noise, unit.name), rel=1e-9)
        # Differences have relative errors of about h²; the second also has a rounding error of 1e-14/h² times about 10.
        h = 1e-2 * k
        values = [naive_triplet_likelihood(points, rows, k + sign * h, noise, unit.name) for sign in (-1, 0, 1)]
        assert slope == pytest.approx((values[2] - values[0]) / (2 * h), rel=1e-3)
        assert bend == pytest.approx((values[2] - 2 * values[1] + values[0]) / h**2, rel=1e-3, abs=1e-4)


def test_the_best_k_of_two_kinds_of_answers_is_the_log_odds():
    # 30 answers one way and 10 the other at the same logit: k is log 3 over the unit, with variance 1/(m p q u²).
    units = np.concatenate([np.full(30, 0.5), np.full(10, -0.5)])
    scale = best_scale(units, 0)
    assert scale.k == pytest.approx(2 * np.log(3.0), rel=1e-9)
    assert scale.standard_error == pytest.approx(1 / np.sqrt(40 * 0.75 * 0.25 * 0.25), rel=1e-7)
    assert scale.bound == ""


@given(start=st.floats(-25, 25), seed=st.integers(0, 1000))
def test_the_best_k_does_not_depend_on_the_start(start, seed):
    units = np.random.default_rng(seed).normal(0.5, 1.0, 200)
    scale = best_scale(units, 1, start=float(np.exp(start)))
    assert scale.k == pytest.approx(best_scale(units, 1).k, rel=1e-8)
    assert scale.evaluations < 60
