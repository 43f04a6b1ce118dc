"""Factor models of other people's utilities: factor analysis with fold-in, and logistic regression on components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from pairseek.core.types import FloatArray, ItemId
from pairseek.experiments.comparison.methods.linear_taste import LinearTaste, Questions
from pairseek.experiments.comparison.methods.others import completed_table, utility_table
from pairseek.experiments.comparison.protocol import Knowledge
from pairseek.people.choices import Choices

_EM_ITERATIONS = 60


@dataclass
class FactorAnalysis(LinearTaste):
    """Factor analysis by EM on other people's utilities; a new person's factors are folded in from their answers.

    Parameters
    ----------
    questions
        How questions are chosen.
    factors_kept
        Number of factors.
    scale
        Logits per standard deviation of other people's utilities.
    """

    questions: Questions = "random"
    factors_kept: int = 8
    scale: float = 2.0
    knows: Knowledge = "others"

    def begin(self, items: Sequence[ItemId], vectors: FloatArray | None, others: Choices | None) -> None:  # noqa: ARG002
        """Begin with the mean and the loadings."""
        assert others is not None
        mean, loadings, _ = factor_analysis(others, self.factors_kept)
        self.set_prior(self.scale * mean, self.scale * loadings)


@dataclass
class ComponentLogistic(LinearTaste):
    """Logistic regression on principal components of other people's utilities, with Laplace and BALD.

    Parameters
    ----------
    questions
        How questions are chosen.
    components
        Number of components.
    scale
        Logits per standard deviation of other people's utilities.
    """

    questions: Questions = "information"
    components: int = 8
    scale: float = 2.0
    knows: Knowledge = "others"

    def begin(self, items: Sequence[ItemId], vectors: FloatArray | None, others: Choices | None) -> None:  # noqa: ARG002
        """Begin with the mean and the components, each scaled by the spread of other people along it."""
        assert others is not None
        table = completed_table(others)
        mean = table.mean(axis=0)
        _, sizes, axes = np.linalg.svd(table - mean, full_matrices=False)
        kept = (sizes[:, None] * axes)[: self.components] / np.sqrt(len(table))
        self.set_prior(self.scale * mean, self.scale * kept.T)


@cache
def factor_analysis(others: Choices, count: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (n,) means, (n, count) loadings and (n,) specific variances by EM; missing utilities are ignored."""
    table = utility_table(others)
    known = np.isfinite(table)
    mean = np.where(known, table, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    centred = np.where(known, table - mean, 0.0)
    count = min(count, table.shape[1] - 1)
    _, singular_values, axes = np.linalg.svd(centred, full_matrices=False)
    loadings = (singular_values[:, None] * axes)[:count].T / np.sqrt(len(table))
    specific_variances = np.full(table.shape[1], 0.5)
    for _ in range(_EM_ITERATIONS):
        weighted = known / specific_variances
        precision = np.eye(count) + np.einsum("pn,nr,ns->prs", weighted, loadings, loadings, optimize=True)
        score_covariance = np.linalg.inv(precision)
        scores = np.einsum("prs,ps->pr", score_covariance, (centred * weighted) @ loadings)
        second_moments = score_covariance + scores[:, :, None] * scores[:, None, :]
        regularized_moments = np.einsum(
            "pn,prs->nrs", known.astype(float), second_moments, optimize=True
        ) + 1e-6 * np.eye(count)
        loadings = np.linalg.solve(regularized_moments, (centred.T @ scores)[:, :, None])[:, :, 0]
        residual_sums = (centred**2).sum(axis=0) - np.einsum("nr,nr->n", loadings, centred.T @ scores)
        specific_variances = np.maximum(residual_sums / np.maximum(known.sum(axis=0), 1), 1e-3)
    return mean, loadings, specific_variances
