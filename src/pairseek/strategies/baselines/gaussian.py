"""A Gaussian belief and what an answer makes of it, in closed form."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr

from pairseek.core.types import FloatArray


class Gaussian(NamedTuple):
    """N(mean, covariance)."""

    mean: FloatArray
    covariance: FloatArray

    def after_answer(self, normal: FloatArray, offset: float, noise: float) -> Gaussian:
        """The moments after an answer for the side normal·w > offset of a plane (unit normal), right by Φ(h/noise)."""
        shadow = self.covariance @ normal
        total = float(np.sqrt(noise**2 + normal @ shadow))
        z = (float(normal @ self.mean) - offset) / total
        # φ(z)/Φ(z) from logarithms, so that it holds far in the tail
        ratio = float(np.exp(-0.5 * z**2 - 0.5 * np.log(2.0 * np.pi) - log_ndtr(z)))
        shrink = ratio * (ratio + z) / total**2
        return Gaussian(self.mean + shadow * (ratio / total), self.covariance - shrink * np.outer(shadow, shadow))

    def after_tie(self, normal: FloatArray, offset: float, noise: float) -> Gaussian:
        """The moments after N(normal·w - offset; 0, π noise²/2)."""
        shadow = self.covariance @ normal
        total = np.pi * noise**2 / 2.0 + float(normal @ shadow)
        gap = offset - float(normal @ self.mean)
        return Gaussian(self.mean + shadow * (gap / total), self.covariance - np.outer(shadow, shadow) / total)

    def mirrored(self, count: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """(count, d) points, and their images in the plane through the mean across the widest direction."""
        values, vectors = np.linalg.eigh(self.covariance)
        steps = rng.standard_normal((count, len(values))) * np.sqrt(np.maximum(values, 0.0))
        flipped = steps.copy()
        flipped[:, -1] *= -1.0
        return self.mean + steps @ vectors.T, self.mean + flipped @ vectors.T
