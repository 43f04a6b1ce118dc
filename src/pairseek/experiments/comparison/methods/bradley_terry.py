"""Bradley-Terry models of choix, which know only the ids of items; they need the extra ``rivals``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.special import expit

from pairseek.core.types import FloatArray, IntArray, ItemId
from pairseek.core.validation import one_of
from pairseek.errors import MissingExtra
from pairseek.experiments.comparison.methods.linear_taste import expected_logistic
from pairseek.experiments.comparison.protocol import BaseMethod
from pairseek.people.choices import Choices

Inference: TypeAlias = Literal["ilsr", "ep"]


@dataclass
class Choix(BaseMethod):
    """Bradley-Terry with random questions.

    Parameters
    ----------
    inference
        Iterative Luce spectral ranking with regularization (``"ilsr"``), or expectation propagation with a normal prior
        (``"ep"``).
    strength
        The regularization `alpha` of I-LSR, or the prior variance of EP.
    """

    inference: Inference = "ep"
    strength: float = 8.0
    mean: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        one_of(self.inference, "inference", ("ilsr", "ep"))

    def begin(self, items: Sequence[ItemId], vectors: FloatArray | None, others: Choices | None) -> None:  # noqa: ARG002
        """Begin with equal items."""
        self._choix = _choix()
        self._answers: list[tuple[int, int]] = []
        self.mean = np.zeros(len(items))
        self._covariance = (self.strength if self.inference == "ep" else 0.0) * np.eye(len(items))

    def tell(self, pair: tuple[int, int], outcome: int | None) -> None:
        """Fit again with one more answer."""
        if outcome is None:
            return
        self._answers.append((outcome, sum(pair) - outcome))
        if self.inference == "ilsr":
            self.mean = self._choix.ilsr_pairwise(len(self.mean), self._answers, alpha=self.strength)
        else:
            precision = 1.0 / self.strength
            self.mean, self._covariance = self._choix.ep_pairwise(
                len(self.mean), self._answers, precision, model="logit"
            )

    def predict(self, pairs: IntArray) -> FloatArray:
        """Return the (m,) probabilities that the first item wins."""
        first, second = pairs.T
        margin = self.mean[first] - self.mean[second]
        if self.inference == "ilsr":
            return np.asarray(expit(margin))
        variances = np.diag(self._covariance)
        return expected_logistic(margin, variances[first] + variances[second] - 2.0 * self._covariance[first, second])


def _choix() -> Any:
    try:
        import choix
    except ModuleNotFoundError:
        raise MissingExtra("choix", "rivals") from None
    return choix
