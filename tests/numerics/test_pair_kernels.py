"""Scalar primitives and the kernels over answers, against scipy and the naive twins.

Tests with "twin" in their name run a second time without the compiler, see test_kernels_without_jit.py.
"""

from __future__ import annotations

import math
import os
import types

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special, stats

from helpers.reference import naive_covariance, naive_log_answer, naive_mean
from helpers.situations import LINKS
from pairseek.numerics.balls import quantile_radius
from pairseek.numerics.jit import exp_minus, log_answer, log_ndtr, log_slope, log_tie, next_uniform
from pairseek.numerics.moments import SAMPLE_CHUNK, sample_moments
from pairseek.posteriors.mixture_kernels import likelihood_grid, mixture_densities
from pairseek.posteriors.slice_kernels import log_densities, log_line

LOGITS = st.floats(-1e6, 1e6)
OUTCOMES = st.sampled_from(["first", "tie"])
WIDTHS = st.sampled_from([0.0, 0.05, 0.7, 5.0])
LAPSE_RATES = st.sampled_from([0.0, 1e-6, 0.2])


def model_of(width, lapse):
    """Return (floor, rest, width), the model argument of the kernels."""
    return lapse / (3.0 if width > 0.0 else 2.0), 1.0 - lapse, width


def naive_line(t, z, c, outcomes, link, width, lapse):
    """Add up the log-likelihoods along a line; logits of answers already have the tie width subtracted."""
    return sum(
        naive_log_answer(zj + t * cj + (width if outcome == "first" else 0.0), outcome, link, width, lapse)
        for zj, cj, outcome in zip(z, c, outcomes, strict=True)
    )


def splitmix(state):
    """Advance splitmix64 in Python integers (Steele, Lea, Flood 2014)."""
    state = (state + 0x9E3779B97F4A7C15) % 2**64
    z = state
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return state, z ^ (z >> 31)


def test_twin_runs_are_plain_python_only_on_request():
    assert isinstance(exp_minus, types.FunctionType) == ("PAIRSEEK_TEST_PLAIN" in os.environ)


class TestExpMinus:
    def test_keeps_eleven_digits_down_to_1e_15(self):
        x = np.concatenate([np.linspace(0.0, 34.5, 4001), [1e-300, 1e-12, 5e-324]])
        actual = np.array([exp_minus(value) for value in x])
        assert np.max(np.abs(actual / np.exp(-x) - 1)) < 1e-11

    @pytest.mark.parametrize("x", [34.6, 36.0, 37.0, 700.0, 1e6, 1e300, math.inf])
    def test_is_nothing_beyond(self, x):
        assert 0.0 <= exp_minus(x) < 1e-15


class TestLogNdtr:
    def test_agrees_with_scipy_from_far_below_to_far_above(self):
        z = np.concatenate([np.linspace(-60, 8, 2001), -np.logspace(2, 8, 50), [-30.0, np.nextafter(-30.0, 0)]])
        actual = np.array([log_ndtr(value) for value in z])
        expected = special.log_ndtr(z)
        assert np.all(np.abs(actual - expected) <= 1e-9 * np.abs(expected) + 2e-16)

    def test_is_zero_where_the_probability_is_one(self):
        assert log_ndtr(40.0) == 0.0
        assert log_ndtr(1e6) == 0.0


class TestLogAnswer:
    @given(z=LOGITS | st.floats(-40, 40), outcome=OUTCOMES, link=st.sampled_from(sorted(LINKS)), width=WIDTHS)
    def test_agrees_with_its_twin(self, z, outcome, link, width):
        actual = log_answer(
            z - (width if outcome == "first" else 0.0), float(outcome == "first"), LINKS[link], (0.0, 1.0, width)
        )
        assert math.isfinite(actual)
        # z - width + width is z to within its rounding, which the slope of the logarithm multiplies.
        rounding = 1e-15 * abs(z) ** 2 if link == "probit" else 1e-15 * abs(z)
        assert actual == pytest.approx(naive_log_answer(z, outcome, link, width), rel=1e-9, abs=1e-13 + rounding)

    @given(
        z=st.floats(-1e3, 1e3), outcome=OUTCOMES, link=st.sampled_from(sorted(LINKS)), width=WIDTHS, lapse=LAPSE_RATES
    )
    def test_agrees_with_its_twin_with_lapses(self, z, outcome, link, width, lapse):
        logit = z - (width if outcome == "first" else 0.0)
        actual = log_answer(logit, float(outcome == "first"), LINKS[link], model_of(width, lapse))
        assert actual == pytest.approx(naive_log_answer(z, outcome, link, width, lapse), rel=1e-8, abs=1e-13)

    @pytest.mark.parametrize("link", LINKS)
    @pytest.mark.parametrize("width", [0.05, 0.7, 5.0])
    def test_a_tie_agrees_with_an_integral_of_the_density(self, link, width):
        """Of the derivative of f over the width on both sides, which is how the twin does not compute it."""
        for z in (-6.0, -1.0, 0.0, 2.5):
            density = special.expit if link == "logistic" else stats.norm.pdf
            whole, _ = integrate.quad(
                lambda x, f=density: f(x) * f(-x) if link == "logistic" else f(x), z - width, z + width, epsabs=0.0
            )
            assert log_tie(z, width, LINKS[link]) == pytest.approx(math.log(whole), rel=1e-8)


class TestLogSlope:
    @given(z=st.floats(-25, 25), outcome=OUTCOMES, link=st.sampled_from(sorted(LINKS)), width=WIDTHS)
    def test_is_the_derivative_of_its_twins_logarithm(self, z, outcome, link, width):
        step = 1e-5
        shift = width if outcome == "first" else 0.0
        up, down = (naive_log_answer(z + shift + side * step, outcome, link, width) for side in (1, -1))
        # Rounding of a logarithm of up to 300 over the step.
        actual = log_slope(z, float(outcome == "first"), LINKS[link], width)
        assert actual == pytest.approx((up - down) / (2 * step), abs=4e-7, rel=1e-6)

    @pytest.mark.parametrize("z", [-1e6, -1e3, 1e3, 1e6])
    @pytest.mark.parametrize("link", LINKS)
    @pytest.mark.parametrize("width", [0.0, 0.7])
    def test_is_finite_at_extreme_logits(self, z, link, width):
        expected = 0.0 if z > 0 else (1.0 if link == "logistic" else -z)
        assert log_slope(z, 1.0, LINKS[link], width) == pytest.approx(expected, rel=1e-4, abs=1e-12)
        # A tie is limited by its edge that is nearer to z, as an answer is by its only one.
        edge = -math.copysign(1.0, z) * (1.0 if link == "logistic" else abs(z) - width)
        assert log_slope(z, 0.0, LINKS[link], width) == pytest.approx(edge, rel=1e-4)


class TestNextUniform:
    def test_agrees_with_its_twin_in_whole_numbers(self):
        state, plain = np.array([12345], dtype=np.uint64), 12345
        for _ in range(200):
            with np.errstate(over="ignore"):
                actual = next_uniform(state)
            plain, bits = splitmix(plain)
            assert actual == ((bits >> 11) + 0.5) / 2**53

    def test_is_uniform_and_streams_of_neighbouring_seeds_are_unrelated(self):
        draws = np.empty((2, 20_000))
        for row, seed in enumerate((7, 8)):
            state = np.array([seed], dtype=np.uint64)
            draws[row] = [next_uniform(state) for _ in range(20_000)]
        assert draws.min() > 0.0
        assert draws.max() < 1.0
        # Fixed seeds: these p-values are what they are, and far from a rejection.
        assert stats.kstest(draws[0], "uniform").pvalue > 0.05
        # 4 standard errors of a correlation of 20,000 independent pairs, with the other stream and with itself.
        assert abs(np.corrcoef(draws)[0, 1]) < 4 / math.sqrt(20_000)
        assert abs(np.corrcoef(draws[0, 1:], draws[0, :-1])[0, 1]) < 4 / math.sqrt(20_000)


class TestLogLine:
    @given(
        seed=st.integers(0, 2**32 - 1),
        m=st.integers(1, 12),
        scale=st.sampled_from([1e-3, 1.0, 30.0, 1e4]),
        link=st.sampled_from(sorted(LINKS)),
        width=WIDTHS,
        lapse=LAPSE_RATES,
    )
    def test_agrees_with_its_twin(self, seed, m, scale, link, width, lapse):
        rng = np.random.default_rng(seed)
        z, c = rng.normal(scale=scale, size=(2, m))
        # Without lapses a logistic tie is two answers, see `Factors`, and none comes here.
        kinds = ["first"] if link == "logistic" and lapse == 0.0 else ["first", "tie"]
        outcomes = rng.choice(kinds, size=m)
        t = rng.normal()
        actual = log_line(t, z, c, (outcomes == "first").astype(float), LINKS[link], model_of(width, lapse))
        expected = naive_line(t, z.tolist(), c.tolist(), outcomes.tolist(), link, width, lapse)
        assert actual == pytest.approx(expected, rel=1e-8, abs=1e-10 * m)

    @pytest.mark.parametrize("m", [512, 513, 514, 1100])
    def test_adds_up_over_blocks_without_overflow(self, m):
        """A product of factors up to 2 is held over 512 answers: at z = 0 each is 2 exactly."""
        zeros, decided = np.zeros(m), np.ones(m)
        assert log_line(0.0, zeros, zeros, decided, 0, (0.0, 1.0, 0.0)) == pytest.approx(-m * math.log(2), rel=1e-13)

    @given(seed=st.integers(0, 2**32 - 1), link=st.sampled_from(sorted(LINKS)), width=WIDTHS, lapse=LAPSE_RATES)
    def test_log_densities_agree_with_a_plain_loop(self, seed, link, width, lapse):
        rng = np.random.default_rng(seed)
        points, slopes, offsets = rng.normal(size=(7, 3)), rng.normal(scale=9, size=(4, 3)), rng.normal(size=4)
        kinds = ["first"] if link == "logistic" and lapse == 0.0 else ["first", "tie"]
        outcomes = rng.choice(kinds, size=4)
        low, high, centre, precision = np.full(3, -2.0), np.full(3, 1.5), rng.normal(size=3), np.diag([1.0, 0.5, 2.0])
        base = rng.normal(size=3), np.diag([0.3, 1.0, 4.0])
        out = np.full(7, np.nan)
        evidence = (slopes, offsets, (outcomes == "first").astype(float))
        log_densities(
            2, 6, points, evidence, (low, high, centre, precision), base, LINKS[link], model_of(width, lapse), out
        )
        for row in range(2, 6):
            x = points[row]
            expected = -0.5 * (x - centre) @ precision @ (x - centre) + 0.5 * (x - base[0]) @ base[1] @ (x - base[0])
            z = [offset + sum(slope * x) for slope, offset in zip(slopes, offsets, strict=True)]
            expected += naive_line(0.0, z, z, outcomes.tolist(), link, width, lapse)
            inside = bool(np.all((x >= low) & (x <= high)))
            assert out[row] == (pytest.approx(expected, rel=1e-8, abs=1e-8) if inside else -math.inf)
        assert np.isnan(out[[0, 1, 6]]).all()


class TestLogLikelihoodGrid:
    @given(
        seed=st.integers(0, 2**32 - 1), m=st.sampled_from([1, 5, 40]), link=st.sampled_from(sorted(LINKS)), width=WIDTHS
    )
    def test_agrees_with_its_twin(self, seed, m, link, width):
        rng = np.random.default_rng(seed)
        points, slopes, offsets = rng.normal(size=(5, 2)), rng.normal(size=(m, 2)), rng.normal(size=m)
        outcomes = rng.choice(["first", "first", "tie"], size=m)
        factors, lapses = np.array([0.1, 1.0, 2.5]), np.array([1e-6, 0.1, 0.7])
        out, scale = np.full((5, 3, 3), np.nan), np.full(5, np.nan)
        evidence = (slopes, offsets, (outcomes == "first").astype(float))
        likelihood_grid(1, 4, points, evidence, factors, lapses, width, LINKS[link], out, scale)
        for row in range(1, 4):
            for u, factor in enumerate(factors.tolist()):
                z = (factor * (slopes @ points[row] + offsets)).tolist()
                # The documented limit: a probability without lapse counts as at least 1e-16.
                p = [
                    max(math.exp(naive_log_answer(x, outcome, link, width)), 1e-16)
                    for x, outcome in zip(z, outcomes, strict=True)
                ]
                for q, lapse in enumerate(lapses.tolist()):
                    floor = lapse / (3 if width > 0 else 2)
                    floors = [0.0 if outcome == "tie" and width == 0 else floor for outcome in outcomes]
                    expected = sum(math.log(y + (1 - lapse) * x) for x, y in zip(p, floors, strict=True))
                    actual = math.log(out[row, u, q]) + scale[row]
                    assert actual == pytest.approx(expected, rel=1e-8, abs=1e-8 * m)
            assert out[row].max() == 1.0
        assert np.isnan(out[[0, 4]]).all()
        assert np.isnan(scale[[0, 4]]).all()

    @pytest.mark.parametrize("lapse", [1e-9, 0.3])
    def test_two_hundred_wrong_answers_do_not_underflow(self, lapse):
        out, scale = np.empty((1, 1, 1)), np.empty(1)
        evidence = (np.full((200, 1), -50.0), np.zeros(200), np.ones(200))
        likelihood_grid(0, 1, np.ones((1, 1)), evidence, np.ones(1), np.array([lapse]), 0.0, 0, out, scale)
        assert out[0, 0, 0] == 1.0
        assert scale[0] == pytest.approx(200 * math.log(lapse / 2), rel=1e-3)


class TestMixtureDensities:
    @given(seed=st.integers(0, 2**32 - 1), n=st.sampled_from([1, 15, 40]), d=st.integers(1, 4))
    def test_agree_with_their_twin(self, seed, n, d):
        rng = np.random.default_rng(seed)
        points, means, whitening = rng.normal(size=(n, d)), rng.normal(size=(3, d)), rng.normal(size=(3, d, d))
        shares, out = rng.dirichlet(np.ones(3)), np.full(n + 2, np.nan)
        mixture_densities(0, n, points, means, whitening, shares, out)
        for row, x in enumerate(points):
            squares = [sum((w @ (x - mean)) ** 2) for w, mean in zip(whitening, means, strict=True)]
            # The documented limit: e^-36 for components far away.
            expected = sum(s * math.exp(-min(y / 2, 36.0)) for s, y in zip(shares, squares, strict=True))
            assert out[row] == pytest.approx(expected, rel=1e-9)
        assert np.isnan(out[n:]).all()


class TestSampleMoments:
    @given(seed=st.integers(0, 2**32 - 1), n=st.sampled_from([2, 3, 40]), d=st.integers(1, 4))
    def test_agree_with_their_twin(self, seed, n, d):
        rng = np.random.default_rng(seed)
        samples, weights = rng.normal(size=(n, d)), rng.dirichlet(np.ones(n))
        mean, covariance = sample_moments(samples, weights)
        assert mean == pytest.approx(np.array(naive_mean(samples, weights)), abs=1e-13)
        assert covariance == pytest.approx(np.array(naive_covariance(samples, weights)), abs=1e-13)
        assert np.array_equal(covariance, covariance.T)

    def test_keep_their_digits_far_from_zero(self):
        rng = np.random.default_rng(0)
        samples, weights = rng.normal(size=(1000, 3)), np.full(1000, 1e-3)
        near, far = sample_moments(samples, weights), sample_moments(samples + 1e6, weights)
        # The samples themselves keep 1e-10 of their place at 1e6.
        assert far[0] - 1e6 == pytest.approx(near[0], abs=1e-9)
        assert far[1] == pytest.approx(near[1], abs=1e-8)

    def test_have_the_same_bits_on_any_number_of_threads(self, on_threads):
        rng = np.random.default_rng(1)
        samples, weights = (
            rng.normal(size=(7 * SAMPLE_CHUNK + 3, 4)),
            np.full(7 * SAMPLE_CHUNK + 3, 1 / (7 * SAMPLE_CHUNK + 3)),
        )
        one, two, three = (on_threads(threads, lambda: sample_moments(samples, weights)) for threads in (1, 2, 3))
        for other in (two, three):
            assert np.array_equal(one[0], other[0])
            assert np.array_equal(one[1], other[1])


@pytest.mark.parametrize("seed", range(20))
def test_quantile_radius_equals_the_sorted_twin(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 200)), int(rng.integers(1, 5))
    # Every other time on a grid, where many points are equally far; only the leading coordinates count.
    points = rng.integers(0, 4, (n, d + 1)).astype(float) if seed % 2 else rng.normal(size=(n, d + 1))
    weights = np.where(rng.random(n) < 0.3, 0.0, rng.random(n)) + 1e-9
    centre = rng.normal(size=d)
    distances = np.linalg.norm(points[:, :d] - centre, axis=1)
    order = np.argsort(distances)
    mass = np.cumsum(weights[order])
    for level in (0.001, 0.3, 0.5, 0.95, 0.9999):
        expected = distances[order[min(np.searchsorted(mass, level * mass[-1]), n - 1)]]
        assert quantile_radius(points, weights, centre, level) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n", [10, 1000, 4000])
def test_quantile_radius_of_equal_weights_is_the_smallest_sufficient_one(n):
    points = np.random.default_rng(n).permutation(n)[:, None] + 1.0
    for level in (0.1, 0.5, 0.9):
        assert quantile_radius(points, np.full(n, 1.0 / n), np.zeros(1), level) == level * n
