"""From triplets to coordinates: a spectral start, then a path of falling shrinkage, stopped by held-out triplets.

The objective is the sum of a loss over triplets plus λ times the sum of squared coordinates (a normal prior around
zero). Where all items are at zero the loss is a quadratic form of the coordinates. For λ above half its d-th eigenvalue
fewer than d directions survive; just below it the eigenvectors are nearly the solution. From there λ is halved again
and again, each time from the last solution. That follows one good minimum instead of hoping for it, and the triplets
held out say when less shrinkage only fits noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.embed.lbfgs import Minimum, dot, minimise
from pairseek.embed.objective import Objective, padded

HALVINGS = 30
PATIENCE = 2
CLOSE = 1.01
"""Among shrinkages whose validation loss is within this factor of the lowest the validation error decides."""
RIVALS_AT = 2
"""The other starts compete after so many halvings: with less shrinkage minima are many, with more there is one."""
_SUBSPACE_STEPS = 16
_TINY = 1e-3
_START_SPREAD = 0.3


@dataclass(frozen=True)
class PathStep:
    """One value of the shrinkage.

    Attributes
    ----------
    shrinkage
        λ.
    loss
        Mean loss of the triplets it was fitted to.
    validation_loss
        Mean logistic loss of the held-out triplets, after the best rescaling; NaN without any.
    validation_error
        Share of the held-out triplets that are wrong; NaN without any.
    iterations
        Steps of the optimiser.
    """

    shrinkage: float
    loss: float
    validation_loss: float
    validation_error: float
    iterations: int


@dataclass(frozen=True, eq=False)
class PathSettings:
    """How a path is walked.

    Attributes
    ----------
    d
        Dimensions.
    unit
        Length in which the method measures: 1 for STE, sqrt(mu) for CKL.
    starts
        Number of starts.
    tolerance, iterations
        Of the optimiser, for each shrinkage.
    watch
        Called with λ, the optimiser's step and the mean loss.
    """

    d: int
    unit: float
    starts: int
    tolerance: float
    iterations: int
    watch: Callable[[float, int, float], None]


def spectral_start(
    objective: Objective, n: int, settings: PathSettings, rng: np.random.Generator
) -> tuple[FloatArray, float]:
    """(n, D) padded coordinates along the top eigenvectors, and half the d-th eigenvalue.

    By subspace iteration: the gradient near zero is minus the quadratic form's matrix times the coordinates.
    """
    tiny = _TINY * settings.unit
    basis = _orthonormal(rng.standard_normal((n, settings.d)))

    def apply(block: FloatArray) -> FloatArray:
        size = tiny * np.sqrt(n)
        return np.asarray(-objective(padded(size * block))[1][:, : settings.d] / size)

    image = apply(basis)
    # Eigenvalues come with both signs; the largest are wanted, so all are shifted up by about the largest size.
    shift = float(np.sqrt((image * image).sum(axis=0)).max())
    for _ in range(_SUBSPACE_STEPS):
        basis = _orthonormal(image + shift * basis)
        image = apply(basis)
        shift = max(shift, 0.5 * float(np.sqrt((image * image).sum(axis=0)).max()))
    values, vectors = np.linalg.eigh(np.einsum("ni,nj->ij", basis, image))
    basis = np.einsum("ni,ij->nj", basis, vectors[:, ::-1])
    top = float(values[-1])
    # Directions that the triplets speak against still get a start.
    least = max(float(values[0]), top / 64.0)
    return padded(_START_SPREAD * settings.unit * np.sqrt(n) * basis), 0.5 * least


def _orthonormal(block: FloatArray) -> FloatArray:
    # By the Cholesky factor of d x d inner products: no large factorisation, hence no order of sums but our own.
    gram = np.einsum("ni,nj->ij", block, block)
    factor = np.linalg.cholesky(gram + 1e-12 * np.trace(gram) * np.eye(len(gram)))
    return np.asarray(np.einsum("ni,ij->nj", block, np.linalg.inv(factor).T))


def fit_at(objective: Objective, start: FloatArray, shrinkage: float, settings: PathSettings) -> Minimum:
    """The minimum near ``start`` at one shrinkage."""

    def regularised(points: FloatArray) -> tuple[float, FloatArray]:
        loss, gradient = objective(points)
        return loss + shrinkage * dot(points, points), gradient + 2.0 * shrinkage * points

    count = len(objective)
    return minimise(
        regularised,
        start,
        step=0.1 * settings.unit,
        tolerance=settings.tolerance,
        iterations=settings.iterations,
        watch=lambda iteration, value: settings.watch(shrinkage, iteration, value / count),
    )


def descend(
    objective: Objective,
    n: int,
    settings: PathSettings,
    rng: np.random.Generator,
    *,
    shrinkage: float | None,
    validate: Callable[[FloatArray], tuple[float, float]],
) -> tuple[FloatArray, float, list[PathStep]]:
    """PathSettings the path.

    Parameters
    ----------
    objective
        Over the triplets to fit.
    n
        Number of items.
    settings
        How.
    rng
        For the starts.
    shrinkage
        Where to end; None: where held-out triplets are predicted best.
    validate
        Loss and error of held-out triplets at padded coordinates.

    Returns
    -------
    points, shrinkage, steps
        (n, D) padded coordinates, their λ, and what was tried.
    """
    points, first = spectral_start(objective, n, settings, rng)
    levels = _levels(first, shrinkage)
    steps: list[PathStep] = []
    reached: list[FloatArray] = []
    lowest = 0
    for halving, level in enumerate(levels):
        found = fit_at(objective, points, level, settings)
        if halving == min(RIVALS_AT, len(levels) - 1):
            found = _best_start(found, objective, n, level, settings, rng)
        points = found.point
        loss = (found.value - level * dot(points, points)) / len(objective)
        steps.append(PathStep(level, loss, *validate(points), found.iterations))
        reached.append(points)
        # A loss that went down by nothing that matters does not pay for less shrinkage.
        if halving and steps[-1].validation_loss < steps[lowest].validation_loss * (1.0 - 1e-4):
            lowest = halving
        if shrinkage is None and halving - lowest >= PATIENCE:
            break
    chosen = len(steps) - 1 if shrinkage is not None else _chosen(steps)
    return reached[chosen], steps[chosen].shrinkage, steps


def _chosen(steps: list[PathStep]) -> int:
    most = CLOSE * min(step.validation_loss for step in steps)
    close = [i for i, step in enumerate(steps) if step.validation_loss <= most]
    return min(close, key=lambda i: (steps[i].validation_error, steps[i].validation_loss))


def _levels(first: float, last: float | None) -> list[float]:
    if last is None:
        return [first * 0.5**halving for halving in range(1, HALVINGS + 1)]
    down = [first * 0.5**halving for halving in range(1, HALVINGS + 1) if first * 0.5**halving > last]
    # Without any shrinkage a few steps of it still lead the way.
    return [*(down[:6] if last == 0 else down), last]


def _best_start(
    found: Minimum, objective: Objective, n: int, level: float, settings: PathSettings, rng: np.random.Generator
) -> Minimum:
    for _ in range(settings.starts - 1):
        spread = 2.0 * _START_SPREAD * settings.unit
        rival = fit_at(objective, padded(spread * rng.standard_normal((n, settings.d))), level, settings)
        if rival.value < found.value:
            found = rival
    return found
