"""Gaussian over the utilities of all items, with the mean and shrunk covariance of other people's utilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pairseek.core.types import FloatArray, ItemId
from pairseek.experiments.comparison.methods.linear_taste import LinearTaste, Questions
from pairseek.experiments.comparison.methods.others import factor_of, utility_moments
from pairseek.experiments.comparison.protocol import Knowledge
from pairseek.people.choices import Choices


@dataclass
class GaussianItems(LinearTaste):
    """Utilities of a new person as a Gaussian vector over the items.

    Parameters
    ----------
    questions
        How questions are chosen.
    scale
        Logits per standard deviation of other people's utilities.
    shrinkage
        Weight of the diagonal in the shrunk covariance.
    """

    questions: Questions = "information"
    scale: float = 3.0
    shrinkage: float = 0.2
    knows: Knowledge = "others"

    def begin(self, items: Sequence[ItemId], vectors: FloatArray | None, others: Choices | None) -> None:  # noqa: ARG002
        """Begin with the moments of other people's utilities."""
        assert others is not None
        mean, covariance = utility_moments(others)
        shrunk = (1.0 - self.shrinkage) * covariance + self.shrinkage * np.diag(np.diag(covariance))
        self.set_prior(self.scale * mean, self.scale * factor_of(shrunk))
