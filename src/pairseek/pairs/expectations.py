"""Expectations over an answer for responses without compiled kernels, computed by the response's own methods.

These are the counterparts of `pairseek.numerics.tables` (for a Gaussian logit) and `pairseek.numerics.pair_kernels`
(over samples).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from scipy.special import entr

from pairseek.core.types import FloatArray
from pairseek.model.responses import Response
from pairseek.numerics.mixtures import TABLE_NAMES, TableName, refined
from pairseek.numerics.tables import M0, M_OCTAVES, S0, S_OCTAVES, grid_axis, look_up, utilities_from

# Nodes and weights of the trapezoidal rule over a standard normal variable.
_NORMAL_NODES = np.linspace(-8.0, 8.0, 161)
_NORMAL_WEIGHTS = np.exp(-0.5 * _NORMAL_NODES**2) / np.sum(np.exp(-0.5 * _NORMAL_NODES**2))
# Every second grid point of a table is computed; the others are interpolated.
_GRID_STRIDE = 2
# Largest number of nodes per grid point.
_MAX_NODES = 2001
# Logits held in memory at a time.
_LOGITS_PER_CHUNK = 1 << 20


@lru_cache(maxsize=16)
def response_tables(response: Response) -> dict[TableName, FloatArray]:
    """Return the tables of `pairseek.numerics.tables` for a response; the first call takes about a second."""
    m, s = grid_axis(M0, M_OCTAVES)[::_GRID_STRIDE], grid_axis(S0, S_OCTAVES)[::_GRID_STRIDE]
    coarse = np.empty((4, len(s), len(m)))
    for row, deviation in enumerate(s.tolist()):
        count = int(min(1.0 + 28.0 * max(deviation, 1.0), _MAX_NODES))
        nodes = np.linspace(-7.0, 7.0, count)
        weights = np.exp(-0.5 * nodes**2) / np.sum(np.exp(-0.5 * nodes**2))
        logits = m[:, None] + deviation * nodes
        above, below, _ = outcomes(without_ties(response), logits)
        first, second = above @ (weights * nodes), above @ (weights * (nodes**2 - 1.0))
        entropy = _entropy(np.stack([above, below])) @ weights
        with np.errstate(over="ignore"):
            coarse[:, row] = utilities_from(above @ weights, below @ weights, first, second, entropy)
        if response.tie_width > 0.0:
            chances = outcomes(response, logits)
            coarse[1, row] = _entropy(chances @ weights) - _entropy(chances) @ weights
    # Utilities are proportional to s² for small s, so their square roots are nearly linear between grid points.
    signs = np.array([1.0, 1.0, 1.0, -1.0])
    roots = [coarse[0], *np.sqrt(np.maximum(signs[1:, None, None] * coarse[1:], 0.0))]
    fine = [np.ascontiguousarray(refined(refined(root, _GRID_STRIDE).T, _GRID_STRIDE).T) for root in roots]
    return {name: fine[i] if i == 0 else signs[i] * fine[i] ** 2 for i, name in enumerate(TABLE_NAMES)}


def gaussian_expectation(response: Response, name: TableName, mean: FloatArray, deviation: FloatArray) -> FloatArray:
    """Return the (m,) tabulated values for Gaussian logits."""
    out = np.empty(len(mean))
    look_up(0, len(mean), response_tables(response)[name], mean, deviation, out)
    return out


def gaussian_outcomes(response: Response, mean: FloatArray, deviation: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the (m,) probabilities of "first" and of a tie for Gaussian logits."""
    first, tie = np.empty(len(mean)), np.empty(len(mean))
    for chunk in _chunks(len(mean), len(_NORMAL_NODES)):
        chances = outcomes(response, mean[chunk][:, None] + deviation[chunk][:, None] * _NORMAL_NODES)
        first[chunk], _, tie[chunk] = chances @ _NORMAL_WEIGHTS
    return first, tie


def sampled_outcomes(
    response: Response, slopes_and_offsets: tuple[FloatArray, FloatArray], samples: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return (3, m) probabilities of "first", "second" and a tie over samples, and the (m,) mean entropy in bits."""
    slopes, offsets = slopes_and_offsets
    probabilities, entropy = np.empty((3, len(offsets))), np.empty(len(offsets))
    for chunk in _chunks(len(offsets), len(samples)):
        chances = outcomes(response, _logits(slopes[chunk], offsets[chunk], samples))
        probabilities[:, chunk], entropy[chunk] = chances @ weights, _entropy(chances) @ weights
    return probabilities, entropy


def reweighted_moments(
    response: Response, slopes_and_offsets: tuple[FloatArray, FloatArray], samples: FloatArray, weights: FloatArray
) -> FloatArray:
    """Return (m, 1 + d + d²) unnormalised moments of the samples after "first": Σ w P, Σ w P x, Σ w P x x'."""
    slopes, offsets = slopes_and_offsets
    squares = np.einsum("sd,se->sde", samples, samples).reshape(len(samples), -1)
    powers = weights[:, None] * np.concatenate([np.ones((len(samples), 1)), samples, squares], axis=1)
    out = np.empty((len(offsets), powers.shape[1]))
    for chunk in _chunks(len(offsets), len(samples)):
        first, _, _ = outcomes(without_ties(response), _logits(slopes[chunk], offsets[chunk], samples))
        out[chunk] = np.einsum("ms,sc->mc", first, powers)
    return out


def outcomes(response: Response, logits: FloatArray) -> FloatArray:
    """Return (3, ...) probabilities of "first", "second" and a tie."""
    first, second = response.probability(logits), response.probability(-logits)
    return np.stack([first, second, response.tie_probability(logits)])


def without_ties(response: Response) -> Response:
    """Return the response without ties."""
    return response if response.tie_width == 0.0 else dataclasses.replace(response, tie_width=0.0)


def _chunks(count: int, width: int) -> Iterator[slice]:
    step = max(1, _LOGITS_PER_CHUNK // max(width, 1))
    return (slice(start, start + step) for start in range(0, count, step))


def _logits(slopes: FloatArray, offsets: FloatArray, samples: FloatArray) -> FloatArray:
    # einsum, because the last digits of BLAS products depend on the number of threads.
    return np.asarray(np.einsum("md,sd->ms", slopes, samples) + offsets[:, None])


def _entropy(chances: FloatArray) -> FloatArray:
    """Return the entropy over the first axis, in bits."""
    return np.asarray(np.sum(entr(np.maximum(chances, 0.0)), axis=0) / np.log(2))
