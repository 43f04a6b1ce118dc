"""Distribution of the people's shifts on the scale of ratings.

The utility appeal_i - k|w - x_i|² of an item contains the term -k|w|², which is the same for all items of a person.
Differences of utilities do not depend on it, but ratings do, and people also use a scale in their own way. The shift s
of a person is therefore N(α + β·z + z'Qz/2, τ²) given their tastes z.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.numerics.parallel import for_ranges
from pairseek.population.data import Posteriors
from pairseek.population.rating_kernels import add_shifts

_CHUNK = 256

# Prior of the variance: so many people of this variance. Least variance, and prior precision of the coefficients.
_PEOPLE, _VARIANCE, _LEAST, _TIGHT = 1.0, 1.0, 0.02, 1.0


@dataclass(frozen=True, eq=False)
class Shift:
    """Conditional distribution N(constant + linear·z + z' square z/2, variance) of the shift."""

    constant: float
    linear: FloatArray
    square: FloatArray
    variance: float

    @classmethod
    def none(cls, d: int) -> Shift:
        """Return shifts that do not depend on the tastes."""
        return cls(0.0, np.zeros(d), np.zeros((d, d)), _VARIANCE)

    @classmethod
    def of(cls, found: Posteriors, counts: FloatArray) -> Shift:
        """Regress the shifts on the tastes, given posteriors of both and the weights of the people.

        A posterior is replaced by 2d points at equal distances from its mean, which have its mean and covariance.
        """
        people, size = found.mean.shape
        d = size - 1
        first, second = np.triu_indices(d)
        features = 1 + d + len(first)
        pieces = -(-people // _CHUNK)
        normal, right, total = np.zeros((pieces, features, features)), np.zeros((pieces, features)), np.zeros(pieces)
        arms = np.sqrt(size) * np.linalg.cholesky(found.covariance)
        for_ranges(add_shifts, people, _CHUNK, _CHUNK, found.mean, arms, counts, normal, right, total)
        matrix, pull = normal.sum(axis=0), right.sum(axis=0)
        tight = np.append(1e-9, np.full(features - 1, _TIGHT))
        solved = np.linalg.solve(matrix + np.diag(tight), pull)
        rest = total.sum() - 2.0 * solved @ pull + solved @ matrix @ solved
        variance = (rest + _PEOPLE * _VARIANCE) / (counts.sum() + _PEOPLE)
        square = np.zeros((d, d))
        square[first, second] = solved[1 + d :]
        return cls(float(solved[0]), solved[1 : 1 + d], square + square.T, max(float(variance), _LEAST))

    def prior(self, precision: FloatArray, found: Posteriors) -> tuple[FloatArray, FloatArray]:
        """Return natural parameters of each person's Gaussian prior of (z, s), given the precision of z.

        The factor exp(-r²/2τ²) with r = s - α - β·z - z'Qz/2 is replaced by the Gaussian that has the same expected
        gradient, and the expected r'r'ᵀ as its precision, under the current posterior.
        """
        people, size = found.mean.shape
        d = size - 1
        z, sigma = found.mean[:, :d], found.covariance
        moved = z @ self.square
        slope = np.column_stack([-(self.linear + moved), np.ones(people)])
        residual = found.mean[:, d] - self.constant - z @ self.linear - 0.5 * np.sum(moved * z, axis=1)
        residual -= 0.5 * np.einsum("ij,pji->p", self.square, sigma[:, :d, :d])
        out = np.einsum("pi,pj->pij", slope, slope)
        out[:, :d, :d] += self.square @ sigma[:, :d, :d] @ self.square
        gradient = residual[:, None] * slope
        gradient[:, :d] -= np.einsum("ij,pjk,pk->pi", self.square, sigma[:, :d], slope)
        linear = (np.einsum("pij,pj->pi", out, found.mean) - gradient) / self.variance
        out /= self.variance
        out[:, :d, :d] += precision
        return np.ascontiguousarray(out), np.ascontiguousarray(linear)
