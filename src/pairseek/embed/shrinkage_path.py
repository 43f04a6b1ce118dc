"""Regularisation path of an embedding: spectral start, decreasing shrinkage, early stopping on held-out triplets.

The objective is the sum of a loss over triplets plus λ times the sum of squared coordinates (a normal prior around
zero). Near zero the loss is a quadratic form in the coordinates. While λ exceeds half the form's d-th eigenvalue, fewer
than d directions are non-zero; just below that, the eigenvectors are nearly the solution. From there λ is halved
repeatedly, and each fit starts at the previous solution. This tracks one good minimum, and the held-out triplets show
when less shrinkage would only fit noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.embed.lbfgs import Minimum, dot, minimise
from pairseek.embed.objective import Objective, padded

MAX_HALVINGS = 30
PATIENCE = 2
"""Number of halvings without improvement after which the path ends."""
VALIDATION_LOSS_MARGIN = 1.01
"""Shrinkages whose validation loss is within this factor of the lowest are ranked by validation error."""
RANDOM_STARTS_AT = 2
"""Number of halvings after which random starts compete: earlier there is a single minimum, later there are many."""
_SUBSPACE_STEPS = 16
_PROBE_SIZE = 1e-3
"""Distance from zero, in units of the method, at which the quadratic form is evaluated."""
_START_SPREAD = 0.3


@dataclass(frozen=True)
class PathStep:
    """A fit at one value of the shrinkage.

    Attributes
    ----------
    shrinkage
        λ.
    loss
        Mean loss of the fitted triplets.
    validation_loss
        Mean logistic loss of the held-out triplets after the best rescaling; NaN without any.
    validation_error
        Fraction of held-out triplets that are violated; NaN without any.
    iterations
        Number of optimiser steps.

    Examples
    --------
    >>> import numpy as np
    >>> import pairseek as ps
    >>> from pairseek.embed import STE, simulate_triplets
    >>> items = ps.Items(np.random.default_rng(0).standard_normal((12, 2)))
    >>> embedding = STE(random_state=0).fit(simulate_triplets(items, 200, rng=0))
    >>> first, second = embedding.path_[:2]
    >>> round(first.shrinkage / second.shrinkage, 6), second.loss < first.loss
    (2.0, True)
    """

    shrinkage: float
    loss: float
    validation_loss: float
    validation_error: float
    iterations: int


@dataclass(frozen=True, eq=False)
class PathSettings:
    """Settings of a regularisation path.

    Attributes
    ----------
    d
        Number of dimensions.
    unit
        Unit of length of the method: 1 for STE, sqrt(mu) for CKL.
    starts
        Number of starts.
    tolerance, iterations
        Relative decrease at which the optimiser stops, and maximum number of steps, at each shrinkage.
    watch
        Function called with λ, the number of the step and the mean objective.
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
    """Return (n, D) padded coordinates along the top eigenvectors, and half the d-th eigenvalue.

    The method is subspace iteration: near zero, the gradient is minus the matrix of the quadratic form times the
    coordinates.
    """
    tiny = _PROBE_SIZE * settings.unit
    basis = _orthonormal(rng.standard_normal((n, settings.d)))

    def apply(block: FloatArray) -> FloatArray:
        size = tiny * np.sqrt(n)
        return np.asarray(-objective(padded(size * block))[1][:, : settings.d] / size)

    image = apply(basis)
    # The largest eigenvalues are needed, not the largest magnitudes, so shift them all by about the largest magnitude.
    shift = float(np.sqrt((image * image).sum(axis=0)).max())
    for _ in range(_SUBSPACE_STEPS):
        basis = _orthonormal(image + shift * basis)
        image = apply(basis)
        shift = max(shift, 0.5 * float(np.sqrt((image * image).sum(axis=0)).max()))
    values, vectors = np.linalg.eigh(np.einsum("ni,nj->ij", basis, image))
    basis = np.einsum("ni,ij->nj", basis, vectors[:, ::-1])
    top = float(values[-1])
    # Directions with a negative eigenvalue also need a start.
    lowest = max(float(values[0]), top / 64.0)
    return padded(_START_SPREAD * settings.unit * np.sqrt(n) * basis), 0.5 * lowest


def _orthonormal(block: FloatArray) -> FloatArray:
    # A Cholesky factor of the d x d inner products avoids a large factorisation, whose summation order depends on BLAS.
    gram = np.einsum("ni,nj->ij", block, block)
    factor = np.linalg.cholesky(gram + 1e-12 * np.trace(gram) * np.eye(len(gram)))
    return np.asarray(np.einsum("ni,ij->nj", block, np.linalg.inv(factor).T))


def fit_at(objective: Objective, start: FloatArray, shrinkage: float, settings: PathSettings) -> Minimum:
    """Minimise the regularised objective from ``start`` at one shrinkage."""

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
    """Follow the path of decreasing shrinkage.

    Parameters
    ----------
    objective
        Loss over the triplets to fit.
    n
        Number of items.
    settings
        Settings of the path.
    rng
        Generator for the starts.
    shrinkage
        Last λ. None: the one that predicts held-out triplets best.
    validate
        Function that returns the loss and error of held-out triplets at padded coordinates.

    Returns
    -------
    points, shrinkage, steps
        (n, D) padded coordinates, their λ, and a `PathStep` for each fit along the path.
    """
    points, first = spectral_start(objective, n, settings, rng)
    levels = _levels(first, shrinkage)
    steps: list[PathStep] = []
    solutions: list[FloatArray] = []
    lowest = 0
    for halving, level in enumerate(levels):
        fit = fit_at(objective, points, level, settings)
        if halving == min(RANDOM_STARTS_AT, len(levels) - 1):
            fit = _best_start(fit, objective, n, level, settings, rng)
        points = fit.point
        loss = (fit.value - level * dot(points, points)) / len(objective)
        steps.append(PathStep(level, loss, *validate(points), fit.iterations))
        solutions.append(points)
        # A negligible decrease in validation loss does not justify less shrinkage.
        if halving and steps[-1].validation_loss < steps[lowest].validation_loss * (1.0 - 1e-4):
            lowest = halving
        if shrinkage is None and halving - lowest >= PATIENCE:
            break
    chosen = len(steps) - 1 if shrinkage is not None else _best_step_index(steps)
    return solutions[chosen], steps[chosen].shrinkage, steps


def _best_step_index(steps: list[PathStep]) -> int:
    limit = VALIDATION_LOSS_MARGIN * min(step.validation_loss for step in steps)
    close = [i for i, step in enumerate(steps) if step.validation_loss <= limit]
    return min(close, key=lambda i: (steps[i].validation_error, steps[i].validation_loss))


def _levels(first: float, last: float | None) -> list[float]:
    if last is None:
        return [first * 0.5**halving for halving in range(1, MAX_HALVINGS + 1)]
    levels = [first * 0.5**halving for halving in range(1, MAX_HALVINGS + 1) if first * 0.5**halving > last]
    # A fit without shrinkage starts from six fits with decreasing shrinkage.
    return [*(levels[:6] if last == 0 else levels), last]


def _best_start(
    fit: Minimum, objective: Objective, n: int, shrinkage: float, settings: PathSettings, rng: np.random.Generator
) -> Minimum:
    for _ in range(settings.starts - 1):
        spread = 2.0 * _START_SPREAD * settings.unit
        rival = fit_at(objective, padded(spread * rng.standard_normal((n, settings.d))), shrinkage, settings)
        if rival.value < fit.value:
            fit = rival
    return fit
