"""Alternating least squares of `implicit` with fold-in; it needs the extra ``rivals``."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse

from pairseek.core.types import FloatArray, ItemId
from pairseek.errors import MissingExtra
from pairseek.experiments.comparison.methods.others import utility_table
from pairseek.experiments.comparison.methods.utilities import UtilityMethod, standardized
from pairseek.experiments.comparison.protocol import Knowledge
from pairseek.people.choices import Choices


@dataclass
class AlternatingLeastSquares(UtilityMethod):
    """Implicit feedback: items that others rate above their average, and the person's winners; random questions.

    Parameters
    ----------
    factors
        Number of factors.
    scale
        Logits per standard deviation of the scores over the items.
    """

    factors: int = 8
    scale: float = 1.0
    knows: Knowledge = "others"

    def begin(self, items: Sequence[ItemId], vectors: FloatArray | None, others: Choices | None) -> None:  # noqa: ARG002
        """Begin with equal items."""
        assert others is not None
        self._model = _fit_others(others, self.factors)
        self._liked = np.zeros(len(items), dtype=np.float32)
        self.utility = np.zeros(len(items))

    def tell(self, pair: tuple[int, int], outcome: int | None) -> None:  # noqa: ARG002
        """Fold in one more liked item."""
        if outcome is not None:
            self._liked[outcome] += 1.0
            factors = self._model.recalculate_user(0, scipy.sparse.csr_matrix(self._liked))
            score = np.asarray(self._model.item_factors @ factors.ravel(), dtype=np.float64)
            self.utility = self.scale * standardized(score)


@cache
def _fit_others(others: Choices, factors: int) -> Any:
    try:
        from implicit.cpu.als import AlternatingLeastSquares as Model
    except ModuleNotFoundError:
        raise MissingExtra("implicit", "rivals") from None
    table = utility_table(others)
    liked = scipy.sparse.csr_matrix(np.where(np.isfinite(table) & (table > 0), table, 0.0).astype(np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # advice on the threads of OpenBLAS
        model = Model(factors=factors, random_state=0, num_threads=1)
    model.fit(liked, show_progress=False)
    return model
