"""Numba kernel of the mixture of segments."""

from __future__ import annotations

import math

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.numerics.jit import kernel


@kernel
def fit_mixture(
    linear: FloatArray,
    precision: FloatArray,
    weight: FloatArray,
    share: FloatArray,
    centre: FloatArray,
    within: FloatArray,
    usual: FloatArray,
    pseudo: FloatArray,
    rounds: int,
    tolerance: float,
    joint: FloatArray,
) -> None:
    """Fit a mixture of Gaussians with a common covariance to Gaussian likelihoods exp(η·z - z'Λz/2), by EM in place.

    Parameters
    ----------
    linear, precision, weight
        (people, q) vectors η, (people, q, q) matrices Λ, and (people,) weights.
    share, centre, within
        (s,) shares, (s, q) centres and the (q, q) covariance, updated in place.
    usual, pseudo
        (q, q) prior covariance of `within`, and how many people the priors of `within` and of each share count as.
    rounds, tolerance
        Maximum number of iterations (0 only evaluates), and the improvement of the log-likelihood below which they
        stop.
    joint
        Output: (people, s) log-likelihoods of each person in each segment, plus the log of its share.
    """
    people, q = linear.shape
    segments = len(share)
    total = np.sum(weight)
    before = -1e300
    mean = np.empty((people, segments, q))
    covariance = np.empty((people, q, q))
    chance = np.empty((people, segments))
    for turn in range(rounds + 1):
        prior = np.linalg.inv(within)
        pull = centre @ prior
        volume = np.linalg.slogdet(within)[1]
        objective = 0.0
        for p in range(people):
            inner = precision[p] + prior
            covariance[p] = np.linalg.inv(inner)
            size = volume + np.linalg.slogdet(inner)[1]
            top = -1e300
            for s in range(segments):
                natural = linear[p] + pull[s]
                mean[p, s] = covariance[p] @ natural
                value = np.sum(natural * mean[p, s]) - np.sum(pull[s] * centre[s]) - size
                joint[p, s] = math.log(share[s]) + 0.5 * value
                top = max(top, joint[p, s])
            norm = 0.0
            for s in range(segments):
                chance[p, s] = math.exp(joint[p, s] - top)
                norm += chance[p, s]
            for s in range(segments):
                chance[p, s] *= weight[p] / norm
            objective += weight[p] * (top + math.log(norm))
        if turn == rounds or objective - before < tolerance:
            break
        before = objective
        second = pseudo[0] * usual
        for s in range(segments):
            mass = np.sum(chance[:, s])
            share[s] = (mass + pseudo[1]) / (total + pseudo[1] * segments)
            for i in range(q):
                centre[s, i] = np.sum(chance[:, s] * mean[:, s, i]) / max(mass, 1e-9)
            for p in range(people):
                away = mean[p, s] - centre[s]
                second += chance[p, s] * (np.outer(away, away) + covariance[p])
        within[:] = second / (total + pseudo[0])
