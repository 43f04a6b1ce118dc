"""Situations shared by tests: answers, evidence, and hand-made beliefs."""

from __future__ import annotations

import numpy as np

from helpers.reference import naive_logit, naive_probability
from pairseek.core.types import BeliefInfo, Evidence
from pairseek.model.priors import UniformBox
from pairseek.model.responses import Logistic, Probit
from pairseek.posteriors import EP
from pairseek.posteriors.base import sampled_belief

LINKS = {"logistic": 0, "probit": 1}
USER = [0.3, -0.2]
OUTSIDE = [3.0, 2.5]


def answers_from(rng, user, count, response):
    """Return a user's answers to random pairs in the box [-1, 1]^d, as (p, q, outcome)."""
    out = []
    for _ in range(count):
        p, q = rng.uniform(-1, 1, size=(2, len(user))).tolist()
        chance = naive_probability(naive_logit(user, p, q, response.k, response.noise), response.name)
        out.append((p, q, "first" if rng.random() < chance else "second"))
    return out


def evidence_of(response, answers):
    """Return the answers as evidence, oriented towards the winner."""
    sides = [(q, p) if outcome == "second" else (p, q) for p, q, outcome, *_ in answers]
    winners, losers = (np.array([side[i] for side in sides], dtype=float) for i in (0, 1))
    shifts = [-sum(appeal) if outcome == "second" else sum(appeal) for _, _, outcome, *appeal in answers]
    slopes, offsets = response.planes(winners, losers, np.array(shifts, dtype=float))
    decided = np.array([float(outcome != "tie") for _, _, outcome, *_ in answers])
    return Evidence(np.ascontiguousarray(slopes), offsets, decided)


def first_of(evidence, count):
    """Return the first answers."""
    return Evidence(evidence.slopes[:count], evidence.offsets[:count], evidence.decided[:count])


def beliefs_along(posterior, response, evidence, *, prior=None):
    """Yield the belief before the first answer and after each answer."""
    for m in range(len(evidence.offsets) + 1):
        yield posterior.infer(first_of(evidence, m), UniformBox() if prior is None else prior, response)


def last_belief(posterior, response, evidence, *, prior=None):
    """Return the belief after all answers."""
    return posterior.infer(evidence, UniformBox() if prior is None else prior, response)


def belief_of(samples, weights, mean, covariance):
    """Return a belief with these samples and moments."""
    return sampled_belief(samples, weights, (mean, covariance), BeliefInfo("particles"))


def made_belief(rng, n, d, *, spread=0.4, even=False):
    """Return a belief with random samples and weights, and their moments."""
    samples = rng.normal(scale=spread, size=(n, d)) + rng.uniform(-0.3, 0.3, size=d)
    weights = np.full(n, 1.0 / n) if even else rng.dirichlet(np.ones(n))
    mean = weights @ samples
    centred = samples - mean
    covariance = (centred * weights[:, None]).T @ centred
    return belief_of(samples, weights, mean, covariance)


def standardized(belief, mean, covariance):
    """Return the Mahalanobis distance of the means, and the extreme ratios of variances along any direction."""
    values, vectors = np.linalg.eigh(covariance)
    whitener = vectors / np.sqrt(values)
    ratios = np.linalg.eigvalsh(whitener.T @ belief.covariance @ whitener)
    return float(np.linalg.norm((belief.mean - mean) @ whitener)), float(ratios[0]), float(ratios[-1])


def reliable_belief(response, answers, *, posterior=None):
    """Return the belief after all answers, by EP or another posterior; k or the lapse rate may be unknown."""
    return last_belief(EP() if posterior is None else posterior, response, evidence_of(response, answers))


def taken_back(answers):
    """Return the same pairs with the opposite outcomes."""
    return [(p, q, "second" if outcome == "first" else "first") for p, q, outcome in answers]


def contradicting(rng, response):
    answers = answers_from(rng, USER, 6, response)
    return answers + taken_back(answers)


def one_pair_both_ways(_, __):
    return [([0.2, 0.3], [-0.4, 0.1], "first"), ([0.2, 0.3], [-0.4, 0.1], "second")] * 4


def ties(rng, response):
    return [(p, q, "tie") for p, q, _ in answers_from(rng, USER, 25, response)]


def mixed(rng, response):
    return [
        (p, q, "tie" if rng.random() < 0.3 else o, rng.normal()) for p, q, o in answers_from(rng, USER, 20, response)
    ]


def from_user(user, count):
    return lambda rng, response: answers_from(rng, user, count, response)


SITUATIONS = {
    "twenty answers": (Logistic(2.0), from_user(USER, 20)),
    "constant noise": (Logistic(0.8, "constant"), from_user(USER, 20)),
    "decaying noise": (Logistic(9.0, "decaying"), from_user(USER, 20)),
    "probit": (Probit(2.0), from_user(USER, 20)),
    "ties": (Logistic(3.0), ties),
    "probit ties": (Probit(3.0), ties),
    "answers, ties and appeal": (Logistic(3.0), mixed),
    "k = 0": (Logistic(0.0), from_user(USER, 10)),
    "k = 300": (Logistic(300.0), from_user(USER, 8)),
    "k = 1e4": (Logistic(1e4), from_user(USER, 8)),
    "k = 1e6": (Logistic(1e6), from_user(USER, 8)),
    "k = 1e6, constant noise": (Logistic(1e6, "constant"), from_user(USER, 8)),
    "k = 1e6, decaying noise": (Logistic(1e6, "decaying"), from_user(USER, 8)),
    "k = 1e6, probit": (Probit(1e6), from_user(USER, 8)),
    "user outside": (Logistic(3.0), from_user(OUTSIDE, 40)),
    "user outside, k = 1000": (Logistic(1e3), from_user(OUTSIDE, 40)),
    "user outside, k = 1e6": (Logistic(1e6), from_user(OUTSIDE, 12)),
    "user outside, probit": (Probit(10.0), from_user(OUTSIDE, 30)),
    "contradicting": (Logistic(3.0), contradicting),
    "contradicting, k = 1e6": (Logistic(1e6), contradicting),
    "contradicting, probit, k = 100": (Probit(100.0), contradicting),
    "contradicting, probit, k = 1e6": (Probit(1e6), contradicting),
    "one pair both ways, k = 1e6": (Logistic(1e6), one_pair_both_ways),
    "one pair both ways, probit, k = 1e6": (Probit(1e6), one_pair_both_ways),
}
