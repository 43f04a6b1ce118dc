"""Tests of the tables of a Gaussian logit against adaptive quadrature, closed forms and limits."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm, truncnorm

from helpers.reference import naive_entropy, naive_probability
from helpers.refusals import read_only
from helpers.situations import LINKS
from pairseek.numerics.jit import LOGISTIC, PROBIT
from pairseek.numerics.tables import M0, M_OCTAVES, S0, S_MAX, S_OCTAVES, interpolate, look_up, tables, utilities_at

TABLE_NAMES = ("probability", "information", "explained", "log_volume")
MS = st.floats(0, 30) | st.floats(0, 1e4)
SS = st.floats(0, 5) | st.floats(0, 900)


def by_quadrature(m, s, link):
    """The four functions by their definitions: integrals over u of f, u f, u² f and h_b(f)."""

    def expectation(function):
        # The integrand has its features at the plane, where m + su = 0, and within 8 of it.
        marks = sorted({-9.0, 0.0, 9.0, *(max(-9.0, min(9.0, (z - m) / s)) for z in (-8.0, 0.0, 8.0))})
        parts = [
            quad(lambda u: function(u) * norm.pdf(u), a, b, epsabs=1e-13, epsrel=1e-12, limit=200)[0]
            for a, b in itertools.pairwise(marks)
        ]
        return math.fsum(parts)

    def f(u):
        return naive_probability(m + s * u, link)

    chance = expectation(f)
    mean_if = expectation(lambda u: u * f(u)) / chance, expectation(lambda u: u * (1 - f(u))) / (1 - chance)
    square_if = expectation(lambda u: u * u * f(u)) / chance, expectation(lambda u: u * u * (1 - f(u))) / (1 - chance)
    spread_if = [square - mean**2 for square, mean in zip(square_if, mean_if, strict=True)]
    information = naive_entropy(chance) - expectation(lambda u: naive_entropy(f(u)))
    explained = chance * mean_if[0] ** 2 + (1 - chance) * mean_if[1] ** 2
    log_volume = chance * math.log(spread_if[0]) + (1 - chance) * math.log(spread_if[1])
    return chance, information, explained, log_volume


class TestMoments:
    @pytest.mark.parametrize("link", LINKS)
    @pytest.mark.parametrize("s", [0.01, 0.3, 0.999, 1.0, 2.5, 20.0])
    @pytest.mark.parametrize("m", [0.0, 0.4, 3.0])
    def test_agree_with_quadrature(self, m, s, link):
        actual = utilities_at(np.array([m]), s, LINKS[link])[:, 0]
        # The definitions cancel where the answer tells little; the module's own form does not.
        assert actual == pytest.approx(np.array(by_quadrature(m, s, link)), abs=2e-9, rel=1e-6)

    @given(m=MS, s=SS)
    def test_of_the_probit_probability_have_a_closed_form(self, m, s):
        actual = utilities_at(np.array([m]), s, PROBIT)[0, 0]
        assert actual == pytest.approx(norm.cdf(m / math.sqrt(1 + s * s)), abs=1e-9)

    @pytest.mark.parametrize("link", LINKS.values())
    @pytest.mark.parametrize("r", [0.0, 0.5, 2.0])
    def test_tend_to_those_of_a_step(self, link, r):
        """For s to infinity the answer says on which side u lies of -m/s = -r, and nothing else."""
        s = 1e5
        p = norm.cdf(r)
        above, below = truncnorm(-r, math.inf), truncnorm(-math.inf, -r)
        expected = (
            p,
            naive_entropy(p),
            p * above.mean() ** 2 + (1 - p) * below.mean() ** 2,
            p * math.log(above.var()) + (1 - p) * math.log(below.var()),
        )
        assert utilities_at(np.array([r * s]), s, link)[:, 0] == pytest.approx(expected, abs=1e-4)

    @pytest.mark.parametrize("link", LINKS.values())
    def test_tend_to_nothing_where_the_answer_tells_nothing(self, link):
        probability, information, explained, log_volume = utilities_at(np.array([0.0, 1.0, 1e4]), 0.0, link)
        assert probability[0] == pytest.approx(0.5)
        assert information == pytest.approx(np.zeros(3), abs=1e-15)
        assert explained == pytest.approx(np.zeros(3), abs=1e-15)
        assert log_volume == pytest.approx(np.zeros(3), abs=1e-15)

    @pytest.mark.parametrize("link", LINKS.values())
    def test_for_little_spread_are_those_of_the_fisher_information(self, link):
        """information -> s² f'²/(2 f(1 - f)) nats, explained -> s² f'²/(f(1 - f)), log_volume -> -the same."""
        m, s = 0.7, 1e-3
        name = next(key for key, value in LINKS.items() if value == link)
        f = naive_probability(m, name)
        slope = f * (1 - f) if link == LOGISTIC else norm.pdf(m)
        fisher = s * s * slope**2 / (f * (1 - f))
        _, information, explained, log_volume = utilities_at(np.array([m]), s, link)[:, 0]
        assert information == pytest.approx(fisher / 2 / math.log(2), rel=1e-4)
        assert explained == pytest.approx(fisher, rel=1e-4)
        assert log_volume == pytest.approx(-fisher, rel=1e-4)


@pytest.mark.parametrize("link", LINKS.values())
class TestTables:
    def test_interpolation_is_close_everywhere(self, link):
        """Bilinear in cells of a sixteenth of a doubling: off by 9e-4 at worst, two deviations from the plane."""
        rng = np.random.default_rng(0)
        s = np.concatenate([S0 * 2 ** rng.uniform(0, S_OCTAVES, 300) - S0, rng.uniform(0, 10, 300)])
        worst = np.zeros(4)
        for deviation in s[s > 0]:
            m = np.concatenate([M0 * 2 ** rng.uniform(0, M_OCTAVES, 10) - M0, rng.uniform(0, 3 + 3 * deviation, 20)])
            exact = utilities_at(m, float(deviation), link)
            for row, name in enumerate(TABLE_NAMES):
                table = getattr(tables(link), name)
                actual = np.array([interpolate(table, x, deviation) for x in m])
                worst[row] = max(worst[row], np.max(np.abs(actual - exact[row])))
        assert np.all(worst < [4e-4, 1e-3, 8e-4, 1e-3]), worst

    def test_grow_with_s_and_fall_with_m_exactly(self, link):
        actual = tables(link)
        for table in (actual.information, actual.explained, -actual.log_volume):
            assert np.all(np.diff(table, axis=0) >= 0)
            assert np.all(np.diff(table, axis=1) <= 0)
        assert np.all(np.diff(actual.probability, axis=1) >= -1e-15)

    def test_the_correction_that_makes_them_monotone_is_within_rounding(self, link):
        for row in (0, 100, 200, 320):
            s = float((1.0 + (row % 16) / 16) * 2.0 ** (row // 16) * S0 - S0)
            columns = np.arange(0, 272, 7)
            m = (1.0 + (columns % 16) / 16) * 2.0 ** (columns // 16) * M0 - M0
            exact = utilities_at(m, s, link)
            for index, name in enumerate(TABLE_NAMES):
                assert getattr(tables(link), name)[row, columns] == pytest.approx(exact[index], abs=2e-10)

    def test_stay_within_their_ranges(self, link):
        actual = tables(link)
        assert np.all((actual.probability >= 0.5 - 1e-14) & (actual.probability <= 1.0 + 1e-14))
        assert np.all((actual.information >= 0.0) & (actual.information <= 1.0))
        # A step at the mean explains 2/π of the variance and leaves log(1 - 2/π).
        assert np.all((actual.explained >= 0.0) & (actual.explained <= 2 / math.pi + 1e-9))
        assert np.all((actual.log_volume <= 0.0) & (actual.log_volume >= math.log(1 - 2 / math.pi) - 1e-9))

    def test_cannot_be_changed(self, link):
        with read_only():
            tables(link).information[0, 0] = 1.0

    @given(m=MS, s=SS, more=st.floats(0, 50), factor=st.floats(1, 1.2))
    def test_look_up_keeps_the_order(self, link, m, s, more, factor):
        """Monotonicity may be violated only by the rounding of one interpolation."""
        for table, sign in ((tables(link).information, 1), (tables(link).explained, 1), (tables(link).log_volume, -1)):
            here = sign * interpolate(table, m, s)
            for further in (m + more, m * factor, math.nextafter(m, math.inf)):
                assert sign * interpolate(table, further, s) <= here + 4e-16
            for wider in (s + more, s * factor, math.nextafter(s, math.inf)):
                assert sign * interpolate(table, m, min(wider, S_MAX)) >= here - 4e-16

    def test_beyond_the_last_s_only_the_ratio_counts(self, link):
        for name in TABLE_NAMES:
            table = getattr(tables(link), name)
            for factor in (1.5, 1e3, 1e12):
                m, s = 700.0 * factor, S_MAX * factor
                assert interpolate(table, m, s) == pytest.approx(interpolate(table, 700.0, S_MAX), abs=1e-12)

    def test_beyond_the_last_m_nothing_is_left_to_learn(self, link):
        last = M0 * 2.0**M_OCTAVES - M0
        for m in (last, 2 * last, 1e12, 1e300):
            for s in (0.0, 1.0, S_MAX):
                assert interpolate(tables(link).probability, m, s) == pytest.approx(1.0, abs=1e-12)
                assert interpolate(tables(link).information, m, s) == pytest.approx(0.0, abs=1e-12)

    def test_twin_of_the_look_up_goes_by_logarithms(self, link):
        """The leading bits of m + M0 are floor(16 log2-ish): here by frexp, in plain Python."""
        table = tables(link).information

        def cell(x, origin, count):
            mantissa, exponent = math.frexp((x + origin) / origin)
            place = 16 * (exponent - 1) + 16 * (2 * mantissa - 1)
            index = min(int(place), count - 1)
            return index, min(place - index, 1.0)

        rng = np.random.default_rng(3)
        for _ in range(200):
            m, s = 10 ** rng.uniform(-4, 4.5), 10 ** rng.uniform(-4, 3)
            (row, v), (column, h) = cell(s, S0, 16 * S_OCTAVES), cell(m, M0, 16 * M_OCTAVES)
            corners = table[row : row + 2, column : column + 2]
            expected = np.array([1 - v, v]) @ corners @ np.array([1 - h, h])
            assert interpolate(table, m, s) == pytest.approx(expected, abs=1e-13)

    def test_twin_of_the_look_up_kernel_is_a_loop_over_sizes(self, link):
        rng = np.random.default_rng(4)
        m, s, out = rng.normal(scale=3, size=20), rng.exponential(size=20), np.full(20, np.nan)
        table = tables(link).explained
        look_up(3, 17, table, m, s, out)
        expected = [interpolate(table, abs(m[i]), s[i]) for i in range(3, 17)]
        assert out[3:17].tolist() == pytest.approx(expected, abs=1e-15)
        assert np.isnan(out[[0, 1, 2, 17, 18, 19]]).all()
