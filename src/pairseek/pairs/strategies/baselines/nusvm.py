"""The extended nu-SVM with which GaussCloud estimates the user point.

An answer "p over q" requires a·x - b > 0 with a = p - q and b = (|p|² - |q|²)/2, that is z·w > 0 with z = (a, -b) and
w = c(x, 1), c > 0: a linear classifier without bias whose examples all belong to one class (Massimino and Davenport,
arXiv 1802.10489). The nu-SVM of Schölkopf et al. (2000) finds w if nu is above the smallest admissible value. Below it
the solution is w = 0, and the extended nu-SVM of Perez-Cruz et al. (2003), which fixes the norm of w instead of
penalising it, takes over.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from pairseek.core.types import FloatArray
from pairseek.errors import MissingExtra
from pairseek.pairs.strategies.baselines.facet import Facet, Separator

MARGIN_PENALTY = 1e6
"""C of the soft-margin problem whose dual yields the smallest admissible nu."""
START_FACTOR = 1.01
"""Multiple of the smallest admissible nu at which the plain nu-SVM initialises the extended one."""
DAMPING = 0.7
"""Weight of the previous w̃ in the next one."""
CONVERGENCE_TOLERANCE = 1e-3
"""Largest distance of w̃ and w at which they agree, relative to the length of w."""
MAX_ROUNDS = 600
"""Largest number of linear programmes until they agree."""
SOLVER_TOLERANCE = 1e-10
"""Tolerance of Clarabel for duality gap and feasibility."""


def extended_nu_svm(rows: FloatArray, nu: float) -> tuple[Separator | None, bool]:
    """Return the separator (None without a solution), and whether the extended nu-SVM was needed.

    Parameters
    ----------
    rows
        (m, d + 1) examples z, oriented towards the winner.
    """
    smallest = least_nu(rows)
    if nu > smallest:
        return nu_svm(rows, nu), False
    start = nu_svm(rows, min(START_FACTOR * smallest, 1.0))  # No nu above 1 is admissible.
    return (None if start is None else _fixed_length(rows, nu, start.weights)), True


def least_nu(rows: FloatArray) -> float:
    """Return the smallest admissible nu: the mean dual weight of min |w|²/2 + C Σξ, Zw >= 1 - ξ, ξ >= 0, over C."""
    m, k = rows.shape
    solution = _minimise(
        curvature=np.full(k, 1.0 / MARGIN_PENALTY),
        slope=np.concatenate([np.zeros(k), np.ones(m)]),
        table=_margins(rows),
        limits=np.concatenate([-np.ones(m), np.zeros(m)]),
    )
    return np.nan if solution is None else float(np.mean(np.asarray(solution.z)[:m]))


def nu_svm(rows: FloatArray, nu: float) -> Separator | None:
    """Minimise |w|²/2 - nu rho + mean(ξ) subject to Zw >= rho - ξ, ξ >= 0, rho >= 0; None on failure."""
    m, k = rows.shape
    solution = _minimise(
        curvature=np.ones(k),
        slope=np.concatenate([np.zeros(k), np.full(m, 1.0 / m), [-nu]]),
        table=_margins(rows, rho=True),
        limits=np.zeros(2 * m + 1),
    )
    if solution is None:
        return None
    unknowns = np.asarray(solution.x)
    return Separator(unknowns[:k], float(unknowns[-1]))


def _margins(rows: FloatArray, *, rho: bool = False) -> Any:
    """Return the sparse constraints -Zw - ξ (+ rho) <= limits, -ξ <= 0 (and -rho <= 0) in the unknowns w, ξ (and rho).

    The columns are written directly: assembling blocks takes longer than solving the programme.
    """
    m, k = rows.shape
    examples = np.arange(m)
    values = [-rows.T.ravel(), np.full(2 * m, -1.0)]
    indices = [np.tile(examples, k), np.column_stack([examples, m + examples]).ravel()]
    ends = [m * np.arange(k + 1), m * k + 2 * np.arange(1, m + 1)]
    if rho:
        values.append(np.append(np.ones(m), -1.0))
        indices.append(np.append(examples, 2 * m))
        ends.append(np.array([m * k + 3 * m + 1]))
    shape = (2 * m + rho, k + m + rho)
    return scipy.sparse.csc_array((np.concatenate(values), np.concatenate(indices), np.concatenate(ends)), shape=shape)


def _clarabel() -> Any:
    try:
        import clarabel
    except ImportError:
        raise MissingExtra("GaussCloud", "baselines") from None
    return clarabel


def _minimise(*, curvature: FloatArray, slope: FloatArray, table: object, limits: FloatArray) -> Any:
    """Minimise Σ curvature x²/2 + slope·x subject to table x <= limits by Clarabel; None on failure.

    `curvature` applies to the first unknowns; the others have none.
    """
    clarabel = _clarabel()
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = SOLVER_TOLERANCE
    cones = [clarabel.NonnegativeConeT(len(limits))]
    k, n = len(curvature), len(slope)
    ends = np.concatenate([np.arange(k + 1), np.full(n - k, k)])
    matrix = scipy.sparse.csc_array((curvature, np.arange(k), ends), shape=(n, n))
    solution = clarabel.DefaultSolver(matrix, slope, table, limits, cones, settings).solve()
    successful = (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved)
    return solution if solution.status in successful else None


def _fixed_length(rows: FloatArray, nu: float, start: FloatArray) -> Separator | None:
    """Solve linear programmes with w̃·w = 2, moving w̃ towards w by damped steps until they agree, so that |w|² = 2."""
    reference = start
    facet: Facet | None = None
    separator: Separator | None = None
    for _ in range(MAX_ROUNDS):
        pivoted = None if facet is None else facet.pivoted(rows, nu, reference)
        if pivoted is not None:
            facet, separator = pivoted
        else:
            separator = linear_programme(rows, nu, reference)
            if separator is None:
                return None
            facet = Facet.of_solution(rows, separator)
        if np.linalg.norm(reference - separator.weights) <= CONVERGENCE_TOLERANCE * np.linalg.norm(separator.weights):
            break
        reference = DAMPING * reference + (1.0 - DAMPING) * separator.weights
    return separator


def linear_programme(rows: FloatArray, nu: float, reference: FloatArray) -> Separator | None:
    """Minimise -nu rho + mean(ξ) subject to Zw >= rho - ξ, ξ >= 0, w̃·w = 2, where w̃ is `reference`.

    The dual is solved, which has d + 2 rows instead of m + 1: maximise 2λ subject to Z'α = -λ w̃, Σα = nu and
    0 <= α <= 1/m. The multipliers of its rows are -w and rho.
    """
    m, k = rows.shape
    solution = scipy.optimize.linprog(
        np.append(np.zeros(m), -2.0),
        A_eq=np.block([[rows.T, reference[:, None]], [np.ones((1, m)), np.zeros((1, 1))]]),
        b_eq=np.append(np.zeros(k), nu),
        bounds=[*[(0.0, 1.0 / m)] * m, (None, None)],
        method="highs",
    )
    if solution.x is None:
        return None
    return Separator(-solution.eqlin.marginals[:k], float(solution.eqlin.marginals[k]))
