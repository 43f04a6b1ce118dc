"""Base class of methods that predict logistic choices between utilities of the items."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit

from pairseek.core.types import FloatArray, IntArray
from pairseek.experiments.comparison.protocol import BaseMethod


@dataclass
class UtilityMethod(BaseMethod):
    """A method that keeps `utility`, the (n,) utilities of the items in logits."""

    utility: FloatArray = field(init=False, repr=False)

    def predict(self, pairs: IntArray) -> FloatArray:
        """Return the (m,) probabilities that the first item wins."""
        return np.asarray(expit(self.utility[pairs[:, 0]] - self.utility[pairs[:, 1]]))


def standardized(scores: FloatArray) -> FloatArray:
    """Divide scores by their standard deviation over the items."""
    return scores / max(float(np.std(scores)), 1e-12)
