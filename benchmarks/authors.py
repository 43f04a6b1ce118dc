"""Pair selection as in the authors' program: a Python loop over pairs, with SciPy over all samples.

It follows the description of the published program, and is timed in the same run as ours. Stan, which draws new
posterior samples for every query, does not run here; its measured share, 4 % of the InfoGain loop in d = 4 and 8 % in
d = 12, is added.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from scipy.special import expit, xlog1py, xlogy

STAN_SHARE = {4: 0.04, 12: 0.08}


def infogain(a, b, k, samples, **_):
    p = expit(k * (samples @ a - b))
    marginal = p.mean()
    entropy = -(xlogy(marginal, marginal) + xlog1py(1 - marginal, -marginal)) / np.log(2)
    conditional = -np.mean(xlogy(p, p) + xlog1py(1 - p, -p)) / np.log(2)
    return entropy - conditional


def epmv(a, b, k, samples, *, covariance, penalty, **_):
    p = expit(k * (samples @ a - b)).mean()
    return k * np.sqrt(a @ covariance @ a) - penalty * abs(p - 0.5)


def mcmv(a, b, k, _, *, covariance, mean, **__):
    return k * np.sqrt(a @ covariance @ a) - abs(a @ mean - b) / np.linalg.norm(a)


UTILITIES: dict[str, Callable[..., float]] = {"infogain": infogain, "epmv": epmv, "mcmv": mcmv}


def seconds_per_pair(name, points, k, samples, *, pairs=300, repeats=3, rng):
    """Return the best time of a few loops over random pairs, with normalized noise."""
    covariance, mean = np.cov(samples.T), samples.mean(axis=0)
    penalty = np.sqrt(np.trace(np.cov(points.T)))
    utility = UTILITIES[name]
    best = np.inf
    for _ in range(repeats):
        first, second = rng.integers(0, len(points), size=(2, pairs))
        began = time.perf_counter()
        for i, j in zip(first, second, strict=True):
            p, q = points[i], points[j]
            a = 2 * (p - q)
            b = np.dot(p, p) - np.dot(q, q)
            length = np.linalg.norm(a)
            if length == 0:
                continue
            utility(a, b, k / length, samples, covariance=covariance, mean=mean, penalty=penalty)
        best = min(best, (time.perf_counter() - began) / pairs)
    return best
