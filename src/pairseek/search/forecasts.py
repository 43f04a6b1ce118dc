"""Forecasts of a search: the expected credible radius and information after further answers.

The belief is described by the lengths of its axes, the standard deviations along the eigenvectors of its covariance.
Each answer concerns the axis about which it is most informative, and shortens only that axis: an answer of I bits
reduces the entropy by I bits, which is a factor of 2^-I on the length of one axis. A belief that is elongated in one
direction therefore runs out of informative questions sooner than a round one of the same volume.

How steep logits are along an axis depends on the pairs whose planes pass near the user point. Before the first answers
the search asks across the middle of the catalogue, where there are many pairs, which are far apart under constant
noise; later it asks wherever the person turns out to be. The steepness is therefore averaged over plausible user
points, using a few pairs near each, and scaled so that the estimate at the present mean agrees with the present
information.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from pairseek.core.types import Belief, FloatArray, IntArray
from pairseek.model.items import Items
from pairseek.model.responses import Response
from pairseek.model.spaces import Space
from pairseek.numerics.mixtures import table
from pairseek.numerics.tables import S0, S_OCTAVES, grid_axis, interpolate, look_up

HORIZON = 1000
"""Longest forecast, in answers."""

# Number of items considered in a large catalogue; half are those farthest from the middle, whose pairs are long.
_MAX_ITEMS = 128
# Number of plausible user points at which pairs are considered.
_PLAUSIBLE_POINTS = 8
# The pairs at a point: items this far apart when ordered by utility there.
_LAGS = (1, 2, 3)
# Index, from 0, of the pair that represents the pairs at a point. The best one rests once it has been asked; in a whole
# catalogue, the third best represents those that follow.
_REPRESENTATIVE_RANK = 2
# Standard deviation of a logit at which information is proportional to its square.
_SMALL_DEVIATION = 0.1


def expected_path(
    information: float,
    items: Items | Space,
    belief: Belief,
    response: Response,
    *,
    radius: float = math.nan,
    level: float = 0.95,
) -> Iterator[PathPoint]:
    """Yield (credible radius, bits of the next answer) after 0, 1, 2, ... further answers.

    Parameters
    ----------
    information
        Expected bits of the next answer.
    radius, level
        Present credible radius, and its level.
    items
        The items, or a space, in which pairs are equally good everywhere.
    belief
        The present belief.
    response
        The response, without residual utilities, and with typical values for an unknown k or lapse.
    """
    spread = 0.0 if belief.reliability is None else belief.reliability.spread
    bits = table(response.stand_in.link, "information", spread, response.lapse_rate)
    values, axes = np.linalg.eigh(belief.covariance)
    lengths = np.sqrt(np.maximum(values, 1e-300))
    steepness = _deviation(bits, information) / lengths.max() * np.ones(len(lengths))
    if isinstance(items, Items):
        steepness = _steepness(items, belief, response, (lengths, axes), bits, steepness.max() * lengths.max())
    yield radius, information
    quantile = NormalDist().inv_cdf(level)
    gaussian = _radius((lengths**2).tolist(), quantile)
    # After a few answers, especially with lapses, a belief has longer tails than a Gaussian; they fade as it shrinks.
    tails = radius / gaussian - 1.0
    for squares, next_bits in _steps(lengths.tolist(), steepness.tolist(), bits):
        expected = _radius(squares, quantile)
        yield expected * (1.0 + tails * expected / gaussian), next_bits


PathPoint = tuple[float, float]


def _steps(
    lengths: Sequence[float], steepness: Sequence[float], bits: FloatArray
) -> Iterator[tuple[Sequence[float], float]]:
    """Yield squared lengths and bits of the next answer after each answer, until answers are hardly informative."""
    squares = [length**2 for length in lengths]
    deviations = [slope * length for slope, length in zip(steepness, lengths, strict=True)]
    for _ in range(HORIZON):
        widest = max(range(len(deviations)), key=deviations.__getitem__)
        shrunk = 2.0 ** -float(interpolate(bits, 0.0, deviations[widest]))
        squares[widest] *= shrunk**2
        deviations[widest] *= shrunk
        largest = max(deviations)
        if largest <= S0:
            return
        yield squares, float(interpolate(bits, 0.0, largest))


def _radius(squares: Sequence[float], quantile: float) -> float:
    """Return the credible radius of a Gaussian with these variances at a level given by its normal quantile.

    The squared distance is approximated by a multiple of a chi-square variable with the same mean and variance, and the
    chi-square variable by the cube of a normal one (Wilson and Hilferty).
    """
    mean, fourth = sum(squares), sum(square * square for square in squares)
    cube = 2.0 * fourth / (9.0 * mean * mean)
    return math.sqrt(mean * max(1.0 - cube + quantile * math.sqrt(cube), 0.0) ** 3)


def _deviation(bits: FloatArray, information: float) -> float:
    """Return the standard deviation at which a logit of mean 0 has this information."""
    return float(np.interp(information, bits[:, 0], grid_axis(S0, S_OCTAVES)))


def _steepness(
    items: Items,
    belief: Belief,
    response: Response,
    shape: tuple[FloatArray, FloatArray],
    bits: FloatArray,
    deviation: float,
) -> FloatArray:
    """Return the (d,) steepness of a good pair's logit along each axis of the belief, per unit of length.

    Parameters
    ----------
    shape
        (d,) lengths of the axes, and (d, d) directions in columns.
    bits
        Table of the information.
    deviation
        Standard deviation at which a logit of mean 0 is as informative as the next answer.
    """
    lengths, axes = shape
    rows, rank = _rows(items)
    points, appeal = items.coordinates[rows], items.appeal[rows]
    user_points = belief.mean + (_normals(items.d) * lengths) @ axes.T
    # Pairs of items with similar utility have a plane near the point.
    cost = response.typical_k * (np.sum(points**2, axis=1) - 2.0 * user_points @ points.T) - appeal
    order = np.argsort(cost, axis=1)
    lags = [lag for lag in _LAGS if lag < len(rows)]
    first = np.concatenate([order[:, :-lag] for lag in lags], axis=1)
    second = np.concatenate([order[:, lag:] for lag in lags], axis=1)
    slopes, offsets = response.planes(
        points[first.ravel()], points[second.ravel()], (appeal[first] - appeal[second]).ravel()
    )
    along = np.abs(slopes @ axes).reshape(*first.shape, -1)
    logits = np.abs(np.einsum("pqd,pd->pq", slopes.reshape(along.shape), user_points) + offsets.reshape(first.shape))
    current_bits = _looked_up(bits, np.repeat(logits[0], items.d), (along[0] * lengths).ravel()).max()
    # A logit of mean m is less informative than one of mean 0; for small deviations, this is a factor on the deviation.
    small = np.full(logits[1:].size, _SMALL_DEVIATION)
    relative = _looked_up(bits, logits[1:].ravel(), small)
    relative /= interpolate(bits, 0.0, _SMALL_DEVIATION)
    effective = along[1:] * np.sqrt(relative).reshape(*logits[1:].shape, 1)
    rank = min(rank, effective.shape[1] - 1)
    best = np.partition(effective, effective.shape[1] - 1 - rank, axis=1)[:, effective.shape[1] - 1 - rank]
    scale = deviation / max(_deviation(bits, float(current_bits)), S0)
    return np.asarray(scale * np.exp(np.log(np.maximum(best, 1e-300)).mean(axis=0)))


def _looked_up(values: FloatArray, m: FloatArray, s: FloatArray) -> FloatArray:
    out = np.empty(len(m))
    look_up(0, len(m), values, m, s, out)
    return out


@lru_cache(maxsize=4)
def _rows(items: Items) -> tuple[IntArray, int]:
    """Return the rows of the items considered, and the rank among their pairs of the one that represents all."""
    if items.n <= _MAX_ITEMS:
        return np.arange(items.n), _REPRESENTATIVE_RANK
    points = items.coordinates
    away = np.argsort(-np.sum((points - points.mean(axis=0)) ** 2, axis=1), kind="stable")
    others = np.random.default_rng(0).permutation(away[_MAX_ITEMS // 2 :])
    rows = np.concatenate([away[: _MAX_ITEMS // 2], others[: _MAX_ITEMS - _MAX_ITEMS // 2]])
    return rows, int(_REPRESENTATIVE_RANK * (_MAX_ITEMS / items.n) ** 2)


@lru_cache(maxsize=16)
def _normals(d: int) -> FloatArray:
    """Return (user points + 1, d) standard normal points: 0, and pairs of opposite points."""
    drawn = np.random.default_rng(0).standard_normal((_PLAUSIBLE_POINTS // 2, d))
    return np.concatenate([np.zeros((1, d)), drawn, -drawn])
