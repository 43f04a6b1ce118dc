"""Methods that use which items other people like together: item neighbours, EASE, and a question tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from pairseek.core.types import FloatArray, IntArray, ItemId
from pairseek.experiments.comparison.methods.others import completed_table, log_odds_won
from pairseek.experiments.comparison.methods.utilities import UtilityMethod, standardized
from pairseek.experiments.comparison.protocol import BaseMethod, Knowledge
from pairseek.people.choices import Choices


@dataclass
class Profile(UtilityMethod):
    """Base class of methods that score items by a profile, +1 for each win and -1 for each loss, times item weights.

    Parameters
    ----------
    scale
        Logits per standard deviation of the scores over the items.
    popularity
        Factor of the log odds of winning among other people.
    """

    scale: float = 1.0
    popularity: float = 1.0
    knows: Knowledge = "others"

    def weights(self, others: Choices) -> FloatArray:
        """Return the (n, n) weights from an item of the profile to a scored item."""
        raise NotImplementedError

    def begin(self, items: Sequence[ItemId], vectors: FloatArray | None, others: Choices | None) -> None:  # noqa: ARG002
        """Begin with popularity."""
        assert others is not None
        self._weights = self.weights(others)
        self._base = self.popularity * log_odds_won(others)
        self._profile = np.zeros(len(items))
        self.utility = self._base

    def tell(self, pair: tuple[int, int], outcome: int | None) -> None:
        """Add the pair to the profile."""
        if outcome is not None:
            self._profile[[outcome, sum(pair) - outcome]] += [1.0, -1.0]
            score = self._profile @ self._weights
            self.utility = self._base + self.scale * standardized(score)


@dataclass
class ItemNeighbours(Profile):
    """Cosine similarity of items over other people's utilities, limited to the nearest neighbours."""

    neighbours: int = 10

    def weights(self, others: Choices) -> FloatArray:
        """Return the similarities of each item's neighbours, including the item itself."""
        return _similarities(others, self.neighbours)


@dataclass
class Ease(Profile):
    """Embarrassingly shallow autoencoder (Steck, 2019): ridge regression of each item on all others."""

    ridge: float = 100.0

    def weights(self, others: Choices) -> FloatArray:
        """Return the closed-form weights, with 1 on the diagonal."""
        return _ease(others, self.ridge)


@dataclass
class QuestionTree(BaseMethod):
    """A decision tree over pairs, grown along the answers; other people vote, weighted by agreement with the answers.

    Parameters
    ----------
    error
        Probability that an answer differs from the branch that a person belongs to.
    """

    error: float = 0.2
    knows: Knowledge = "others"

    def begin(self, items: Sequence[ItemId], vectors: FloatArray | None, others: Choices | None) -> None:  # noqa: ARG002
        """Begin at the root, where all votes have equal weight."""
        assert others is not None
        self._table = completed_table(others)
        self._weight = np.full(len(self._table), 1.0 / len(self._table))

    def _prefers(self, pairs: IntArray) -> FloatArray:
        """Return the (people, m) answers of other people, 1/2 where they rated both equally."""
        return 0.5 + 0.5 * np.sign(self._table[:, pairs[:, 0]] - self._table[:, pairs[:, 1]])

    def ask(self, allowed: IntArray) -> Sequence[int]:
        """Ask the pair whose two branches differ most in utilities, by the variance between branches."""
        prefers_first = self._prefers(allowed)
        first_share = self._weight @ prefers_first
        centred = self._table - self._weight @ self._table
        branch_difference = (prefers_first * self._weight[:, None]).T @ centred
        score = np.sum(branch_difference**2, axis=1) / np.maximum(first_share * (1.0 - first_share), 1e-9)
        best: list[int] = allowed[int(np.argmax(score))].tolist()
        return best

    def tell(self, pair: tuple[int, int], outcome: int | None) -> None:
        """Go down the branch of the answer."""
        if outcome is not None:
            agrees = self._prefers(np.array([[outcome, sum(pair) - outcome]]))[:, 0]
            weight = self._weight * (self.error + (1.0 - 2.0 * self.error) * agrees)
            self._weight = weight / weight.sum()

    def predict(self, pairs: IntArray) -> FloatArray:
        """Return the (m,) weighted votes, mixed with the probability of an error."""
        votes = self._weight @ self._prefers(pairs)
        return np.clip(self.error / 2.0 + (1.0 - self.error) * votes, 0.0, 1.0)


@cache
def _similarities(others: Choices, neighbours: int) -> FloatArray:
    table = completed_table(others)
    table = table - table.mean(axis=0)
    lengths = np.maximum(np.linalg.norm(table, axis=0), 1e-12)
    cosine = table.T @ table / np.outer(lengths, lengths)
    threshold = np.sort(np.abs(cosine), axis=0)[-min(neighbours + 1, len(cosine))]
    return np.where(np.abs(cosine) >= threshold, cosine, 0.0)


@cache
def _ease(others: Choices, ridge: float) -> FloatArray:
    table = completed_table(others)
    table = table - table.mean(axis=0)
    precision = np.linalg.inv(table.T @ table + ridge * np.eye(table.shape[1]))
    weights = -precision / np.diag(precision)
    np.fill_diagonal(weights, 1.0)
    return np.asarray(weights)
