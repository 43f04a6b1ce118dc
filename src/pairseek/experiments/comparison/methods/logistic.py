"""L2 logistic regression on differences of item vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pairseek.core.types import FloatArray, ItemId
from pairseek.experiments.comparison.methods.linear_taste import LinearTaste, Questions
from pairseek.experiments.comparison.protocol import Knowledge
from pairseek.people.choices import Choices


@dataclass
class VectorLogistic(LinearTaste):
    """L2 logistic regression on standardized vector differences, refitted after each answer.

    Parameters
    ----------
    questions
        How questions are chosen; BALD uses the curvature at the fit as the precision of the weights.
    scale
        Standard deviation of a weight, 1/sqrt(l2 penalty).
    """

    questions: Questions = "random"
    plug_in: bool = True
    scale: float = 0.6
    knows: Knowledge = "vectors"

    def begin(self, items: Sequence[ItemId], vectors: FloatArray | None, others: Choices | None) -> None:  # noqa: ARG002
        """Begin with standardized vectors."""
        assert vectors is not None
        centred = vectors - vectors.mean(axis=0)
        deviation = centred.std(axis=0)
        self.set_prior(np.zeros(len(vectors)), self.scale * centred / np.where(deviation > 0, deviation, 1.0))
