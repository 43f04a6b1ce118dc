"""A Gaussian at the mode, cut to the prior's box."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy
from scipy.special import log_ndtr, ndtri_exp

from pairseek._moments import sample_moments
from pairseek._types import Belief, BeliefInfo, Evidence, FloatArray
from pairseek.errors import InvalidParameter
from pairseek.posteriors.base import frozen_belief
from pairseek.priors import Prior
from pairseek.responses import Response

# Gibbs sweeps from the mode, along the principal axes: a few dozen forget the start.
_SWEEPS = 40


@dataclass(frozen=True)
class Laplace:
    """The log posterior to second order around its mode, restricted to the prior's box.

    Where the mode lies on a face of the box the first-order term is kept, so that mass piles up at the face as it
    should. Moments and samples are those of the restricted Gaussian, drawn by Gibbs sampling. What remains is the
    limitation of any quadratic: skew and flat tails of the true posterior are lost, most of all with few answers
    under the uniform prior. Use it where speed matters more than the last percent, or as a second opinion.

    Parameters
    ----------
    n
        Number of samples.
    """

    n: int = 2000
    name: ClassVar[str] = "laplace"

    def __post_init__(self) -> None:
        if self.n < 2:
            raise InvalidParameter(f"Laplace(n={self.n}): give at least 2 samples")

    def start(self, prior: Prior, d: int, rng: np.random.Generator) -> Belief:
        """Samples of the prior."""
        weights = np.full(self.n, 1 / self.n)
        return frozen_belief(prior.sample(self.n, d, rng), weights, prior.moments(d), BeliefInfo(float(self.n)))

    def update(
        self, belief: Belief, evidence: Evidence, prior: Prior, response: Response, rng: np.random.Generator
    ) -> Belief:
        """The belief after all answers, the search for the mode starting at the present mean."""
        began = time.perf_counter()
        d = len(belief.mean)
        low, high = prior.box(d)
        mode = posterior_mode(evidence, prior, response, start=belief.mean)
        gradient, precision = _expansion(evidence, prior, response, mode)
        samples = _truncated(mode, gradient, precision, (low, high), self.n, rng)
        weights = np.full(self.n, 1 / self.n)
        info = BeliefInfo(float(self.n), _SWEEPS, 0, time.perf_counter() - began)
        return frozen_belief(samples, weights, sample_moments(samples, weights), info)


def posterior_mode(evidence: Evidence, prior: Prior, response: Response, *, start: FloatArray) -> FloatArray:
    """(d,) the maximum of the log posterior, which is concave, inside the prior's box."""
    d = len(start)
    low, high = prior.box(d)
    centre, precision = prior.quadratic(d)

    # In units of the prior: the optimiser's tolerances are absolute, and items come in any unit.
    origin, covariance = prior.moments(d)
    unit = np.sqrt(np.diag(covariance))

    def negative(u: FloatArray) -> tuple[float, FloatArray]:
        w = origin + unit * u
        pull = precision @ (w - centre)
        value = float(response.log_likelihood(evidence, w[None])[0] - 0.5 * (w - centre) @ pull)
        return -value, -unit * (response.gradient(evidence, w) - pull)

    bounds = list(zip((low - origin) / unit, (high - origin) / unit, strict=True))
    first = (np.clip(start, low, high) - origin) / unit
    found = scipy.optimize.minimize(negative, first, jac=True, method="L-BFGS-B", bounds=bounds)
    return np.asarray(np.clip(origin + unit * found.x, low, high))


def _expansion(evidence: Evidence, prior: Prior, response: Response, mode: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gradient and negative Hessian of the log posterior at the mode."""
    centre, precision = prior.quadratic(len(mode))
    logits = evidence.slopes @ mode + evidence.offsets
    up, down = response.slope(logits), response.slope(-logits)
    if response.link == 0:
        bend = up * down
        bends = bend, bend
    else:
        bends = up * (up + logits), down * (down - logits)
    curvature = np.where(evidence.decided > 0, bends[0], 0.5 * (bends[0] + bends[1]))
    hessian = precision + (evidence.slopes * np.maximum(curvature, 0.0)[:, None]).T @ evidence.slopes
    return response.gradient(evidence, mode) - precision @ (mode - centre), hessian


def _truncated(
    mode: FloatArray,
    gradient: FloatArray,
    precision: FloatArray,
    box: tuple[FloatArray, FloatArray],
    n: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Samples of exp(g·δ - δ'Hδ/2) inside the box, δ = w - mode, by Gibbs sampling along a frame.

    The frame has the principal axes of the coordinates that are free at the mode (along a narrow slanted ridge,
    steps in coordinates would be tiny) and the axis itself for a coordinate on a face.
    """
    d = len(mode)
    low, high = box[0] - mode, box[1] - mode
    # In a finite box a direction without curvature is uniform; a trace of curvature stands for that.
    widths = np.where(np.isfinite(high - low), high - low, 1.0)
    precision = precision + np.diag(1e-6 / widths**2)
    # Interior coordinates have no gradient at the mode but for what the optimiser left over.
    interior = (low < 0) & (high > 0)
    gradient = np.where(interior, 0.0, gradient)
    frame, curves = np.eye(d), np.diag(precision).copy()
    free = np.ix_(interior, interior)
    values, vectors = np.linalg.eigh(precision[free])
    frame[free] = vectors.T
    # Rounding of a large eigenvalue must not swallow a small one.
    curves[interior] = np.maximum(values, 1e-6 / np.max(widths) ** 2)
    pulls = frame @ precision
    pulls[free] = curves[interior, None] * vectors.T
    delta = np.zeros((n, d))
    for _ in range(_SWEEPS):
        for axis, curve, pull in zip(frame, curves, pulls, strict=True):
            deviation = 1.0 / np.sqrt(curve)
            centre = (gradient @ axis - np.einsum("nd,d->n", delta, pull)) * deviation**2
            below, above = _reach(delta, axis, low, high)
            steps = _cut_normal((below - centre) / deviation, (above - centre) / deviation, rng.random(n))
            steps = np.clip(centre + deviation * steps, below, above)
            delta = np.clip(delta + steps[:, None] * axis, low, high)
    return np.ascontiguousarray(np.clip(mode + delta, *box))


def _reach(delta: FloatArray, axis: FloatArray, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(n,) how far back and forth along the axis each point can go inside the box."""
    along = np.abs(axis) > 1e-12
    ends = [(end[along] - delta[:, along]) / axis[along] for end in (low, high)]
    return np.minimum(*ends).max(axis=1), np.maximum(*ends).min(axis=1)


def _cut_normal(low: FloatArray, high: FloatArray, uniform: FloatArray) -> FloatArray:
    """Standard normal numbers between low and high, by inversion: in the lower tail, and by logarithms."""
    flip = low > 0
    a, b = np.where(flip, -high, low), np.where(flip, -low, high)
    top = log_ndtr(b)
    share = np.maximum(uniform + (1 - uniform) * np.exp(log_ndtr(a) - top), 1e-300)
    drawn = np.clip(ndtri_exp(top + np.log(share)), a, b)
    return np.asarray(np.where(flip, -drawn, drawn))
