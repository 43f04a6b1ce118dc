"""Tests of response models: logits, stable logarithms, ties, simulation and noise kinds."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from helpers.reference import (
    naive_constant,
    naive_log_answer,
    naive_log_likelihood,
    naive_log_posterior,
    naive_logit,
    naive_probability,
)
from helpers.refusals import refused
from helpers.situations import evidence_of
from pairseek.errors import InvalidParameter
from pairseek.model.noise import NOISE_KINDS, NOISES, PUBLISHED_NOISES, noise_kind
from pairseek.model.responses import RESPONSES, Logistic, Probit, hyperplanes
from pairseek.model.unknowns import LogNormal, NoiseKinds, Unknown
from pairseek.numerics.pair_kernels import pair_constant
from pairseek.pairs.sources.branch_and_bound.bounds import steepness

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

    @pytest.mark.parametrize("noise", NOISES)
    def test_an_items_utility_is_its_appeal_less_k_times_the_squared_distance_under_every_noise(self, noise):
        """Appeal of δ is worth a move that changes k|w - x|² by δ; the noise kind scales both alike."""
        p, q, w = np.array([[0.2, 0.1]]), np.array([[0.5, -0.4]]), np.array([0.3, 0.7])
        for k in (0.0, 1.0, 100.0):
            utilities = [appeal - k * ((w - x[0]) ** 2).sum() for x, appeal in ((p, 0.9), (q, 0.2))]
            slopes, offsets = Logistic(k, noise).planes(p, q, np.array([0.7]))
            scale = naive_constant(p[0], q[0], 1.0, noise)
            assert slopes[0] @ w + offsets[0] == pytest.approx(scale * (utilities[0] - utilities[1]), rel=1e-12)

    def test_under_constant_noise_appeal_is_an_offset_that_k_does_not_scale(self):
        p, q = np.array([[0.2, 0.1]]), np.array([[0.5, -0.4]])
        for k in (0.0, 1.0, 100.0):
            with_appeal, without = (Logistic(k, "constant").planes(p, q, appeal)[1][0] for appeal in (0.7, 0.0))
            assert with_appeal - without == pytest.approx(0.7)

    @given(seed=SEEDS, r=st.floats(0, 20), noise=st.sampled_from(NOISES))
    def test_reliability_scales_the_whole_logit(self, seed, r, noise):
        rng = np.random.default_rng(seed)
        p, q, appeal = rng.normal(size=(4, 3)), rng.normal(size=(4, 3)), rng.normal(size=4)
        one, many = (Logistic(1.5, noise, reliability=x).planes(p, q, appeal) for x in (1.0, r))
        for plain, scaled in zip(one, many, strict=True):
            assert scaled == pytest.approx(r * plain, rel=1e-12, abs=1e-300)
        assert Logistic(1.5, noise, reliability=r).constant == pytest.approx(1.5 * r)

    def test_two_items_at_one_point_tell_nothing_of_the_user_point(self):
        """Under constant noise their logit is the difference of their appeal; other kinds depend on the distance."""
        for noise in NOISES:
            slopes, offsets = Logistic(3.0, noise).planes(np.ones((1, 2)), np.ones((1, 2)), np.array([0.5]))
            assert not slopes.any()
            assert offsets[0] == (0.5 if noise == "constant" else 0.0)

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

    def test_noise_constants_of_coinciding_points_are_zero_unless_the_noise_is_constant(self):
        for noise in NOISES:
            expected = 2.0 if noise == "constant" else 0.0
            assert Logistic(2.0, noise).pair_constant(np.array([0.0, 1.0]))[0] == expected


@pytest.mark.parametrize(("kind", "noise"), EVERY)
class TestLikelihood:
    def test_agrees_with_its_twin_ties_and_appeal_included(self, kind, noise):
        rng = np.random.default_rng(0)
        answers = random_answers(rng, 25, 3)
        points = rng.uniform(-2, 2, size=(20, 3))
        response = kind(2.5, noise)
        log_likelihood = response.log_likelihood(evidence_of(response, answers), points)
        expected = [naive_log_likelihood(w, answers, 2.5, noise, response.name) for w in points.tolist()]
        assert log_likelihood == pytest.approx(np.array(expected), rel=1e-11)
        assert log_likelihood == pytest.approx(
            naive_log_posterior(points, answers, 2.5, noise, response.name), rel=1e-11
        )

    @pytest.mark.parametrize(("width", "lapse"), [(0.7, 0.0), (0.0, 0.1), (0.7, 0.1)])
    def test_agrees_with_its_twin_with_a_width_of_ties_and_with_lapses(self, kind, noise, width, lapse):
        rng = np.random.default_rng(3)
        answers = random_answers(rng, 25, 3)
        points = rng.uniform(-2, 2, size=(20, 3))
        response = kind(2.5, noise, lapse, tie_width=width)
        log_likelihood = response.log_likelihood(evidence_of(response, answers), points)
        expected = [naive_log_likelihood(w, answers, 2.5, noise, response.name, width, lapse) for w in points.tolist()]
        assert log_likelihood == pytest.approx(np.array(expected), rel=1e-10)

    @pytest.mark.parametrize("width", [0.0, 0.7])
    def test_is_concave_along_any_line(self, kind, noise, width):
        rng = np.random.default_rng(2)
        response = kind(4.0, noise, tie_width=width)
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

    @pytest.mark.parametrize("width", [0.01, 0.7, 4.0])
    @pytest.mark.parametrize("lapse", [0.0, 0.1])
    def test_the_three_outcomes_have_the_probability_one_in_all(self, kind, width, lapse):
        response = kind(1.0, lapse=lapse, tie_width=width)
        z = np.linspace(-9, 9, 41)
        first, second, tie = response.probability(z), response.probability(-z), response.tie_probability(z)
        assert first + second + tie == pytest.approx(np.ones(41), abs=1e-14)
        f = np.array([[naive_probability(x + side * width, response.name) for x in z] for side in (1, -1)])
        assert tie == pytest.approx(lapse / 3 + (1 - lapse) * (f[0] - f[1]), rel=1e-9, abs=1e-13)
        assert first == pytest.approx(lapse / 3 + (1 - lapse) * f[1], rel=1e-9)

    def test_a_tie_is_a_perceived_difference_within_the_width(self, kind):
        """Its probability is the integral of the density of the noise, here of the link's derivative."""
        response = kind(1.0, tie_width=0.8)
        step = 1e-6
        for z in (-3.0, 0.0, 1.2):
            f = [naive_probability(z + step * side, response.name) for side in (1, -1)]
            density = kind(1.0).log_tie(np.array(z))
            assert math.exp(density) == pytest.approx((f[0] - f[1]) / (2 * step), rel=1e-6)
            whole = quad(lambda x: math.exp(kind(1.0).log_tie(np.array(x))), z - 0.8, z + 0.8)[0]
            assert response.tie_probability(np.array(z)) == pytest.approx(whole, rel=1e-9)

    def test_a_tie_that_was_not_offered_is_the_limit_of_a_vanishing_width(self, kind):
        z = np.linspace(-5, 5, 21)
        narrow = kind(1.0, tie_width=1e-5).log_tie(z) - math.log(2e-5)
        assert narrow == pytest.approx(kind(1.0).log_tie(z), abs=1e-8)
        assert not kind(1.0).tie_probability(z).any()

    def test_a_tie_that_was_not_offered_cannot_be_a_lapse(self, kind):
        z = np.linspace(-5, 5, 21)
        assert kind(1.0, lapse=0.3).log_tie(z) == pytest.approx(math.log(0.7) + kind(1.0).log_tie(z), rel=1e-13)

    @pytest.mark.parametrize("width", [0.0, 1e-3, 0.7, 20.0])
    @pytest.mark.parametrize("z", [-1e6, -800.0, -40.0, 0.0, 3.0, 40.0, 800.0, 1e6])
    def test_ties_are_finite_and_even_at_extreme_logits(self, kind, width, z):
        response = kind(1.0, tie_width=width)
        found = float(response.log_tie(np.array(z)))
        assert found == float(response.log_tie(np.array(-z)))
        assert found == pytest.approx(float(naive_log_answer(z, "tie", response.name, width)), rel=1e-9)

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

    @pytest.mark.parametrize(("kind", "noise"), EVERY)
    @pytest.mark.parametrize("spread", [0.01, 0.5, 3.0])
    def test_with_k_filled_in_88_of_100_answers_are_right_one_deviation_from_the_plane(self, kind, noise, spread):
        response = kind(noise=noise).for_spread(spread)
        # Two points two deviations apart on the first axis, or as near as |a| = 1; the user one from the plane.
        half = min(spread, 0.25) if noise == "decaying" else spread
        p, q, w = [half, 0.0], [-half, 0.0], [spread, 0.3 * spread]
        logit = naive_logit(w, p, q, response.k, noise)
        assert response.probability(np.array(logit)) == pytest.approx(0.8808, abs=1e-4)

    def test_a_k_that_was_given_is_kept(self):
        assert Logistic(0.7).for_spread(123.0) == Logistic(0.7)

    def test_an_unknown_k_lies_around_what_would_be_assumed_or_at_it_where_people_may_lapse(self):
        usual = Logistic().for_spread(0.5).constant
        alone = Logistic(Unknown(LogNormal(spread=0.7))).for_spread(0.5)
        assert alone.k == Unknown(LogNormal.around(usual, 0.7))
        assert alone.typical_k == 2.5 * usual
        assert Logistic(Unknown(), lapse=Unknown()).for_spread(0.5).typical_k == usual
        told = Logistic(Unknown(LogNormal(3.0)))
        assert told.for_spread(0.5) == told

    def test_an_unknown_noise_kind_gets_the_default_k_of_every_kind(self):
        response = Logistic(noise=Unknown()).for_spread(0.5)
        constants = tuple(Logistic(noise=noise).for_spread(0.5).constant for noise in PUBLISHED_NOISES)
        assert response.noise_prior == NoiseKinds((1.0, 1.0, 1.0), constants)
        kinds = response.kinds
        assert [(kind.noise, kind.constant, share) for kind, share in kinds] == [
            (noise, k, pytest.approx(1 / 3)) for noise, k in zip(PUBLISHED_NOISES, constants, strict=True)
        ]
        some = Logistic(noise=Unknown(NoiseKinds((3.0, 0.0, 1.0)))).for_spread(0.5)
        assert [(kind.noise, share) for kind, share in some.kinds] == [("constant", 0.75), ("decaying", 0.25)]

    def test_an_unknown_k_beside_an_unknown_noise_kind_is_an_unknown_reliability(self):
        response = Logistic(Unknown(LogNormal(spread=0.7)), Unknown()).for_spread(0.5)
        assert response.reliability == Unknown(LogNormal.around(1.0, 0.7))
        with_lapses = Logistic(Unknown(LogNormal(spread=0.7)), Unknown(), Unknown()).for_spread(0.5)
        assert with_lapses.reliability == Unknown(LogNormal(1.0, 0.7))
        assert response.for_spread(7.0) == response

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: Logistic().constant, "k of Logistic is not set: give k, or let a Search choose it"),
            (
                lambda: Logistic(noise="decaying").for_spread(100.0),
                r"decaying noise, .* scale of the items, and \|a\| is about 400",
            ),
            (lambda: Logistic(2.0, Unknown()), "the noise kind is unknown, and k has a different unit"),
            (lambda: Logistic(Unknown(LogNormal(2.0)), Unknown()), "the noise kind is unknown, and k has a different"),
            (lambda: Logistic(Unknown(), reliability=Unknown()), "k and reliability are both unknown, but they are"),
            *(
                (lambda width=width: Logistic(1.0, tie_width=width), "tie_width is .*: give the width of a tie in log")
                for width in (-0.1, 21, math.nan, "1", True)
            ),
            *(
                (lambda factor=factor: Logistic(1.0, reliability=factor), "reliability is ")
                for factor in (-1, math.nan, math.inf, "1", True)
            ),
            *(
                (lambda k=k: Probit(k), f"k is {k}: give a noise constant from 0")
                for k in (-1, -1e-9, math.nan, math.inf, -math.inf)
            ),
        ],
    )
    def test_settings_that_say_nothing_or_contradict_each_other_are_refused(self, make, message):
        with pytest.raises(InvalidParameter, match=message):
            make()

    def test_unknown_noise_is_told_with_the_allowed_ones(self):
        with refused("noise"):
            Logistic(1.0, "pink")

    @pytest.mark.parametrize("k", ["3", True, [1.0], 1j])
    def test_k_must_be_a_number(self, k):
        with refused("k"):
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
        with refused("noise"):
            Logistic(1.0, "growing")
        for code in (-1, max(kind.code for kind in NOISE_KINDS.values()) + 1):
            assert math.isnan(pair_constant(1.0, 2.0, code))
            assert math.isnan(steepness(1.0, 2.0, code))

    def test_the_docs_describe_every_kind(self):
        page = (Path(__file__).resolve().parents[2] / "docs" / "explanation" / "model.md").read_text()
        for kind in NOISE_KINDS.values():
            formula = kind.formula.replace("|", r"\|")
            assert f'| `"{kind.name}"` | {formula} | {kind.summary} |' in page
