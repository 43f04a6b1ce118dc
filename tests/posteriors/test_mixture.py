"""Unknown response parameters: the mixture against a full grid over (w, log r, lapse, kind)."""

from __future__ import annotations

import math

import numpy as np
import pytest

import pairseek as ps
from helpers.reference import naive_log_posterior, naive_logit, naive_probability, quadrature_log_mass, reliability_grid
from helpers.situations import USER, answers_from, evidence_of, last_belief, standardized
from pairseek.core.types import Evidence
from pairseek.model.noise import PUBLISHED_NOISES as NOISES
from pairseek.posteriors import EP, Particles
from pairseek.posteriors.factors import Factors
from pairseek.posteriors.gaussian import gaussian_fit, log_prior_mass
from pairseek.posteriors.mixture_samples import _refined
from pairseek.posteriors.parameter_nodes import _jacobi
from pairseek.posteriors.point_beliefs import sampled_point_belief
from pairseek.posteriors.tempering import tempered_belief

K = 3.0
UNKNOWN = ps.Unknown(ps.LogNormal(K, 1.0))
LAPSE = ps.Unknown(ps.Beta(1.0, 9.0))
RESPONSES = {
    "k and lapse": ps.Logistic(UNKNOWN, lapse=LAPSE),
    "k alone": ps.Logistic(UNKNOWN),
    "k with a known lapse": ps.Logistic(UNKNOWN, lapse=0.1),
    "reliability": ps.Logistic(K, reliability=ps.Unknown(ps.LogNormal(1.0, 1.0)), lapse=LAPSE),
    "lapse alone": ps.Logistic(K, lapse=LAPSE),
    "constant noise": ps.Logistic(UNKNOWN, "constant", lapse=LAPSE),
    "decaying noise": ps.Logistic(UNKNOWN, "decaying", lapse=LAPSE),
    "probit": ps.Probit(UNKNOWN, lapse=LAPSE),
    "probit, k alone": ps.Probit(UNKNOWN),
    "a width of ties": ps.Logistic(UNKNOWN, lapse=LAPSE, tie_width=0.7),
    "probit with a width of ties": ps.Probit(UNKNOWN, lapse=LAPSE, tie_width=0.7),
}
POSTERIORS = {"ep": EP(), "particles": Particles(4000)}


def answers_of(rng, w, count, *, k=K, noise="normalized", lapse=0.05, ties=True, appeal=True):
    """Return answers to random pairs in [-1, 1]^d."""
    out = []
    for _ in range(count):
        p, q = rng.uniform(-1, 1, size=(2, len(w))).tolist()
        shift = rng.normal() if appeal else 0.0
        chance = lapse / 2 + (1 - lapse) * naive_probability(naive_logit(w, p, q, k, noise, shift), "logistic")
        outcome = "first" if rng.random() < chance else "second"
        out.append((p, q, "tie" if ties and rng.random() < 0.2 else outcome, shift))
    return out


def grid_of(response, answers, k=K):
    """The posterior on a full grid."""
    factor, lapse = response.factor_prior, response.lapse_prior
    return reliability_grid(
        answers,
        k,
        response.noise,
        response.name,
        spread=None if factor is None else factor.spread,
        beta=None if lapse is None else (lapse.a, lapse.b),
        random=0.0 if lapse is None else lapse.random,
        lapse=0.0 if lapse is not None else response.lapse_rate,
        width=response.tie_width,
    )


def marginal(axis, weights):
    """Return mean and standard deviation."""
    mean = float(weights @ axis)
    return mean, math.sqrt(float(weights @ (axis - mean) ** 2))


def assert_near(found, expected, *, deviations, share):
    """Check a mean, to a tolerance in standard deviations, and a standard deviation, to a relative tolerance."""
    (mean, deviation), (true_mean, true_deviation) = found, expected
    assert abs(mean - true_mean) < deviations * true_deviation
    assert deviation == pytest.approx(true_deviation, rel=share)


def looking(lapse, weights):
    """Return the weights of people who do not always answer at random; only their k is identified."""
    kept = np.where(lapse < 1.0, weights, 0.0)
    return kept / kept.sum()


def assert_parameters_near(belief, axes, weights, k=K):
    """Check log k and lapse: distribution, typical values, and the parameters of the samples."""
    known = belief.reliability
    _, u, lapse = axes
    values, lapses, chances = known.distribution()
    assert chances.sum() == pytest.approx(1.0)
    assert np.all(chances >= 0.0)
    true_k = marginal(u, looking(lapse, weights).sum(axis=(0, 2)))
    true_lapse = marginal(lapse, weights.sum(axis=(0, 1)))
    if len(u) > 1:
        assert_near(marginal(np.log(values / k), looking(lapses, chances)), true_k, deviations=0.08, share=0.08)
        drawn = looking(known.lapse, belief.weights)
        assert_near(marginal(np.log(known.k / k), drawn), true_k, deviations=0.08, share=0.08)
        assert known.spread == pytest.approx(true_k[1], rel=0.08)
    else:
        assert values[chances > 0] == pytest.approx(k, rel=1e-9)
        assert known.k == pytest.approx(k, rel=1e-9)
        assert known.spread == pytest.approx(0.0, abs=1e-9)
    if len(lapse) > 1:
        assert_near(marginal(lapses, chances), true_lapse, deviations=0.08, share=0.08)
        assert_near(marginal(known.lapse, belief.weights), true_lapse, deviations=0.08, share=0.08)
        always = weights[:, :, -1].sum()
        # 0.08 standard deviations of a probability: at most 0.5, and half of that for probabilities near 0 or 1.
        assert chances[lapses == 1.0].sum() == pytest.approx(always, abs=0.02)
        assert belief.weights[known.lapse == 1.0].sum() == pytest.approx(always, abs=0.02)
    else:
        assert lapses[chances > 0] == pytest.approx(lapse[0], abs=1e-9)
        assert known.lapse == pytest.approx(lapse[0], abs=1e-9)
    assert abs(math.log(known.typical_k / k) - true_k[0]) <= 0.08 * true_k[1] + 1e-9
    assert abs(known.typical_lapse - true_lapse[0]) <= 0.08 * true_lapse[1] + 1e-9


class TestOneDimension:
    @pytest.mark.parametrize("posterior", POSTERIORS)
    @pytest.mark.parametrize("name", RESPONSES)
    @pytest.mark.parametrize("seed", [1, 2])
    def test_the_belief_is_that_of_a_grid_over_point_k_and_lapse(self, name, posterior, seed):
        """18 answers with ties and appeal: point, log k and lapse to 0.08 standard deviations, deviations to 8 %."""
        response = RESPONSES[name]
        answers = answers_of(np.random.default_rng(seed), [0.3], 18)
        belief = last_belief(POSTERIORS[posterior], response, evidence_of(response, answers))
        axes, weights, _ = grid_of(response, answers)
        place = marginal(axes[0], weights.sum(axis=(1, 2)))
        assert belief.info.method == "mixture"
        assert belief.info.nodes >= 4
        assert_near((belief.mean[0], math.sqrt(belief.covariance[0, 0])), place, deviations=0.08, share=0.08)
        assert_near(marginal(belief.samples[:, 0], belief.weights), place, deviations=0.08, share=0.08)
        assert_parameters_near(belief, axes, weights)

    @pytest.mark.parametrize("count", [0, 1, 60])
    @pytest.mark.parametrize("name", ["k and lapse", "k alone", "lapse alone"])
    def test_so_it_is_before_any_answer_and_after_many(self, name, count):
        response = RESPONSES[name]
        answers = answers_of(np.random.default_rng(4), [0.3], count, ties=False, appeal=False)
        evidence = evidence_of(response, answers) if count else Evidence(np.empty((0, 1)), np.empty(0), np.empty(0))
        belief = last_belief(EP(), response, evidence)
        axes, weights, _ = grid_of(response, answers)
        place = marginal(axes[0], weights.sum(axis=(1, 2)))
        assert_near((belief.mean[0], math.sqrt(belief.covariance[0, 0])), place, deviations=0.08, share=0.08)
        assert_parameters_near(belief, axes, weights)

    @pytest.mark.parametrize("seed", [0, 1, 3, 4, 5])
    def test_the_grid_of_k_is_as_fine_as_its_posterior_needs(self, seed):
        """80 answers of a reliable person leave a deviation of log k of 0.27 to 0.38, and nodes of the proposal are
        0.7 apart. At 1.3 deviations the error of the trapezoidal rule is below 1e-4; at 2.6 it is 0.1."""
        response = RESPONSES["k and lapse"]
        answers = answers_of(np.random.default_rng([seed, 80]), [0.3], 80, k=8.0, lapse=0.02, ties=False, appeal=False)
        belief = last_belief(EP(), response, evidence_of(response, answers))
        axes, weights, _ = grid_of(response, answers)
        true = marginal(axes[1], looking(axes[2], weights).sum(axis=(0, 2)))
        values, lapses, chances = belief.reliability.distribution()
        places = np.unique(np.log(values[(lapses < 1.0) & (chances > 0.0)] / K).round(9))
        # The deviation at the proposal's lapse is slightly wider than the one over all lapses.
        assert np.diff(places).max() < 1.6 * true[1]
        assert belief.info.nodes < 10
        assert_near(marginal(np.log(values / K), looking(lapses, chances)), true, deviations=0.04, share=0.02)

    @pytest.mark.parametrize("name", ["k and lapse", "lapse alone"])
    @pytest.mark.parametrize("count", [150, 300])
    def test_a_lapse_that_many_answers_determine_is_that_of_the_grid(self, name, count):
        """Means to 0.1 standard deviations, deviations to 5 %; with four lapse nodes they are off by 0.3 and 35 %."""
        response, k = RESPONSES[name], K if name == "lapse alone" else 8.0
        for seed in (0, 4, 5):
            answers = answers_of(
                np.random.default_rng([seed, count]), [0.3], count, k=k, lapse=0.02, ties=False, appeal=False
            )
            belief = last_belief(EP(), response, evidence_of(response, answers))
            axes, weights, _ = grid_of(response, answers)
            _, lapses, chances = belief.reliability.distribution()
            true = marginal(axes[2], weights.sum(axis=(0, 1)))
            assert_near(marginal(lapses, chances), true, deviations=0.1, share=0.05)

    @pytest.mark.parametrize("count", [200, 300])
    def test_the_grid_of_k_goes_on_to_where_its_posterior_ends(self, count):
        """A sharp person half of whose answers are lapses: a far larger k is likely than at the lapse of the proposal.

        With a grid that ended there, the point was off by 1.0 and log k by 2.4 deviations."""
        response = RESPONSES["k and lapse"]
        for seed in (0, 3, 5):
            answers = answers_of(
                np.random.default_rng([seed, count, 11]), [0.3], count, k=30.0, lapse=0.5, ties=False, appeal=False
            )
            belief = last_belief(EP(), response, evidence_of(response, answers))
            axes, weights, _ = grid_of(response, answers)
            place = marginal(axes[0], weights.sum(axis=(1, 2)))
            assert_near((belief.mean[0], math.sqrt(belief.covariance[0, 0])), place, deviations=0.08, share=0.08)
            values, lapses, chances = belief.reliability.distribution()
            true = marginal(axes[1], looking(axes[2], weights).sum(axis=(0, 2)))
            assert_near(marginal(np.log(values / K), looking(lapses, chances)), true, deviations=0.4, share=0.2)

    @pytest.mark.parametrize("posterior", POSTERIORS)
    @pytest.mark.parametrize("true", NOISES)
    @pytest.mark.parametrize("infer", ["the kind alone", "kind and reliability", "kind, reliability and lapse"])
    def test_an_unknown_noise_kind_is_weighted_by_its_evidence(self, true, infer, posterior):
        constants = 1.5, 3.0, 6.0
        response = ps.Logistic(
            1.0,
            ps.Unknown(ps.NoiseKinds((1.0, 2.0, 1.0), constants)),
            LAPSE if "lapse" in infer else 0.05,
            ps.Unknown(ps.LogNormal(1.0, 0.8)) if "reliability" in infer else 1.0,
        )
        k = constants[NOISES.index(true)]
        rng = np.random.default_rng(NOISES.index(true))
        answers = answers_of(rng, [0.3], 40, k=2.0 * k, noise=true, ties=False, appeal=False)
        belief = last_belief(POSTERIORS[posterior], response, evidence_of(response, answers))
        grids = [grid_of(kind, answers, kind.k) for kind, _ in response.kinds]
        logs = np.array([log_evidence for *_, log_evidence in grids]) + np.log([0.25, 0.5, 0.25])
        shares = np.exp(logs - logs.max())
        shares /= shares.sum()
        noise = belief.reliability.noise
        assert list(noise) == list(NOISES)
        # An error of 0.03 in a kind's evidence, by EP or 1000 particles per node, changes its probability by at most
        # 0.0075.
        assert list(noise.values()) == pytest.approx(shares, abs=0.03)
        place = sum(share * weights.sum(axis=(1, 2)) for share, (_, weights, _) in zip(shares, grids, strict=True))
        truth = marginal(grids[0][0][0], place)
        assert_near((belief.mean[0], math.sqrt(belief.covariance[0, 0])), truth, deviations=0.08, share=0.08)
        likeliest = int(np.argmax(list(noise.values())))
        axes, weights, _ = grids[likeliest]
        values, lapses, chances = belief.reliability.distribution()
        if len(axes[1]) > 1:
            truth = marginal(axes[1], looking(axes[2], weights).sum(axis=(0, 2)))
            logs = np.log(values / constants[likeliest])
            assert_near(marginal(logs, looking(lapses, chances)), truth, deviations=0.08, share=0.08)
        if len(axes[2]) > 1:
            truth = marginal(axes[2], weights.sum(axis=(0, 1)))
            assert_near(marginal(lapses, chances), truth, deviations=0.08, share=0.08)


@pytest.mark.parametrize(("deviation", "count"), [(5.0, 5), (0.2, 5), (0.15, 7), (0.1, 9), (0.01, 9), (0.0, 9)])
def test_a_grid_is_refined_up_to_twice(deviation, count):
    """Nodes are 0.25 apart, and may be up to 1.3 standard deviations apart."""
    refined = _refined(np.linspace(0.0, 1.0, 5), deviation)
    assert refined == pytest.approx(np.linspace(0.0, 1.0, count))


class TestConditionalDistribution:
    @pytest.mark.parametrize("name", ["k and lapse", "k alone", "lapse alone", "probit"])
    def test_of_k_and_lapse_given_the_point_is_that_of_the_grid(self, name):
        """At 256 of the samples: the probability of each k and the mean lapse, given the point."""
        response = RESPONSES[name]
        answers = answers_of(np.random.default_rng(5), [0.3], 18, ties=False)
        belief = last_belief(EP(), response, evidence_of(response, answers))
        (w, u, lapse), weights, _ = grid_of(response, answers)
        known = belief.reliability
        assert known.chances.sum(axis=1) == pytest.approx(np.ones(len(known.rows)))
        place = np.maximum(weights.sum(axis=(1, 2)), 1e-300)
        # People who always answer at random have no k; the prior median is reported instead.
        log_k = (np.where(lapse < 1.0, weights, 0.0).sum(axis=2) @ u) / place
        mean_lapse = (weights.sum(axis=1) @ lapse) / place
        at = belief.samples[known.rows, 0]
        # Compare where the posterior of the point has mass; in its tails it is not Gaussian.
        inside = np.abs(at - belief.mean[0]) < 1.5 * math.sqrt(belief.covariance[0, 0])
        found = known.chances @ np.log(known.nodes / K), np.sum(known.chances * known.lapses, axis=1)
        spreads = (
            marginal(u, looking(lapse, weights).sum(axis=(0, 2)))[1],
            marginal(lapse, weights.sum(axis=(0, 1)))[1],
        )
        for one, truth, spread in zip(found, (log_k, mean_lapse), spreads, strict=True):
            assert np.max(np.abs(one - np.interp(at, w, truth))[inside]) < 0.2 * spread + 1e-9


def test_typical_values_are_those_of_the_distribution_and_of_the_samples():
    response = RESPONSES["k and lapse"]
    answers = answers_of(np.random.default_rng(6), USER, 20)
    known = (belief := last_belief(EP(), response, evidence_of(response, answers))).reliability
    values, lapses, chances = known.distribution()
    for logs, shares, by in ((np.log(values), lapses, chances), (np.log(known.k), known.lapse, belief.weights)):
        mean, deviation = marginal(logs, looking(shares, by))
        assert mean == pytest.approx(math.log(known.typical_k), abs=0.05 * known.spread)
        assert deviation == pytest.approx(known.spread, rel=0.05)
        assert by @ shares == pytest.approx(known.typical_lapse, abs=0.05 * marginal(shares, by)[1])
    for name in ("k", "lapse", "rows", "nodes", "chances", "lapses"):
        assert not getattr(known, name).flags.writeable
    assert len(known.k) == len(known.lapse) == len(belief.samples)


@pytest.mark.parametrize("prior", [ps.UniformBox(), ps.GaussianPrior(0.0, 0.25)], ids=["box", "gaussian"])
@pytest.mark.parametrize("d", [2, 5])
def test_ep_and_particles_agree_in_more_dimensions(d, prior):
    response = RESPONSES["k and lapse"]
    answers = answers_of(np.random.default_rng(d), ([0.3, -0.2] * 3)[:d], 30)
    evidence = evidence_of(response, answers)
    posteriors = EP(8192), Particles(8000)
    one, two = (last_belief(posterior, response, evidence, prior=prior) for posterior in posteriors)
    distance, least, most = standardized(one, two.mean, two.covariance)
    # In the box a third of the 8192 samples is effective: the extreme ones of five variances are off by 5 % each.
    assert distance < 0.12
    assert 0.85 < least <= most < 1.15
    a, b = one.reliability, two.reliability
    assert math.log(a.typical_k / b.typical_k) == pytest.approx(0.0, abs=0.12 * b.spread)
    assert a.spread == pytest.approx(b.spread, rel=0.08)
    assert a.typical_lapse == pytest.approx(b.typical_lapse, abs=0.01)


class TestEvidenceOfOtherMethods:
    """If EP is inaccurate, importance samples or particles give p(answers | parameters)."""

    @pytest.mark.parametrize(
        "response", [ps.Logistic(2.0), ps.Logistic(2.0, lapse=0.1), ps.Probit(2.0, lapse=0.3)], ids=repr
    )
    @pytest.mark.parametrize("width", [0.0, 0.7])
    def test_agrees_with_quadrature(self, response, width):
        response = type(response)(2.0, lapse=response.lapse_rate, tie_width=width)
        answers = answers_from(np.random.default_rng(7), USER, 12, ps.Logistic(2.0))
        answers = [(p, q, "tie" if row % 4 == 3 else outcome) for row, (p, q, outcome) in enumerate(answers)]
        factors, prior = Factors.of(evidence_of(response, answers), response), ps.UniformBox()

        def log_density(x):
            return naive_log_posterior(
                x, answers, 2.0, "normalized", response.name, width, response.lapse_rate
            ) - math.log(4)

        expected = quadrature_log_mass(log_density, -np.ones(2), np.ones(2))
        weighted = sampled_point_belief(gaussian_fit(factors, prior), factors, prior, 2048)
        # With lapses a proposal from a single mode is not trusted.
        assert weighted.belief.info.method == ("weighted" if response.is_log_concave else "particles")
        # 2000 effective samples of a low-discrepancy sequence, or a few stages of 3000 particles.
        tolerance = 0.03 if response.is_log_concave else 0.15
        assert weighted.log_mass - log_prior_mass(prior, 2) == pytest.approx(expected, abs=tolerance)
        # A quarter of the 8000 particles is tempered, in a few stages whose ratios have standard deviations of about 1.
        found = [tempered_belief(factors, prior, 8000, 2, np.random.default_rng(seed))[1] for seed in range(3)]
        assert found == pytest.approx([expected] * 3, abs=0.15)


@pytest.mark.parametrize("a", [1e-4, 0.5, 1.0, 2.0, 40.0, 1e4])
@pytest.mark.parametrize("b", [1e-4, 0.5, 1.0, 9.0, 2000.0, 1e4])
def test_the_nodes_of_a_lapse_have_the_moments_of_its_prior(a, b):
    # Gauss quadrature with n nodes is exact for powers up to 2n - 1: E x^r is a product of (a + i)/(a + b + i).
    for count in (1, 2, 4, 12):
        nodes, weights = np.array(_jacobi(ps.Beta(a, b), count))
        assert np.all((nodes > 0) & (nodes < 1) & (weights >= 0))
        for power in range(1, 2 * count):
            exact = np.prod((a + np.arange(power)) / (a + b + np.arange(power)))
            assert np.dot(weights, np.power(nodes, power)) == pytest.approx(exact, rel=1e-9, abs=1e-8)


@pytest.mark.parametrize(("a", "b"), [(2.0, 2000.0), (2000.0, 2.0), (1e4, 1e4)])
def test_a_narrow_prior_of_a_lapse_is_inferred_with(a, b):
    items = ps.Items(np.random.default_rng(0).normal(size=(30, 2)))
    search = ps.Search(items, response=ps.Logistic(lapse=ps.Unknown(ps.Beta(a, b, random=0.0))), rng=1)
    for _ in range(3):
        query = search.ask()
        search.tell(query, winner=query.left)
    lapse = search.estimate().reliability.lapse
    # Three answers hardly move a prior that is worth thousands of them.
    assert lapse.low <= a / (a + b) <= lapse.high
    assert lapse.high - lapse.low < 0.02
