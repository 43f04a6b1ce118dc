"""Prior distributions of the user point."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Protocol, TypeAlias

import numpy as np
from scipy.special import ndtri

from pairseek.core.limits import COORDINATE, COVARIANCE
from pairseek.core.types import FloatArray
from pairseek.core.user_parts import Part, PartAdapter
from pairseek.errors import InvalidParameter
from pairseek.numerics.moments import sample_moments

# Number of samples from which the moments of a prior are estimated.
_MOMENT_SAMPLES = 1 << 14


class Prior(Protocol):
    """Log-concave density: a Gaussian factor, with possibly zero precision, inside a possibly infinite box.

    Any other distribution is a `DensityPrior`.
    """

    @property
    def name(self) -> str:
        """Return the name in files, commands and HTTP."""
        ...

    def box(self, d: int) -> tuple[FloatArray, FloatArray]:
        """Return the (d,) lower and (d,) upper bounds of the support, possibly infinite."""
        ...

    def quadratic(self, d: int) -> tuple[FloatArray, FloatArray]:
        """Return the (d,) centre and (d, d) precision of the Gaussian factor."""
        ...

    def moments(self, d: int) -> tuple[FloatArray, FloatArray]:
        """Return the (d,) mean and (d, d) covariance."""
        ...

    def entropy_bits(self, d: int) -> float:
        """Return the differential entropy in bits: 0 for the unit cube of the paper's theory, d for [-1, 1]^d."""
        ...

    def sample(self, n: int, d: int, rng: np.random.Generator) -> FloatArray:
        """Draw (n, d) points, stratified along every coordinate."""
        ...


class DensityPrior(Protocol):
    """Arbitrary density, such as a mixture, for `Particles`, `Grid` and user-defined posteriors, but not `EP`.

    It may define ``moments(d)`` and ``box(d)`` like a `Prior`, see `BasePrior`.
    """

    def sample(self, n: int, d: int, rng: np.random.Generator) -> FloatArray:
        """Draw (n, d) points."""
        ...

    def log_density(self, points: FloatArray) -> FloatArray:
        """Return the (n,) log densities at (n, d) points, up to a constant; -inf outside the support."""
        ...


AnyPrior: TypeAlias = Prior | DensityPrior


class BasePrior(Part):
    """Base class of priors, with defaults for optional members.

    A user-defined prior may derive from it, or be a plain class with the members of a `Prior` or a `DensityPrior` and
    any of these.
    """

    name: ClassVar[str]
    sample: Callable[[int, int, np.random.Generator], FloatArray]
    log_density: Callable[[FloatArray], FloatArray] | None = None
    """Method (points) that returns the (n,) log densities at (n, d) points, up to a constant. None: the prior is a
    Gaussian factor inside a box."""

    def box(self, d: int) -> tuple[FloatArray, FloatArray]:
        """Return the (d,) lower and (d,) upper bounds of the support, by default infinite."""
        return np.full(d, -np.inf), np.full(d, np.inf)

    def quadratic(self, d: int) -> tuple[FloatArray, FloatArray]:
        """Return the (d,) centre and (d, d) precision of the Gaussian factor, by default with zero precision."""
        return np.zeros(d), np.zeros((d, d))

    def moments(self, d: int) -> tuple[FloatArray, FloatArray]:
        """Return the (d,) mean and (d, d) covariance, by default estimated from samples."""
        points = np.ascontiguousarray(self.sample(_MOMENT_SAMPLES, d, np.random.default_rng(0)), dtype=np.float64)
        return sample_moments(points, np.full(_MOMENT_SAMPLES, 1.0 / _MOMENT_SAMPLES))


class _PriorAdapter(PartAdapter, BasePrior):
    """Adapter of a prior that does not derive from `BasePrior`."""


def prior_of(prior: object) -> BasePrior:
    """Return a prior with all members, wrapped in an adapter if necessary."""
    return prior if isinstance(prior, BasePrior) else _PriorAdapter(prior)


def is_density(prior: object) -> bool:
    """Return whether a prior is defined by ``log_density`` rather than by a Gaussian factor inside a box."""
    return prior_of(prior).log_density is not None


def log_density_of(prior: AnyPrior, points: FloatArray) -> FloatArray:
    """Return the (n,) log densities at (n, d) points, up to a constant; -inf outside the support."""
    complete, d = prior_of(prior), points.shape[1]
    if complete.log_density is not None:
        return np.asarray(complete.log_density(points), dtype=np.float64)
    (low, high), (centre, precision) = complete.box(d), complete.quadratic(d)
    centred = points - centre
    logs = -0.5 * np.einsum("nd,de,ne->n", centred, precision, centred)
    return np.where(np.all((points >= low) & (points <= high), axis=1), logs, -np.inf)


def moments_of(prior: AnyPrior, d: int) -> tuple[FloatArray, FloatArray]:
    """Return the (d,) mean and (d, d) covariance, from samples if the prior does not define ``moments``."""
    return prior_of(prior).moments(d)


def box_of(prior: AnyPrior, d: int) -> tuple[FloatArray, FloatArray]:
    """Return the (d,) bounds of the support, infinite if the prior does not define ``box``."""
    return prior_of(prior).box(d)


def check_prior(prior: AnyPrior, d: int) -> None:
    """Reject a prior for another number of dimensions, or a density whose methods return wrong shapes."""
    box_of(prior, d)
    if not is_density(prior) or not d:
        return
    kind = type(prior).__name__
    try:
        points = np.asarray(prior.sample(2, d, np.random.default_rng(0)))
    except (TypeError, AttributeError) as error:
        raise InvalidParameter(
            f"{kind}.sample(2, {d}, rng) failed ({error}): define sample(self, n, d, rng), with a numpy Generator"
        ) from error
    if points.shape != (2, d):
        raise InvalidParameter(
            f"{kind}.sample(2, {d}, rng) returned shape {points.shape}, expected (2, {d}): draw one row per point"
        )
    logs = np.asarray(prior.log_density(points))  # type: ignore[union-attr]
    if logs.shape != (2,) or not np.all(np.isfinite(logs)):
        raise InvalidParameter(
            f"{kind}.log_density returned {logs!r} for 2 points that {kind}.sample drew, expected 2 finite numbers: "
            f"give one log density per row"
        )


def _vector(value: object, d: int, what: str) -> FloatArray:
    array = np.asarray(value, dtype=np.float64)
    if array.ndim == 0:
        return np.full(d, float(array))
    if array.shape != (d,):
        raise InvalidParameter(
            f"{what} has shape {array.shape} but the items have {d} dimensions: give one number, or {d} numbers"
        )
    return array


def latin_hypercube(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Draw n points of a Latin hypercube in (0, 1)^d, whose means and variances are nearly exact."""
    cells = rng.permuted(np.tile(np.arange(n, dtype=np.float64), (d, 1)), axis=1)
    return np.ascontiguousarray(((cells + rng.random((d, n))) / n).T)


@dataclass(frozen=True)
class UniformBox(BasePrior):
    """Uniform distribution on a box: the paper's prior, [-1/2, 1/2]^d in theory and [-1, 1]^d in experiments.

    Parameters
    ----------
    low
        Lower bounds: one number for all dimensions, or one per dimension.
    high
        Upper bounds, in the same form.

    Examples
    --------
    >>> import pairseek as ps
    >>> ps.UniformBox(-1.0, 1.0).entropy_bits(4)
    4.0
    """

    low: Annotated[float | tuple[float, ...], COORDINATE] = -1.0
    high: Annotated[float | tuple[float, ...], COORDINATE] = 1.0
    name: ClassVar[str] = "uniform_box"

    def __post_init__(self) -> None:
        for bound in ("low", "high"):
            value = np.asarray(getattr(self, bound), dtype=np.float64)
            if value.ndim > 1 or not np.all(np.isfinite(value)):
                raise InvalidParameter(f"{bound} of a UniformBox is {value!r}: give finite numbers", field=bound)
            object.__setattr__(self, bound, float(value) if value.ndim == 0 else tuple(value.tolist()))
        low, high = np.asarray(self.low), np.asarray(self.high)
        if low.ndim and high.ndim and low.shape != high.shape:
            raise InvalidParameter(
                f"low has {len(low)} numbers and high has {len(high)}: give as many of each",
                field="low",
            )
        if np.any(low >= high):
            raise InvalidParameter(f"the box from {self.low} to {self.high} is empty: give low < high", field="low")

    def box(self, d: int) -> tuple[FloatArray, FloatArray]:
        """Return the (d,) bounds."""
        return _vector(self.low, d, "low of the UniformBox"), _vector(self.high, d, "high of the UniformBox")

    def quadratic(self, d: int) -> tuple[FloatArray, FloatArray]:
        """Return a precision of zero, for a density without a Gaussian factor."""
        return np.zeros(d), np.zeros((d, d))

    def moments(self, d: int) -> tuple[FloatArray, FloatArray]:
        """Return the centre, and width²/12 on the diagonal."""
        low, high = self.box(d)
        return (low + high) / 2, np.diag((high - low) ** 2 / 12)

    def entropy_bits(self, d: int) -> float:
        """Return log2 of the volume."""
        low, high = self.box(d)
        return float(np.sum(np.log2(high - low)))

    def sample(self, n: int, d: int, rng: np.random.Generator) -> FloatArray:
        """Draw (n, d) points."""
        low, high = self.box(d)
        return low + (high - low) * latin_hypercube(n, d, rng)


@dataclass(frozen=True, eq=False)
class GaussianPrior(BasePrior):
    """Normal distribution.

    Parameters
    ----------
    mean
        One number for all dimensions, or one per dimension.
    covariance
        One variance for all dimensions, one per dimension, or a (d, d) matrix.

    Examples
    --------
    >>> import pairseek as ps
    >>> ps.GaussianPrior(0.0, 0.25).moments(2)[1].tolist()
    [[0.25, 0.0], [0.0, 0.25]]
    """

    mean: Annotated[float | FloatArray, COORDINATE] = 0.0
    covariance: Annotated[float | FloatArray, COVARIANCE] = 1.0
    name: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        mean = np.array(self.mean, dtype=np.float64)
        covariance = np.array(self.covariance, dtype=np.float64)
        if mean.ndim > 1 or covariance.ndim > 2:
            raise InvalidParameter(
                f"mean has {mean.ndim} axes and covariance has {covariance.ndim}: give a mean with 0 or 1 axes, and a "
                f"covariance with up to 2",
                field="mean" if mean.ndim > 1 else "covariance",
            )
        if not (np.all(np.isfinite(mean)) and np.all(np.isfinite(covariance))):
            field = "covariance" if np.all(np.isfinite(mean)) else "mean"
            raise InvalidParameter(f"the {field} of a GaussianPrior is not finite: give finite numbers", field=field)
        matrix = np.diag(np.atleast_1d(covariance)) if covariance.ndim < 2 else covariance
        symmetric = matrix.shape[0] == matrix.shape[1] and np.allclose(matrix, matrix.T)
        if not symmetric or np.linalg.eigvalsh(matrix)[0] <= 0:
            raise InvalidParameter(
                f"the covariance of a GaussianPrior is {covariance.tolist()}: give a symmetric positive definite one",
                field="covariance",
            )
        for array in (mean, covariance):
            array.flags.writeable = False
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "covariance", covariance)

    def __reduce__(self) -> tuple[type[GaussianPrior], tuple[object, ...]]:
        return type(self), (self.mean, self.covariance)  # unpickling calls the constructor, so copies are read-only too

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GaussianPrior) and all(
            np.array_equal(getattr(self, field), getattr(other, field)) for field in ("mean", "covariance")
        )

    def __hash__(self) -> int:
        return hash((np.asarray(self.mean).tobytes(), np.asarray(self.covariance).tobytes()))

    def box(self, d: int) -> tuple[FloatArray, FloatArray]:
        """Return infinite bounds."""
        return np.full(d, -np.inf), np.full(d, np.inf)

    def quadratic(self, d: int) -> tuple[FloatArray, FloatArray]:
        """Return the mean and the inverse of the covariance."""
        mean, covariance = self.moments(d)
        return mean, np.asarray(np.linalg.inv(covariance), dtype=np.float64)

    def moments(self, d: int) -> tuple[FloatArray, FloatArray]:
        """Return the mean and the covariance."""
        covariance = np.asarray(self.covariance)
        if covariance.ndim < 2:
            covariance = np.diag(_vector(covariance, d, "covariance of the GaussianPrior"))
        elif covariance.shape != (d, d):
            raise InvalidParameter(
                f"covariance of the GaussianPrior has shape {covariance.shape} but the items have {d} dimensions: give "
                f"a ({d}, {d}) matrix"
            )
        return _vector(self.mean, d, "mean of the GaussianPrior"), covariance

    def entropy_bits(self, d: int) -> float:
        """Return ½ log2 det(2πe Σ)."""
        _, covariance = self.moments(d)
        return float(0.5 * np.linalg.slogdet(2 * np.pi * math.e * covariance)[1] / np.log(2))

    def sample(self, n: int, d: int, rng: np.random.Generator) -> FloatArray:
        """Draw (n, d) points."""
        mean, covariance = self.moments(d)
        normal = ndtri(np.clip(latin_hypercube(n, d, rng), 1e-12, 1 - 1e-12))
        return np.asarray(mean + normal @ np.linalg.cholesky(covariance).T)


class WithinSpan(GaussianPrior):
    """Standard normal distribution in the span of linearly independent answers.

    Used only in inference: see `pairseek.posteriors.span`.
    """


@dataclass(frozen=True, eq=False)
class WithResiduals(BasePrior):
    """Prior of the user point, extended by residual utilities as independent standard normal coordinates.

    Used only in inference: see `pairseek.posteriors.residuals`.

    Parameters
    ----------
    point
        Prior of the user point, in `d` dimensions.
    count
        Number of residual coordinates.
    """

    point: Prior
    d: int
    count: int
    name: ClassVar[str] = "with_residuals"

    @property
    def log_density(self) -> Callable[[FloatArray], FloatArray] | None:  # type: ignore[override]
        """Log density of all coordinates if the prior of the point is a density; otherwise None."""
        return self._log_density if is_density(self.point) else None

    def _log_density(self, points: FloatArray) -> FloatArray:
        log_point_density = log_density_of(self.point, np.ascontiguousarray(points[:, : self.d]))
        return np.asarray(log_point_density - 0.5 * np.sum(points[:, self.d :] ** 2, axis=1))

    def box(self, d: int) -> tuple[FloatArray, FloatArray]:  # noqa: ARG002
        """Return the bounds of the point, extended by infinite ones."""
        low, high = box_of(self.point, self.d)
        infinite = np.full(self.count, np.inf)
        return np.concatenate([low, -infinite]), np.concatenate([high, infinite])

    def quadratic(self, d: int) -> tuple[FloatArray, FloatArray]:  # noqa: ARG002
        """Return the centre and precision of the Gaussian factor."""
        return self._extended(*self.point.quadratic(self.d))

    def moments(self, d: int) -> tuple[FloatArray, FloatArray]:  # noqa: ARG002
        """Return the mean and covariance."""
        return self._extended(*moments_of(self.point, self.d))

    def _extended(self, vector: FloatArray, matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
        d, size = self.d, self.d + self.count
        out = np.eye(size)
        out[:d, :d] = matrix
        return np.concatenate([vector, np.zeros(self.count)]), out

    def entropy_bits(self, d: int) -> float:  # noqa: ARG002
        """Return the differential entropy in bits."""
        return self.point.entropy_bits(self.d) + 0.5 * self.count * float(np.log2(2 * np.pi * math.e))

    def sample(self, n: int, d: int, rng: np.random.Generator) -> FloatArray:  # noqa: ARG002
        """Draw (n, d + count) points."""
        return np.concatenate([self.point.sample(n, self.d, rng), rng.standard_normal((n, self.count))], axis=1)


PRIORS = {prior.name: prior for prior in (UniformBox, GaussianPrior)}
"""Priors by their name in files, commands and HTTP."""
