"""Tests of response models: logits, stable logarithms, gradients, simulation and noise kinds."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairseek.candidates.branch_and_bound.bounds import steepness
from pairseek.errors import InvalidParameter
from pairseek.model.geometry import hyperplanes
from pairseek.model.noise import NOISE_KINDS, noise_kind
from pairseek.model.responses import NOISES, RESPONSES, Logistic, Probit
from pairseek.model.unknowns import LogNormal, Unknown
from pairseek.numerics.pair_kernels import pair_constant
from reference import naive_constant, naive_log_likelihood, naive_log_posterior, naive_logit, naive_probability
from situations import evidence_of

EVERY = [(kind, noise) for kind in RESPONSES.values() for noise in NOISES]
SEEDS = st.integers(0, 2**32 - 1)


def random_answers(rng, count, d):
    return [
        (*rng.uniform(-1, 1, size=(2, d)).tolist(), str(rng.choice(["first", "second", "tie"])), rng.normal())
        for _ in range(count)
    ]


class TestPlanes:
    @given(seed=SEEDS, d=st.integers(1, 5), k=st.floats(0, 50), noise=st.sampled_from(NOISES))
    def test_the_logit_is_that_of_squared_distances(self, seed, d, k, noise):
        rng = np.random.default_rng(seed)
        w, p, q = rng.normal(size=(3, d))
        appeal = rng.normal()
        slopes, offsets = Logistic(k, noise).planes(p[None], q[None], np.array([appeal]))
        expected = naive_logit(w, p, q, k, noise, appeal)
        assert slopes[0] @ w + offsets[0] == pytest.approx(expected, rel=1e-10, abs=1e-10 * (1 + k))

    def test_appeal_is_an_offset_that_k_does_not_scale(self):
        p, q = np.array([[0.2, 0.1]]), np.array([[0.5, -0.4]])
        for k in (0.0, 1.0, 100.0):
            with_appeal, without = (Logistic(k).planes(p, q, appeal)[1][0] for appeal in (0.7, 0.0))
            assert with_appeal - without == pytest.approx(0.7)

    def test_two_items_at_one_point_tell_nothing_but_their_appeal(self):
        for noise in NOISES:
            slopes, offsets = Logistic(3.0, noise).planes(np.ones((1, 2)), np.ones((1, 2)), np.array([0.5]))
            assert not slopes.any()
            assert offsets[0] == 0.5

    def test_the_threshold_does_not_cancel_far_from_zero(self):
        """|p|² - |q|² of points near 1e8 would lose all digits of a difference of 1e-3."""
        p, q = np.array([[1e8 + 0.5, 0.0]]), np.array([[1e8 - 0.5, 0.0]])
        normals, thresholds = hyperplanes(p, q)
        assert normals.tolist() == [[2.0, 0.0]]
        assert thresholds[0] == 2e8

    @given(length=st.floats(1e-6, 50), k=st.floats(0, 1e6), noise=st.sampled_from(NOISES))
    def test_noise_constants_agree_with_the_plain_formulas(self, length, k, noise):
        found = Logistic(k, noise).pair_constant(np.array([length]))[0]
        assert found == pytest.approx(naive_constant([length / 2], [0.0], k, noise), rel=1e-12)

    def test_noise_constants_of_coinciding_points_are_zero(self):
        for noise in NOISES:
            assert Logistic(2.0, noise).pair_constant(np.array([0.0, 1.0]))[0] == 0.0


@pytest.mark.parametrize(("kind", "noise"), EVERY)
class TestLikelihood:
    def test_agrees_with_its_twin_ties_and_appeal_included(self, kind, noise):
        rng = np.random.default_rng(0)
        answers = random_answers(rng, 25, 3)
        points = rng.uniform(-2, 2, size=(20, 3))
        response = kind(2.5, noise)
        found = response.log_likelihood(evidence_of(response, answers), points)
        expected = [naive_log_likelihood(w, answers, 2.5, noise, response.name) for w in points.tolist()]
        assert found == pytest.approx(np.array(expected), rel=1e-11)
        assert found == pytest.approx(naive_log_posterior(points, answers, 2.5, noise, response.name), rel=1e-11)

    def test_has_the_gradient_that_finite_differences_find(self, kind, noise):
        rng = np.random.default_rng(1)
        response = kind(1.7, noise)
        evidence = evidence_of(response, random_answers(rng, 30, 4))
        for w in rng.uniform(-1.5, 1.5, size=(5, 4)):
            steps = 1e-5 * np.eye(4)
            up, down = (response.log_likelihood(evidence, w + side * steps) for side in (1, -1))
            assert response.gradient(evidence, w) == pytest.approx((up - down) / 2e-5, abs=1e-5, rel=1e-6)

    def test_is_concave_along_any_line(self, kind, noise):
        rng = np.random.default_rng(2)
        response = kind(4.0, noise)
        evidence = evidence_of(response, random_answers(rng, 30, 3))
        for _ in range(20):
            a, b = rng.uniform(-3, 3, size=(2, 3))
            ends = response.log_likelihood(evidence, np.stack([a, b, (a + b) / 2]))
            assert ends[2] >= (ends[0] + ends[1]) / 2 - 1e-9


@pytest.mark.parametrize("kind", RESPONSES.values())
class TestLinks:
    @pytest.mark.parametrize("z", [-1e6, -800.0, -40.0, 0.0, 40.0, 800.0, 1e6])
    def test_are_finite_at_extreme_logits(self, kind, z):
        response = kind(1.0)
        logs = float(response.log_probability(np.array(z)))
        slope = float(response.slope(np.array(z)))
        assert math.isfinite(logs)
        assert math.isfinite(slope)
        if z <= -40:
            # log f(z) tends to z (logistic) and to -z²/2 (probit) from within a logarithm of z.
            assert logs == pytest.approx(z if kind is Logistic else -z * z / 2 - math.log(-z), rel=2e-3)
            assert slope == pytest.approx(1.0 if kind is Logistic else -z, rel=1e-3)
        if z >= 40:
            assert logs == pytest.approx(0.0, abs=1e-15)
            assert slope == pytest.approx(0.0, abs=1e-15)

    @given(z=st.floats(-30, 30))
    def test_are_symmetric_and_agree_with_their_twin(self, kind, z):
        response = kind(1.0)
        f = float(response.probability(np.array(z)))
        assert f == pytest.approx(naive_probability(z, response.name), rel=1e-10)
        assert f + float(response.probability(np.array(-z))) == pytest.approx(1.0, abs=1e-15)
        assert math.exp(response.log_probability(np.array(z))) == pytest.approx(f, rel=1e-10)

    def test_a_tie_counts_half_each_way(self, kind):
        response = kind(2.0)
        p, q = [0.4, 0.1], [-0.3, 0.6]
        w = np.array([[0.2, -0.7]])
        tie, first, second = (
            response.log_likelihood(evidence_of(response, [(p, q, outcome)]), w)[0]
            for outcome in ("tie", "first", "second")
        )
        assert tie == pytest.approx((first + second) / 2, rel=1e-12)

    def test_simulates_with_its_own_probabilities(self, kind):
        response = kind(1.0)
        logits = np.repeat([-2.0, -0.5, 0.0, 1.0, 30.0], 20_000)
        chosen = response.simulate(logits, np.random.default_rng(0)).reshape(5, -1)
        assert chosen.dtype == bool
        expected = [naive_probability(z, response.name) for z in (-2.0, -0.5, 0.0, 1.0, 30.0)]
        # Four standard errors of a share of 20,000.
        assert chosen.mean(axis=1) == pytest.approx(expected, abs=4 * 0.5 / math.sqrt(20_000))
        assert chosen[4].all()


class TestSettings:
    def test_default_is_logistic_with_normalized_noise_and_k_to_be_filled_in(self):
        assert (Logistic().k, Logistic().noise) == (None, "normalized")
        with pytest.raises(InvalidParameter, match="k of Logistic is not set: give k, or let a Search choose it"):
            Logistic().constant  # noqa: B018

    @pytest.mark.parametrize(("kind", "noise"), EVERY)
    @pytest.mark.parametrize("spread", [0.01, 0.5, 3.0])
    def test_with_k_filled_in_88_of_100_answers_are_right_one_deviation_from_the_plane(self, kind, noise, spread):
        response = kind(noise=noise).for_spread(spread)
        # Two points two deviations apart on the first axis, or as near as |a| = 1; the user one from the plane.
        half = min(spread, 0.25) if noise == "decaying" else spread
        p, q, w = [half, 0.0], [-half, 0.0], [spread, 0.3 * spread]
        logit = naive_logit(w, p, q, response.k, noise)
        assert response.probability(np.array(logit)) == pytest.approx(0.8808, abs=1e-4)

    def test_decaying_noise_refuses_to_guess_k_for_items_much_wider_than_its_unit(self):
        with pytest.raises(InvalidParameter, match=r"decaying noise has a unit of its own.*\|a\| is about 400 here"):
            Logistic(noise="decaying").for_spread(100.0)

    def test_a_k_that_was_given_is_kept(self):
        assert Logistic(0.7).for_spread(123.0) == Logistic(0.7)

    def test_an_unknown_k_lies_around_what_would_be_assumed_or_at_it_where_people_may_lapse(self):
        usual = Logistic().for_spread(0.5).constant
        alone = Logistic(Unknown(LogNormal(spread=0.7))).for_spread(0.5)
        assert alone.k == Unknown(LogNormal.around(usual, 0.7))
        assert alone.reference == 2.5 * usual
        assert Logistic(Unknown(), lapse=Unknown()).for_spread(0.5).reference == usual
        told = Logistic(Unknown(LogNormal(3.0)))
        assert told.for_spread(0.5) == told

    def test_unknown_noise_is_told_with_the_allowed_ones(self):
        with pytest.raises(InvalidParameter, match="unknown noise 'pink': use one of constant, normalized, decaying"):
            Logistic(1.0, "pink")

    @pytest.mark.parametrize("k", [-1, -1e-9, math.nan, math.inf, -math.inf])
    def test_k_must_be_finite_and_at_least_zero(self, k):
        with pytest.raises(InvalidParameter, match=f"k is {k}: the noise constant must be at least 0 and at most "):
            Probit(k)

    @pytest.mark.parametrize("k", ["3", True, [1.0], 1j])
    def test_k_must_be_a_number(self, k):
        with pytest.raises(InvalidParameter, match=r"k is .*: give a number, at least 0"):
            Logistic(k)

    def test_k_may_be_a_whole_number_or_numpys(self):
        assert Logistic(2) == Logistic(2.0) == Logistic(np.float32(2)) == Logistic(np.int64(2))
        assert type(Logistic(np.int64(2)).k) is float


class TestNoiseKinds:
    def test_each_name_has_one_record_with_its_kernel_code(self):
        assert tuple(NOISE_KINDS) == NOISES
        assert len({kind.code for kind in NOISE_KINDS.values()}) == len(NOISES)
        for name, kind in NOISE_KINDS.items():
            assert kind.name == name
            lengths = np.array([0.25, 1.0, 3.0])
            by_kernel = [pair_constant(length, 2.0, kind.code) for length in lengths]
            assert by_kernel == pytest.approx(kind.pair_constant(2.0, lengths), rel=1e-15)
            assert kind.steepness(0.7) == pytest.approx(float(kind.pair_constant(1.0, np.array([0.7]))[0]) * 0.7)

    @pytest.mark.parametrize("span", [(0.0, 0.5), (0.2, 4.0), (2.0, 5.0)])
    @pytest.mark.parametrize("kind", NOISE_KINDS.values(), ids=NOISE_KINDS)
    def test_the_bound_rule_gives_the_steepest_length(self, kind, span):
        steepest = kind.steepness(kind.steepest_length(*span))
        assert steepest >= max(kind.steepness(length) for length in np.linspace(*span, 101)) - 1e-12

    def test_an_unknown_kind_raises_and_its_code_is_no_number(self):
        for name in ("growing", 2, None):
            with pytest.raises(
                InvalidParameter, match=rf"unknown noise {name!r}: use one of constant, normalized, dec"
            ):
                noise_kind(name)
        with pytest.raises(InvalidParameter, match="unknown noise 'growing'"):
            Logistic(1.0, "growing")
        for code in (-1, max(kind.code for kind in NOISE_KINDS.values()) + 1):
            assert math.isnan(pair_constant(1.0, 2.0, code))
            assert math.isnan(steepness(1.0, 2.0, code))

    def test_the_docs_describe_every_kind(self):
        page = (Path(__file__).resolve().parents[1] / "docs" / "model.md").read_text()
        for kind in NOISE_KINDS.values():
            formula = kind.formula.replace("|", r"\|")
            assert f'| `"{kind.name}"` | {formula} | {kind.summary} |' in page
