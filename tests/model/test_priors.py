"""Tests of priors: moments, entropy and samples against scipy, and validation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from helpers.refusals import read_only, refused
from pairseek.errors import InvalidParameter
from pairseek.model.priors import GaussianPrior, UniformBox

SLANTED = np.array([[1.0, 0.6, 0.1], [0.6, 2.0, -0.3], [0.1, -0.3, 0.5]])
PRIORS = {
    "cube": (UniformBox(), 3),
    "box": (UniformBox((-1.0, 0.0, 5.0), (2.0, 0.5, 9.0)), 3),
    "line": (UniformBox(2.0, 3.0), 1),
    "round": (GaussianPrior(0.5, 4.0), 3),
    "slanted": (GaussianPrior(np.array([1.0, -2.0, 0.0]), SLANTED), 3),
    "by coordinate": (GaussianPrior(0.0, np.array([1.0, 4.0])), 2),
}


@pytest.mark.parametrize("name", PRIORS)
class TestEveryPrior:
    def test_samples_have_its_moments(self, name):
        prior, d = PRIORS[name]
        points = prior.sample(20_000, d, np.random.default_rng(0))
        mean, covariance = prior.moments(d)
        scale = np.sqrt(np.diag(covariance))
        assert points.shape == (20_000, d)
        # Stratified along each coordinate: the means are much closer than the 0.007 of independent draws.
        assert (points.mean(axis=0) - mean) / scale == pytest.approx(np.zeros(d), abs=1.5e-3)
        # Products of two coordinates are not stratified: four standard errors of a correlation.
        ratio = np.cov(points.T).reshape(d, d) / np.outer(scale, scale)
        assert ratio == pytest.approx(covariance / np.outer(scale, scale), abs=4 / np.sqrt(20_000))

    def test_samples_lie_inside_its_box(self, name):
        prior, d = PRIORS[name]
        low, high = prior.box(d)
        points = prior.sample(1000, d, np.random.default_rng(1))
        assert np.all(points > low)
        assert np.all(points < high)
        assert np.all(np.isfinite(points))

    def test_the_generator_decides_and_nothing_else(self, name):
        prior, d = PRIORS[name]
        one, two, other = (prior.sample(50, d, np.random.default_rng(seed)) for seed in (5, 5, 6))
        assert np.array_equal(one, two)
        assert not np.array_equal(one, other)

    def test_entropy_is_minus_the_mean_log_density(self, name):
        prior, d = PRIORS[name]
        mean, covariance = prior.moments(d)
        if isinstance(prior, UniformBox):
            low, high = prior.box(d)
            expected = sum(stats.uniform(a, b - a).entropy() for a, b in zip(low, high, strict=True))
        else:
            expected = stats.multivariate_normal(mean, covariance).entropy()
        assert prior.entropy_bits(d) == pytest.approx(expected / np.log(2), abs=1e-12)

    def test_quadratic_factor_and_box_make_its_log_density(self, name):
        prior, d = PRIORS[name]
        centre, precision = prior.quadratic(d)
        mean, covariance = prior.moments(d)
        points = prior.sample(5, d, np.random.default_rng(2))
        found = np.array([-0.5 * (x - centre) @ precision @ (x - centre) for x in points])
        if isinstance(prior, UniformBox):
            expected = np.zeros(5)
        else:
            expected = stats.multivariate_normal(mean, covariance).logpdf(points)
        assert found - found[0] == pytest.approx(expected - expected[0], abs=1e-10)


def test_every_coordinate_of_a_sample_is_stratified():
    points = UniformBox(0.0, 1.0).sample(100, 4, np.random.default_rng(0))
    for column in points.T:
        assert sorted(np.floor(column * 100).tolist()) == list(range(100))


def test_the_coordinates_of_a_sample_are_paired_at_random():
    points = UniformBox(0.0, 1.0).sample(2000, 3, np.random.default_rng(0))
    assert abs(np.corrcoef(points.T) - np.eye(3)).max() < 4 / np.sqrt(2000)


def test_entropy_of_the_papers_boxes():
    assert UniformBox(-0.5, 0.5).entropy_bits(7) == 0.0
    assert UniformBox().entropy_bits(7) == 7.0


class TestUniformBoxRefuses:
    def test_an_empty_box(self):
        with refused("low"):
            UniformBox(1.0, 1.0)
        with refused("low"):
            UniformBox((0.0, 2.0), (1.0, 1.0))

    @pytest.mark.parametrize("low", [float("nan"), float("-inf"), (0.0, float("nan"))])
    def test_bounds_that_are_not_finite(self, low):
        with refused("low"):
            UniformBox(low, 5.0)

    def test_bounds_of_another_dimension(self):
        message = r"low of the UniformBox has shape \(2,\) but the items have 3 dimensions: give one number, or 3"
        with pytest.raises(InvalidParameter, match=message):
            UniformBox((0.0, 0.0), (1.0, 1.0)).box(3)

    def test_bounds_of_two_lengths(self):
        with refused("low"):
            UniformBox((0.0, 0.0), (1.0, 1.0, 1.0))


class TestGaussianPriorRefuses:
    @pytest.mark.parametrize(
        "covariance",
        [0.0, -1.0, np.array([1.0, 0.0]), np.array([[1.0, 2.0], [2.0, 1.0]]), np.array([[1.0, 2.0], [0.0, 5.0]])],
    )
    def test_a_covariance_that_is_not_positive_definite(self, covariance):
        with refused("covariance"):
            GaussianPrior(0.0, covariance)

    def test_a_covariance_that_is_not_square(self):
        with refused("covariance"):
            GaussianPrior(0.0, np.ones((2, 3)))

    @pytest.mark.parametrize(("mean", "covariance"), [(float("nan"), 1.0), (0.0, float("inf"))])
    def test_numbers_that_are_not_finite(self, mean, covariance):
        with pytest.raises(InvalidParameter, match="of a GaussianPrior is not finite"):
            GaussianPrior(mean, covariance)

    def test_too_many_axes(self):
        with refused("mean"):
            GaussianPrior(np.zeros((1, 1)), 1.0)

    def test_another_dimension(self):
        with pytest.raises(InvalidParameter, match=r"has shape \(3, 3\) but the items have 2 dimensions"):
            GaussianPrior(0.0, SLANTED).moments(2)
        with pytest.raises(InvalidParameter):
            GaussianPrior(np.zeros(3), 1.0).moments(2)


def test_priors_are_equal_by_value_and_cannot_be_changed():
    assert GaussianPrior(0.0, SLANTED) == GaussianPrior(0.0, SLANTED.copy())
    assert hash(GaussianPrior(0.0, SLANTED)) == hash(GaussianPrior(0.0, SLANTED.copy()))
    assert GaussianPrior(0.0, SLANTED) != GaussianPrior(0.1, SLANTED)
    assert UniformBox(-1, 1) == UniformBox()
    given = SLANTED.copy()
    prior = GaussianPrior(0.0, given)
    given[0, 0] = 99.0
    assert prior.moments(3)[1][0, 0] == 1.0
    with read_only():
        prior.moments(3)[1][0, 0] = 99.0
