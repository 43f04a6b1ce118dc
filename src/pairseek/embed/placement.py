"""Positions of items that triplets determine, with their uncertainty: `Placement`, on which active questions rest.

The positions maximise the likelihood of `STE` times a normal prior whose variance is estimated from them (empirical
Bayes). The logit of a triplet (anchor, near, far) is |anchor - far|² - |anchor - near|²: for the anchor it is that of
a user at its position under constant noise with k = 1, and it depends on the two other positions as well. Around the
positions it is linear in all three, so that the posterior is about Gaussian with the precision 2λI + Σ p (1 - p) g g',
where g is the gradient of a logit and p its probability (Laplace's approximation with Fisher's information).
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
from pairseek.embed.losses import LOGISTIC, logit_variances
from pairseek.embed.objective import Objective, distances, padded
from pairseek.embed.shrinkage_path import PathSettings, descend, fit_at
from pairseek.embed.triplets import Triplets
from pairseek.errors import InvalidItems
from pairseek.model.items import Items
from pairseek.model.metrics import triplet_error
from pairseek.numerics.compilation import first_use
from pairseek.numerics.jit import read_only
from pairseek.numerics.parallel import for_ranges
from pairseek.numerics.tables import look_up, tables

UNDECIDED = 0.05
"""Share of undecided orders at which a map counts as finished."""
_TOLERANCE, _ITERATIONS = 1e-5, 300
# λ of a standard normal prior, with which a first fit begins, and the range in which it is estimated.
_FIRST_SHRINKAGE = 0.5
_SHRINKAGES = (1e-4, 1e3)
_ROUNDS = 2
# Random triplets over which the share of undecided orders is averaged, for the whole and for each item.
_ORDERS, _ORDERS_EACH = 4000, 60
# Judgements that a forecast reaches, as a multiple of those that there are.
_FARTHEST = 64.0
_CHUNK = 1024


@dataclass(frozen=True, eq=False)
class Placement:
    """Estimated positions of items after triplets, and how certain they are.

    Attributes
    ----------
    ids
        Ids of all items.
    coordinates
        (n, d) positions, in units in which k = 1.
    shrinkage
        λ: the prior of a coordinate has the variance 1/(2λ).
    rows
        (m, 3) triplets they were fitted to: rows of anchor, near and far.

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
            The judgements. An item in none of them is at the mean, as uncertain as the prior.
        dimensions
            Number of dimensions.
        start
            An earlier placement of the same items, from which the optimiser begins. A fresh start competes with it:
            the likelier of the two is returned.
        rng
            Seed or generator for the fresh start.
        """
        return cls._fitted(triplets, dimensions, start, rng, fresh=True)

    def refit(self, triplets: Triplets) -> Self:
        """Return the placement after other triplets from these positions alone, which takes a fraction of `fit`."""
        return self._fitted(triplets, self.d, self, 0, fresh=False)

    @classmethod
    def _fitted(
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
        settings = PathSettings(d, 1.0, 1, _TOLERANCE, _ITERATIONS, lambda *_: None)
        with first_use():
            objective = Objective(triplets.rows, n, LOGISTIC, 0.0)
            objective(padded(np.zeros((n, d))))
        found: tuple[FloatArray, float] | None = None
        if start is not None and start.d == d:
            found = _estimated(objective, triplets.rows, padded(start.coordinates), start.shrinkage, settings)
        if found is None or fresh:
            level = _FIRST_SHRINKAGE if found is None else found[1]
            generator = np.random.default_rng(rng)
            points, _, _ = descend(objective, n, settings, generator, shrinkage=level, validate=lambda _: (0.0, 0.0))
            if found is None or _value(objective, points, level) < _value(objective, found[0], level):
                found = _estimated(objective, triplets.rows, points, level, settings)
        coordinates = np.ascontiguousarray(found[0][:, :d])
        coordinates.flags.writeable = False
        return cls(triplets.ids, coordinates, found[1], triplets.rows)

    @property
    def n(self) -> int:
        """Number of items."""
        return len(self.ids)

    @property
    def d(self) -> int:
        """Number of dimensions."""
        return int(self.coordinates.shape[1])

    def items(self, labels: Sequence[str] | None = None) -> Items:
        """Return the positions as items for a `Search`, in the same units: constant noise with k = 1."""
        return Items._unwarned(self.coordinates, self.ids, labels)

    def error(self, triplets: Triplets) -> float:
        """Return the share of triplets that the positions violate; equal distances count half."""
        return triplet_error(self.coordinates, triplets.among(self.ids))

    def logits(self, rows: IntArray) -> FloatArray:
        """Return the (m,) logits of "the second item is nearer to the first than the third is"."""
        near, far = distances(rows, self.coordinates)
        return far - near

    def gradients(self, rows: IntArray) -> FloatArray:
        """Return the (m, 3d) gradients of the logits with respect to the positions of the three items."""
        anchor, near, far = (self.coordinates[column] for column in rows.T)
        return 2.0 * np.concatenate([near - far, anchor - near, far - anchor], axis=1)

    @cached_property
    def fisher_information(self) -> FloatArray:
        """(nd, nd) information of the fitted triplets, Σ p (1 - p) g g'."""
        n, d = self.n, self.d
        chance = expit(self.logits(self.rows))
        scaled = self.gradients(self.rows) * np.sqrt(chance * (1.0 - chance))[:, None]
        out = np.zeros((n, n, d, d))
        for first in range(3):
            for second in range(3):
                part = scaled[:, first * d : (first + 1) * d, None] * scaled[:, None, second * d : (second + 1) * d]
                np.add.at(out, (self.rows[:, first], self.rows[:, second]), part)
        return np.ascontiguousarray(out.transpose(0, 2, 1, 3).reshape(n * d, n * d))

    @cached_property
    def covariance(self) -> FloatArray:
        """(nd, nd) covariance of all coordinates, item by item."""
        return self._covariance_after(1.0)

    def _covariance_after(self, times: float) -> FloatArray:
        """Return the covariance if there were so many times the triplets."""
        precision = times * self.fisher_information
        precision[np.diag_indices(len(precision))] += 2.0 * self.shrinkage
        return np.asarray(np.linalg.inv(precision))

    def logit_variance(self, rows: IntArray, asked: IntArray | None = None) -> FloatArray:
        """Return the (m,) variances of logits; after further triplets that were asked, if given, whatever the answers.

        Woodbury's identity: the further triplets take C U (W⁻¹ + U'CU)⁻¹ U'C off the covariance C, where the columns of
        U are their gradients and W has their p (1 - p).
        """
        return _variance(self, self.covariance, rows, asked)

    def information(self, rows: IntArray, asked: IntArray | None = None) -> FloatArray:
        """Return the (m,) information in bits that an answer to each triplet gives about all positions."""
        out = np.empty(len(rows))
        deviation = np.sqrt(self.logit_variance(rows, asked))
        look_up(0, len(rows), tables(0).information, self.logits(rows), deviation, out)
        return out

    def undecided(self) -> FloatArray:
        """Return for each item the share of triplets around it whose order may be the other way round.

        It is the expected share of triplets that the positions order wrongly, because there are too few judgements:
        what people disagree about is not part of it.
        """
        rng = np.random.default_rng(0)
        rows = np.concatenate([random_triplets(self.n, _ORDERS_EACH, rng, anchor=i) for i in range(self.n)])
        return np.asarray(_doubtful(self, self.covariance, rows).reshape(self.n, -1).mean(axis=1))

    def forecast(self, undecided: float = UNDECIDED) -> int | None:
        """Return how many judgements of this kind are needed in all until that share of orders is undecided.

        The judgements to come are taken to be as informative as those that there are. None: more than 64 times those.
        """
        rows = random_triplets(self.n, _ORDERS, np.random.default_rng(0))

        def share(times: float) -> float:
            return float(np.mean(_doubtful(self, self._covariance_after(times), rows)))

        low, high = 1.0, 1.0
        while share(high) > undecided:
            low, high = high, 2.0 * high
            if high > _FARTHEST:
                return None
        if high == 1.0:
            return len(self.rows)
        for _ in range(5):
            middle = np.sqrt(low * high)
            low, high = (middle, high) if share(middle) > undecided else (low, middle)
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
    """Draw (count, 3) rows of three different items out of n; with a given anchor if there is one."""
    first = rng.integers(n, size=count) if anchor is None else np.full(count, anchor)
    second = (first + rng.integers(1, n, size=count)) % n
    third = rng.integers(n - 2, size=count)
    # The third is one of the n - 2 others: skip the two that are taken, the lower index first.
    low, high = np.minimum(first, second), np.maximum(first, second)
    third += third >= low
    third += third >= high
    return np.column_stack([first, second, third])


def _value(objective: Objective, points: FloatArray, shrinkage: float) -> float:
    return objective(points)[0] + shrinkage * float((points * points).sum())


def _estimated(
    objective: Objective, rows: IntArray, points: FloatArray, shrinkage: float, settings: PathSettings
) -> tuple[FloatArray, float]:
    """Return the positions and λ, estimated in turn: 1/(2λ) is the mean of x² + Var(x) over all coordinates."""
    for _ in range(_ROUNDS):
        points = fit_at(objective, points, shrinkage, settings).point
        coordinates = points[:, : settings.d]
        variance = np.mean(coordinates**2) + _mean_variance(coordinates, rows, shrinkage)
        shrinkage = float(np.clip(0.5 / variance, *_SHRINKAGES))
    return points, shrinkage


def _mean_variance(coordinates: FloatArray, rows: IntArray, shrinkage: float) -> float:
    """Return the mean variance of a coordinate, each item's given all others."""
    n, d = coordinates.shape
    placement = Placement(tuple(range(n)), coordinates, shrinkage, rows)
    chance = expit(placement.logits(rows))
    scaled = placement.gradients(rows) * np.sqrt(chance * (1.0 - chance))[:, None]
    precision = np.tile(2.0 * shrinkage * np.eye(d), (n, 1, 1))
    for place in range(3):
        part = scaled[:, place * d : (place + 1) * d]
        np.add.at(precision, rows[:, place], part[:, :, None] * part[:, None, :])
    return float(np.mean(np.trace(np.linalg.inv(precision), axis1=1, axis2=2)) / d)


def _places(rows: IntArray, d: int) -> IntArray:
    """Return the (m, 3d) places of the coordinates of each row's items in the covariance."""
    return np.asarray((rows[:, :, None] * d + np.arange(d)).reshape(len(rows), -1))


def _variance(
    placement: Placement, covariance: FloatArray, rows: IntArray, asked: IntArray | None = None
) -> FloatArray:
    along, inner = np.empty((len(covariance), 0)), np.empty((0, 0))
    if asked is not None and len(asked):
        slopes, where = placement.gradients(asked), _places(asked, placement.d)
        # (nd, t) covariance of all coordinates with the logits of the triplets that were asked.
        along = np.einsum("xti,ti->xt", covariance[:, where], slopes)
        chance = expit(placement.logits(asked))
        known = np.einsum("ti,tiu->tu", slopes, along[where])
        known[np.diag_indices(len(asked))] += 1.0 / np.maximum(chance * (1.0 - chance), 1e-12)
        inner = np.linalg.inv(known)
    out = np.empty(len(rows))
    table = read_only(np.ascontiguousarray(rows, dtype=np.int64))
    arguments = (table, placement.gradients(rows), *map(read_only, (covariance, along, inner)), out)
    for_ranges(logit_variances, len(rows), _CHUNK, *arguments)
    return out


def _doubtful(placement: Placement, covariance: FloatArray, rows: IntArray) -> FloatArray:
    """Return the (m,) probabilities that the true order of a triplet is not the estimated one."""
    deviation = np.sqrt(np.maximum(_variance(placement, covariance, rows), 1e-300))
    return np.asarray(ndtr(-np.abs(placement.logits(rows)) / deviation))
