"""Popularity, the average of liked vectors, or both together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pairseek.core.types import FloatArray, ItemId
from pairseek.experiments.comparison.methods.others import log_odds_won
from pairseek.experiments.comparison.methods.utilities import UtilityMethod
from pairseek.experiments.comparison.protocol import Knowledge
from pairseek.people.choices import Choices


@dataclass
class LikedAverage(UtilityMethod):
    """Cosine similarity with the mean vector of the items that won, and popularity if other people are known.

    Parameters
    ----------
    scale
        Logits per unit of similarity; 0 uses only popularity.
    popularity
        Factor of the log odds of winning among other people; 0 uses only similarity.
    """

    scale: float = 1.0
    popularity: float = 0.0

    @property
    def knows(self) -> Knowledge:  # type: ignore[override]
        """Other people, if popularity counts."""
        return "others" if self.popularity else "vectors"

    def begin(self, items: Sequence[ItemId], vectors: FloatArray | None, others: Choices | None) -> None:
        """Begin with only popularity."""
        assert vectors is not None
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        self._units = vectors / np.maximum(lengths, 1e-12)
        self._base = np.zeros(len(items)) if others is None else self.popularity * log_odds_won(others)
        self._won: list[int] = []
        self.utility = self._base

    def tell(self, pair: tuple[int, int], outcome: int | None) -> None:  # noqa: ARG002
        """Move the average towards the winner."""
        if outcome is not None:
            self._won.append(outcome)
            self.utility = self._base + self.scale * (self._units @ self._units[self._won].mean(axis=0))
