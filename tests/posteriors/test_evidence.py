"""Tests of log p(answers): against quadrature of the model's formulas, and by its sum over all possible answers."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import beta

import pairseek as ps
from helpers.reference import naive_log_answer
from pairseek.posteriors import POSTERIORS

ITEMS = np.random.default_rng(3).normal(size=(6, 2))
# Pairs share items, so that an item's residual utility enters several answers.
PAIRS = [(0, 1), (0, 2), (2, 3)]
TOLD = ["first", "second", "first", "first", "second"]
COVARIANCE = np.array([[0.8, 0.3], [0.3, 0.5]])


class TruncatedPrior:
    """A user's own prior: a correlated Gaussian inside a box."""

    name = "truncated"

    def __init__(self, d):
        self.d = d
        axis = np.linspace(-1.0, 1.5, 201)
        axis = 0.5 * (axis[1:] + axis[:-1])
        self.points = np.stack([part.ravel() for part in np.meshgrid(*[axis] * d)], axis=1)
        away = self.points - 0.2
        self.weights = np.exp(-0.5 * np.einsum("nd,de,ne->n", away, np.linalg.inv(COVARIANCE[:d, :d]), away))
        self.weights /= self.weights.sum()

    def box(self, d):
        return np.full(d, -1.0), np.full(d, 1.5)

    def quadratic(self, d):
        return np.full(d, 0.2), np.linalg.inv(COVARIANCE[:d, :d])

    def moments(self, d):
        mean = self.weights @ self.points
        return mean, (self.points - mean).T @ ((self.points - mean) * self.weights[:, None])

    def entropy_bits(self, d):
        return 0.0

    def sample(self, n, d, rng):
        return self.points[rng.choice(len(self.points), n, p=self.weights)]


def gauss(mean, covariance, count):
    """Return (n, d) Gauss-Hermite nodes and weights of a Gaussian."""
    x, weights = np.polynomial.hermite_e.hermegauss(count)
    mean, root = np.atleast_1d(mean), np.linalg.cholesky(np.atleast_2d(covariance))
    points = np.array(list(itertools.product(x, repeat=len(mean)))) @ root.T + mean
    shares = np.array([math.prod(row) for row in itertools.product(weights / weights.sum(), repeat=len(mean))])
    return points, shares


def prior_nodes(prior, d, count=40):
    """Return points and weights of a prior."""
    if isinstance(prior, TruncatedPrior):
        return prior.points, prior.weights
    if isinstance(prior, ps.GaussianPrior):
        return gauss(*prior.moments(d), count)
    low, high = prior.box(d)
    x, weights = np.polynomial.legendre.leggauss(count)
    axes = [0.5 * (a + b) + 0.5 * (b - a) * x for a, b in zip(low, high, strict=True)]
    shares = [math.prod(row) for row in itertools.product(weights / 2.0, repeat=d)]
    return np.array(list(itertools.product(*axes))), np.array(shares)


def points_of(response, prior, d, *, few):
    """Return points, curvatures and weights, as many as memory allows with residual utilities."""
    points, shares = prior_nodes(prior, d, 16 if few else 32 if response.curvature_prior else 60)
    unknown = response.curvature_prior
    if unknown is None:
        return points, np.full(len(points), response.curvature), shares
    c, c_shares = gauss(unknown.mean, unknown.deviation**2, 10 if few else 24)
    return np.repeat(points, len(c), axis=0), np.tile(c[:, 0], len(points)), np.outer(shares, c_shares).ravel()


def rates_of(response):
    """Return the values of r and their weights."""
    if response.factor_prior is None:
        return [(1.0, 1.0)]
    logs, shares = gauss(0.0, response.factor_prior.spread**2, 40)
    return list(zip(np.exp(logs[:, 0]), shares, strict=True))


def lapses_of(response):
    """Return the lapses with their weights, and the fraction of people who always answer at random."""
    if response.lapse_prior is None:
        return [(response.lapse_rate, 1.0)], 0.0
    x, weights = np.polynomial.legendre.leggauss(80)
    places = 0.5 * (1.0 + x)
    shares = 0.5 * weights * beta(response.lapse_prior.a, response.lapse_prior.b).pdf(places)
    return list(zip(places, shares, strict=True)), response.lapse_prior.random


def quadrature(items, answers, response, prior):
    """Return log p(answers) as an integral over the point, the curvature, r, the lapse and residual utilities."""
    d, k = items.shape[1], response.typical_k
    deviation, (lapses, random) = response.residual_deviation, lapses_of(response)
    points, curvature, shares = points_of(response, prior, d, few=deviation > 0.0)
    centre = prior.moments(d)[0]

    def logit(p, q):
        first, second = (
            2.0 * k * (points - centre) @ (x - centre) - curvature * k * np.sum((x - centre) ** 2)
            for x in (items[p], items[q])
        )
        length = 2.0 * np.linalg.norm(items[p] - items[q])
        return {"constant": 1.0, "normalized": 1.0 / length, "decaying": math.exp(-length)}[response.noise] * (
            first - second
        )

    signs = np.zeros((len(answers), len(items)))
    for row, (p, q, _) in enumerate(answers):
        signs[row, p], signs[row, q] = 1.0, -1.0
    apart, apart_shares = np.zeros((1, len(answers))), np.ones(1)
    if deviation:
        # The differences of residual utilities that enter the answers.
        apart, apart_shares = gauss(np.zeros(len(answers)), deviation**2 * signs @ signs.T, 10)
    mass = 0.0
    for (rate, rate_share), (lapse, lapse_share) in itertools.product(rates_of(response), lapses):
        total = np.zeros((len(points), len(apart)))
        for row, (p, q, outcome) in enumerate(answers):
            z = rate * (logit(p, q)[:, None] + apart[:, row])
            total += naive_log_answer(z, outcome, response.name, response.tie_width, lapse)
        mass += rate_share * lapse_share * (shares @ np.exp(total) @ apart_shares)
    outcomes = 3 if response.tie_width else 2
    return math.log((1.0 - random) * mass + random * outcomes ** -len(answers))


def told(search, answers):
    for p, q, outcome in answers:
        search.observe(p, q, **({"tie": True} if outcome == "tie" else {"winner": p if outcome == "first" else q}))
    return search


def found(items, answers, **parts):
    return told(ps.Search(items, rng=1, **parts), answers).belief.info


def answers_of(count, ties):
    rows = [(0, 1), (2, 3), (4, 0), (1, 5), (3, 0)][:count]
    return [
        (p, q, "tie" if ties and row == 1 else outcome)
        for row, ((p, q), outcome) in enumerate(zip(rows, TOLD))  # noqa: B905
    ]


PRIORS = {
    "box": ps.UniformBox(-1.0, 1.5),
    "uneven box": lambda d: ps.UniformBox((-1.0, -3.0)[:d], (2.0, 0.5)[:d]),
    "gaussian": lambda d: ps.GaussianPrior((0.3, -0.2)[:d], COVARIANCE[:d, :d]),
    "own": TruncatedPrior,
}
RESPONSES = {
    "logistic": ps.Logistic(1.0, "constant"),
    "probit": ps.Probit(0.4),
    "decaying": ps.Logistic(2.0, "decaying"),
    "ties": ps.Logistic(1.0, "constant", tie_width=0.6),
    "probit with ties": ps.Probit(0.4, "constant", tie_width=0.6),
    "lapse": ps.Logistic(1.0, "constant", lapse=0.2),
    "lapse and ties": ps.Logistic(1.0, "constant", lapse=0.2, tie_width=0.6),
}
# EP and importance samples, some hundreds of which count beside lapses; ratios of the stages of particles; cells.
TOLERANCE = {"ep": 0.02, "ep with lapses": 0.1, "particles": 0.12, "grid": 2e-3}


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("response", RESPONSES)
@pytest.mark.parametrize("posterior", POSTERIORS)
def test_every_posterior_agrees_with_quadrature(posterior, response, prior, d):
    items, answers = ITEMS[:, :d], answers_of(4, "ties" in response)
    own = PRIORS[prior](d) if callable(PRIORS[prior]) else PRIORS[prior]
    parts = {"response": RESPONSES[response], "prior": own}
    info = found(ps.Items(items), answers, posterior=POSTERIORS[posterior](), **parts)
    expected = quadrature(items, answers, RESPONSES[response], own)
    method = f"{posterior} with lapses" if posterior == "ep" and "lapse" in response else posterior
    assert info.log_evidence == pytest.approx(expected, abs=TOLERANCE[method])


UNKNOWN = {
    "k": ps.Logistic(ps.Unknown(ps.LogNormal(1.0, 0.8)), "constant"),
    "lapse": ps.Logistic(1.0, "constant", lapse=ps.Unknown(ps.Beta(1.0, 4.0, random=0.2))),
    "k and lapse": ps.Logistic(ps.Unknown(ps.LogNormal(1.0, 0.8)), "constant", lapse=ps.Unknown(ps.Beta(2.0, 6.0))),
    "residual": ps.Logistic(1.0, "constant", residual=0.7),
    "curvature given": ps.Logistic(1.0, "constant", curvature=0.4),
    "curvature": ps.Logistic(1.0, "constant", curvature=ps.Unknown()),
    "k and residual": ps.Logistic(ps.Unknown(ps.LogNormal(1.0, 0.8)), "constant", residual=0.7),
}


@pytest.mark.parametrize("name", UNKNOWN)
@pytest.mark.parametrize("posterior", ["ep", "particles"])
def test_unknown_parameters_are_integrated_out(name, posterior):
    d = 1 if "k" in name or "lapse" in name else 2
    items, answers = ITEMS[:, :d], [(*pair, outcome) for pair, outcome in zip(PAIRS, TOLD, strict=False)]
    prior = PRIORS["gaussian"](d)
    info = found(ps.Items(items), answers, posterior=POSTERIORS[posterior](), response=UNKNOWN[name], prior=prior)
    expected = quadrature(items, answers, UNKNOWN[name], prior)
    # Residual utilities are many more dimensions for particles.
    tolerance = 0.03 if posterior == "ep" else 0.2
    assert info.log_evidence == pytest.approx(expected, abs=tolerance)


def test_an_unknown_noise_kind_is_averaged_over():
    response = ps.Logistic(1.0, ps.Unknown(ps.NoiseKinds((1.0, 2.0, 1.0), (1.0, 1.5, 2.0))))
    prior, answers = PRIORS["gaussian"](2), answers_of(4, ties=False)
    kinds = [
        math.log(share) + quadrature(ITEMS, answers, ps.Logistic(k, noise), prior)
        for noise, k, share in zip(
            ("constant", "normalized", "decaying"), (1.0, 1.5, 2.0), (0.25, 0.5, 0.25), strict=True
        )
    ]
    info = found(ps.Items(ITEMS), answers, response=response, prior=prior)
    assert info.log_evidence == pytest.approx(logsumexp(kinds), abs=0.02)


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("outcomes", list(itertools.product(["first", "second"], repeat=3)))
def test_of_a_default_search(outcomes, d):
    items = ps.Items(ITEMS[:, :d])
    search = ps.Search(items, rng=1)
    answers = [(*pair, outcome) for pair, outcome in zip(PAIRS, outcomes, strict=True)]
    expected = quadrature(items.coordinates, answers, search.response, search.prior)
    assert told(search, answers).belief.info.log_evidence == pytest.approx(expected, abs=0.03)


def test_of_a_box_prior_in_two_dimensions_has_its_constant():
    """An uninformative answer has probability 1/2 under every prior, whatever its volume; a box is sampled."""
    items = ps.Items([[0.0, 0.0], [1.0, 1.0], [2.0, 0.5]])
    for prior in (ps.UniformBox(), ps.UniformBox(-3.0, 3.0), ps.GaussianPrior(0.0, 4.0)):
        info = found(items, [(0, 1, "first")], response=ps.Logistic(0.0, "constant"), prior=prior)
        assert info.log_evidence == pytest.approx(math.log(0.5), abs=0.01)


SITUATIONS = {
    "default": {},
    "default in many dimensions": {"items": ps.Items(np.random.default_rng(1).normal(size=(30, 20)))},
    "without coordinates": {"items": ps.Items(ids=range(6))},
    "a residual alone": {"response": ps.Logistic(0.3, "constant", residual=1.0)},
    "box": {"prior": ps.UniformBox()},
    "box and residual": {"prior": ps.UniformBox(), "response": ps.Logistic(1.0, residual=0.7)},
    "grid": {"posterior": ps.Grid(), "response": ps.Logistic()},
    "k": {"response": ps.Logistic(ps.Unknown())},
    "k and lapse": {"response": ps.Logistic(ps.Unknown(), lapse=ps.Unknown())},
    "noise kind": {"response": ps.Logistic(noise=ps.Unknown())},
    "everything": {
        "response": ps.Logistic(ps.Unknown(), "constant", ps.Unknown(), residual=0.7, curvature=ps.Unknown())
    },
    "probit": {"response": ps.Probit(1.0, tie_width=0.0)},
    "ties": {"response": ps.Logistic(0.3, "constant", tie_width=0.5, residual=1.5, curvature=ps.Unknown())},
    "ties and lapse": {"response": ps.Probit(1.0, tie_width=0.5, lapse=0.2)},
    "ties and an unknown lapse": {"response": ps.Logistic(ps.Unknown(), tie_width=0.5, lapse=ps.Unknown())},
    "a curvature that is given": {"response": ps.Logistic(1.0, "constant", curvature=-0.5)},
    "actrank": {"strategy": ps.ActRank()},
    "list": {"goal": "list"},
    "large items": {"items": ps.Items(1e6 * ITEMS)},
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_probabilities_of_all_answers_sum_to_one(name):
    """For every model, exp(log_evidence) sums to 1 over all possible answers to three pairs."""
    parts = {"items": ps.Items(ITEMS), **SITUATIONS[name]}
    items = parts.pop("items")
    start = ps.Search(items, rng=1, **parts)
    outcomes = ["first", "second", *(["tie"] if start.response.tie_width else [])]
    logs = [
        found(items, [(*pair, one) for pair, one in zip(PAIRS, history, strict=True)], **parts).log_evidence
        for history in itertools.product(outcomes, repeat=3)
    ]
    # EP is nearly exact for so few answers; the nodes of unknown parameters are exact to about 0.3 %.
    assert np.sum(np.exp(logs)) == pytest.approx(1.0, abs=0.015)


@pytest.mark.parametrize("name", SITUATIONS)
def test_it_is_zero_before_the_first_answer(name):
    parts = {"items": ps.Items(ITEMS), **SITUATIONS[name]}
    search = ps.Search(parts.pop("items"), rng=1, **parts)
    assert search.belief.info.log_evidence == pytest.approx(0.0, abs=1e-7)
    search.skip(search.ask())
    assert search.belief.info.log_evidence == pytest.approx(0.0, abs=1e-7)


def test_of_a_space():
    space = ps.Space((0.0, -1.0), (4.0, 1.0))
    total = 0.0
    for outcomes in itertools.product([0, 1], repeat=2):
        search = ps.Search(space, rng=1)
        for pair, won in zip((((0.5, 0.0), (3.0, 0.5)), ((1.0, -0.5), (2.0, 0.8))), outcomes, strict=True):
            search.observe(*pair, winner=pair[won])
        total += math.exp(search.belief.info.log_evidence)
    assert total == pytest.approx(1.0, abs=0.01)
