"""Tests of control variates: unbiased moments, less noise, and a fallback where they cannot help."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.reference import naive_covariance, naive_log_posterior, naive_mean, quadrature_moments
from helpers.situations import answers_from, evidence_of
from pairseek.core.types import Evidence
from pairseek.model.priors import GaussianPrior, UniformBox
from pairseek.model.responses import Logistic, Probit
from pairseek.posteriors.control_variates import _solve, controlled_moments
from pairseek.posteriors.factors import Factors

ANSWERS = [
    ([0.7, 0.2], [-0.5, 0.1], "first"),
    ([0.1, -0.8], [0.4, 0.6], "second"),
    ([-0.3, 0.9], [0.2, -0.7], "tie"),
    ([0.9, -0.2], [-0.1, 0.5], "first"),
    ([0.3, 0.3], [-0.2, -0.9], "first"),
    ([-0.6, 0.1], [0.5, 0.8], "second"),
]


def rejection(rng, n, response, answers, draw):
    """Return independent posterior samples: prior draws, accepted with the likelihood as probability."""
    kept = np.empty((0, 2))
    while len(kept) < n:
        points = draw(rng, 4 * n)
        logs = naive_log_posterior(points, answers, response.k, response.noise, response.name, response.tie_width)
        kept = np.concatenate([kept, points[np.log(rng.random(len(points))) < logs]])
    return kept[:n]


def factors_of(response, answers):
    return Factors.of(evidence_of(response, answers), response)


def normal_prior_log(points):
    return -0.5 * ((points / 0.6) ** 2).sum(axis=1)


CASES = {
    "logistic in a box": (Logistic(2.0), UniformBox(), lambda rng, n: rng.uniform(-1, 1, (n, 2)), 1.0),
    "probit in a box": (Probit(1.5), UniformBox(), lambda rng, n: rng.uniform(-1, 1, (n, 2)), 1.0),
    "probit with a width of ties": (
        Probit(1.0, tie_width=0.3),
        UniformBox(),
        lambda rng, n: rng.uniform(-1, 1, (n, 2)),
        1.0,
    ),
    "logistic with a width of ties": (
        Logistic(2.0, tie_width=0.7),
        UniformBox(),
        lambda rng, n: rng.uniform(-1, 1, (n, 2)),
        1.0,
    ),
    "a Gaussian prior": (Logistic(2.0), GaussianPrior(0.0, 0.36), lambda rng, n: rng.normal(0, 0.6, (n, 2)), 6.0),
}


class TestControlledMoments:
    @pytest.mark.parametrize(
        "name", [pytest.param(name, marks=[pytest.mark.long] if "ties" in name else []) for name in CASES]
    )
    def test_are_right_on_average_with_a_third_of_the_variance_or_less(self, name):
        response, prior, draw, reach = CASES[name]

        def log_density(points):
            logs = naive_log_posterior(points, ANSWERS, response.k, response.noise, response.name, response.tie_width)
            return logs + (normal_prior_log(points) if isinstance(prior, GaussianPrior) else 0.0)

        mean, covariance = quadrature_moments(log_density, [-reach] * 2, [reach] * 2)
        truth = np.array([*mean, *covariance[np.triu_indices(2)]])
        factors = factors_of(response, ANSWERS)
        rng = np.random.default_rng(0)
        n, runs = 500, 150
        weights = np.full(n, 1 / n)
        empty = np.empty((2, runs, 5))
        for run in range(runs):
            points = rejection(rng, n, response, ANSWERS, draw)
            for row, (mu, sigma) in enumerate(
                (
                    controlled_moments(points, weights, factors, prior),
                    (points.mean(axis=0), np.cov(points.T, bias=True)),
                )
            ):
                empty[row, run] = [*mu, *sigma[np.triu_indices(2)]]
        controlled, plain = empty
        # Four standard errors of the average, plus the bias of order 1/n from dividing a variance by n.
        error = np.abs(controlled.mean(axis=0) - truth)
        assert np.all(error < 4 * controlled.std(axis=0) / np.sqrt(runs) + np.abs(truth) / n)
        # Over 150 runs, the relative standard error of a ratio of variances is about one sixth.
        assert np.all(controlled.var(axis=0) < plain.var(axis=0) / 3)

    @pytest.mark.parametrize("d", [1, 2, 5])
    def test_of_the_prior_alone_are_exact(self, d):
        rng = np.random.default_rng(d)
        low, high = tuple(rng.uniform(-3, -1, d)), tuple(rng.uniform(0, 4, d))
        prior = UniformBox(low, high)
        points = rng.uniform(low, high, size=(800, d))
        nothing = Factors.of(Evidence(np.zeros((1, d)), np.zeros(1), np.ones(1)), Logistic(0.0))
        mean, covariance = controlled_moments(points, np.full(800, 1 / 800), nothing, prior)
        expected = prior.moments(d)
        assert mean == pytest.approx(expected[0], abs=1e-6)
        assert covariance == pytest.approx(expected[1], abs=1e-5)

    def test_fall_back_to_the_plain_ones_after_answers_almost_without_noise(self):
        """The gradient is zero except in a layer a millionth wide, which no sample hits: nothing to learn from."""
        response = Logistic(1e6)
        evidence = evidence_of(response, [([0.5, 0.1], [-0.5, -0.1], "first"), ([0.1, 0.6], [0.2, -0.6], "first")])
        rng = np.random.default_rng(0)
        points = rng.uniform(-1, 1, size=(4000, 2))
        inside = points[np.all(points @ evidence.slopes.T + evidence.offsets > 0, axis=1)]
        weights = np.full(len(inside), 1 / len(inside))
        mean, covariance = controlled_moments(inside, weights, Factors.of(evidence, response), UniformBox())
        assert mean == pytest.approx(np.array(naive_mean(inside, weights)), abs=1e-13)
        assert covariance == pytest.approx(np.array(naive_covariance(inside, weights)), abs=1e-13)

    @pytest.mark.parametrize("response", [Logistic(1e4), Logistic(1e5), Probit(1e4)], ids=repr)
    def test_are_not_led_astray_by_the_few_samples_that_see_a_steep_edge(self, response):
        """Along an edge 1e-4 wide the gradient is 1e4: one sample there would outweigh all others."""
        answers = [
            ([0.5, 0.1], [-0.5, -0.1], "first"),
            ([0.1, 0.6], [0.2, -0.6], "first"),
            ([0.6, 0.5], [-0.3, -0.6], "first"),
        ]
        evidence = evidence_of(response, answers)
        worst = 0.0
        for seed in range(40):
            rng = np.random.default_rng(seed)
            points = rejection(rng, 2000, response, answers, lambda rng, n: rng.uniform(-1, 1, (n, 2)))
            for row in range(1 + seed % 4):
                # Move it along the normal to a logit of 0 to 2.
                j = rng.integers(3)
                normal = evidence.slopes[j]
                excess = normal @ points[row] + evidence.offsets[j] - rng.uniform(0, 2)
                points[row] = np.clip(points[row] - normal * excess / (normal @ normal), -1, 1)
            found, _ = controlled_moments(points, np.full(2000, 1 / 2000), Factors.of(evidence, response), UniformBox())
            worst = max(worst, np.max(np.abs(found - points.mean(axis=0)) / points.std(axis=0)))
        # The plain mean of 2000 samples cannot need a correction above four standard errors.
        assert worst < 4 / np.sqrt(2000)

    def test_fall_back_to_the_plain_ones_with_few_effective_samples(self):
        rng = np.random.default_rng(0)
        points = rng.uniform(-1, 1, size=(500, 2))
        weights = np.where(np.arange(500) < 20, 1 / 20, 0.0)
        mean, covariance = controlled_moments(points, weights, factors_of(Logistic(1.0), ANSWERS), UniformBox())
        assert mean == pytest.approx(points[:20].mean(axis=0), abs=1e-13)
        assert covariance == pytest.approx(np.cov(points[:20].T, bias=True), abs=1e-13)

    def test_have_the_same_bits_on_any_number_of_threads(self, on_threads):
        rng = np.random.default_rng(3)
        points, weights = rng.uniform(-1, 1, size=(2600, 2)), rng.dirichlet(np.full(2600, 50.0))
        factors = factors_of(Logistic(2.0), ANSWERS)
        one, two = (
            on_threads(count, lambda: controlled_moments(points, weights, factors, UniformBox())) for count in (1, 2)
        )
        assert np.array_equal(one[0], two[0])
        assert np.array_equal(one[1], two[1])

    def test_stay_positive_definite_along_a_search_in_twelve_dimensions(self):
        response = Logistic(0.6)
        rng = np.random.default_rng(0)
        evidence = evidence_of(response, answers_from(rng, [0.2] * 12, 6, response))
        points = rng.uniform(-1, 1, size=(4000, 12))
        weights = np.exp(response.log_likelihood(evidence, points))
        factors = Factors.of(evidence, response)
        _, covariance = controlled_moments(points, weights / weights.sum(), factors, UniformBox())
        assert np.linalg.eigvalsh(covariance)[0] > 0.1

    def test_with_lapses_they_are_the_plain_ones(self):
        """The field has no compiled slope there."""
        rng = np.random.default_rng(0)
        points, weights = rng.uniform(-1, 1, size=(500, 2)), np.full(500, 1 / 500)
        mean, covariance = controlled_moments(
            points, weights, factors_of(Logistic(1.0, lapse=0.1), ANSWERS), UniformBox()
        )
        assert mean == pytest.approx(points.mean(axis=0), abs=1e-13)
        assert covariance == pytest.approx(np.cov(points.T, bias=True), abs=1e-13)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 12))
def test_the_solver_agrees_with_its_twin_in_numpy(seed, n):
    rng = np.random.default_rng(seed)
    root, vector = rng.normal(size=(n, n)), rng.normal(size=n)
    matrix = root @ root.T + 0.1 * np.eye(n)
    solution = vector.copy()
    _solve(np.ascontiguousarray(np.tril(matrix)), solution)
    assert solution == pytest.approx(np.linalg.solve(matrix, vector), rel=1e-8, abs=1e-9)
