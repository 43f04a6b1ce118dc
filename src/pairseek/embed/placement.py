"""Positions of items estimated from triplets, and their uncertainty, from which active questions are chosen.

The positions maximise the likelihood of `STE` times a normal prior, whose variance is estimated from them (empirical
Bayes). The logit of a triplet (anchor, near, far) is |anchor - far|² - |anchor - near|², the logit of a user at the
anchor's position under constant noise with k = 1; here, the other two positions are uncertain as well. Locally the
logit is linear in all three positions, so the posterior is approximately Gaussian with precision 2λI + Σ p (1 - p) g
g', where g is the gradient of a logit and p its probability (Laplace's approximation with the Fisher information).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import expit, ndtr

from pairseek.core.lazy import cached_property
from pairseek.core.types import JSON, FloatArray, IntArray, ItemId
from pairseek.core.validation import whole
from pairseek.embed.losses import LOGISTIC_LOSS, logit_variances
from pairseek.embed.objective import Objective, distances, padded
from pairseek.embed.shrinkage_path import PathSettings, descend, fit_at
from pairseek.embed.triplets import Triplets
from pairseek.errors import InvalidItems
from pairseek.model.items import Items
from pairseek.model.metrics import triplet_error
from pairseek.numerics.compilation import compilation_notice
from pairseek.numerics.jit import read_only
from pairseek.numerics.parallel import for_ranges
from pairseek.numerics.tables import look_up, tables

MAX_UNDECIDED_SHARE = 0.05
"""Fraction of undecided triplets at which a map counts as finished."""
_FIT_TOLERANCE = 1e-5
_MAX_ITERATIONS = 300
# A first fit starts from the λ of a standard normal prior.
_FIRST_SHRINKAGE = 0.5
# Range of the estimate of λ.
_SHRINKAGE_RANGE = (1e-4, 1e3)
_SHRINKAGE_UPDATES = 2
# Number of random triplets over which a map's fraction of undecided triplets is averaged.
_SAMPLED_TRIPLETS = 4000
# Number of random triplets over which an item's fraction of undecided triplets is averaged.
_SAMPLED_TRIPLETS_PER_ITEM = 60
# Horizon of a forecast, as a multiple of the present number of judgements.
_FORECAST_HORIZON = 64.0
_CHUNK_SIZE = 1024


@dataclass(frozen=True, eq=False)
class Placement:
    """Estimated positions of items, with their uncertainty.

    Attributes
    ----------
    ids
        Ids of all items.
    coordinates
        (n, d) positions, in units in which k = 1.
    shrinkage
        λ: the prior variance of a coordinate is 1/(2λ).
    rows
        (m, 3) rows (anchor, near, far) of the triplets that the positions were fitted to.

    Examples
    --------
    >>> import numpy as np
    >>> import pairseek as ps
    >>> from pairseek.embed import Placement, simulate_triplets
    >>> items = ps.Items(np.random.default_rng(0).standard_normal((12, 2)))
    >>> few, many = (simulate_triplets(items, count, rng=0) for count in (60, 600))
    >>> placement = Placement.fit(few, dimensions=2)
    >>> surer = Placement.fit(many, dimensions=2)
    >>> placement.coordinates.shape, placement.covariance.shape
    ((12, 2), (24, 24))
    >>> bool(placement.undecided().mean() > surer.undecided().mean())
    True
    """

    ids: tuple[ItemId, ...]
    coordinates: FloatArray
    shrinkage: float
    rows: IntArray

    @classmethod
    def fit(
        cls, triplets: Triplets, dimensions: int, *, start: Placement | None = None, rng: int | np.random.Generator = 0
    ) -> Self:
        """Fit the positions.

        Parameters
        ----------
        triplets
            The judgements. An item in none of them is placed at the mean, with the uncertainty of the prior.
        dimensions
            Number of dimensions.
        start
            An earlier placement of the same items, where the optimiser starts. A fresh start competes with it, and the
            likelier result is returned.
        rng
            Seed or generator for the fresh start.
        """
        return cls._fit(triplets, dimensions, start, rng, fresh=True)

    def refit(self, triplets: Triplets) -> Self:
        """Fit to other triplets, starting only from these positions; much faster than `fit`."""
        return self._fit(triplets, self.d, self, 0, fresh=False)

    @classmethod
    def _fit(
        cls,
        triplets: Triplets,
        dimensions: int,
        start: Placement | None,
        rng: int | np.random.Generator,
        *,
        fresh: bool,
    ) -> Self:
        d = whole(dimensions, "dimensions")
        n = triplets.n
        if n < d + 2:
            raise InvalidItems(f"{n} items for {d} dimensions: positions need at least {d + 2}; use fewer dimensions")
        settings = PathSettings(d, 1.0, 1, _FIT_TOLERANCE, _MAX_ITERATIONS, lambda *_: None)
        with compilation_notice():
            objective = Objective(triplets.rows, n, LOGISTIC_LOSS, 0.0)
            objective(padded(np.zeros((n, d))))
        fit: tuple[FloatArray, float] | None = None
        if start is not None and start.d == d:
            fit = _empirical_bayes(objective, triplets.rows, padded(start.coordinates), start.shrinkage, settings)
        if fit is None or fresh:
            level = _FIRST_SHRINKAGE if fit is None else fit[1]
            generator = np.random.default_rng(rng)
            points, _, _ = descend(objective, n, settings, generator, shrinkage=level, validate=lambda _: (0.0, 0.0))
            if fit is None or _regularised(objective, points, level) < _regularised(objective, fit[0], level):
                fit = _empirical_bayes(objective, triplets.rows, points, level, settings)
        coordinates = np.ascontiguousarray(fit[0][:, :d])
        coordinates.flags.writeable = False
        return cls(triplets.ids, coordinates, fit[1], triplets.rows)

    @property
    def n(self) -> int:
        """Number of items."""
        return len(self.ids)

    @property
    def d(self) -> int:
        """Number of dimensions."""
        return int(self.coordinates.shape[1])

    def items(self, labels: Sequence[str] | None = None) -> Items:
        """Return the positions as items for a `Search`; in their units, k = 1 with constant noise."""
        return Items._without_warnings(self.coordinates, self.ids, labels)

    def error(self, triplets: Triplets) -> float:
        """Return the fraction of triplets that the positions violate; equal distances count half."""
        return triplet_error(self.coordinates, triplets.among(self.ids))

    def logits(self, rows: IntArray) -> FloatArray:
        """Return the (m,) logits that the second item is nearer to the first than the third is."""
        near, far = distances(rows, self.coordinates)
        return far - near

    def gradients(self, rows: IntArray) -> FloatArray:
        """Return the (m, 3d) gradients of the logits with respect to the positions of the three items."""
        anchor, near, far = (self.coordinates[column] for column in rows.T)
        return 2.0 * np.concatenate([near - far, anchor - near, far - anchor], axis=1)

    @cached_property
    def fisher_information(self) -> FloatArray:
        """(nd, nd) Fisher information of the fitted triplets, Σ p (1 - p) g g'."""
        n, d = self.n, self.d
        probability = expit(self.logits(self.rows))
        scaled = self.gradients(self.rows) * np.sqrt(probability * (1.0 - probability))[:, None]
        out = np.zeros((n, n, d, d))
        for first in range(3):
            for second in range(3):
                part = scaled[:, first * d : (first + 1) * d, None] * scaled[:, None, second * d : (second + 1) * d]
                np.add.at(out, (self.rows[:, first], self.rows[:, second]), part)
        return np.ascontiguousarray(out.transpose(0, 2, 1, 3).reshape(n * d, n * d))

    @cached_property
    def covariance(self) -> FloatArray:
        """(nd, nd) posterior covariance of all coordinates, item by item."""
        return self._covariance_after(1.0)

    def _covariance_after(self, factor: float) -> FloatArray:
        """Return the covariance if the triplets' information were multiplied by ``factor``."""
        precision = factor * self.fisher_information
        precision[np.diag_indices(len(precision))] += 2.0 * self.shrinkage
        return np.asarray(np.linalg.inv(precision))

    def logit_variance(self, rows: IntArray, asked: IntArray | None = None) -> FloatArray:
        """Return the (m,) variances of logits; with ``asked``, after answers to these further triplets.

        By Woodbury's identity, the further triplets reduce the covariance C by C U (W⁻¹ + U'CU)⁻¹ U'C, where the
        columns of U are their gradients and W is diagonal with their p (1 - p).
        """
        return _variance(self, self.covariance, rows, asked)

    def information(self, rows: IntArray, asked: IntArray | None = None) -> FloatArray:
        """Return the (m,) expected information, in bits, of an answer to each triplet about all positions."""
        out = np.empty(len(rows))
        deviation = np.sqrt(self.logit_variance(rows, asked))
        look_up(0, len(rows), tables(0).information, self.logits(rows), deviation, out)
        return out

    def undecided(self) -> FloatArray:
        """Return the (n,) expected fraction of triplets around each item that the positions order wrongly.

        It counts errors from having too few judgements, not disagreement between people.
        """
        rng = np.random.default_rng(0)
        rows = np.concatenate(
            [random_triplets(self.n, _SAMPLED_TRIPLETS_PER_ITEM, rng, anchor=i) for i in range(self.n)]
        )
        return np.asarray(_misorder_probability(self, self.covariance, rows).reshape(self.n, -1).mean(axis=1))

    def forecast(self, undecided: float = MAX_UNDECIDED_SHARE) -> int | None:
        """Forecast the total number of judgements until only this fraction of triplets is undecided.

        Further judgements are assumed to be as informative as the present ones. Return None if more than 64 times the
        present number would be needed.
        """
        rows = random_triplets(self.n, _SAMPLED_TRIPLETS, np.random.default_rng(0))

        def undecided_share(factor: float) -> float:
            return float(np.mean(_misorder_probability(self, self._covariance_after(factor), rows)))

        low, high = 1.0, 1.0
        while undecided_share(high) > undecided:
            low, high = high, 2.0 * high
            if high > _FORECAST_HORIZON:
                return None
        if high == 1.0:
            return len(self.rows)
        for _ in range(5):
            middle = np.sqrt(low * high)
            low, high = (middle, high) if undecided_share(middle) > undecided else (low, middle)
        return int(np.ceil(high * len(self.rows)))

    def record(self) -> JSON:
        """Return the placement as plain data."""
        return {
            "ids": list(self.ids),
            "coordinates": self.coordinates.tolist(),
            "shrinkage": self.shrinkage,
            "triplets": self.rows.tolist(),
        }

    @classmethod
    def from_record(cls, record: JSON) -> Self:
        """Read a placement from `record`."""
        ids = tuple(record["ids"])
        coordinates = np.array(record["coordinates"], dtype=np.float64).reshape(len(ids), -1)
        rows = np.array(record["triplets"], dtype=np.int64).reshape(-1, 3)
        for array in (coordinates, rows):
            array.flags.writeable = False
        return cls(ids, coordinates, float(record["shrinkage"]), rows)


def random_triplets(n: int, count: int, rng: np.random.Generator, *, anchor: int | None = None) -> IntArray:
    """Draw (count, 3) rows of three different items out of n, all with the given anchor if there is one."""
    first = rng.integers(n, size=count) if anchor is None else np.full(count, anchor)
    second = (first + rng.integers(1, n, size=count)) % n
    third = rng.integers(n - 2, size=count)
    # Draw from the n - 2 other items, then skip the indices of the two taken, the lower one first.
    low, high = np.minimum(first, second), np.maximum(first, second)
    third += third >= low
    third += third >= high
    return np.column_stack([first, second, third])


def _regularised(objective: Objective, points: FloatArray, shrinkage: float) -> float:
    return objective(points)[0] + shrinkage * float((points * points).sum())


def _empirical_bayes(
    objective: Objective, rows: IntArray, points: FloatArray, shrinkage: float, settings: PathSettings
) -> tuple[FloatArray, float]:
    """Estimate the positions and λ in turn; 1/(2λ) is the mean of x² + Var(x) over all coordinates."""
    for _ in range(_SHRINKAGE_UPDATES):
        points = fit_at(objective, points, shrinkage, settings).point
        coordinates = points[:, : settings.d]
        variance = np.mean(coordinates**2) + _mean_variance(coordinates, rows, shrinkage)
        shrinkage = float(np.clip(0.5 / variance, *_SHRINKAGE_RANGE))
    return points, shrinkage


def _mean_variance(coordinates: FloatArray, rows: IntArray, shrinkage: float) -> float:
    """Return the mean variance of a coordinate, conditional on the positions of all other items."""
    n, d = coordinates.shape
    placement = Placement(tuple(range(n)), coordinates, shrinkage, rows)
    probability = expit(placement.logits(rows))
    scaled = placement.gradients(rows) * np.sqrt(probability * (1.0 - probability))[:, None]
    precision = np.tile(2.0 * shrinkage * np.eye(d), (n, 1, 1))
    for column in range(3):
        part = scaled[:, column * d : (column + 1) * d]
        np.add.at(precision, rows[:, column], part[:, :, None] * part[:, None, :])
    return float(np.mean(np.trace(np.linalg.inv(precision), axis1=1, axis2=2)) / d)


def _variance(
    placement: Placement, covariance: FloatArray, rows: IntArray, asked: IntArray | None = None
) -> FloatArray:
    along, inner = np.empty((len(covariance), 0)), np.empty((0, 0))
    if asked is not None and len(asked):
        # (m, 3d) indices in the covariance of the coordinates of each row's items.
        indices = (asked[:, :, None] * placement.d + np.arange(placement.d)).reshape(len(asked), -1)
        slopes = placement.gradients(asked)
        # (nd, t) covariance of all coordinates with the logits of the asked triplets.
        along = np.einsum("xti,ti->xt", covariance[:, indices], slopes)
        probability = expit(placement.logits(asked))
        logit_covariance = np.einsum("ti,tiu->tu", slopes, along[indices])
        logit_covariance[np.diag_indices(len(asked))] += 1.0 / np.maximum(probability * (1.0 - probability), 1e-12)
        inner = np.linalg.inv(logit_covariance)
    out = np.empty(len(rows))
    triplet_rows = read_only(np.ascontiguousarray(rows, dtype=np.int64))
    arguments = (triplet_rows, placement.gradients(rows), *map(read_only, (covariance, along, inner)), out)
    for_ranges(logit_variances, len(rows), _CHUNK_SIZE, *arguments)
    return out


def _misorder_probability(placement: Placement, covariance: FloatArray, rows: IntArray) -> FloatArray:
    """Return the (m,) probabilities that a triplet's true order differs from the estimated order."""
    deviation = np.sqrt(np.maximum(_variance(placement, covariance, rows), 1e-300))
    return np.asarray(ndtr(-np.abs(placement.logits(rows)) / deviation))
