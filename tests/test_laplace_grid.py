"""Grid, the reference of other tests, and Laplace, with its limits measured."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm, truncnorm

from pairseek._types import Evidence
from pairseek.errors import InvalidParameter
from pairseek.posteriors import Grid, Laplace, Particles
from pairseek.posteriors.laplace import _cut_normal, _truncated, posterior_mode
from pairseek.priors import GaussianPrior, UniformBox
from pairseek.responses import Logistic, Probit
from reference import naive_log_posterior, quadrature_moments
from situations import answers_from, beliefs_along, evidence_of, standardized

USER = [0.3, -0.2, 0.1]


def last(posterior, response, answers):
    """The belief after all answers. Grid and Laplace look at all evidence each time: one update is enough."""
    evidence = evidence_of(response, answers)
    if isinstance(posterior, Particles):
        *_, belief = beliefs_along(posterior, response, evidence)
        return belief
    start = posterior.start(UniformBox(), evidence.slopes.shape[1], np.random.default_rng(0))
    return posterior.update(start, evidence, UniformBox(), response, np.random.default_rng(1))


def by_quadrature(response, answers, d):
    return quadrature_moments(
        lambda x: naive_log_posterior(x, answers, response.k, response.noise, response.name), -np.ones(d), np.ones(d)
    )


class TestGrid:
    @pytest.mark.parametrize("response", [Logistic(2.0), Probit(2.0, "constant"), Logistic(0.0)], ids=repr)
    @pytest.mark.parametrize("d", [1, 2])
    def test_agrees_with_quadrature(self, response, d):
        answers = answers_from(np.random.default_rng(d), USER[:d], 12, response)
        answers += [(p, q, "tie") for p, q, _ in answers[:2]]
        belief = last(Grid(), response, answers)
        distance, least, most = standardized(belief, *by_quadrature(response, answers, d))
        # The midpoint rule: second order in the step, (2/201)² of the box at d = 2.
        assert distance < 1e-3
        assert least == pytest.approx(1.0, abs=2e-3)
        assert most == pytest.approx(1.0, abs=2e-3)

    def test_is_of_second_order_in_its_step(self):
        response = Logistic(3.0)
        answers = answers_from(np.random.default_rng(3), USER[:1], 6, response)
        mean, _ = by_quadrature(response, answers, 1)
        errors = [abs(last(Grid(points), response, answers).mean[0] - mean[0]) for points in (20, 40, 80)]
        assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.2)
        assert errors[1] / errors[2] == pytest.approx(4.0, rel=0.2)

    def test_agrees_with_particles_in_three_dimensions(self):
        response = Logistic(1.5)
        answers = answers_from(np.random.default_rng(4), USER, 15, response)
        exact = last(Grid(), response, answers)
        distance, least, most = standardized(last(Particles(4000), response, answers), exact.mean, exact.covariance)
        assert distance < 0.05
        assert 0.95 < least <= most < 1.05

    def test_loses_no_cell_to_underflow(self):
        """Two sharp answers of 1e6 against each other: every cell has a likelihood that e^x cannot hold."""
        response = Logistic(1e6)
        answers = [([0.5, 0.0], [-0.5, 0.0], "first"), ([0.5, 0.0], [-0.5, 0.0], "second")] * 2
        belief = last(Grid(), response, answers)
        assert belief.weights.sum() == pytest.approx(1.0)
        assert belief.mean[0] == pytest.approx(0.0, abs=0.01)
        assert belief.covariance[1, 1] == pytest.approx(1 / 3, rel=0.01)

    def test_covers_a_gaussian_prior_to_six_deviations(self):
        prior = GaussianPrior(3.0, 4.0)
        belief = Grid().start(prior, 1, np.random.default_rng(0))
        assert belief.samples.min() == pytest.approx(3 - 12, abs=0.02)
        assert belief.mean[0] == pytest.approx(3.0)
        assert belief.covariance[0, 0] == pytest.approx(4.0, rel=1e-6)

    def test_refuses_too_many_dimensions(self):
        message = "a Grid has at most 3 dimensions and the items have 4: use Particles"
        with pytest.raises(InvalidParameter, match=message):
            Grid().start(UniformBox(), 4, np.random.default_rng(0))

    def test_refuses_too_few_points(self):
        with pytest.raises(InvalidParameter, match=r"Grid\(points=1\): give at least 2 along each dimension"):
            Grid(1)

    @pytest.mark.parametrize(("d", "points"), [(1, 2001), (2, 201), (3, 41)])
    def test_has_as_many_cells_as_it_says(self, d, points):
        assert len(Grid().start(UniformBox(), d, np.random.default_rng(0)).samples) == points**d
        assert len(Grid(5).start(UniformBox(), d, np.random.default_rng(0)).samples) == 5**d


class TestLaplace:
    @pytest.mark.parametrize("response", [Logistic(3.0), Probit(2.0), Logistic(0.8, "constant")], ids=repr)
    def test_is_close_to_the_grid_where_the_posterior_is_near_gaussian(self, response):
        """A hundred answers; what remains is skew, and the noise of 4000 draws (0.03 deviations, 3 %)."""
        answers = answers_from(np.random.default_rng(6), USER[:2], 100, response)
        exact = last(Grid(), response, answers)
        distance, least, most = standardized(last(Laplace(4000), response, answers), exact.mean, exact.covariance)
        assert distance < 0.15
        assert 0.85 < least <= most < 1.1

    def test_respects_the_box_where_the_mode_lies_on_a_face(self):
        """Mass piles up at the face: the mean stays inside, within a fifth of a deviation of the truth."""
        response = Logistic(3.0)
        answers = answers_from(np.random.default_rng(7), [2.0, 0.1], 40, response)
        exact = last(Grid(), response, answers)
        belief = last(Laplace(4000), response, answers)
        assert np.all(np.abs(belief.samples) <= 1.0)
        assert belief.mean[0] < 1.0 - 0.5 * math.sqrt(exact.covariance[0, 0])
        distance, least, most = standardized(belief, exact.mean, exact.covariance)
        assert distance < 0.2
        assert 0.7 < least <= most < 1.4

    @pytest.mark.parametrize("scale", [1e-8, 1e5])
    def test_finds_the_mode_in_any_unit(self, scale):
        """Items, box and 1/k in other units: the same mode in those units, to the optimiser's relative tolerance."""

        def mode(unit):
            response = Logistic(3.0 / unit)
            # Drawn once in the first unit: the answers must be the same ones.
            answers = answers_from(np.random.default_rng(9), USER[:2], 30, Logistic(3.0))
            moved = [([unit * x for x in p], [unit * x for x in q], outcome) for p, q, outcome in answers]
            prior = UniformBox(-unit, unit)
            return posterior_mode(evidence_of(response, moved), prior, response, start=np.zeros(2)) / unit

        assert np.linalg.norm(mode(1.0)) > 0.1
        assert mode(scale) == pytest.approx(mode(1.0), abs=1e-4)

    @pytest.mark.parametrize("k", [3.0, 10.0, 100.0])
    def test_follows_a_narrow_slanted_ridge_from_end_to_end(self, k):
        """All planes along one diagonal: the other diagonal stays as wide as the box, however thin the ridge."""
        rng = np.random.default_rng(8)
        answers = []
        for shift in rng.normal(scale=1 / k, size=30):
            p, q = [0.3 + shift, 0.3 + shift], [-0.3 + shift, -0.3 + shift]
            answers.append((p, q, "first" if shift < 0 else "second"))
        response = Logistic(k)
        mean, covariance = by_quadrature(response, answers, 2)
        belief = last(Laplace(4000), response, answers)
        ridge = np.array([1.0, -1.0]) / math.sqrt(2)
        assert ridge @ belief.covariance @ ridge == pytest.approx(ridge @ covariance @ ridge, rel=0.1)
        assert abs((belief.mean - mean) @ ridge) < 0.1 * math.sqrt(ridge @ covariance @ ridge)

    def test_is_exact_for_a_gaussian(self):
        sigma = np.array([[1.0, 0.7], [0.7, 2.0]])
        prior = GaussianPrior(np.array([1.0, -1.0]), sigma)
        flat = Evidence(np.zeros((1, 2)), np.zeros(1), np.ones(1))
        *_, belief = beliefs_along(Laplace(20_000), Logistic(0.0), flat, prior=prior)
        # Four standard errors of 20,000 draws, and a trace of curvature of 1e-6.
        distance, least, most = standardized(belief, np.array([1.0, -1.0]), sigma)
        assert distance < 4 * math.sqrt(2 / 20_000)
        assert 0.95 < least <= most < 1.05

    @pytest.mark.parametrize("response", [Logistic(2.0), Probit(5.0), Logistic(1e3)], ids=repr)
    @pytest.mark.parametrize("user", [[0.3, -0.2], [2.0, 0.5]])
    def test_finds_the_mode(self, response, user):
        answers = answers_from(np.random.default_rng(9), user, 25, response)
        evidence = evidence_of(response, answers)
        mode = posterior_mode(evidence, UniformBox(), response, start=np.zeros(2))

        def negative(w):
            return -naive_log_posterior(w[None], answers, response.k, response.noise, response.name)[0]

        found = min(
            (
                minimize(negative, start, method="Nelder-Mead", bounds=[(-1, 1)] * 2, tol=1e-9)
                for start in (mode, [0.5, 0], [-0.5, 0.2])
            ),
            key=lambda result: result.fun,
        )
        assert np.all(np.abs(mode) <= 1.0)
        assert negative(mode) <= found.fun + 1e-4

    def test_says_how_many_samples_it_needs(self):
        with pytest.raises(InvalidParameter, match=r"Laplace\(n=1\): give at least 2 samples"):
            Laplace(1)


@pytest.mark.parametrize(
    ("low", "high"), [(-1.0, 1.0), (0.5, 3.0), (-math.inf, -4.0), (6.0, 6.5), (9.0, math.inf), (-90.0, -80.0)]
)
def test_normal_numbers_between_two_bounds_keep_their_digits_in_the_tails(low, high):
    share = (np.arange(2000) + 0.5) / 2000
    found = _cut_normal(np.full(2000, low), np.full(2000, high), share)
    assert np.all((found >= low) & (found <= high))
    # In the upper tail the order is turned around; the numbers are those of the inverse distribution function.
    assert np.sort(found) == pytest.approx(truncnorm(low, high).ppf(share), abs=1e-6)


QUADRATICS = {
    "inside": ([0.1, -0.2], [0.0, 0.0], [[40.0, 10.0], [10.0, 30.0]]),
    "wide": ([0.1, -0.2], [0.0, 0.0], [[0.5, 0.2], [0.2, 0.1]]),
    "a thin ridge": ([0.1, -0.2], [0.0, 0.0], [[5000.0, 4990.0], [4990.0, 5000.0]]),
    "a very thin ridge": ([0.1, -0.2], [0.0, 0.0], [[1e11, 1e11], [1e11, 1e11]]),
    "on a face": ([1.0, 0.2], [3.0, 0.0], [[9.0, 4.0], [4.0, 8.0]]),
    "steep on a face": ([1.0, 0.2], [300.0, 0.0], [[9.0, 4.0], [4.0, 8.0]]),
    "in a corner": ([1.0, -1.0], [4.0, -0.5], [[9.0, 4.0], [4.0, 8.0]]),
    "flat": ([0.0, 0.0], [0.0, 0.0], [[0.0, 0.0], [0.0, 0.0]]),
}


@pytest.mark.parametrize("name", QUADRATICS)
def test_samples_of_a_quadratic_inside_the_box_have_the_moments_of_quadrature(name):
    mode, gradient, precision = map(np.array, QUADRATICS[name])

    def log_density(points):
        delta = points - mode
        return delta @ gradient - 0.5 * np.einsum("nd,de,ne->n", delta, precision, delta)

    box = (-np.ones(2), np.ones(2))
    samples = _truncated(mode, gradient, precision, box, 8000, np.random.default_rng(0))
    assert np.all(np.abs(samples) <= 1.0)
    mean, covariance = quadrature_moments(log_density, *box)
    values, vectors = np.linalg.eigh(covariance)
    # The trace of curvature that stands for none is that of a deviation of 1000 box widths.
    whitened = (samples - mean) @ vectors / np.sqrt(values)
    # Four standard errors of 8000 draws; a variance of an exponential has three times the error of a Gaussian's.
    assert np.linalg.norm(whitened.mean(axis=0)) < 4 * math.sqrt(2 / 8000)
    assert np.cov(whitened.T) == pytest.approx(np.eye(2), abs=0.1)


def test_a_truncated_gaussian_on_a_face_has_the_tilt_of_its_gradient():
    """exp(8δ - δ²) on δ <= 0 in one coordinate, free of the other: a truncated normal, by scipy."""
    samples = _truncated(
        np.array([1.0, 0.0]),
        np.array([8.0, 123.0]),
        np.diag([2.0, 50.0]),
        (np.array([-1.0, -1.0]), np.array([1.0, 1.0])),
        20_000,
        np.random.default_rng(0),
    )
    exact = truncnorm((-2 - 4) / math.sqrt(0.5), (0 - 4) / math.sqrt(0.5), loc=5, scale=math.sqrt(0.5))
    assert samples[:, 0].mean() == pytest.approx(exact.mean(), abs=4 * exact.std() / math.sqrt(20_000))
    assert samples[:, 0].std() == pytest.approx(exact.std(), rel=0.05)
    # The optimiser's left-over gradient of a free coordinate counts for nothing.
    assert samples[:, 1].mean() == pytest.approx(0.0, abs=4 / math.sqrt(50 * 20_000))
    assert samples[:, 1].std() == pytest.approx(norm.std(scale=math.sqrt(1 / 50)), rel=0.05)
