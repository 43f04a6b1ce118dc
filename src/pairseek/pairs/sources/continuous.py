"""Pairs in a continuous space: two points that are mirror images in a plane.

This is the paper's case "arbitrary pairs of items can be generated" (sections 3.3 and 3.4).
"""

from __future__ import annotations

import numpy as np

from pairseek.core.types import Belief, FloatArray
from pairseek.model.responses import Response
from pairseek.model.spaces import Space
from pairseek.pairs.features import PairFeatures
from pairseek.pairs.planes import Planes, fit_into


def mirrored_pairs(
    space: Space, planes: Planes, *, near: FloatArray, response: Response
) -> tuple[FloatArray, FloatArray]:
    """Return (m, d) left and right points inside the space, mirror images in the planes.

    The separation is optimal for the noise model within the bounds of the space, and the midpoint is as close to `near`
    as that allows.
    """
    low, high = np.array(space.low), np.array(space.high)
    offsets, t = fit_into(space, planes, response)
    step = t[:, None] * planes.normals
    midpoints = _on_plane(near, planes.normals, offsets, low + np.abs(step), high - np.abs(step))
    return np.clip(midpoints + step, low, high), np.clip(midpoints - step, low, high)


def _on_plane(
    near: FloatArray, normals: FloatArray, offsets: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Return points of the planes inside boxes: clip(near + τn), with the τ that meets the plane found by bisection."""
    high = np.maximum(low, high)
    span = np.linalg.norm(high - low, axis=1) + np.linalg.norm(near - (low + high) / 2, axis=1)
    right = span / np.maximum(np.abs(normals).min(axis=1), 1e-9)
    left = -right
    for _ in range(90):
        tau = (left + right) / 2
        points = np.clip(near + tau[:, None] * normals, low, high)
        short = np.einsum("md,md->m", points, normals) < offsets
        left, right = np.where(short, tau, left), np.where(short, right, tau)
    return np.asarray(np.clip(near + ((left + right) / 2)[:, None] * normals, low, high))


def continuous_features(space: Space, planes: Planes, belief: Belief, response: Response) -> PairFeatures:
    """Return the features of the pairs mirrored in the planes; pair i consists of points i and m + i."""
    left, right = mirrored_pairs(space, planes, near=belief.mean, response=response)
    m = len(left)
    rows = np.arange(m)
    return PairFeatures.of(np.concatenate([left, right]), rows, rows + m, belief=belief, response=response)
