"""Candidates: what a pair is to a belief, against the naive twins.

Tests with "twin" in their name run a second time without the compiler, see test_kernels_without_jit.py.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.reference import (
    naive_after,
    naive_chances,
    naive_constant,
    naive_covariance,
    naive_entropy,
    naive_logit,
    naive_mean,
    naive_projected_deviation,
)
from helpers.situations import LINKS, belief_of, made_belief
from pairseek.model.noise import NOISES
from pairseek.model.responses import RESPONSES, Logistic, Probit
from pairseek.numerics.covariances import principal_root, square_root
from pairseek.numerics.pair_kernels import expected_answer, pair_constant
from pairseek.numerics.tables import interpolate, tables
from pairseek.pairs.sources import Candidates

SEEDS = st.integers(0, 2**32 - 1)
KINDS = st.sampled_from(sorted(LINKS))
NOISE = st.sampled_from(NOISES)


def scenery(seed, kind, noise, *, d=None, k=None, pairs=4, samples=30):
    """Return random pairs of random points, a belief and a response."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 7)) if d is None else d
    points = rng.uniform(-1, 1, size=(6, d))
    first = rng.integers(0, 6, size=pairs)
    second = (first + rng.integers(1, 6, size=pairs)) % 6
    response = RESPONSES[kind](float(rng.choice([0.0, 0.5, 3.0, 40.0])) if k is None else k, noise)
    appeal = rng.normal(size=6) * rng.integers(0, 2)
    belief = made_belief(rng, samples, d)
    candidates = Candidates.of(points, first, second, belief=belief, response=response, appeal=appeal)
    described = [
        (points[i].tolist(), points[j].tolist(), response.k, noise, kind, float(appeal[i] - appeal[j]))
        for i, j in zip(first, second, strict=True)
    ]
    return candidates, belief, described


class TestDescription:
    @given(seed=SEEDS, kind=KINDS, noise=NOISE)
    def test_agrees_with_its_twin(self, seed, kind, noise):
        candidates, belief, pairs = scenery(seed, kind, noise)
        for row, (p, q, k, _, _, appeal) in enumerate(pairs):
            length = 2 * np.linalg.norm(np.subtract(p, q))
            constant = naive_constant(p, q, k, noise)
            assert candidates.length[row] == pytest.approx(length, rel=1e-12)
            assert candidates.constant[row] == pytest.approx(constant, rel=1e-12)
            if k > 0:
                margin = naive_logit(belief.mean, p, q, 1.0, "constant", appeal / k)
                assert candidates.margin[row] == pytest.approx(margin, abs=1e-11)
            mean = naive_logit(belief.mean, p, q, k, noise, appeal)
            assert candidates.logit_mean[row] == pytest.approx(mean, abs=1e-9)
            deviation = naive_projected_deviation(belief.covariance, p, q, k, noise)
            assert candidates.logit_deviation[row] == pytest.approx(deviation, rel=1e-9, abs=1e-12)
            assert candidates.variance[row] * constant**2 == pytest.approx(deviation**2, rel=1e-9, abs=1e-12)

    @given(length=st.floats(1e-6, 100), k=st.floats(0, 1e6), noise=NOISE)
    def test_noise_constant_agrees_with_its_twin(self, length, k, noise):
        found = pair_constant(length, k, NOISES.index(noise))
        assert found == pytest.approx(naive_constant([length / 2], [0.0], k, noise), rel=1e-12)

    def test_the_margin_keeps_its_digits_far_from_zero(self):
        """Against exact fractions; |q - μ|² - |p - μ|² in floats would be off by 1e-4 here."""
        p, q, mu = [1e6 + 0.25, -1e6], [1e6 - 0.5, -1e6 + 0.125], [1e6 + 0.0625, -1e6 - 0.375]
        exact = sum((Fraction(x) - Fraction(m)) ** 2 for x, m in zip(q, mu, strict=True)) - sum(
            (Fraction(x) - Fraction(m)) ** 2 for x, m in zip(p, mu, strict=True)
        )
        rng = np.random.default_rng(0)
        belief = made_belief(rng, 10, 2)
        moved = belief_of(belief.samples, belief.weights, np.array(mu), belief.covariance)
        found = Candidates.of(
            np.array([p, q]), np.array([0]), np.array([1]), belief=moved, response=Logistic(1.0)
        ).margin[0]
        assert found == pytest.approx(float(exact), rel=1e-12)

    def test_the_projected_variance_keeps_its_digits_far_from_zero(self):
        """Two items one unit apart, 1e9 from zero: projections from zero would lose seven digits."""
        rng = np.random.default_rng(0)
        belief = made_belief(rng, 10, 2)
        offset = np.array([1e9, -1e9])
        moved = belief_of(belief.samples, belief.weights, offset, belief.covariance)
        p, q = np.array([0.25, -0.5]), np.array([-0.5, 0.125])
        found = Candidates.of(
            np.array([p, q]) + offset, np.array([0]), np.array([1]), belief=moved, response=Logistic(1.0)
        ).variance[0]
        a = 2 * (p - q)
        assert found == pytest.approx(float(a @ belief.covariance @ a), rel=1e-12)

    def test_two_items_at_one_point_have_no_length_and_no_margin(self):
        belief = made_belief(np.random.default_rng(0), 10, 2)
        points = np.array([[0.1, 0.2], [0.1, 0.2], [1.0, 0.0]])
        for noise in NOISES:
            found = Candidates.of(
                points, np.array([0, 0]), np.array([1, 2]), belief=belief, response=Logistic(2.0, noise)
            )
            constant = 2.0 if noise == "constant" else 0.0
            assert (found.length[0], found.constant[0], found.margin[0], found.variance[0]) == (0.0, constant, 0.0, 0.0)
            assert found.length[1] > 0

    def test_some_of_them_are_the_same_as_those_described_alone(self):
        candidates, belief, _ = scenery(3, "logistic", "normalized", pairs=9)
        rows = np.array([7, 0, 4])
        some = candidates.take(rows)
        assert len(some) == 3
        for name in ("first", "second", "margin", "length", "constant", "variance"):
            assert np.array_equal(getattr(some, name), getattr(candidates, name)[rows])
        alone, all_ = some.sampled(belief), candidates.sampled(belief)
        assert np.array_equal(alone[0], all_[0][rows])

    @pytest.mark.parametrize("rank", [0, 1, 2, 3])
    def test_a_singular_covariance_has_a_square_root_too(self, rank):
        rng = np.random.default_rng(rank)
        half = rng.normal(size=(3, rank))
        covariance = half @ half.T
        root = principal_root(covariance)
        assert root @ root.T == pytest.approx(covariance, abs=1e-12)

    @pytest.mark.parametrize("unit", [1.0, 1e-9])
    def test_the_invertible_root_keeps_the_digits_of_coordinates_of_any_unit(self, unit):
        correlated = np.array([[1.0, 0.6], [0.6, 2.0]])
        units = np.array([1.0, unit])
        root = square_root(correlated * np.outer(units, units))
        assert (root @ root.T) / np.outer(units, units) == pytest.approx(correlated, rel=1e-12)
        assert np.linalg.inv(root) @ root == pytest.approx(np.eye(2), abs=1e-9)
        assert np.all(np.linalg.slogdet(square_root(np.zeros((3, 2, 2))))[0] != 0)

    def test_has_the_same_bits_on_any_number_of_threads(self, on_threads):
        rng = np.random.default_rng(1)
        points, belief = rng.normal(size=(300, 4)), made_belief(rng, 700, 4)
        first, second = rng.integers(0, 150, size=20_000), rng.integers(150, 300, size=20_000)

        def everything():
            found = Candidates.of(points, first, second, belief=belief, response=Logistic(1.0))
            few = found.take(np.arange(200))
            after = [part for outcome in few.moments_by_outcome(belief) for part in outcome]
            return [found.margin, found.variance, found.tabulated("information"), *few.sampled(belief), *after]

        for one, two in zip(on_threads(1, everything), on_threads(2, everything), strict=True):
            assert np.array_equal(one, two)


class TestExpectations:
    @given(seed=SEEDS, kind=KINDS, noise=NOISE)
    def test_over_samples_agree_with_their_twin(self, seed, kind, noise):
        candidates, belief, pairs = scenery(seed, kind, noise)
        probability, entropy = candidates.sampled(belief)
        for row, (p, q, k, _, _, appeal) in enumerate(pairs):
            chances = naive_chances(belief.samples.tolist(), p, q, k, noise, kind, appeal)
            assert probability[row] == pytest.approx(np.dot(belief.weights, chances), abs=1e-11)
            expected = np.dot(belief.weights, [naive_entropy(f) for f in chances])
            # The series of the logarithm is accurate to 1e-9.
            assert entropy[row] == pytest.approx(expected, abs=3e-9)

    @pytest.mark.parametrize("kind", LINKS)
    def test_of_logits_far_out_are_those_of_certainty(self, kind):
        """Even for absurdly large logits: nothing multiplies a tiny probability by a huge logit."""
        columns, weights = np.array([[1.0, 2.0]]), np.array([0.5, 0.5])
        slopes = np.array([[1e3], [-1e3], [1e6], [-1e6], [1e15], [-1e15]])
        out = np.empty((2, 6))
        expected_answer(0, 6, slopes, np.zeros(6), columns, weights, LINKS[kind], out)
        assert out[0] == pytest.approx([1, 0, 1, 0, 1, 0], abs=1e-15)
        assert out[1] == pytest.approx(np.zeros(6), abs=1e-13)

    @given(seed=SEEDS, kind=KINDS, noise=NOISE)
    def test_after_an_answer_agree_with_their_twin(self, seed, kind, noise):
        candidates, belief, pairs = scenery(seed, kind, noise, samples=25, pairs=2)
        samples = belief.samples.tolist()
        outcomes = candidates.moments_by_outcome(belief)
        for row, (p, q, k, _, _, appeal) in enumerate(pairs):
            chances = naive_chances(samples, p, q, k, noise, kind, appeal)
            if not 1e-6 < np.dot(belief.weights, chances) < 1 - 1e-6:
                continue
            for (chance, weights), (found, mean, covariance) in zip(
                naive_after(samples, belief.weights.tolist(), p, q, k, noise, kind, appeal), outcomes, strict=True
            ):
                # Subtraction loses the last digits of the rarer outcome: 1e-15 divided by its probability.
                assert found[row] == pytest.approx(chance, abs=1e-11)
                assert mean[row] == pytest.approx(np.array(naive_mean(samples, weights)), abs=1e-14 / chance + 1e-10)
                assert covariance[row] == pytest.approx(
                    np.array(naive_covariance(samples, weights)), abs=1e-14 / chance + 1e-10
                )

    @pytest.mark.parametrize("kind", LINKS)
    @pytest.mark.parametrize("n", [999, 1000, 4000])
    def test_after_an_answer_that_never_comes_are_finite_and_weigh_nothing(self, kind, n):
        """One item is near, the other far away: in floats the rarer outcome has probability 0 or -1e-17."""
        belief = made_belief(np.random.default_rng(n), n, 2)
        points = np.array([[0.1, 0.3], [5.0, 5.0], [-5.0, -5.0]])
        response = RESPONSES[kind](3.0, "constant")
        candidates = Candidates.of(points, np.array([0, 1, 0]), np.array([1, 0, 2]), belief=belief, response=response)
        for probability, mean, covariance in candidates.moments_by_outcome(belief):
            assert np.all((probability >= 0.0) & (probability <= 1.0))
            assert np.all(np.abs(mean) < 5.0)
            assert np.all(np.abs(covariance) < 5.0)
        total = sum(probability for probability, _, _ in candidates.moments_by_outcome(belief))
        assert total == pytest.approx(np.ones(3), abs=1e-12)

    def test_after_an_answer_keep_their_digits_far_from_zero(self):
        rng = np.random.default_rng(5)
        near = made_belief(rng, 400, 2)
        points = rng.uniform(-1, 1, size=(4, 2))
        shift = np.array([1e6, -1e6])
        far = belief_of(near.samples + shift, near.weights, near.mean + shift, near.covariance)
        first, second = np.array([0, 2]), np.array([1, 3])
        for (p, m, c), (far_p, far_m, far_c) in zip(
            Candidates.of(points, first, second, belief=near, response=Probit(2.0)).moments_by_outcome(near),
            Candidates.of(points + shift, first, second, belief=far, response=Probit(2.0)).moments_by_outcome(far),
            strict=True,
        ):
            # The points themselves are only accurate to 1e-10.
            assert far_p == pytest.approx(p, abs=1e-8)
            assert far_m - shift == pytest.approx(m, abs=1e-8)
            assert far_c == pytest.approx(c, abs=1e-8)

    @pytest.mark.parametrize("kind", LINKS)
    def test_by_table_are_the_tables_at_mean_and_deviation(self, kind):
        candidates, _, _ = scenery(11, kind, "normalized", k=2.0, pairs=8)
        for name in ("probability", "information", "explained", "log_volume"):
            table = getattr(tables(LINKS[kind]), name)
            expected = [
                interpolate(table, abs(m), s)
                for m, s in zip(candidates.logit_mean, candidates.logit_deviation, strict=True)
            ]
            assert candidates.tabulated(name) == pytest.approx(expected, abs=1e-15)

    @pytest.mark.parametrize("kind", LINKS)
    @pytest.mark.parametrize("d", [1, 2, 4, 5, 9])
    def test_by_table_agree_with_many_gaussian_samples(self, kind, d):
        rng = np.random.default_rng(d)
        half = rng.normal(size=(d, d)) / np.sqrt(d)
        samples = rng.normal(size=(40_000, d)) @ half.T
        belief = made_belief(rng, 10, d)
        mean, covariance = samples.mean(axis=0), np.atleast_2d(np.cov(samples.T, bias=True))
        belief = belief_of(samples, np.full(40_000, 1 / 40_000), mean, covariance)
        points = rng.normal(size=(12, d))
        candidates = Candidates.of(points, np.arange(6), np.arange(6, 12), belief=belief, response=RESPONSES[kind](1.5))
        probability, entropy = candidates.sampled(belief)
        # Four standard errors of a mean of 40,000 numbers in [0, 1], plus the interpolation error.
        likelier = np.maximum(probability, 1 - probability)
        assert candidates.tabulated("probability") == pytest.approx(likelier, abs=4 * 0.5 / 200 + 4e-4)
        information = np.array([naive_entropy(p) for p in probability]) - entropy
        assert candidates.tabulated("information") == pytest.approx(information, abs=0.01)
