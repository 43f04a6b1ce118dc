"""Distribution of the people's shifts on the scale of ratings.

The utility appeal_i - k|w - x_i|² of an item contains the term -k|w|², which is the same for all items of a person.
Differences of utilities do not depend on it, but ratings do, and people also use a scale in their own way. A person's
shift s therefore has the distribution N(α + β·z + z'Qz/2, τ²) given their tastes z.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.numerics.parallel import for_ranges
from pairseek.people.population.data import Posteriors
from pairseek.people.population.rating_kernels import add_shifts
from pairseek.people.population.rating_points import Points
from pairseek.posteriors.gaussian_samples import standard_points

# People per unit of work of a thread.
_CHUNK = 256
# Number of points for each person.
_POINTS = 128
# Factor by which a proposal's covariance exceeds the covariance of the points.
_WIDENING = 1.3

# The prior of the variance counts as _PSEUDO_PEOPLE people with the variance _PRIOR_VARIANCE.
_PSEUDO_PEOPLE = 1.0
_PRIOR_VARIANCE = 1.0
_MIN_VARIANCE = 0.02
# Prior precision of the coefficients.
_PRIOR_PRECISION = 1.0
# Largest change of a coefficient in a Newton step.
_MAX_STEP = 0.5


@dataclass(frozen=True, eq=False)
class Shift:
    """Conditional distribution N(constant + linear·z + z' square z/2, variance) of the shift."""

    constant: float
    linear: FloatArray
    square: FloatArray
    variance: float

    @classmethod
    def none(cls, d: int) -> Shift:
        """Return the distribution of shifts that do not depend on the tastes."""
        return cls(0.0, np.zeros(d), np.zeros((d, d)), _PRIOR_VARIANCE)

    @classmethod
    def of(cls, posteriors: Posteriors, counts: FloatArray) -> Shift:
        """Regress the shifts on the tastes, given posteriors of both and the weights of the people.

        A Gaussian posterior is replaced by 2(d + 1) points around its mean, which have its moments.
        """
        people, size = posteriors.mean.shape
        d = size - 1
        first, second = np.triu_indices(d)
        features = 1 + d + len(first)
        chunk_count = -(-people // _CHUNK)
        matrices, vectors, total = (
            np.zeros((chunk_count, features, features)),
            np.zeros((chunk_count, features)),
            np.zeros(chunk_count),
        )
        points = posteriors.points
        if points is None:
            sigma_offsets = np.sqrt(size) * np.linalg.cholesky(posteriors.covariance).transpose(0, 2, 1)
            place = posteriors.mean[:, None] + np.concatenate([sigma_offsets, -sigma_offsets], axis=1)
            points = Points(np.ascontiguousarray(place), np.full((people, 2 * size), 0.5 / size))
        for_ranges(add_shifts, people, _CHUNK, _CHUNK, points.place, points.weight, counts, matrices, vectors, total)
        matrix, vector = matrices.sum(axis=0), vectors.sum(axis=0)
        prior_precision = np.append(1e-9, np.full(features - 1, _PRIOR_PRECISION))
        solved = np.linalg.solve(matrix + np.diag(prior_precision), vector)
        residual_square = total.sum() - 2.0 * solved @ vector + solved @ matrix @ solved
        variance = (residual_square + _PSEUDO_PEOPLE * _PRIOR_VARIANCE) / (counts.sum() + _PSEUDO_PEOPLE)
        square = np.zeros((d, d))
        square[first, second] = solved[1 + d :]
        return cls(float(solved[0]), solved[1 : 1 + d], square + square.T, max(float(variance), _MIN_VARIANCE))

    def improved(self, points: Points, slope: FloatArray, curve: FloatArray, counts: FloatArray) -> Shift:
        """Take a Newton step of the expected log-likelihood, given z and ε = (s - α - β·z - z'Qz/2)/τ at points.

        Unlike a regression of the shifts, it does not become slow as τ becomes small. `slope` and `curve` are the
        (people, points) first and negative second derivatives of the log-likelihood by the shift.
        """
        d, deviation = len(self.linear), float(np.sqrt(self.variance))
        first, second = np.triu_indices(d)
        z = points.place[:, :, :d].reshape(-1, d)
        noise = (points.place[:, :, d].ravel() - self.at(z)) / deviation
        features = np.column_stack([np.ones(len(z)), z, z[:, first] * z[:, second], noise])
        weight = points.weight * counts[:, None]
        symmetry = np.where(first == second, 0.5, 1.0)
        coefficients = np.concatenate([[0.0], self.linear, symmetry * self.square[first, second]])
        prior_precision = np.append(1e-9, np.full(len(coefficients) - 1, _PRIOR_PRECISION))
        # The prior of the variance is an inverse Gamma distribution.
        gradient = np.append(
            -prior_precision * coefficients, _PSEUDO_PEOPLE * (_PRIOR_VARIANCE / deviation**3 - 1.0 / deviation)
        )
        prior_curvature = np.append(
            prior_precision, _PSEUDO_PEOPLE * max(3.0 * _PRIOR_VARIANCE / deviation**4 - deviation**-2, 0.0)
        )
        matrix = features.T @ ((weight * curve).reshape(-1, 1) * features) + np.diag(prior_curvature)
        step = np.linalg.solve(matrix, features.T @ (weight * slope).ravel() + gradient)
        step *= min(1.0, _MAX_STEP / float(np.abs(step).max()))
        square = np.zeros((d, d))
        square[first, second] = step[1 + d : -1]
        deviation = float(np.clip(deviation + step[-1], 0.5 * deviation, 2.0 * deviation))
        return Shift(
            self.constant + float(step[0]),
            self.linear + step[1 : 1 + d],
            self.square + square + square.T,
            max(deviation**2, _MIN_VARIANCE),
        )

    def transformed(self, centre: FloatArray, matrix: FloatArray) -> Shift:
        """Transform (z, s) to matrix ((z, s) - centre).

        The matrix has the rows (M, 0) and (-l, 1).
        """
        d = len(self.linear)
        inverse = np.linalg.inv(matrix[:d, :d])
        square_centre = self.square @ centre[:d]
        constant = self.constant + self.linear @ centre[:d] + 0.5 * centre[:d] @ square_centre - centre[d]
        linear = (self.linear + square_centre + matrix[d, :d]) @ inverse
        return Shift(float(constant), linear, inverse.T @ self.square @ inverse, self.variance)

    def at(self, z: FloatArray) -> FloatArray:
        """Return the expected shifts at tastes of shape (..., d)."""
        return np.asarray(self.constant + z @ self.linear + 0.5 * np.sum((z @ self.square) * z, axis=-1))

    def propose(self, people: int, spread: FloatArray, earlier: Points | None) -> tuple[FloatArray, FloatArray]:
        """Draw (people, points, d + 1) points (z, s), and return them with log importance weights for the prior.

        The points are quasi-random in the coordinates z and ε = (s - α - β·z - z'Qz/2)/τ, in which the prior is
        Gaussian. They come from the prior or, if there are earlier points, from a Gaussian with the moments of those,
        but somewhat wider. If few points carry the weight, their moments are mixed with those of the prior.
        """
        d = len(spread)
        deviation = np.sqrt(self.variance)
        prior = np.pad(spread, (0, 1))
        prior[d, d] = 1.0
        if earlier is None:
            mean, covariance = np.zeros((people, d + 1)), np.tile(prior, (people, 1, 1))
        else:
            place = earlier.place.copy()
            place[:, :, d] = (place[:, :, d] - self.at(place[:, :, :d])) / deviation
            mean, covariance = Points(place, earlier.weight).moments()
            own_weight = (earlier.effective / (earlier.effective + d + 1))[:, None, None]
            covariance = _WIDENING * (own_weight * covariance + (1.0 - own_weight) * prior)
        standard, root = standard_points(_POINTS, d + 1), np.linalg.cholesky(covariance)
        place = mean[:, None] + standard @ root.transpose(0, 2, 1)
        log_weight = 0.5 * np.sum(standard**2, axis=1) - 0.5 * np.sum((place @ np.linalg.inv(prior)) * place, axis=2)
        log_weight += np.sum(np.log(np.einsum("pii->pi", root)), axis=1)[:, None]
        place[:, :, d] = self.at(place[:, :, :d]) + deviation * place[:, :, d]
        return np.ascontiguousarray(place), log_weight - 0.5 * np.linalg.slogdet(prior)[1] - np.log(_POINTS)

    def prior(self, precision: FloatArray, posteriors: Posteriors) -> tuple[FloatArray, FloatArray]:
        """Return natural parameters of each person's Gaussian prior of (z, s), given the precision of z.

        The factor exp(-r²/2τ²) with r = s - α - β·z - z'Qz/2 is replaced by a Gaussian that has, under the current
        posterior, the same expected gradient, and the expected r'r'ᵀ over τ² as its precision.
        """
        people, size = posteriors.mean.shape
        d = size - 1
        z, sigma = posteriors.mean[:, :d], posteriors.covariance
        square_z = z @ self.square
        slope = np.column_stack([-(self.linear + square_z), np.ones(people)])
        residual = posteriors.mean[:, d] - self.constant - z @ self.linear - 0.5 * np.sum(square_z * z, axis=1)
        residual -= 0.5 * np.einsum("ij,pji->p", self.square, sigma[:, :d, :d])
        out = np.einsum("pi,pj->pij", slope, slope)
        out[:, :d, :d] += self.square @ sigma[:, :d, :d] @ self.square
        gradient = residual[:, None] * slope
        gradient[:, :d] -= np.einsum("ij,pjk,pk->pi", self.square, sigma[:, :d], slope)
        linear = (np.einsum("pij,pj->pi", out, posteriors.mean) - gradient) / self.variance
        out /= self.variance
        out[:, :d, :d] += precision
        return np.ascontiguousarray(out), np.ascontiguousarray(linear)
