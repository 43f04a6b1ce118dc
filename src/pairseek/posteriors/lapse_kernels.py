"""Kernels for unknown k and lapse: P = h + (1 - 2h) f(z), with h half the lapse.

A state is a row (w, u, lapse) with u = log(k/reference). The logits of the answers are e^u m_j + appeal_j, with the
margins m_j = slopes_j·w + offsets_j at the reference. For the logistic f, with e = e^-|z|, P is
(h + (1 - h) e)/(1 + e) or (1 - h + h e)/(1 + e): numerators and denominators are multiplied over blocks of answers, so
that a block takes one logarithm.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pairseek.numerics.jit import LOGISTIC, exp_minus, kernel, log_answer, next_uniform, primitive

# A product of at most this many denominators between 1 and 2 cannot overflow.
_BLOCK = 512


@primitive
def log_one(z: float, half: float, decided: float, link: int) -> float:
    """Return the log-likelihood of one answer, or of a tie as half an answer each way."""
    if half == 0.0:
        return log_answer(z, decided, link)
    rare = (
        math.exp(-abs(z)) / (1.0 + math.exp(-abs(z))) if link == LOGISTIC else 0.5 * math.erfc(abs(z) * math.sqrt(0.5))
    )
    likelier = math.log1p(-half - (1.0 - 2.0 * half) * rare)
    rarer = math.log(half + (1.0 - 2.0 * half) * rare)
    if decided > 0.0:
        return likelier if z > 0.0 else rarer
    return 0.5 * (likelier + rarer)


@primitive
def block_length(half: float) -> int:
    """Return how many numerators, at least `half` and at least 2e-16, can be multiplied without underflow."""
    return 48 if half > 1e-4 else 16


@primitive
def _ties_instead(t: float, r: float, half: float, z: Any, c: Any, answers: Any, count: int, link: int) -> float:
    """Return the difference of the log-likelihood between ties and answers."""
    appeal, decided, _ = answers
    total = 0.0
    for j in range(count):
        if decided[j] == 0.0:
            y = r * (z[j] + t * c[j]) + appeal[j]
            total += log_one(y, half, 0.0, link) - log_one(y, half, 1.0, link)
    return total


@primitive
def log_many(t: float, r: float, half: float, z: Any, c: Any, answers: Any, count: int, link: int) -> float:
    """Return the log-likelihood of the first answers for margins z + t c and k equal to r times the reference.

    ``answers`` is (appeal, decided, whether there are ties).
    """
    appeal, decided, tied = answers
    total = 0.0
    if link == LOGISTIC and half > 0.0:
        length = block_length(half)
        for block in range(0, count, length):
            numerator = 1.0
            denominator = 1.0
            for j in range(block, min(block + length, count)):
                y = r * (z[j] + t * c[j]) + appeal[j]
                e = exp_minus(abs(y))
                part = half * (1.0 - e)
                numerator *= 1.0 - part if y > 0.0 else e + part
                denominator *= 1.0 + e
            total += math.log(numerator / denominator)
        if tied:
            total += _ties_instead(t, r, half, z, c, answers, count, link)
    elif link == LOGISTIC:
        for block in range(0, count, _BLOCK):
            linear = 0.0
            denominator = 1.0
            for j in range(block, min(block + _BLOCK, count)):
                y = r * (z[j] + t * c[j]) + appeal[j]
                linear += decided[j] * y - abs(y)
                denominator *= 1.0 + exp_minus(abs(y))
            total += 0.5 * linear - math.log(denominator)
    else:
        for j in range(count):
            total += log_one(r * (z[j] + t * c[j]) + appeal[j], half, decided[j], link)
    return total


@primitive
def _any_tie(decided: Any) -> bool:
    return bool(np.any(decided == 0.0))


@primitive
def margins(x: Any, columns: Any, offsets: Any, z: Any) -> None:
    """Write z = offsets + Σ x_i columns_i."""
    for j in range(len(z)):
        z[j] = offsets[j]
    for i in range(columns.shape[0]):
        column, place = columns[i], x[i]
        for j in range(len(z)):
            z[j] += column[j] * place


@kernel
def log_answers(start: int, stop: int, states: Any, evidence: Any, link: int, out: Any) -> None:
    """Write the log-likelihood of all answers at each state."""
    columns, offsets, decided, appeal = evidence
    d, m = columns.shape
    for row in range(start, stop):
        r = math.exp(states[row, d])
        half = 0.5 * states[row, d + 1]
        total = 0.0
        for j in range(m):
            z = offsets[j]
            for i in range(d):
                z += columns[i, j] * states[row, i]
            total += log_one(r * z + appeal[j], half, decided[j], link)
        out[row] = total


@primitive
def _lapse_terms(r: float, z: Any, appeal: Any, out: Any, link: int) -> None:
    """Write the probability without lapses of each answer, and of its opposite."""
    for j in range(len(z)):
        y = r * z[j] + appeal[j]
        if link == LOGISTIC:
            e = exp_minus(abs(y))
            rare = e / (1.0 + e)
        else:
            rare = 0.5 * math.erfc(abs(y) * math.sqrt(0.5))
        out[0, j] = 1.0 - rare if y > 0.0 else rare
        out[1, j] = rare if y > 0.0 else 1.0 - rare


@primitive
def log_lapsing(half: float, terms: Any, answers: Any, count: int) -> float:
    """Return the log-likelihood of the first answers as a function of the lapse alone: products, no exponential."""
    _, decided, tied = answers
    total = 0.0
    rest = 1.0 - 2.0 * half
    right, wrong = terms[0], terms[1]
    length = block_length(half)
    for block in range(0, count, length):
        product = 1.0
        for j in range(block, min(block + length, count)):
            product *= half + rest * right[j]
        total += math.log(product)
    if tied:
        for j in range(count):
            if decided[j] == 0.0:
                total += 0.5 * math.log((half + rest * wrong[j]) / (half + rest * right[j]))
    return total


@primitive
def _lapse_level(lapse: float, terms: Any, answers: Any, power: float, unknown: Any) -> float:
    """Return the log posterior of the lapse, all else given."""
    total = power * log_lapsing(0.5 * lapse, terms, answers, len(answers[1]))
    return total + unknown[2] * math.log(lapse) + unknown[3] * math.log1p(-lapse)


@kernel
def lapsing_sweep(  # noqa: C901
    start: int,
    stop: int,
    states: Any,
    seeds: Any,
    frame: Any,
    evidence: Any,
    prior: Any,
    unknown: Any,
    power: float,
    width: float,
    link: int,
) -> None:
    """Move states[start:stop] once along every direction of (w, u) in the frame, then along the lapse, in place.

    The likelihood counts with a power between 0 and 1. ``frame`` is (directions (D, d + 1), lines (D, m)); ``evidence``
    (slopes by coordinate (d, m), offsets, decided, appeal); ``prior`` as in `slice_sweep`; ``unknown`` (centre and
    precision of u, a - 1 and b - 1 of the lapse's Beta, and the width of its interval: 0 where it is known). Interval
    and shrinkage as in `slice_sweep`; they are right for any density.
    """
    directions, lines = frame
    columns, offsets, decided, appeal = evidence
    low, high, centre, precision = prior
    d, m = columns.shape
    answers = (appeal, decided, _any_tie(decided))
    z = np.empty(m)
    terms = np.empty((2, m))
    state = np.empty(1, dtype=np.uint64)
    for row in range(start, stop):
        x = states[row]
        state[0] = seeds[row]
        margins(x, columns, offsets, z)
        half = 0.5 * x[d + 1]
        r = math.exp(x[d])
        here = power * log_many(0.0, r, half, z, lines[0], answers, m, link)
        for k in range(directions.shape[0]):
            v = directions[k]
            c = lines[k]
            rise = v[d]
            tilt = unknown[1] * rise * (x[d] - unknown[0])
            curve = unknown[1] * rise * rise
            left = -width * next_uniform(state)
            right = left + width
            for i in range(d):
                pv = 0.0
                for h in range(d):
                    pv += precision[i, h] * v[h]
                tilt += pv * (x[i] - centre[i])
                curve += pv * v[i]
                if v[i] > 0.0:
                    left = max(left, (low[i] - x[i]) / v[i])
                    right = min(right, (high[i] - x[i]) / v[i])
                elif v[i] < 0.0:
                    left = max(left, (high[i] - x[i]) / v[i])
                    right = min(right, (low[i] - x[i]) / v[i])
            level = here + math.log(next_uniform(state))
            for _ in range(100):
                t = left + (right - left) * next_uniform(state)
                r = math.exp(x[d] + t * rise)
                there = power * log_many(t, r, half, z, c, answers, m, link)
                if there - t * (0.5 * curve * t + tilt) >= level:
                    here = there
                    for i in range(d):
                        x[i] = min(max(x[i] + t * v[i], low[i]), high[i])
                    x[d] += t * rise
                    for j in range(m):
                        z[j] += t * c[j]
                    break
                if t < 0.0:
                    left = t
                else:
                    right = t
        if unknown[4] > 0.0:
            _lapse_terms(math.exp(x[d]), z, appeal, terms, link)
            level = _lapse_level(x[d + 1], terms, answers, power, unknown) + math.log(next_uniform(state))
            left = x[d + 1] - unknown[4] * next_uniform(state)
            right = min(left + unknown[4], 1.0 - 1e-9)
            left = max(left, 1e-9)
            for _ in range(100):
                lapse = left + (right - left) * next_uniform(state)
                if _lapse_level(lapse, terms, answers, power, unknown) >= level:
                    x[d + 1] = lapse
                    break
                if lapse < x[d + 1]:
                    left = lapse
                else:
                    right = lapse


@kernel
def conditionals(start: int, stop: int, states: Any, evidence: Any, grid: Any, link: int, out: Any) -> None:
    """Write the distribution of k, and the mean lapse at each k, conditional on the point of each state.

    ``grid`` is (u (Q,), their log weights, lapses (L,), their log weights): quadratures of the two priors. ``out`` is
    (chances (n, Q), lapses (n, Q)).
    """
    columns, offsets, decided, appeal = evidence
    nodes, node_logs, lapses, lapse_logs = grid
    chances, means = out
    m = len(offsets)
    answers = (appeal, decided, _any_tie(decided))
    z = np.empty(m)
    terms = np.empty((2, m))
    logs = np.empty(len(lapses))
    for row in range(start, stop):
        margins(states[row], columns, offsets, z)
        top = -np.inf
        for q in range(len(nodes)):
            r = math.exp(nodes[q])
            if len(lapses) == 1:
                means[row, q] = lapses[0]
                chances[row, q] = node_logs[q] + log_many(0.0, r, 0.5 * lapses[0], z, z, answers, m, link)
            else:
                _lapse_terms(r, z, appeal, terms, link)
                most = -np.inf
                for k in range(len(lapses)):
                    logs[k] = lapse_logs[k] + log_lapsing(0.5 * lapses[k], terms, answers, m)
                    most = max(most, logs[k])
                total = 0.0
                mean = 0.0
                for k in range(len(lapses)):
                    weight = math.exp(logs[k] - most)
                    total += weight
                    mean += weight * lapses[k]
                means[row, q] = mean / total
                chances[row, q] = node_logs[q] + most + math.log(total)
            top = max(top, chances[row, q])
        total = 0.0
        for q in range(len(nodes)):
            chances[row, q] = math.exp(chances[row, q] - top)
            total += chances[row, q]
        for q in range(len(nodes)):
            chances[row, q] /= total


@primitive
def lapsing_slope(z: float, half: float, decided: float, link: int) -> float:
    """Return the derivative of `log_one` with respect to z."""
    if link == LOGISTIC:
        e = exp_minus(abs(z))
        density = e / ((1.0 + e) * (1.0 + e))
        rare = e / (1.0 + e)
    else:
        density = math.exp(-0.5 * z * z) * 0.3989422804014327
        rare = 0.5 * math.erfc(abs(z) * math.sqrt(0.5))
    rise = (1.0 - 2.0 * half) * density
    likely = 1.0 - half - (1.0 - 2.0 * half) * rare
    unlikely = half + (1.0 - 2.0 * half) * rare
    up = likely if z > 0.0 else unlikely
    down = unlikely if z > 0.0 else likely
    if decided > 0.0:
        return rise / up
    return 0.5 * (rise / up - rise / down)
