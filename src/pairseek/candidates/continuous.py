"""Pairs in a continuous space: any plane can be asked, by two points mirrored in it.

The paper's "arbitrary pairs of items can be generated" (sections 3.3 and 3.4).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pairseek.core.types import Belief, FloatArray
from pairseek.errors import Unsupported
from pairseek.model.items import Space
from pairseek.model.responses import Response
from pairseek.strategies.features import Candidates

SAMPLED_PLANES = 2000
SUPPORTED = ("epmv", "mcmv", "infogain", "greedy_mse", "random")


@dataclass(frozen=True, eq=False)
class Planes:
    """Unit normals (m, d) and offsets (m,): the planes n·x = c."""

    normals: FloatArray
    offsets: FloatArray


def _fitted(space: Space, planes: Planes, response: Response) -> tuple[FloatArray, FloatArray]:
    """(m,) offsets, moved inwards where a plane only grazes the space, and (m,) half separations t.

    Two points x ± tn with x on the plane fit into the box if t|n_i| <= half_i and if the box shrunk by t|n| still
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
    # k|a| exp(-|a|) is largest at |a| = 4t = 1; for the other noises farther apart is never worse.
    wanted = 0.25 if response.noise == "decaying" else np.inf
    most = np.inf if space.max_separation is None else space.max_separation / 2
    return offsets, np.minimum(fits, np.clip(wanted, space.min_separation / 2, most))


def mirrored_pairs(
    space: Space, planes: Planes, *, near: FloatArray, response: Response
) -> tuple[FloatArray, FloatArray]:
    """(m, d) left and right points, mirrored in the planes and inside the space.

    As far apart as serves the noise model within the space's bounds on separation, with the midpoint as close to
    `near` as that allows.
    """
    low, high = np.array(space.low), np.array(space.high)
    offsets, t = _fitted(space, planes, response)
    step = t[:, None] * planes.normals
    midpoints = _on_plane(near, planes.normals, offsets, low + np.abs(step), high - np.abs(step))
    return np.clip(midpoints + step, low, high), np.clip(midpoints - step, low, high)


def _on_plane(
    near: FloatArray, normals: FloatArray, offsets: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Points of the planes inside boxes: clip(near + τn) for the τ that meets the plane, by bisection."""
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


def planes_for(
    strategy_name: str, space: Space, belief: Belief, response: Response, rng: np.random.Generator
) -> Planes:
    """The planes that a strategy chooses from: one in closed form, or a sample."""
    if strategy_name not in SUPPORTED:
        raise Unsupported(
            f"the strategy {strategy_name!r} has no meaning in a continuous Space: use one of {', '.join(SUPPORTED)}"
        )
    if strategy_name == "random":
        normal = _unit(rng.standard_normal((1, space.d)))
        point = rng.uniform(space.low, space.high)
        return Planes(normal, normal @ point)
    if strategy_name in ("epmv", "mcmv"):
        _, vectors = np.linalg.eigh(belief.covariance)
        top = vectors[:, -1]
        top = top if top[np.argmax(np.abs(top))] > 0 else -top
        offset = top @ belief.mean if strategy_name == "mcmv" else _equiprobable(top, space, belief, response)
        return Planes(top[None], np.array([offset]))
    # Directions spread like the belief and, for the rest, evenly; planes through its mean and through its samples.
    count = SAMPLED_PLANES // 2
    spread = rng.multivariate_normal(np.zeros(space.d), belief.covariance, size=count, method="eigh")
    normals = _unit(np.concatenate([spread, rng.standard_normal((count, space.d))]))
    through = belief.samples[rng.choice(len(belief.weights), size=2 * count, p=belief.weights)]
    pull = rng.random((2 * count, 1))
    points = belief.mean + pull**2 * (through - belief.mean)
    return Planes(normals, np.einsum("md,md->m", normals, points))


def _unit(vectors: FloatArray) -> FloatArray:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    axis = np.zeros(vectors.shape[1])
    axis[0] = 1.0
    return np.where(lengths > 1e-150, vectors / np.maximum(lengths, 1e-150), axis)


def _equiprobable(normal: FloatArray, space: Space, belief: Belief, response: Response) -> float:
    """The offset at which the answer is even, E f = 1/2, by bisection; the separation depends on it too."""
    along = belief.samples @ normal
    low, high = float(along.min()), float(along.max())
    for _ in range(50):
        offset = (low + high) / 2
        _, t = _fitted(space, Planes(normal[None], np.array([offset])), response)
        length = 4.0 * t
        logits = response.pair_constant(length) * length * (along - offset)
        if belief.weights @ _chances(response, belief, logits) > 0.5:
            low = offset
        else:
            high = offset
    return (low + high) / 2


def _chances(response: Response, belief: Belief, logits: FloatArray) -> FloatArray:
    """(S,) probability of the first answer by each sample, from logits at the response's k."""
    known = belief.reliability
    if known is None:
        return response.probability(logits)
    f = response.link_function(known.k / response.constant * logits)
    return np.asarray(0.5 * known.lapse + (1.0 - known.lapse) * f)


def mirrored_candidates(
    strategy_name: str, space: Space, belief: Belief, response: Response, rng: np.random.Generator
) -> Candidates:
    """Candidates of a continuous space; candidate i is made of points i and m + i."""
    planes = planes_for(strategy_name, space, belief, response, rng)
    left, right = mirrored_pairs(space, planes, near=belief.mean, response=response)
    m = len(left)
    rows = np.arange(m)
    return Candidates.of(np.concatenate([left, right]), rows, rows + m, belief=belief, response=response)
