"""Numba kernel of the mixture of segments."""

from __future__ import annotations

import math

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.numerics.jit import kernel
from pairseek.posteriors.ep_kernels import invert


@kernel
def fit_mixture(  # noqa: C901
    linear: FloatArray,
    precision: FloatArray,
    weight: FloatArray,
    share: FloatArray,
    centre: FloatArray,
    within: FloatArray,
    prior_within: FloatArray,
    prior_counts: FloatArray,
    max_iterations: int,
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
    prior_within, prior_counts
        (q, q) prior mean of `within`, and (2,) numbers of people that the priors of `within` and of each share count
        as.
    max_iterations, tolerance
        Maximum number of iterations (0 only evaluates), and improvement of the log-likelihood below which they stop.
    joint
        Output: (people, s) log-likelihoods of each person in each segment, plus the log of its share.
    """
    people, q = linear.shape
    segments = len(share)
    total = np.sum(weight)
    previous = -1e300
    mean = np.empty((people, segments, q))
    covariance = np.empty((people, q, q))
    responsibility = np.empty((people, segments))
    within_precision, work = np.empty((q, q)), np.empty((q, q))
    for iteration in range(max_iterations + 1):
        work[:] = within
        within_log_det = -invert(work, within_precision)[1]
        centre_linear = centre @ within_precision
        objective = 0.0
        for p in range(people):
            for i in range(q):
                for j in range(q):
                    work[i, j] = precision[p, i, j] + within_precision[i, j]
            log_det = within_log_det - invert(work, covariance[p])[1]
            largest = -1e300
            for s in range(segments):
                value = -log_det
                for i in range(q):
                    mean[p, s, i] = 0.0
                    for j in range(q):
                        mean[p, s, i] += covariance[p, i, j] * (linear[p, j] + centre_linear[s, j])
                    value += (linear[p, i] + centre_linear[s, i]) * mean[p, s, i] - centre_linear[s, i] * centre[s, i]
                joint[p, s] = math.log(share[s]) + 0.5 * value
                largest = max(largest, joint[p, s])
            normaliser = 0.0
            for s in range(segments):
                responsibility[p, s] = math.exp(joint[p, s] - largest)
                normaliser += responsibility[p, s]
            for s in range(segments):
                responsibility[p, s] *= weight[p] / normaliser
            objective += weight[p] * (largest + math.log(normaliser))
        if iteration == max_iterations or objective - previous < tolerance:
            break
        previous = objective
        scatter = prior_counts[0] * prior_within
        for s in range(segments):
            mass = np.sum(responsibility[:, s])
            share[s] = (mass + prior_counts[1]) / (total + prior_counts[1] * segments)
            for i in range(q):
                centre[s, i] = np.sum(responsibility[:, s] * mean[:, s, i]) / max(mass, 1e-9)
            for p in range(people):
                for i in range(q):
                    for j in range(q):
                        deviation = (mean[p, s, i] - centre[s, i]) * (mean[p, s, j] - centre[s, j])
                        scatter[i, j] += responsibility[p, s] * (deviation + covariance[p, i, j])
        within[:] = scatter / (total + prior_counts[0])
