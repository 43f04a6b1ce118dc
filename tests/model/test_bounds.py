"""Tests of the paper's bounds against closed forms, naive quadrature and densities of known entropy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad, trapezoid
from scipy.optimize import brentq
from scipy.stats import expon, laplace, norm, uniform

from pairseek.errors import InvalidParameter, Unsupported
from pairseek.model import bounds
from pairseek.model.priors import GaussianPrior, UniformBox

UNIT = UniformBox(-0.5, 0.5)
EXPERIMENTS = UniformBox(-1.0, 1.0)


def binary_entropy(p):
    p = np.clip(p, 1e-300, 1 - 1e-16)
    return -(p * np.log2(p) + (1 - p) * np.log2(1 - p))


def logistic(z):
    return 0.5 * (1.0 + np.tanh(0.5 * np.asarray(z)))


def information(density, shift, k, low=-40.0, high=40.0):
    """I = h_b(E f) - E h_b(f) for X of this density, f(k (x - shift)), by the trapezoid rule."""
    x = np.linspace(low, high, 400_001)
    weights = density(x) / trapezoid(density(x), x)
    f = logistic(k * (x - shift))
    mean = trapezoid(weights * f, x)
    return binary_entropy(mean) - trapezoid(weights * binary_entropy(f), x), mean


class TestTheMseLowerBound:
    def test_is_the_papers_formula_on_the_unit_cube(self):
        for i, d in ((0, 2), (7, 3), (40, 12)):
            expected = d * 2 ** (-2 * i / d) / (2 * math.pi * math.e)
            assert bounds.mse_lower_bound(i, UNIT, d) == pytest.approx(expected, rel=1e-13)

    def test_is_four_times_as_high_on_a_cube_of_twice_the_side(self):
        ratio = bounds.mse_lower_bound(9, EXPERIMENTS, 5) / bounds.mse_lower_bound(9, UNIT, 5)
        assert ratio == pytest.approx(4.0, rel=1e-13)

    def test_is_the_exact_error_of_a_round_gaussian_before_any_answer(self):
        assert bounds.mse_lower_bound(0, GaussianPrior(0.0, 0.7), 6) == pytest.approx(6 * 0.7, rel=1e-12)

    @pytest.mark.parametrize("answers", [0, 1, 5])
    def test_is_below_noiseless_bisection_by_its_known_factor(self, answers):
        exact = 4.0**-answers / 12  # the variance of an interval halved that often
        ratio = exact / bounds.mse_lower_bound(answers, UNIT, 1)
        assert ratio == pytest.approx(2 * math.pi * math.e / 12, rel=1e-13)

    @pytest.mark.parametrize("k", [0.5, 5.0, 50.0, 5000.0])
    @pytest.mark.parametrize("prior", ["unit", "experiments", "gaussian"])
    def test_is_below_the_exact_error_after_one_answer(self, k, prior):
        given = {"unit": UNIT, "experiments": EXPERIMENTS, "gaussian": GaussianPrior(0.0, 0.4)}[prior]
        variance = given.moments(2)[1][0, 0]
        x = np.linspace(-8, 8, 160_001) if prior == "gaussian" else np.linspace(*given.box(1), 160_001).ravel()
        density = np.exp(-0.5 * x**2 / 0.4) if prior == "gaussian" else np.ones_like(x)
        density = density / trapezoid(density, x)
        # a plane through the middle along one axis: both answers have probability 1/2, and means ± m
        m = 2 * trapezoid(density * x * logistic(k * x), x)
        exact = 2 * variance - m**2
        assert bounds.mse_lower_bound(1, given, 2) < exact
        assert bounds.mse_lower_bound(0, given, 2) <= 2 * variance * (1 + 1e-12)

    @pytest.mark.parametrize("answers", [-1, 1.5, True])
    def test_asks_for_a_whole_number_of_answers(self, answers):
        with pytest.raises(InvalidParameter, match=r"answers is .*: give a whole number, at least 0"):
            bounds.mse_lower_bound(answers, UNIT, 2)

    def test_asks_for_a_dimension(self):
        with pytest.raises(InvalidParameter):
            bounds.mse_lower_bound(1, UNIT, 0)


class TestTheEntropyLemma:
    LOG_CONCAVE = (uniform(-0.5, 1.0), norm(), laplace(), expon())

    @pytest.mark.parametrize("d", [2, 3, 10, 20])
    @pytest.mark.parametrize("marginal", LOG_CONCAVE, ids=["uniform", "gaussian", "laplace", "exponential"])
    def test_encloses_the_known_entropy_of_log_concave_products(self, d, marginal):
        scales = np.linspace(0.3, 4.0, d)
        entropy = (d * float(marginal.entropy()) + np.log(scales).sum()) / math.log(2)
        rotation = np.linalg.qr(np.random.default_rng(d).normal(size=(d, d)))[0]
        covariance = rotation @ np.diag(marginal.var() * scales**2) @ rotation.T
        lower, upper = bounds.entropy_bounds(covariance)
        assert lower < entropy <= upper + 1e-9

    def test_is_attained_above_by_the_gaussian(self):
        covariance = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, -0.2], [0.0, -0.2, 0.5]])
        _, upper = bounds.entropy_bounds(covariance)
        assert upper == pytest.approx(GaussianPrior(0.0, covariance).entropy_bits(3), rel=1e-12)

    def test_has_a_gap_that_depends_on_the_dimension_only(self):
        for d in (2, 7):
            c_d = math.e**2 * d**2 / (4 * math.sqrt(2) * (d + 2))
            lower, upper = bounds.entropy_bounds(np.diag(np.arange(1.0, d + 1)))
            assert upper - lower == pytest.approx(0.5 * d * math.log2(math.pi * math.e**3 * c_d), rel=1e-12)

    def test_does_not_overflow_where_the_determinant_does(self):
        lower, upper = bounds.entropy_bounds(1e-40 * np.eye(20))
        assert math.isfinite(lower)
        assert upper == pytest.approx(10 * math.log2(2 * math.pi * math.e * 1e-40), rel=1e-12)

    @pytest.mark.parametrize(
        ("covariance", "message"),
        [
            ([[1.0]], r"shape \(1, 1\): give a \(d, d\) matrix with d at least 2"),
            ([1.0, 2.0], r"shape \(2,\)"),
            ([[1.0, 0.5], [0.0, 1.0]], "symmetric"),
            ([[1.0, math.nan], [math.nan, 1.0]], "finite"),
            ([[1.0, 1.0], [1.0, 1.0 - 1e-9]], "give a positive definite matrix"),
        ],
    )
    def test_says_what_is_wrong_with_a_covariance(self, covariance, message):
        with pytest.raises(InvalidParameter, match=message):
            bounds.entropy_bounds(covariance)


# isotropic log-concave marginals: unit variance, median and mean 0
ISOTROPIC = {
    "uniform": uniform(-math.sqrt(3), 2 * math.sqrt(3)).pdf,
    "gaussian": norm().pdf,
    "laplace": laplace(scale=1 / math.sqrt(2)).pdf,
}


class TestTheInformationOfEquiprobableQueries:
    @pytest.mark.parametrize("z", [1e-9, 1e-5, 1e-3, 0.3, 0.999999, 1.000001, 5.0, 40.0, 800.0])
    def test_is_precise_at_every_size(self, z):
        # the series of z tanh(z/2)/2 - ln cosh(z/2) about 0, and the definition where nothing cancels
        if z < 1e-2:
            expected = (z**2 / 8 - z**4 / 64 + z**6 / 576) / math.log(2)
        else:
            f = 1 / (1 + math.exp(-z))
            loser = math.exp(-z) / (1 + math.exp(-z))
            expected = 1 + f * math.log2(f) + (loser * math.log2(loser) if loser else 0.0)
        assert bounds.information_lower_bound(2 * z, 2.0, 0.5) == pytest.approx(expected / 2, rel=1e-11)

    @pytest.mark.parametrize("k", [0.1, 1.0, 3.0, 10.0, 30.0])
    @pytest.mark.parametrize("name", sorted(ISOTROPIC))
    def test_is_bounded_below_for_symmetric_marginals(self, name, k):
        exact, probability = information(ISOTROPIC[name], 0.0, k)
        assert probability == pytest.approx(0.5, abs=1e-9)
        for c in (0.05, 0.3, 2 / 3, 0.9):
            assert bounds.information_lower_bound(1.0, k, c) < exact
        assert 0 < bounds.best_information_lower_bound(1.0, k)[0] < exact

    @pytest.mark.parametrize("k", [0.1, 1.0, 10.0, 30.0])
    def test_is_bounded_below_for_a_skewed_marginal_cut_where_both_answers_are_as_likely(self, k):
        def excess(shift):
            return information(expon().pdf, shift, k, 0.0, 40.0)[1] - 0.5

        shift = brentq(excess, 0.1, 2.0)
        exact, _ = information(expon().pdf, shift, k, 0.0, 40.0)
        assert 0 < bounds.best_information_lower_bound(1.0, k)[0] < exact

    def test_grows_with_k_sigma_and_depends_on_nothing_else(self):
        values = [bounds.best_information_lower_bound(s, 3.0)[0] for s in np.geomspace(1e-6, 1e6, 60)]
        assert np.all(np.diff(values) > 0)
        assert bounds.information_lower_bound(2.0, 3.0, 0.4) == pytest.approx(
            bounds.information_lower_bound(0.5, 12.0, 0.4), rel=1e-14
        )

    @pytest.mark.parametrize("k", [1e-4, 0.3, 5.0, 80.0, 1e5])
    def test_finds_the_best_c_that_a_dense_scan_finds(self, k):
        scan = np.concatenate([np.geomspace(1e-9, 0.01, 4000), np.linspace(0.01, 0.999, 4000)])
        values = [bounds.information_lower_bound(1.0, k, float(c)) for c in scan]
        best, c = bounds.best_information_lower_bound(1.0, k)
        assert best >= max(values) * (1 - 1e-12)
        assert c == pytest.approx(scan[int(np.argmax(values))], rel=0.01)

    def test_has_its_limits(self):
        assert bounds.best_information_lower_bound(0.0, 5.0) == (0.0, 2 / 3)
        assert bounds.best_information_lower_bound(1.0, 1e-6)[1] == pytest.approx(2 / 3, rel=1e-6)
        assert bounds.best_information_lower_bound(1.0, 1e12)[0] == pytest.approx(1.0, abs=1e-9)
        assert bounds.best_information_lower_bound(1e200, 1e200) == (1.0, 0.0)
        assert bounds.information_lower_bound(3.0, 4.0, 0.0) == 0.0
        assert bounds.information_lower_bound(3.0, 4.0, 1.0) == 0.0

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ((-1.0, 1.0, 0.5), "sigma is -1.0: give a finite number, at least 0"),
            ((1.0, math.inf, 0.5), "k is inf"),
            ((1.0, 1.0, 1.5), "c is 1.5: give a number from 0 to 1"),
            ((1.0, 1.0, math.nan), "c is nan"),
        ],
    )
    def test_says_what_is_out_of_range(self, arguments, message):
        with pytest.raises(InvalidParameter, match=message):
            bounds.information_lower_bound(*arguments)


def naive_upper(volume, k_min, entropy, d, c):
    """Theorem 3.4 as printed, with h0 in the thresholds and in l, by the midpoint rule."""
    c_d = math.e**2 * d**2 / (4 * math.sqrt(2) * (d + 2))
    tau = entropy + d / 2 * math.log2(math.e**2 * c_d / (2 * volume))

    def small_l(x):
        sigma = 2 ** ((entropy - np.asarray(x)) / d) / math.sqrt(2 * math.pi * math.e)
        return (1 - binary_entropy(logistic(c * k_min * sigma / 2))) * (1 - c)

    steps = 200_000
    area = small_l((np.arange(steps) + 0.5) * tau / steps).sum() * tau / steps
    return tau + (tau + 1 - area) / float(small_l(tau))


class TestTheStoppingTime:
    @pytest.mark.parametrize(
        ("volume", "k_min", "side", "d"),
        [(0.01, 1000.0, 2.0, 4), (0.01, 50.0, 2.0, 4), (1e-4, 300.0, 1.0, 2), (0.05, 80.0, 3.0, 12)],
    )
    def test_agrees_with_a_naive_sum_at_its_c_and_beats_it_at_others(self, volume, k_min, side, d):
        entropy = d * math.log2(side)
        stopping_time_bounds = bounds.stopping_time_bounds(volume, k_min, UniformBox(0.0, side), d)
        assert stopping_time_bounds.upper == pytest.approx(
            naive_upper(volume, k_min, entropy, d, stopping_time_bounds.c), rel=1e-8
        )
        others = [
            naive_upper(volume, k_min, entropy, d, c) for c in np.geomspace(stopping_time_bounds.c / 30, 0.97, 40)
        ]
        assert stopping_time_bounds.upper <= min(others)

    def test_has_the_papers_thresholds_on_the_unit_cube(self):
        stopping_time_bounds = bounds.stopping_time_bounds(0.003, 10.0, UNIT, 3)
        c_d = math.e**2 * 9 / (4 * math.sqrt(2) * 5)
        assert stopping_time_bounds.tau_1 == pytest.approx(
            1.5 * math.log2(1 / (2 * math.pi * math.e * 0.003)), rel=1e-13
        )
        assert stopping_time_bounds.tau_2 == pytest.approx(1.5 * math.log2(math.e**2 * c_d / 0.006), rel=1e-13)
        assert stopping_time_bounds.lower == stopping_time_bounds.tau_1

    def test_shifts_both_thresholds_by_the_entropy_of_the_prior(self):
        unit, wide = (bounds.stopping_time_bounds(0.003, 10.0, box, 3) for box in (UNIT, EXPERIMENTS))
        assert wide.tau_1 - unit.tau_1 == pytest.approx(3.0, abs=1e-12)
        assert wide.tau_2 - unit.tau_2 == pytest.approx(3.0, abs=1e-12)
        assert wide.upper > unit.upper

    @pytest.mark.parametrize("scale", [1e-3, 0.4, 7.0, 1e4])
    def test_does_not_depend_on_the_unit_of_length(self, scale):
        box = UniformBox((-1.0, 0.0, 2.0), (1.0, 0.5, 3.0))
        scaled = UniformBox(tuple(scale * x for x in box.low), tuple(scale * x for x in box.high))
        stopping_time_bounds = bounds.stopping_time_bounds(0.004, 90.0, box, 3)
        other = bounds.stopping_time_bounds(0.004 * scale**2, 90.0 / scale, scaled, 3)
        for field in ("tau_1", "tau_2", "lower", "upper"):
            assert getattr(other, field) == pytest.approx(getattr(stopping_time_bounds, field), rel=1e-9)
        assert other.c == pytest.approx(
            stopping_time_bounds.c, rel=1e-4
        )  # flat at the minimum: known to the root of the error
        first = bounds.stopping_order(0.004, 90.0, box, 3)
        second = bounds.stopping_order(0.004 * scale**2, 90.0 / scale, scaled, 3)
        assert second.balanced_k * scale == pytest.approx(first.balanced_k, rel=1e-9)
        for field in ("information", "noise", "upper", "c"):
            assert getattr(second, field) == pytest.approx(getattr(first, field), rel=1e-9)

    def test_falls_with_the_volume_and_with_the_reliability(self):
        by_volume = [bounds.stopping_time_bounds(v, 40.0, UNIT, 3) for v in np.geomspace(1e-8, 0.08, 30)]
        assert np.all(np.diff([b.upper for b in by_volume]) < 0)
        assert np.all(np.diff([b.lower for b in by_volume]) <= 0)
        by_k = [bounds.stopping_time_bounds(1e-3, k, UNIT, 3) for k in np.geomspace(0.01, 1e8, 40)]
        assert np.all(np.diff([b.upper for b in by_k]) < 0)
        assert len({b.lower for b in by_k}) == 1
        assert all(b.lower < b.upper for b in by_volume + by_k)

    def test_is_tau_2_and_one_more_without_noise(self):
        none = bounds.stopping_time_bounds(1e-3, math.inf, UNIT, 5)
        little = bounds.stopping_time_bounds(1e-3, 1e12, UNIT, 5)
        assert none.upper == none.tau_2 + 1
        assert none.c == 0.0
        assert little.upper == pytest.approx(none.upper, rel=1e-7)

    def test_is_enormous_at_the_noise_of_the_experiments_and_small_only_near_a_thousand(self):
        assert bounds.stopping_time_bounds(0.01, 1.56, EXPERIMENTS, 4).upper > 1e6
        assert 20 < bounds.stopping_time_bounds(0.01, 1000.0, EXPERIMENTS, 4).upper < 150

    def test_is_zero_once_the_prior_itself_is_small_enough(self):
        own = 4.0 / 12.0  # the variance of a side of length 2
        above = bounds.stopping_time_bounds(own * 1.001, 5.0, EXPERIMENTS, 3)
        below = bounds.stopping_time_bounds(own * 0.999, 5.0, EXPERIMENTS, 3)
        assert (above.lower, above.upper, above.c) == (0.0, 0.0, 0.0)
        assert below.upper > 1

    def test_is_infinite_rather_than_an_error_where_a_float_cannot_hold_it(self):
        assert bounds.stopping_time_bounds(0.01, 1e-250, UNIT, 2).upper == math.inf

    def test_is_not_claimed_for_a_gaussian_prior(self):
        with pytest.raises(Unsupported):
            bounds.stopping_time_bounds(0.01, 5.0, GaussianPrior(), 3)
        with pytest.raises(Unsupported):
            bounds.stopping_order(0.01, 5.0, GaussianPrior(), 3)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ((0.0, 1.0, UNIT, 2), "volume is 0.0: give a finite number above 0"),
            ((math.nan, 1.0, UNIT, 2), "volume is nan"),
            ((0.1, -1.0, UNIT, 2), "k_min is -1.0: give a number above 0"),
            ((0.1, 1.0, UNIT, 1), "d is 1: .* at least 2"),
            ((0.1, 1.0, UNIT, 2.0), "whole number of dimensions"),
        ],
    )
    @pytest.mark.parametrize("function", [bounds.stopping_time_bounds, bounds.stopping_order])
    def test_says_what_is_out_of_range(self, function, arguments, message):
        with pytest.raises(InvalidParameter, match=message):
            function(*arguments)


class TestTheOrderOfTheStoppingTime:
    def test_is_the_papers_two_terms_on_the_unit_cube(self):
        order = bounds.stopping_order(0.002, 30.0, UNIT, 4)
        assert order.information == pytest.approx(4 * math.log2(500), rel=1e-13)
        assert order.noise == pytest.approx(16 * math.log2(500) / (0.002 * 900), rel=1e-13)

    def test_has_equal_terms_at_the_balanced_k(self):
        k = bounds.stopping_order(0.002, 30.0, EXPERIMENTS, 4).balanced_k
        order = bounds.stopping_order(0.002, k, EXPERIMENTS, 4)
        assert order.noise == pytest.approx(order.information, rel=1e-12)

    def test_quadruples_its_noise_term_when_k_is_halved(self):
        one, half = (bounds.stopping_order(0.002, k, UNIT, 4) for k in (30.0, 15.0))
        assert half.noise == pytest.approx(4 * one.noise, rel=1e-12)
        assert half.information == one.information

    @pytest.mark.parametrize("k", [0.5, 30.0, 3e3, 1e7])
    def test_is_looser_than_the_theorem_and_at_the_best_c_of_its_own_formula(self, k):
        volume, d = 0.002, 4
        order = bounds.stopping_order(volume, k, UNIT, d)
        assert order.upper > bounds.stopping_time_bounds(volume, k, UNIT, d).upper
        c_d = math.e**2 * d**2 / (4 * math.sqrt(2) * (d + 2))
        noise = 32 * math.pi * math.e**3 * c_d / volume

        def printed(c):
            bits = d / 2 * math.log2(math.e**2 * c_d / (2 * volume)) + 1
            return bits * (noise + c**2 * k**2) / ((1 - c) * c**2 * k**2)

        assert order.upper == pytest.approx(printed(order.c), rel=1e-12)
        assert order.upper <= min(printed(c) for c in np.geomspace(1e-6, 0.99, 500)) * (1 + 1e-12)

    def test_is_optimal_up_to_a_constant_without_noise(self):
        factors = []
        for volume in (1e-6, 1e-12, 1e-100):
            order = bounds.stopping_order(volume, math.inf, UNIT, 4)
            assert order.noise == 0.0
            factors.append(order.upper / bounds.stopping_time_bounds(volume, math.inf, UNIT, 4).lower)
        assert factors[0] > factors[1] > factors[2] > 1
        assert factors[2] < 1.1

    def test_is_for_volumes_that_are_small_for_the_prior(self):
        with pytest.raises(InvalidParameter, match=r"volume is 4, .* give less than the prior's own volume, 0.333333"):
            bounds.stopping_order(4.0, 1.0, EXPERIMENTS, 2)


class TestMeanCutQueries:
    @pytest.mark.parametrize("k", [1.9, 3.0, 6.0, 20.0, 100.0, 1000.0])
    @pytest.mark.parametrize("name", ["uniform", "gaussian", "laplace", "exponential", "mirrored"])
    def test_are_bounded_for_symmetric_and_skewed_marginals(self, name, k):
        skewed = {"exponential": lambda x: expon(-1).pdf(x), "mirrored": lambda x: expon(-1).pdf(-x)}
        low, high = {"exponential": (-1.0, 39.0), "mirrored": (-39.0, 1.0)}.get(name, (-40.0, 40.0))
        exact, probability = information(skewed.get(name) or ISOTROPIC[name], 0.0, k, low, high)
        mean_cut_bounds = bounds.mean_cut_bounds(k)
        assert abs(probability - 0.5) < mean_cut_bounds.deviation < 0.5
        assert mean_cut_bounds.information < exact

    def test_approach_the_papers_limits(self):
        mean_cut_bounds = bounds.mean_cut_bounds(math.inf)
        assert mean_cut_bounds.deviation == pytest.approx((math.e - 2) / (2 * math.e), rel=1e-14)
        assert mean_cut_bounds.information == pytest.approx(binary_entropy(1 / math.e), rel=1e-14)
        assert bounds.mean_cut_bounds(1e9).information == pytest.approx(mean_cut_bounds.information, abs=1e-7)

    def test_approach_the_exponential_without_noise(self):
        # Grünbaum's 1/e is attained: a cut of an exponential at its mean has exactly this probability
        _, probability = information(expon(-1).pdf, 0.0, 1e4, -1.0, 39.0)
        assert 0.5 - probability == pytest.approx(bounds.mean_cut_bounds(math.inf).deviation, abs=1e-3)

    def test_have_the_constant_that_integrates_to_it(self):
        area, _ = quad(lambda x: float(binary_entropy(logistic(x))), -60, 60, points=[0.0])
        k = 25.0
        entropy = binary_entropy(1 / math.e - math.log(2) / k)
        assert bounds.mean_cut_bounds(k).information == pytest.approx(entropy - area / k, rel=1e-9)

    def test_improve_with_k_sigma(self):
        found = [bounds.mean_cut_bounds(k) for k in np.geomspace(1.9, 1e6, 80)]
        assert np.all(np.diff([b.information for b in found]) > 0)
        assert np.all(np.diff([b.deviation for b in found]) < 0)

    def test_are_vacuous_exactly_below_the_stated_place(self):
        place = bounds.MEAN_CUT_INFORMATIVE_ABOVE
        assert bounds.mean_cut_bounds(place).information == pytest.approx(0.0, abs=1e-13)
        assert bounds.mean_cut_bounds(place - 1e-9).information < 0 < bounds.mean_cut_bounds(place + 1e-9).information

    def test_are_undefined_exactly_up_to_the_stated_place(self):
        place = bounds.MEAN_CUT_DEFINED_ABOVE
        assert place == pytest.approx(math.e * math.log(2), rel=1e-15)
        just_above = bounds.mean_cut_bounds(math.nextafter(place, 2.0))
        assert just_above.deviation == pytest.approx(0.5, abs=1e-15)
        assert math.isfinite(just_above.information)
        for k in (place, 0.5):
            with pytest.raises(InvalidParameter, match=r"hold only above e ln 2 = 1.884"):
                bounds.mean_cut_bounds(k)
        for k in (0.0, -3.0, math.nan):
            with pytest.raises(InvalidParameter):
                bounds.mean_cut_bounds(k)
