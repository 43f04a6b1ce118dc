"""Preference-based GLIS (Bemporad and Piga, Machine Learning 110, 2021, algorithm 1) over a finite pool of items.

The package ``glis`` searches a box of continuous points, so its surrogate and acquisition function are implemented
again here. The acquisition function is minimized over the items that may be compared with the best item so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from pairseek.core.types import FloatArray, IntArray, ItemId
from pairseek.experiments.comparison.methods.utilities import UtilityMethod, standardized
from pairseek.experiments.comparison.protocol import Knowledge
from pairseek.people.choices import Choices

DecidedPairs = list[tuple[int, int]]
_REGULARIZATION = 1e-6
_BEST_WEIGHT = 10.0
"""Weight of a violated answer about the best item so far; other answers have weight 1."""


@dataclass
class PreferenceGlis(UtilityMethod):
    """A radial-basis surrogate fitted to the answers; each question compares the best item with a promising one.

    Parameters
    ----------
    width
        Factor on distances in the inverse quadratic basis functions 1/(1 + (width distance)²); each coordinate of the
        vectors is scaled to [-1, 1].
    exploration
        Weight of the distance to the items shown so far; the surrogate has weight 1.
    scale
        Logits per standard deviation of the surrogate over the items.
    """

    width: float = 1.0
    exploration: float = 0.5
    scale: float = 1.0
    knows: Knowledge = "vectors"

    def begin(self, items: Sequence[ItemId], vectors: FloatArray | None, others: Choices | None) -> None:  # noqa: ARG002
        """Begin with equal utilities."""
        assert vectors is not None
        low, widths = vectors.min(axis=0), np.maximum(np.ptp(vectors, axis=0), 1e-12)
        points = 2.0 * (vectors - low) / widths - 1.0
        self._squared_distances = np.sum((points[:, None] - points) ** 2, axis=2)
        self._basis = 1.0 / (1.0 + self.width**2 * self._squared_distances)
        # As in the package, the first questions are random: two for each coordinate.
        self._initial_questions = 2 * vectors.shape[1]
        self._answers: DecidedPairs = []
        self._best: int | None = None
        self._surrogate = np.zeros(len(items))
        self.utility = np.zeros(len(items))

    def ask(self, allowed: IntArray) -> Sequence[int]:
        """Return the pair of the best item so far and the item with the smallest acquisition value."""
        if self._best is None:
            return super().ask(allowed)
        with_best = allowed[(allowed == self._best).any(axis=1)]
        if not len(with_best) or len(self._answers) < self._initial_questions:
            return super().ask(with_best if len(with_best) else allowed)
        other = with_best.sum(axis=1) - self._best
        asked: list[int] = with_best[int(np.argmin(self.acquisition()[other]))].tolist()
        return asked

    def tell(self, pair: tuple[int, int], outcome: int | None) -> None:
        """Fit the surrogate again with one more answer."""
        if outcome is None:
            return
        self._answers.append((outcome, sum(pair) - outcome))
        if self._best is None or self._best in pair:
            self._best = outcome
        shown = np.unique(self._answers)
        weights = surrogate_weights(
            self._basis[np.ix_(shown, shown)],
            np.searchsorted(shown, self._answers),
            int(np.searchsorted(shown, self._best)),
        )
        self._surrogate = self._basis[:, shown] @ weights
        self.utility = -self.scale * standardized(self._surrogate)

    def acquisition(self) -> FloatArray:
        """Return the (n,) acquisition values: normalized surrogate minus distance term; the smallest is asked."""
        shown = np.unique(self._answers)
        value = self._surrogate / max(float(np.ptp(self._surrogate[shown])), 1e-4)
        squared_distances = self._squared_distances[:, shown]
        harmonic = 1.0 / np.sum(1.0 / np.maximum(squared_distances, 1e-12), axis=1)
        return np.asarray(
            value - self.exploration * np.where((squared_distances < 1e-12).any(axis=1), 0.0, np.arctan(harmonic))
        )


def surrogate_weights(basis: FloatArray, answers: IntArray, best: int) -> FloatArray:
    """Return (n,) weights that put each winner at least 1 below its loser, with minimal slack and small weights.

    Parameters
    ----------
    basis
        (n, n) basis functions at the items shown so far.
    answers
        (m, 2) winners and losers.
    best
        The best item so far.
    """
    count, size = len(answers), len(basis)
    lower = basis[answers[:, 0]] - basis[answers[:, 1]]
    slack_cost = np.where((answers == best).any(axis=1), _BEST_WEIGHT, 1.0)
    cost = np.concatenate([np.full(2 * size, _REGULARIZATION), slack_cost])
    solution = linprog(cost, A_ub=np.hstack([lower, -lower, -np.eye(count)]), b_ub=-np.ones(count), method="highs").x
    return np.asarray(solution[:size] - solution[size : 2 * size])
