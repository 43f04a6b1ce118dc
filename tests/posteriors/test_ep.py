"""Tests of EP: tilted moments, sweeps against a textbook loop, and the accuracy check against known posteriors."""

from __future__ import annotations

import math
import warnings
from functools import lru_cache

import numpy as np
import pytest
from numba import njit
from scipy.integrate import quad
from scipy.special import log_expit, log_ndtr, ndtr
from scipy.stats import truncnorm

import pairseek as ps
from helpers.reference import naive_log_answer, naive_log_posterior, quadrature_log_mass, quadrature_moments
from helpers.refusals import refused
from helpers.situations import LINKS, SITUATIONS, USER, answers_from, evidence_of, last_belief, standardized
from pairseek.core.types import Evidence
from pairseek.errors import InvalidParameter
from pairseek.model.priors import GaussianPrior, UniformBox, WithResiduals
from pairseek.model.responses import Logistic, Probit
from pairseek.numerics.jit import LOGISTIC
from pairseek.posteriors import EP, Grid, Particles
from pairseek.posteriors import ep_kernels as kernels
from pairseek.posteriors.factors import Factors
from pairseek.posteriors.gaussian import gaussian_fit, is_trusted, log_prior_mass
from pairseek.posteriors.gaussian_samples import standard_points

RULE = np.polynomial.legendre.leggauss(32)


@njit
def _tilted_answer(m, v, decided, link, model):
    return kernels.tilted_answer(m, v, decided, link, model)


@njit
def tilted_interval(m, v, low, high, rule):
    return kernels.tilted_interval(m, v, low, high, rule)


@njit
def _tilted_mode(m, v):
    return kernels._tilted_mode(m, v, 1.0, 0, 0.0)


@njit
def _fast_quadrature(m, v, centre, step, count):
    return kernels._fast_quadrature(m, v, centre, step, count)


def tilted_answer(m, v, outcome, link, lapse=0.0, width=0.0):
    """The kernel takes the logit of an answer minus the tie width."""
    model = lapse / (3.0 if width > 0.0 else 2.0), 1.0 - lapse, width
    shift = width if outcome == "first" else 0.0
    log_z, mean, variance = _tilted_answer(m - shift, v, float(outcome == "first"), LINKS[link], model)
    return log_z, mean + shift, variance


def fit_of(evidence, prior, response):
    return gaussian_fit(Factors.of(evidence, response), prior)


def by_quad(m, v, outcome, link, lapse=0.0, width=0.0):
    """Return moments of N(m, v) times a likelihood by adaptive quadrature with explicit breakpoints."""
    s = math.sqrt(v)
    low, high = m - 12 * s - (v if outcome == "first" else 0), m + 12 * s + v
    where = sorted({x for x in (0.0, -5.0, 5.0, m, m + v, m - 3 * s, m + 3 * s, -width, width) if low < x < high})

    def top(z):
        return naive_log_answer(z, outcome, link, width, lapse) - 0.5 * (z - m) ** 2 / v

    shift = float(np.max(top(np.linspace(low, high, 4001))))

    def moment(power):
        return quad(lambda z: (z - m) ** power * math.exp(top(z) - shift), low, high, points=where, limit=500)[0]

    mass, first, second = (moment(power) for power in (0, 1, 2))
    mean = first / mass
    return math.log(mass / (s * math.sqrt(2 * math.pi))) + shift, m + mean, second / mass - mean**2


class TestTiltedMoments:
    @pytest.mark.parametrize("link", LINKS)
    @pytest.mark.parametrize("outcome", ["first", "tie"])
    @pytest.mark.parametrize("lapse", [0.0, 0.05])
    @pytest.mark.parametrize("width", [0.0, 0.7])
    def test_agree_with_adaptive_quadrature(self, link, outcome, lapse, width):
        for s in (0.05, 0.5, 1.1, 2.0, 5.0, 15.9):
            for place in (-6.0, -2.0, 0.0, 1.0, 4.0):
                m = place * max(s, 0.5)
                found = tilted_answer(m, s * s, outcome, link, lapse, width)
                expected = by_quad(m, s * s, outcome, link, lapse, width)
                assert found[0] == pytest.approx(expected[0], abs=1e-5)
                assert found[1] == pytest.approx(expected[1], abs=2e-5 * s)
                assert found[2] == pytest.approx(expected[2], rel=2e-5)

    def test_the_rule_in_vector_registers_agrees_with_the_exact_exponential(self):
        rng = np.random.default_rng(4)
        many = 0
        for m, v in zip(rng.uniform(-30, 20, 1500), np.exp(rng.uniform(-8.0, 5.0, 1500)), strict=True):
            s, centre = math.sqrt(v), _tilted_mode(m, v)
            step = min(kernels._STEP_IN_DEVIATIONS * s, kernels._MAX_STEP)
            count = math.ceil(kernels._HALF_WIDTH * s / step)
            if not (centre > kernels._MIN_FAST_LOGIT and (centre - m) ** 2 < 2.0 * kernels._MAX_FAST_SQUARE * v):
                continue
            many += 1
            x = np.arange(-count, count + 1) * step
            logs = log_expit(centre + x) - 0.5 * (centre + x - m) ** 2 / v
            weights = np.exp(logs - logs.max())
            mean = np.sum(weights * x) / np.sum(weights)
            variance = np.sum(weights * (x - mean) ** 2) / np.sum(weights)
            log_z = logs.max() + math.log(np.sum(weights) * step / (s * math.sqrt(2.0 * math.pi)))
            fast_quadrature = _fast_quadrature(m, v, centre, step, count)
            assert fast_quadrature[0] == pytest.approx(log_z, abs=1e-10)
            assert fast_quadrature[1] == pytest.approx(centre + mean, abs=1e-9 * s)
            assert fast_quadrature[2] == pytest.approx(variance, rel=2e-9)
        assert many > 500

    def test_a_wide_cavity_takes_the_logistic_function_for_a_probit_of_the_same_variance(self):
        """From a standard deviation of 16; the two agree there to 0.1 %, even for surprising answers."""
        for s, tolerance in ((16.1, 1e-3), (40.0, 1e-4)):
            for place in (-3.0, 0.0, 2.0):
                found = tilted_answer(place * s, s * s, "first", "logistic")
                expected = by_quad(place * s, s * s, "first", "logistic")
                assert found[1] == pytest.approx(expected[1], abs=tolerance * s)
                assert found[2] == pytest.approx(expected[2], rel=10 * tolerance)

    @pytest.mark.parametrize("m", [-20.0, 0.0, 20.0])
    def test_a_step_that_is_narrow_beside_the_cavity_cuts_as_a_truncated_normal(self, m):
        _, mean, variance = tilted_answer(m * 1e5, 1e10, "first", "probit")
        exact = truncnorm(-m, np.inf, loc=m * 1e5, scale=1e5)
        assert mean == pytest.approx(exact.mean(), rel=1e-5)
        assert variance == pytest.approx(exact.var(), rel=1e-4)

    @pytest.mark.parametrize("t", [-1e2, -1e4, -1e8])
    def test_an_answer_far_in_the_tail_keeps_its_digits(self, t):
        """N(t s, s²) with s = 1e3 times Φ: the step is narrow, so the tilted density is nearly exponential."""
        log_z, mean, variance = tilted_answer(t * 1e3, 1e6, "first", "probit")
        assert math.isfinite(log_z)
        assert mean > t * 1e3
        # The variance of an exponential of rate |t|/s, plus the variance of the step, 1.
        assert 0.0 < variance < 2.0 * ((1e3 / t) ** 2 + 1.0)

    @pytest.mark.parametrize(
        ("m", "v"), [(0.0, 0.01), (0.3, 1.0), (5.0, 1.0), (-40.0, 2.0), (0.9, 1e4), (0.2, math.inf), (1e4, 1.0)]
    )
    def test_a_box_cuts_as_a_truncated_normal(self, m, v):
        log_mass, mean, variance = tilted_interval(m, v, -1.0, 1.0, RULE)
        if m == 1e4:
            # An exponential of rate 1e4 at the edge, where scipy loses all digits.
            assert 1.0 - mean == pytest.approx(1e-4, rel=1e-3)
            assert variance == pytest.approx(1e-8, rel=1e-3)
            assert log_mass == pytest.approx(-0.5 * (m - 1.0) ** 2 - math.log(1e4), abs=1e-3)
            return
        s = math.sqrt(v)
        exact = truncnorm((-1 - m) / s, (1 - m) / s, loc=m, scale=s) if math.isfinite(v) else None
        expected = (0.0, 1 / 3) if exact is None else (exact.mean(), exact.var())
        assert mean == pytest.approx(expected[0], abs=1e-5)
        assert variance == pytest.approx(expected[1], rel=1e-4)
        # The unnormalized integral of exp(-(z - m)²/2v), from the standard normal distribution function.
        mass = math.log(2.0) if exact is None else log_ndtr_difference((-1 - m) / s, (1 - m) / s)
        if exact is not None:
            mass += 0.5 * math.log(2 * math.pi * v)
        assert log_mass == pytest.approx(mass, abs=1e-5)


def log_ndtr_difference(low, high):
    if low > 0:
        low, high = -high, -low
    upper, lower = log_ndtr(high), log_ndtr(low)
    return upper + math.log1p(-math.exp(lower - upper))


def naive_ep(evidence, prior, response, sweeps=60):
    """Textbook EP: cavities by inverting full matrices, tilted moments by adaptive quadrature."""
    m, d = evidence.slopes.shape
    low, high = prior.box(d)
    centre, precision = prior.quadratic(d)
    boxed = [i for i in range(d) if math.isfinite(low[i])]
    directions = [*evidence.slopes, *np.eye(d)[boxed]]
    offsets = [*evidence.offsets, *np.zeros(len(boxed))]
    sites = np.zeros((len(directions), 2))
    for row, i in enumerate(boxed):
        sites[m + row] = 12 / (high[i] - low[i]) ** 2, 6 * (low[i] + high[i]) / (high[i] - low[i]) ** 2

    def gaussian(without=None):
        matrix, shift = precision.copy(), precision @ centre
        for j, (s, o, (tau, nu)) in enumerate(zip(directions, offsets, sites, strict=True)):
            if j != without:
                matrix, shift = matrix + tau * np.outer(s, s), shift + s * (nu - tau * o)
        return matrix, shift

    for _ in range(sweeps):
        before = sites.copy()
        for j, (s, o) in enumerate(zip(directions, offsets, strict=True)):
            matrix, shift = gaussian(without=j)
            if np.linalg.matrix_rank(matrix) < d:
                continue  # without its box a coordinate knows nothing: the uniform distribution stands
            covariance = np.linalg.inv(matrix)
            z, v = s @ covariance @ shift + o, s @ covariance @ s
            if j < m:
                outcome = "first" if evidence.decided[j] else "tie"
                _, mean, variance = by_quad(z, v, outcome, response.name, response.lapse_rate, response.tie_width)
            else:
                i = boxed[j - m]
                exact = truncnorm((low[i] - z) / math.sqrt(v), (high[i] - z) / math.sqrt(v), loc=z, scale=math.sqrt(v))
                mean, variance = exact.mean(), exact.var()
            sites[j] = 1 / variance - 1 / v, mean / variance - z / v
        if np.max(np.abs(sites - before)) < 1e-7:
            break
    matrix, shift = gaussian()
    covariance = np.linalg.inv(matrix)
    return covariance @ shift, covariance


class TestSweeps:
    @pytest.mark.parametrize("prior", [UniformBox(), GaussianPrior([0.2, -0.1], [[0.5, 0.2], [0.2, 0.4]])], ids=repr)
    @pytest.mark.parametrize(
        "response",
        [Probit(1.2), Logistic(2.0, lapse=0.1), Probit(1.2, tie_width=0.7), Logistic(2.0, lapse=0.1, tie_width=0.7)],
        ids=repr,
    )
    def test_agree_with_a_plain_loop(self, prior, response):
        answers = answers_from(np.random.default_rng(3), USER, 5, Logistic(2.0))
        answers.append((*answers[0][:2], "tie"))
        evidence = evidence_of(response, answers)
        fit = fit_of(evidence, prior, response)
        expected = naive_ep(evidence, prior, response)
        assert fit.converged
        assert fit.mean == pytest.approx(expected[0], abs=1e-4)
        assert fit.covariance == pytest.approx(expected[1], abs=1e-4)

    @pytest.mark.parametrize("prior", [UniformBox(), GaussianPrior([0.2, -0.1], [[0.5, 0.2], [0.2, 0.4]])], ids=repr)
    @pytest.mark.parametrize("width", [0.0, 0.7])
    def test_take_a_logistic_tie_for_two_answers(self, prior, width):
        """sinh t/(cosh t + cosh z) = f(t + z) f(t - z) (1 - e^-2t), each factor with a site of its own."""
        response = Logistic(2.0, tie_width=width)
        answers = answers_from(np.random.default_rng(3), USER, 5, Logistic(2.0))
        evidence = evidence_of(response, [*answers, (*answers[0][:2], "tie")])
        fit = fit_of(evidence, prior, response)
        two = Evidence(
            np.concatenate([evidence.slopes, -evidence.slopes[-1:]]),
            np.concatenate([evidence.offsets - width, -evidence.offsets[-1:] + width]),
            np.ones(7),
        )
        two.offsets[5] += 2.0 * width
        expected = naive_ep(two, prior, Logistic(2.0))
        assert fit.converged
        assert fit.mean == pytest.approx(expected[0], abs=1e-4)
        assert fit.covariance == pytest.approx(expected[1], abs=1e-4)

    def test_one_probit_answer_under_a_gaussian_prior_is_exact(self):
        """Mean and covariance of an extended skew normal, as in the tests of Particles."""
        prior = GaussianPrior([0.3, -0.2, 0.5], np.diag([1.0, 0.5, 2.0]))
        evidence = Evidence(np.array([[1.0, -2.0, 0.5]]), np.array([-0.4]), np.ones(1))
        fit = fit_of(evidence, prior, Probit(1.0))
        slope, mu, sigma = evidence.slopes[0], np.asarray(prior.mean), np.asarray(prior.covariance)
        scale = math.sqrt(1 + slope @ sigma @ slope)
        t = (slope @ mu - 0.4) / scale
        hazard = math.exp(-0.5 * t * t) / math.sqrt(2 * math.pi) / ndtr(t)
        pull = sigma @ slope / scale
        assert fit.mean == pytest.approx(mu + pull * hazard, abs=1e-9)
        assert fit.covariance == pytest.approx(sigma - np.outer(pull, pull) * hazard * (t + hazard), abs=1e-9)
        # So is the evidence: Φ(t).
        assert fit.log_evidence - log_prior_mass(prior, 3) == pytest.approx(math.log(ndtr(t)), abs=1e-9)

    def test_the_order_of_the_answers_does_not_matter(self):
        response = Logistic(2.0)
        evidence = evidence_of(response, answers_from(np.random.default_rng(4), USER, 30, response))
        turned = Evidence(
            *(np.ascontiguousarray(a[::-1]) for a in (evidence.slopes, evidence.offsets, evidence.decided))
        )
        one, two = (fit_of(e, UniformBox(), response) for e in (evidence, turned))
        assert one.mean == pytest.approx(two.mean, abs=1e-5)
        assert one.covariance == pytest.approx(two.covariance, abs=1e-5)
        assert one.log_evidence == pytest.approx(two.log_evidence, abs=1e-5)

    @pytest.mark.parametrize("response", [Logistic(2.0), Logistic(2.0, lapse=0.1)], ids=repr)
    def test_from_the_sites_of_a_neighbour_they_end_at_the_same_place(self, response):
        evidence = evidence_of(response, answers_from(np.random.default_rng(4), USER, 30, response))
        near = gaussian_fit(Factors.of(evidence, response, factor=1.2), UniformBox())
        factors = Factors.of(evidence, response)
        one, two = gaussian_fit(factors, UniformBox()), gaussian_fit(factors, UniformBox(), near.sites)
        assert one.mean == pytest.approx(two.mean, abs=1e-4)
        assert one.covariance == pytest.approx(two.covariance, abs=1e-4)
        assert one.log_evidence == pytest.approx(two.log_evidence, abs=1e-4)

    @pytest.mark.parametrize("scale", [1e-60, 1e-8, 1e5, 1e60])
    def test_items_of_any_scale_have_the_same_posterior(self, scale):
        def moments(unit):
            answers = answers_from(np.random.default_rng(9), USER, 12, Logistic(3.0))
            moved = [([unit * x for x in p], [unit * x for x in q], outcome) for p, q, outcome in answers]
            response = Logistic(3.0 / unit)
            prior = UniformBox(-unit, unit)
            fit = fit_of(evidence_of(response, moved), prior, response)
            return fit.mean / unit, fit.covariance / unit / unit, fit.log_evidence - log_prior_mass(prior, 2)

        for scaled, plain in zip(moments(scale), moments(1.0), strict=True):
            assert scaled == pytest.approx(plain, abs=1e-9)

    def test_a_prior_without_moments_is_refused(self):
        class Nowhere(GaussianPrior):
            def moments(self, d):
                return np.zeros(d), np.full((d, d), np.inf)

        evidence = evidence_of(Logistic(1.0), answers_from(np.random.default_rng(0), USER, 2, Logistic(1.0)))
        with pytest.raises(InvalidParameter, match="no finite mean and covariance, which EP requires: use Particles"):
            EP().infer(evidence, Nowhere(), Logistic(1.0))


EVIDENCE = [
    (kind, d, box, width, k, count)
    for kind in (Logistic, Probit)
    for d in (1, 2)
    for box in (True, False)
    for width in (0.0, 0.7)
    for k, count in ((0.5, 10), (2.0, 1), (2.0, 12), (2.0, 40), (5.0, 12))
]


def log_evidence_by_quadrature(answers, d, box, response):
    """log p(answers) under the flat prior of [-1, 1]^d or N(0.1, 0.25 I), and the prior itself."""

    def log_density(x):
        model = response.k, response.noise, response.name, response.tie_width, response.lapse_rate
        logs = naive_log_posterior(x, answers, *model)
        if box:
            return logs - d * math.log(2.0)
        return logs - 0.5 * ((x - 0.1) ** 2).sum(axis=1) / 0.25 - 0.5 * d * math.log(2 * math.pi * 0.25)

    reach = np.ones(d) if box else np.full(d, 4.0)
    prior = UniformBox() if box else GaussianPrior(0.1, 0.25)
    return quadrature_log_mass(log_density, -reach, reach), prior


def answers_and_ties(count, d, k):
    answers = answers_from(np.random.default_rng(count), USER[:d], count, Logistic(k))
    return [(p, q, "tie" if row % 4 == 3 else outcome) for row, (p, q, outcome) in enumerate(answers)]


class TestEvidence:
    """log p(answers), which weights unknown parameters."""

    @pytest.mark.parametrize(("kind", "d", "box", "width", "k", "count"), EVIDENCE)
    def test_agrees_with_quadrature(self, kind, d, box, width, k, count):
        response = kind(k, tie_width=width)
        answers = answers_and_ties(count, d, k)
        expected, prior = log_evidence_by_quadrature(answers, d, box, response)
        fit = fit_of(evidence_of(response, answers), prior, response)
        assert fit.converged
        if fit.logit_deviation <= 2.0:
            assert fit.log_evidence - log_prior_mass(prior, d) == pytest.approx(expected, abs=0.03)
        else:
            # After sharp answers EP is not trusted by itself, but still accurate enough to weight parameters.
            assert fit.log_evidence - log_prior_mass(prior, d) == pytest.approx(expected, abs=0.3)

    def test_most_of_these_states_are_of_moderate_logits(self):
        """Otherwise the test above would prove little."""
        blunt = 0
        for kind, d, box, width, k, count in EVIDENCE:
            response = kind(k, tie_width=width)
            prior = UniformBox() if box else GaussianPrior(0.1, 0.25)
            evidence = evidence_of(response, answers_and_ties(count, d, k))
            blunt += fit_of(evidence, prior, response).logit_deviation <= 2.0
        assert blunt > 0.75 * len(EVIDENCE)

    @pytest.mark.parametrize(("kind", "d", "box", "width", "k", "count"), EVIDENCE)
    def test_with_lapses_it_agrees_where_ep_is_trusted(self, kind, d, box, width, k, count):
        response = kind(k, lapse=0.1, tie_width=width)
        answers = answers_and_ties(count, d, k)
        expected, prior = log_evidence_by_quadrature(answers, d, box, response)
        factors = Factors.of(evidence_of(response, answers), response)
        fit = gaussian_fit(factors, prior)
        if is_trusted(fit, factors, prior):
            assert fit.log_evidence - log_prior_mass(prior, d) == pytest.approx(expected, abs=0.15)

    def test_of_nothing_is_the_mass_of_the_prior(self):
        """The volume of a box, and the integral of exp(-x'Px/2) for a Gaussian, without (2π)^d/2."""
        assert log_prior_mass(UniformBox(-1.0, 3.0), 2) == pytest.approx(2 * math.log(4.0) - math.log(2 * math.pi))
        covariance = np.array([[0.5, 0.2], [0.2, 0.4]])
        assert log_prior_mass(GaussianPrior(0.3, covariance), 2) == pytest.approx(0.5 * math.log(0.16))


class TestTheCheck:
    @pytest.mark.parametrize("name", SITUATIONS)
    def test_whatever_is_returned_is_near_quadrature(self, name):
        """The promise: within 0.08 standard deviations and 10 % of every variance, in two dimensions."""
        response, situation = SITUATIONS[name]
        answers = situation(np.random.default_rng(1), response)
        belief = last_belief(EP(), response, evidence_of(response, answers))
        truth = quadrature_moments(
            lambda x: naive_log_posterior(x, answers, response.k, response.noise, response.name, response.tie_width),
            -np.ones(2),
            np.ones(2),
        )
        distance, least, most = standardized(belief, *truth)
        assert distance < 0.08
        assert 0.9 < least <= most < 1.1

    @pytest.mark.parametrize("name", SITUATIONS)
    def test_the_same_holds_under_a_gaussian_prior(self, name):
        response, situation = SITUATIONS[name]
        evidence = evidence_of(response, situation(np.random.default_rng(1), response))
        prior = GaussianPrior(0.0, 0.25)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ps.errors.AccuracyWarning)
            exact = Grid().infer(evidence, prior, response)
        if not exact.info.resolved or name.startswith("one pair both ways"):
            # A slanted ridge a millionth of the prior wide falls between the cells of the first grid.
            exact = Particles(30_000, sweeps=3, seed=5).infer(evidence, prior, response)
        distance, least, most = standardized(EP().infer(evidence, prior, response), exact.mean, exact.covariance)
        assert distance < 0.08
        assert 0.9 < least <= most < 1.1

    def test_the_situations_need_all_three_methods(self):
        """Otherwise the tests above would leave one of them untested."""
        methods = set()
        for response, situation in SITUATIONS.values():
            evidence = evidence_of(response, situation(np.random.default_rng(1), response))
            methods.add(EP().infer(evidence, GaussianPrior(0.0, 0.25), response).info.method)
        assert methods == {"ep", "weighted", "particles"}

    @pytest.mark.parametrize("link", ["logistic", "probit"])
    @pytest.mark.parametrize("count", [2, 5, 10, 30, 200])
    def test_answers_that_repeat_each_other_are_noticed_together(self, count, link):
        """Each copy adds little to the others, so no cavity is wide; together they skew the posterior."""
        response = Logistic(1.0) if link == "logistic" else Probit(0.6)
        evidence = Evidence(np.full((count, 1), 3.0), np.full(count, -6.0), np.ones(count))
        exact = Grid().infer(evidence, GaussianPrior(0.0, 1.0), response)
        belief = EP().infer(evidence, GaussianPrior(0.0, 1.0), response)
        assert abs(belief.mean[0] - exact.mean[0]) < 0.08 * np.sqrt(exact.covariance[0, 0])
        assert belief.covariance[0, 0] == pytest.approx(exact.covariance[0, 0], rel=0.1)
        alone = fit_of(evidence, GaussianPrior(0.0, 1.0), response).covariance[0, 0]
        if count >= 30:
            # Without the check it would be wrong, although no logit is uncertain.
            assert abs(alone / exact.covariance[0, 0] - 1.0) > 0.15
            assert belief.info.logit_deviation < 2.0

    @pytest.mark.parametrize(("k", "count", "seed"), [(5.0, 12, 1), (20.0, 12, 0), (20.0, 25, 1), (60.0, 12, 1)])
    def test_sharp_answers_in_a_box_of_four_dimensions_are_noticed_by_their_logits(self, k, count, seed):
        """No line is checked there: the standard deviation of the logits alone shows that EP is off by over 10 %."""
        response = Logistic(k, "constant")
        answers = answers_from(np.random.default_rng(seed), [0.3, -0.2, 0.5, -0.4], count, response)
        evidence = evidence_of(response, answers)
        exact = Particles(20_000, sweeps=3, seed=3).infer(evidence, UniformBox(), response).covariance
        alone = fit_of(evidence, UniformBox(), response).covariance
        checked = EP().infer(evidence, UniformBox(), response)
        assert np.linalg.norm(alone - exact) > 0.1 * np.linalg.norm(exact)
        assert np.linalg.norm(checked.covariance - exact) < 0.08 * np.linalg.norm(exact)
        assert checked.info.logit_deviation > 2.0

    @pytest.mark.parametrize("offset", [0.0, -6.0, -12.0])
    def test_a_slanted_ridge_in_a_box_is_noticed(self, offset):
        sides = np.where(np.arange(20) % 2, 1.0, -1.0)
        slopes = 10.0 * np.array([np.cos(0.7), np.sin(0.7)]) * sides[:, None]
        evidence = Evidence(np.ascontiguousarray(slopes), offset * sides, np.ones(20))
        exact = Grid().infer(evidence, UniformBox(), Logistic(1.0))
        distance, least, most = standardized(
            EP().infer(evidence, UniformBox(), Logistic(1.0)), exact.mean, exact.covariance
        )
        assert distance < 0.08
        assert 0.9 < least <= most < 1.1

    def test_one_answer_under_a_gaussian_prior_is_exact_in_any_dimension(self):
        for d in (1, 20, 64):
            evidence = Evidence(np.eye(d)[:1] * 5.0, np.array([-1.0]), np.ones(1))
            belief = EP().infer(evidence, GaussianPrior(0.0, 1.0), Logistic(1.0))
            _, mean, variance = by_quad(-1.0, 25.0, "first", "logistic")
            assert belief.info.method == "ep"
            assert belief.mean[0] == pytest.approx((mean + 1.0) / 5.0, abs=1e-6)
            assert belief.covariance[0, 0] == pytest.approx(variance / 25.0, rel=1e-5)

    def test_without_it_sharp_answers_would_be_wrong(self):
        """Nearly a polytope: EP alone misses a variance by a third, so the check must reject it."""
        response = Logistic(100.0, "constant")
        answers = answers_from(np.random.default_rng(11), USER, 25, response)
        evidence = evidence_of(response, answers)
        exact = last_belief(Grid(), response, evidence)
        alone = fit_of(evidence, UniformBox(), response)
        share = np.linalg.norm(alone.covariance - exact.covariance) / np.linalg.norm(exact.covariance)
        checked = last_belief(EP(), response, evidence)
        assert share > 0.1
        assert np.linalg.norm(checked.covariance - exact.covariance) < 0.1 * np.linalg.norm(exact.covariance)
        assert checked.info.method != "ep"
        assert checked.info.logit_deviation > 2.0

    def test_at_the_noise_of_people_the_first_step_is_enough(self):
        """After a few ordinary answers, no logit is more uncertain than its own noise."""
        items = ps.Items(np.random.default_rng(0).standard_normal((200, 4)))
        search = ps.Search(items, response=ps.Logistic(), rng=1)
        user = ps.SimulatedUser(items.coordinates[7], search.response, rng=2)
        methods = []
        for _ in range(12):
            query = search.ask()
            search.tell(query, winner=user.answer(items, query))
            methods.append(search.belief.info.method)
        assert set(methods[:6]) <= {"ep", "weighted"}
        assert methods[6:] == ["ep"] * 6

    @pytest.mark.parametrize("lapse", [0.05, 0.2, 0.5, 0.999])
    @pytest.mark.parametrize("count", [1, 3, 14])
    def test_a_known_lapse_is_weighted_by_the_posterior(self, lapse, count):
        response = Logistic(3.0, lapse=lapse)
        answers = answers_from(np.random.default_rng(2), USER, 12, Logistic(3.0))
        answers += [(p, q, "second" if outcome == "first" else "first") for p, q, outcome in answers[:2]]
        evidence = evidence_of(response, answers[:count])
        exact = last_belief(Grid(), response, evidence)
        belief = last_belief(EP(), response, evidence)
        assert belief.info.method == "weighted"
        distance, least, most = standardized(belief, exact.mean, exact.covariance)
        assert distance < 0.08
        assert 0.9 < least <= most < 1.1

    def test_settings_that_make_no_sense_are_refused(self):
        with refused("points"):
            EP(3)


class TestSamples:
    def belief(self, count=12):
        response = Logistic(2.0)
        return last_belief(
            EP(), response, evidence_of(response, answers_from(np.random.default_rng(6), USER, count, response))
        )

    def test_are_drawn_on_demand_and_the_same_ones_again(self):
        belief = self.belief()
        assert "_drawn" not in vars(belief)
        assert belief.samples is belief.samples
        assert np.array_equal(belief.samples, self.belief().samples)
        assert np.array_equal(belief.weights, self.belief().weights)

    def test_more_can_be_asked_for(self):
        belief = self.belief()
        some, many = belief.draw(200), belief.draw(20_000)
        assert len(some[0]) <= 200 < 10_000 < len(many[0])
        for samples, weights in (some, many):
            assert weights.sum() == pytest.approx(1.0)
            mean = weights @ samples
            assert mean == pytest.approx(belief.mean, abs=0.05)

    @pytest.mark.parametrize(("count", "d"), [(2, 1), (2, 2), (3, 3), (5, 20), (40, 20)])
    def test_can_be_fewer_than_the_dimensions(self, count, d):
        evidence = Evidence(np.eye(d)[:1] * 3.0, np.zeros(1), np.ones(1))
        belief = EP(16).infer(evidence, GaussianPrior(0.0, 1.0), Logistic(1.0))
        samples, weights = belief.draw(count)
        assert samples.shape == (len(weights), d)
        assert 1 <= len(weights) <= count
        assert len(belief.samples) == 16

    def test_points_of_uneven_weights_are_resampled_from_more_of_them(self):
        """A box in twelve dimensions cuts off most of a Gaussian; the returned samples are still effective."""
        rng = np.random.default_rng(0)
        response = Logistic(1.0)
        answers = answers_from(rng, rng.uniform(-1, 1, 12).tolist(), 30, response)
        belief = last_belief(EP(), response, evidence_of(response, answers))
        assert belief.info.method == "ep"
        assert 1 / np.sum(belief.weights**2) > 500
        assert np.all(belief.weights == belief.weights[0])
        # Of the points drawn first, less than a twentieth is effective, which would leave about a hundred.
        # Moved points would all differ.
        assert 0.6 * len(belief.samples) < len(np.unique(belief.samples, axis=0)) < len(belief.samples)
        assert np.all(np.abs(belief.samples) <= 1.0)

    def test_more_importance_samples_are_drawn_before_particles_run(self):
        """In this box, less than two fifths of the first points are effective."""
        rng = np.random.default_rng(3)
        response = Logistic(1.5, "normalized")
        answers = answers_from(rng, [0.7, -0.8, 0.6], 40, response)
        belief = last_belief(EP(), response, evidence_of(response, answers))
        assert belief.info.method == "weighted"
        assert belief.info.effective_samples > 0.6 * 2048
        assert len(belief.samples) == 2048

    def test_standard_points_have_exact_moments_and_are_evenly_spread(self):
        points = standard_points(512, 3)
        assert points.mean(axis=0) == pytest.approx(np.zeros(3), abs=1e-12)
        assert np.cov(points.T, bias=True) == pytest.approx(np.eye(3), abs=1e-12)
        uniform = np.sort(ndtr(points), axis=0)
        # Random points would be off by 0.06 somewhere, 1.36/sqrt(512); a low-discrepancy sequence by far less.
        assert np.max(np.abs(uniform - (np.arange(512)[:, None] + 0.5) / 512)) < 0.015


STATES = [
    (d, k, m, noise, link, box, kind)
    for d in (1, 2, 3)
    for k in (0.0, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e4, 1e6)
    for m, noise, link in ((1, "normalized", "logistic"), (6, "decaying", "probit"), (30, "constant", "logistic"))
    for box in (True, False)
    for kind in ("plain", "contradicting", "ties", "outside")
    if kind == "plain" or (m > 1 and d < 3)
]
SAMPLED_STATES = [
    (d, k, m, noise, "logistic", box, "plain")
    for d in (4, 12)
    for k, noise in ((0.5, "normalized"), (2.0, "constant"), (20.0, "constant"), (500.0, "normalized"))
    for m in (5, 40, 500)
    for box in (True, False)
]


@lru_cache(maxsize=1)
def _seeds():
    return {state: seed for seed, state in enumerate([*STATES, *SAMPLED_STATES])}


def state_of(state):
    """Return the evidence, prior and response of a state."""
    d, k, m, noise, link, box, kind = state
    rng = np.random.default_rng([77, _seeds()[state]])
    response = (Logistic if link == "logistic" else Probit)(k, noise)
    user = rng.uniform(-0.9, 0.9, size=d) * (3.0 if kind == "outside" else 1.0)
    answers = answers_from(rng, user.tolist(), m, response)
    if kind == "contradicting":
        answers[:2] = [(p, q, "second" if outcome == "first" else "first") for p, q, outcome in answers[:2]]
    if kind == "ties":
        answers[-2:] = [(p, q, "tie") for p, q, _ in answers[-2:]]
    return evidence_of(response, answers), UniformBox() if box else GaussianPrior(0.0, 0.25), response


def truth_of(state):
    """Return mean and covariance by a grid finer than the posterior or, without one, by a long run of particles."""
    evidence, prior, response = state_of(state)
    if state[0] <= 3:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ps.errors.AccuracyWarning)
            exact = Grid().infer(evidence, prior, response)
        if exact.info.resolved:
            return exact
    return Particles(30_000, sweeps=3, seed=5).infer(evidence, prior, response)


def assert_within_the_promise(state):
    belief, exact = EP().infer(*state_of(state)), truth_of(state)
    deviations = np.sqrt(np.diag(exact.covariance))
    assert np.max(np.abs(belief.mean - exact.mean) / deviations) < 0.08
    assert np.linalg.norm(belief.covariance - exact.covariance) < 0.10 * np.linalg.norm(exact.covariance)


@pytest.mark.parametrize("state", STATES[:: len(STATES) // 40], ids=str)
def test_some_states_of_known_truth_are_within_the_promise(state):
    assert_within_the_promise(state)


@pytest.mark.long
@pytest.mark.parametrize("state", [*STATES, *SAMPLED_STATES], ids=str)
def test_all_states_of_known_truth_are_within_the_promise(state):
    assert_within_the_promise(state)


@pytest.mark.parametrize("prior", [UniformBox(), GaussianPrior(), WithResiduals(GaussianPrior(), 2, 3)])
def test_a_fit_that_starts_from_its_own_sites_is_done_at_once(prior):
    """Answers have sites, and under a box so do coordinates; private residual utilities have none."""
    d = 5 if isinstance(prior, WithResiduals) else 2
    rng = np.random.default_rng(4)
    slopes = rng.normal(size=(6, d))
    slopes[:, 2:] = 0.0
    for j in range(d - 2):
        slopes[j, 2 + j] = 0.8  # each in one answer
    factors = Factors(slopes, rng.normal(size=6), np.ones(6), LOGISTIC, (0.0, 1.0, 0.0))
    fit = gaussian_fit(factors, prior)
    again = gaussian_fit(factors, prior, fit.sites)
    assert fit.sweeps > 1
    assert again.sweeps == 1
    np.testing.assert_allclose(again.mean, fit.mean, atol=1e-5)
    np.testing.assert_allclose(again.covariance, fit.covariance, atol=1e-5)
    assert np.all(fit.sites[6:, 0] > 0.0) == isinstance(prior, UniformBox)
