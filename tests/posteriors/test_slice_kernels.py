"""Tests of the slice kernel: it must leave a known density invariant, and forget any start."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from helpers.reference import naive_log_posterior
from helpers.situations import evidence_of
from pairseek.model.responses import Logistic, Probit
from pairseek.numerics.parallel import for_ranges
from pairseek.posteriors.factors import Factors
from pairseek.posteriors.slice_kernels import slice_sweep

N = 12_000
BOX = (np.array([-1.0, -1.0]), np.array([1.0, 1.0]))
NOWHERE = (np.array([-np.inf, -np.inf]), np.array([np.inf, np.inf]))
FLAT = (np.zeros(2), np.zeros((2, 2)))
SLANTED = (np.array([0.3, -0.6]), np.linalg.inv(np.array([[0.4, 0.25], [0.25, 0.3]])))
ANSWERS = [
    ([0.7, 0.2], [-0.5, 0.1], "first"),
    ([0.1, -0.8], [0.4, 0.6], "second", 0.4),
    ([-0.3, 0.9], [0.2, -0.7], "tie"),
    ([0.9, -0.2], [-0.1, 0.5], "first"),
]


def sweeps(points, response, answers, prior, *, count, power=1.0, seed=0):
    """Return copies of the points, moved along random frames as wide as the box."""
    rng = np.random.default_rng(seed)
    factors = Factors.of(evidence_of(response, answers), response)
    points = points.copy()
    for _ in range(count):
        frame, _ = np.linalg.qr(rng.standard_normal((2, 2)))
        directions = np.ascontiguousarray(0.5 * frame.T)
        for_ranges(
            slice_sweep,
            len(points),
            500,
            points,
            rng.integers(0, 2**64, size=len(points), dtype=np.uint64),
            (directions, directions @ factors.slopes.T),
            factors.kernel_arrays,
            prior,
            power,
            5.0,
            factors.link,
            factors.model,
        )
    return points


def exact_samples(n, response, answers, box, gaussian, *, power=1.0, seed=1):
    """Return independent samples by rejection: prior draws, accepted with the likelihood as probability."""
    rng = np.random.default_rng(seed)
    centre, precision = gaussian
    out = []
    while sum(map(len, out)) < n:
        if precision.any():
            points = rng.multivariate_normal(centre, np.linalg.inv(precision), size=4 * n)
            points = points[np.all((points >= box[0]) & (points <= box[1]), axis=1)]
        else:
            points = rng.uniform(*box, size=(4 * n, 2))
        model = response.k, response.noise, response.name, response.tie_width, response.lapse_rate
        logs = power * naive_log_posterior(points, answers, *model)
        out.append(points[np.log(rng.random(len(points))) < logs])
    return np.concatenate(out)[:n]


def smallest_p_value(some, others):
    """Return p-values of Kolmogorov-Smirnov tests along six directions and of the distance from the centre."""
    views = [(np.cos(a), np.sin(a)) for a in np.linspace(0, np.pi, 6, endpoint=False)]
    tests = [stats.ks_2samp(some @ view, others @ view).pvalue for view in views]
    return min(
        *tests, stats.ks_2samp(*(np.linalg.norm(x - others.mean(axis=0), axis=1) for x in (some, others))).pvalue
    )


CASES = {
    "logistic in a box": (Logistic(2.0), BOX, FLAT, 1.0),
    "probit in a box": (Probit(1.5), BOX, FLAT, 1.0),
    "a width of ties": (Logistic(4.0, tie_width=0.7), BOX, FLAT, 1.0),
    "lapses": (Logistic(6.0, lapse=0.2), BOX, FLAT, 1.0),
    "probit, lapses and a width of ties": (Probit(3.0, lapse=0.2, tie_width=0.7), BOX, FLAT, 1.0),
    "answers that count in part": (Logistic(4.0), BOX, FLAT, 0.3),
    "a slanted Gaussian": (Logistic(0.0), NOWHERE, SLANTED, 1.0),
    "a slanted Gaussian cut by the box": (Logistic(0.0), BOX, SLANTED, 1.0),
    "a Gaussian with answers": (Probit(1.0, "constant"), NOWHERE, SLANTED, 1.0),
}


@pytest.mark.parametrize("name", CASES)
class TestSliceSweep:
    """Seven tests per case, two cases each: a seed gives a p-value below 1e-4 with a probability of about 1e-3."""

    def test_leaves_the_density_as_it_is(self, name):
        response, box, gaussian, power = CASES[name]
        points = exact_samples(N, response, ANSWERS, box, gaussian, power=power, seed=1)
        moved = sweeps(points, response, ANSWERS, (*box, *gaussian), count=3, power=power)
        others = exact_samples(N, response, ANSWERS, box, gaussian, power=power, seed=2)
        assert np.all(moved >= box[0])
        assert np.all(moved <= box[1])
        assert smallest_p_value(moved, others) > 1e-4

    def test_forgets_where_it_started(self, name):
        response, box, gaussian, power = CASES[name]
        start = np.full((N, 2), 0.95)
        moved = sweeps(start, response, ANSWERS, (*box, *gaussian), count=12, power=power)
        others = exact_samples(N, response, ANSWERS, box, gaussian, power=power, seed=3)
        assert smallest_p_value(moved, others) > 1e-4


def test_the_check_itself_notices_a_noise_constant_that_is_a_seventh_too_large():
    """The p-values above have power: they distinguish k = 2.3 from k = 2."""
    some = exact_samples(N, Logistic(2.0), ANSWERS, BOX, FLAT, seed=4)
    others = exact_samples(N, Logistic(2.3), ANSWERS, BOX, FLAT, seed=5)
    assert smallest_p_value(some, others) < 1e-4


def test_a_point_in_the_corner_of_the_box_stays_inside_to_the_bit():
    points = np.array([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]] * 50)
    moved = sweeps(points, Logistic(1e6), ANSWERS[:1], (*BOX, *FLAT), count=20)
    assert np.all(np.abs(moved) <= 1.0)
    assert np.all(np.isfinite(moved))
    assert not np.any(np.all(moved == points, axis=1))


def test_the_same_seeds_give_the_same_bits_on_any_number_of_threads(on_threads):
    start = np.zeros((1700, 2))
    one, two = (
        on_threads(count, lambda: sweeps(start, Logistic(3.0), ANSWERS, (*BOX, *FLAT), count=2)) for count in (1, 2)
    )
    assert np.array_equal(one, two)
