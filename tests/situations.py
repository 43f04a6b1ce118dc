"""Situations that several tests look at: answers, evidence, and beliefs made by hand."""

from __future__ import annotations

import numpy as np

from pairseek._types import BeliefInfo, Evidence
from pairseek.posteriors import Particles
from pairseek.posteriors.base import sampled_belief
from pairseek.priors import UniformBox
from reference import naive_logit, naive_probability

LINKS = {"logistic": 0, "probit": 1}


def answers_from(rng, user, count, response):
    """Answers of a user at this point to random pairs of the box [-1, 1]^d, as (p, q, outcome)."""
    out = []
    for _ in range(count):
        p, q = rng.uniform(-1, 1, size=(2, len(user))).tolist()
        chance = naive_probability(naive_logit(user, p, q, response.k, response.noise), response.name)
        out.append((p, q, "first" if rng.random() < chance else "second"))
    return out


def evidence_of(response, answers):
    """The same answers as the library holds them: oriented towards the winner."""
    sides = [(q, p) if outcome == "second" else (p, q) for p, q, outcome, *_ in answers]
    winners, losers = (np.array([side[i] for side in sides], dtype=float) for i in (0, 1))
    shifts = [-sum(appeal) if outcome == "second" else sum(appeal) for _, _, outcome, *appeal in answers]
    slopes, offsets = response.planes(winners, losers, np.array(shifts, dtype=float))
    decided = np.array([float(outcome != "tie") for _, _, outcome, *_ in answers])
    return Evidence(np.ascontiguousarray(slopes), offsets, decided)


def first_of(evidence, count):
    """The first answers."""
    appeal = None if evidence.appeal is None else evidence.appeal[:count]
    return Evidence(evidence.slopes[:count], evidence.offsets[:count], evidence.decided[:count], appeal)


def beliefs_along(posterior, response, evidence, *, prior=None):
    """The belief before any answer, and after each."""
    for m in range(len(evidence.offsets) + 1):
        yield posterior.infer(first_of(evidence, m), UniformBox() if prior is None else prior, response)


def last_belief(posterior, response, evidence, *, prior=None):
    """The belief after all answers."""
    return posterior.infer(evidence, UniformBox() if prior is None else prior, response)


def belief_of(samples, weights, mean, covariance):
    """A belief with these samples and moments."""
    return sampled_belief(samples, weights, (mean, covariance), BeliefInfo("particles"))


def made_belief(rng, n, d, *, spread=0.4, even=False):
    """A belief of random samples and weights; its moments are those of the samples."""
    samples = rng.normal(scale=spread, size=(n, d)) + rng.uniform(-0.3, 0.3, size=d)
    weights = np.full(n, 1.0 / n) if even else rng.dirichlet(np.ones(n))
    mean = weights @ samples
    centred = samples - mean
    covariance = (centred * weights[:, None]).T @ centred
    return belief_of(samples, weights, mean, covariance)


def standardized(belief, mean, covariance):
    """Distance of the means in posterior deviations, and the least and largest ratio of variances in any direction."""
    values, vectors = np.linalg.eigh(covariance)
    whitener = vectors / np.sqrt(values)
    ratios = np.linalg.eigvalsh(whitener.T @ belief.covariance @ whitener)
    return float(np.linalg.norm((belief.mean - mean) @ whitener)), float(ratios[0]), float(ratios[-1])


def reliable_evidence(response, answers):
    """`evidence_of` answers (p, q, outcome, appeal difference) for a response whose k may be unknown."""
    appeal = np.array([-shift if outcome == "second" else shift for _, _, outcome, shift in answers])
    made = evidence_of(response, answers)
    return Evidence(made.slopes, made.offsets, made.decided, appeal)


def reliable_belief(response, answers, *, n=4000, seed=0):
    """The belief of particles after all answers, for a response whose k or lapse may be unknown."""
    return Particles(n, seed=seed).infer(reliable_evidence(response, answers), UniformBox(), response)
