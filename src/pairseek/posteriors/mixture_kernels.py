"""Kernels for unknown response parameters: likelihoods on a grid of factors and lapses, and mixture densities."""

from __future__ import annotations

import math

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.numerics.jit import LOGISTIC, AnswerArrays, exp_minus, kernel, log_tie

# Probabilities without lapses are clipped from below to this one.
_MIN_PROBABILITY = 1e-16
# Number of probabilities, each at least _MIN_PROBABILITY, whose product does not underflow.
_CLIPPED_BLOCK_LENGTH = 16
# If lapses keep every probability above _LAPSING_FLOOR, _LAPSING_BLOCK_LENGTH of them multiply without underflow.
_LAPSING_FLOOR = 1e-3
_LAPSING_BLOCK_LENGTH = 96
# Points computed together, so that all loops over them use vector registers.
_POINTS_PER_BLOCK = 64


@kernel
def likelihood_grid(  # noqa: C901
    start: int,
    stop: int,
    points: FloatArray,
    evidence: AnswerArrays,
    multipliers: FloatArray,
    lapse_rates: FloatArray,
    width: float,
    link: int,
    out: FloatArray,
    log_scale: FloatArray,
) -> None:
    """Write the likelihood of all answers at each point, for each multiplier of the logits and each lapse rate.

    ``evidence`` is (slopes (m, d), offsets (m,), decided (m,)), ``multipliers`` (U,), ``lapse_rates`` (L,), ``width``
    the tie width. The likelihood is ``out`` (n, U, L), scaled so that the largest value in each row is 1, times
    exp(``log_scale``) (n,). O(m (d + U (1 + L))) per point. The probability of an answer that is not a lapse is clipped
    to at least 1e-16, so that a block of probabilities can be multiplied before rescaling.
    """
    slopes, offsets, decided = evidence
    m, d = slopes.shape
    outcomes = 3.0 if width > 0.0 else 2.0
    # A tie that was not offered cannot be a lapse.
    block_length = _LAPSING_BLOCK_LENGTH if np.min(lapse_rates) / outcomes > _LAPSING_FLOOR else _CLIPPED_BLOCK_LENGTH
    for j in range(m):
        if decided[j] == 0.0 and width == 0.0:
            block_length = _CLIPPED_BLOCK_LENGTH
    x, z, p = np.empty((d, _POINTS_PER_BLOCK)), np.empty((m, _POINTS_PER_BLOCK)), np.empty(_POINTS_PER_BLOCK)
    value, top = np.empty((len(multipliers), len(lapse_rates), _POINTS_PER_BLOCK)), np.empty(_POINTS_PER_BLOCK)
    for first in range(start, stop, _POINTS_PER_BLOCK):
        count = min(_POINTS_PER_BLOCK, stop - first)
        for b in range(_POINTS_PER_BLOCK):
            for i in range(d):
                x[i, b] = points[first + min(b, count - 1), i]
        for j in range(m):
            for b in range(_POINTS_PER_BLOCK):
                z[j, b] = offsets[j]
            for i in range(d):
                for b in range(_POINTS_PER_BLOCK):
                    z[j, b] += slopes[j, i] * x[i, b]
        value[:] = 1.0
        log_scale[first : first + count] = 0.0
        for block in range(0, m, block_length):
            for u in range(len(multipliers)):
                for j in range(block, min(block + block_length, m)):
                    if decided[j] == 0.0:
                        for b in range(_POINTS_PER_BLOCK):
                            p[b] = max(math.exp(log_tie(multipliers[u] * z[j, b], width, link)), _MIN_PROBABILITY)
                    elif link == LOGISTIC:
                        for b in range(_POINTS_PER_BLOCK):
                            y = multipliers[u] * z[j, b] - width
                            e = exp_minus(abs(y))
                            p[b] = max((1.0 if y > 0.0 else e) / (1.0 + e), _MIN_PROBABILITY)
                    else:
                        for b in range(_POINTS_PER_BLOCK):
                            y = multipliers[u] * z[j, b] - width
                            p[b] = max(0.5 * math.erfc(-y * math.sqrt(0.5)), _MIN_PROBABILITY)
                    offered = 0.0 if decided[j] == 0.0 and width == 0.0 else 1.0
                    for q in range(len(lapse_rates)):
                        floor, scale = offered * lapse_rates[q] / outcomes, 1.0 - lapse_rates[q]
                        for b in range(_POINTS_PER_BLOCK):
                            value[u, q, b] *= floor + scale * p[b]
            top[:] = 0.0
            for u in range(len(multipliers)):
                for q in range(len(lapse_rates)):
                    for b in range(_POINTS_PER_BLOCK):
                        top[b] = max(top[b], value[u, q, b])
            for u in range(len(multipliers)):
                for q in range(len(lapse_rates)):
                    for b in range(_POINTS_PER_BLOCK):
                        value[u, q, b] /= top[b]
            for b in range(count):
                log_scale[first + b] += math.log(top[b])
        for b in range(count):
            for u in range(len(multipliers)):
                for q in range(len(lapse_rates)):
                    out[first + b, u, q] = value[u, q, b]


@kernel
def mixture_densities(
    start: int,
    stop: int,
    points: FloatArray,
    means: FloatArray,
    whitening: FloatArray,
    component_weights: FloatArray,
    out: FloatArray,
) -> None:
    """Write Σ weight · e^(-|W (x - mean)|²/2) over the components, at each point.

    ``means`` is (N, d), ``whitening`` (N, d, d) the inverse roots W of the covariances, ``component_weights`` (N,). A
    component more than 8.5 standard deviations away counts as 8.5 away, 2e-16 of its peak.
    """
    components, d = means.shape
    x, total, square, white = (
        np.empty((d, _POINTS_PER_BLOCK)),
        np.empty(_POINTS_PER_BLOCK),
        np.empty(_POINTS_PER_BLOCK),
        np.empty(_POINTS_PER_BLOCK),
    )
    for first in range(start, stop, _POINTS_PER_BLOCK):
        count = min(_POINTS_PER_BLOCK, stop - first)
        for b in range(_POINTS_PER_BLOCK):
            for i in range(d):
                x[i, b] = points[first + min(b, count - 1), i]
        total[:] = 0.0
        for n in range(components):
            square[:] = 0.0
            for k in range(d):
                white[:] = 0.0
                for i in range(d):
                    for b in range(_POINTS_PER_BLOCK):
                        white[b] += whitening[n, k, i] * (x[i, b] - means[n, i])
                for b in range(_POINTS_PER_BLOCK):
                    square[b] += white[b] * white[b]
            for b in range(_POINTS_PER_BLOCK):
                total[b] += component_weights[n] * exp_minus(0.5 * square[b])
        out[first : first + count] = total[:count]
