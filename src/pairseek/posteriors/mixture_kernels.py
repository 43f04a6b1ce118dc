"""Kernel of unknown parameters: the likelihood of all answers at user points, for a grid of factors and lapses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.numerics.jit import LOGISTIC, exp_minus, kernel, log_tie

# So many probabilities, of at least 1e-16, can be multiplied without underflow.
_BLOCK = 16
_LAPSING_BLOCK = 96
_LEAST = 1e-16


@kernel
def log_likelihood_grid(  # noqa: C901
    start: int,
    stop: int,
    points: FloatArray,
    evidence: Any,
    factors: FloatArray,
    lapses: FloatArray,
    width: float,
    link: int,
    out: FloatArray,
) -> None:
    """Write the log-likelihood of all answers at each point, for each factor on the logits and each lapse.

    ``evidence`` is (slopes (m, d), offsets (m,), decided (m,)), ``factors`` (U,), ``lapses`` (L,), ``width`` that of a
    tie, and ``out`` (n, U, L). O(m (d + U (1 + L))) a point. The probability of an answer without lapse counts as at
    least 1e-16, so that blocks of them are multiplied before a logarithm is taken.
    """
    slopes, offsets, decided = evidence
    m, d = slopes.shape
    outcomes = 3.0 if width > 0.0 else 2.0
    z = np.empty(m)
    p = np.empty(m)
    # A tie that was not offered cannot be a lapse.
    offered = np.ones(m)
    tied = False
    for j in range(m):
        if decided[j] == 0.0:
            tied = True
            offered[j] = 1.0 if width > 0.0 else 0.0
    for row in range(start, stop):
        for j in range(m):
            z[j] = offsets[j]
            for i in range(d):
                z[j] += slopes[j, i] * points[row, i]
        for u in range(len(factors)):
            if link == LOGISTIC:
                for j in range(m):
                    y = factors[u] * z[j] - width
                    e = exp_minus(abs(y))
                    p[j] = max((1.0 if y > 0.0 else e) / (1.0 + e), _LEAST)
            else:
                for j in range(m):
                    p[j] = max(0.5 * math.erfc(-(factors[u] * z[j] - width) * math.sqrt(0.5)), _LEAST)
            for j in range(m if tied else 0):
                if decided[j] == 0.0:
                    p[j] = max(math.exp(log_tie(factors[u] * z[j], width, link)), _LEAST)
            for q in range(len(lapses)):
                rest = 1.0 - lapses[q]
                floor = lapses[q] / outcomes
                total = 0.0
                # With lapses every probability is at least the floor, and longer products do not underflow.
                length = _LAPSING_BLOCK if floor > 1e-3 and not (tied and width == 0.0) else _BLOCK
                for block in range(0, m, length):
                    product = 1.0
                    for j in range(block, min(block + length, m)):
                        product *= floor * offered[j] + rest * p[j]
                    total += math.log(product)
                out[row, u, q] = total
