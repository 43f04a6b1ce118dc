"""Hyperplanes of a continuous space: candidate questions where any pair of points can be shown.

This is the paper's case "arbitrary pairs of items can be generated" (sections 3.3 and 3.4). A pair consists of two
points that are mirror images in a plane.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pairseek.core.types import Belief, FloatArray
from pairseek.model.responses import Response
from pairseek.model.spaces import Space

SAMPLED_PLANES = 2000


@dataclass(frozen=True, eq=False)
class Planes:
    """Unit normals (m, d) and offsets (m,): the planes n·x = c."""

    normals: FloatArray
    offsets: FloatArray


def fit_into(space: Space, planes: Planes, response: Response) -> tuple[FloatArray, FloatArray]:
    """Return (m,) offsets, moved inwards where a plane only grazes the space, and (m,) half separations t.

    Two points x ± tn, with x on the plane, fit into the box if t|n_i| <= half_i and the box shrunk by t|n| still
    meets the plane, that is if t <= Σ|n_i| half_i - |c - n·centre|.
    """
    low, high = np.array(space.low), np.array(space.high)
    centre, half = (low + high) / 2, (high - low) / 2
    size = np.abs(planes.normals)
    reach, middle = size @ half, planes.normals @ centre
    room = np.min(np.divide(half, size, out=np.full_like(size, np.inf), where=size > 1e-12), axis=1)
    slack = np.maximum(reach - max(space.min_separation / 2, 1e-6 * float(half.min())), 0.0)
    offsets = middle + np.clip(planes.offsets - middle, -slack, slack)
    fits = np.minimum(room, reach - np.abs(offsets - middle))
    # The normal of the pair has length |a| = 4t. Choose the length with the steepest logit: it is the most informative.
    longest = 4.0 * (fits if space.max_separation is None else np.minimum(fits, space.max_separation / 2))
    steepest = response.noise_kind.steepest_length
    lengths = [steepest(2.0 * space.min_separation, length) for length in longest.tolist()]
    return offsets, np.array(lengths) / 4.0


def random_plane(space: Space, rng: np.random.Generator) -> Planes:
    """Draw a plane with a uniform direction through a uniform point of the space."""
    normal = _unit(rng.standard_normal((1, space.d)))
    point = rng.uniform(space.low, space.high)
    return Planes(normal, normal @ point)


def widest_direction(belief: Belief) -> FloatArray:
    """Return the (d,) unit vector of largest posterior variance, signed so that its largest component is positive."""
    _, vectors = np.linalg.eigh(belief.covariance)
    top = vectors[:, -1]
    return np.asarray(top if top[np.argmax(np.abs(top))] > 0 else -top)


def sampled_planes(space: Space, belief: Belief, rng: np.random.Generator) -> Planes:
    """Draw planes through points between the mean and samples, half with normals drawn from N(0, Σ), half uniform."""
    count = SAMPLED_PLANES // 2
    spread = rng.multivariate_normal(np.zeros(space.d), belief.covariance, size=count, method="eigh")
    normals = _unit(np.concatenate([spread, rng.standard_normal((count, space.d))]))
    through = belief.samples[rng.choice(len(belief.weights), size=2 * count, p=belief.weights)]
    pull = rng.random((2 * count, 1))
    points = belief.mean + pull**2 * (through - belief.mean)
    return Planes(normals, np.einsum("md,md->m", normals, points))


def equiprobable_offset(normal: FloatArray, space: Space, belief: Belief, response: Response) -> float:
    """Return the offset at which both answers are equally probable, by bisection.

    The separation of the pair is recomputed at every step, because it depends on the offset.
    """
    along = belief.samples @ normal
    low, high = float(along.min()), float(along.max())
    for _ in range(50):
        offset = (low + high) / 2
        _, t = fit_into(space, Planes(normal[None], np.array([offset])), response)
        length = 4.0 * t
        logits = response.pair_constant(length) * length * (along - offset)
        if belief.weights @ _probabilities(response, belief, logits) > 0.5:
            low = offset
        else:
            high = offset
    return (low + high) / 2


def _probabilities(response: Response, belief: Belief, logits: FloatArray) -> FloatArray:
    """Return the (S,) probabilities that the first is preferred, one per sample, given logits at the response's k."""
    reliability = belief.reliability
    if reliability is None:
        return np.asarray(0.5 * response.lapse_rate + (1.0 - response.lapse_rate) * response.link_function(logits))
    f = response.link_function(reliability.k / response.constant * logits)
    return np.asarray(0.5 * reliability.lapse + (1.0 - reliability.lapse) * f)


def _unit(vectors: FloatArray) -> FloatArray:
    """Return the vectors normalised to unit length; a zero vector becomes the first axis."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    axis = np.zeros(vectors.shape[1])
    axis[0] = 1.0
    return np.where(lengths > 1e-150, vectors / np.maximum(lengths, 1e-150), axis)
