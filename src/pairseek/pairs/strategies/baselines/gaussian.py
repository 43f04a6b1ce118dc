"""A Gaussian belief and its closed-form updates by assumed density filtering."""

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
        """Return the belief after an answer for normal·w > offset (unit normal), with likelihood Φ(h/noise)."""
        cross_covariance = self.covariance @ normal
        total = float(np.sqrt(noise**2 + normal @ cross_covariance))
        z = (float(normal @ self.mean) - offset) / total
        # Compute φ(z)/Φ(z) from logarithms, which stay accurate far in the tail.
        ratio = float(np.exp(-0.5 * z**2 - 0.5 * np.log(2.0 * np.pi) - log_ndtr(z)))
        shrink = ratio * (ratio + z) / total**2
        return Gaussian(
            self.mean + cross_covariance * (ratio / total),
            self.covariance - shrink * np.outer(cross_covariance, cross_covariance),
        )

    def after_tie(self, normal: FloatArray, offset: float, noise: float) -> Gaussian:
        """Return the belief after a tie, with the Gaussian likelihood N(normal·w - offset; 0, π noise²/2)."""
        cross_covariance = self.covariance @ normal
        total = np.pi * noise**2 / 2.0 + float(normal @ cross_covariance)
        gap = offset - float(normal @ self.mean)
        return Gaussian(
            self.mean + cross_covariance * (gap / total),
            self.covariance - np.outer(cross_covariance, cross_covariance) / total,
        )

    def mirrored(self, count: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Return (count, d) draws and their mirror images in the plane through the mean across the widest direction."""
        values, vectors = np.linalg.eigh(self.covariance)
        steps = rng.standard_normal((count, len(values))) * np.sqrt(np.maximum(values, 0.0))
        flipped = steps.copy()
        flipped[:, -1] *= -1.0
        return self.mean + steps @ vectors.T, self.mean + flipped @ vectors.T
