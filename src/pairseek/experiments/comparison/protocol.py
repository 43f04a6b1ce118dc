"""Protocol of a compared method: the calls it must answer, and the knowledge it may use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias, get_args

from pairseek.core.types import FloatArray, IntArray, ItemId
from pairseek.people.choices import Choices

Knowledge: TypeAlias = Literal["nothing", "vectors", "others"]
"""Knowledge of a method before the first answer: only the ids of the items, or also their vectors, or also the choices
of other people."""
KNOWLEDGE: tuple[Knowledge, ...] = get_args(Knowledge)


class Method(Protocol):
    """A method that asks one person about pairs of items and predicts the other pairs.

    Each person gets a new instance. Items are named by their rows, counted from 0.

    Attributes
    ----------
    knows
        What the method may know; it is shown nothing else. Every table states it next to the results.

    Examples
    --------
    >>> from pairseek.experiments import BaseMethod, Method
    >>> method: Method = BaseMethod()
    >>> method.knows
    'nothing'
    """

    @property
    def knows(self) -> Knowledge:
        """The knowledge that the method may use."""
        ...

    def begin(self, items: Sequence[ItemId], vectors: FloatArray | None, others: Choices | None) -> None:
        """Begin with a new person.

        Parameters
        ----------
        items
            Ids of the n items.
        vectors
            (n, d) vectors of the items; None for a method that knows nothing.
        others
            Choices of other people; None unless the method knows others. The object is the same for all people of a
            data set, so that results learned from it can be cached with `functools.cache`.
        """
        ...

    def ask(self, allowed: IntArray) -> Sequence[int]:
        """Choose one of the (m, 2) pairs that may be asked now.

        The order of the pairs is random and the same for all methods, so `allowed[0]` is a random question.
        """
        ...

    def tell(self, pair: tuple[int, int], outcome: int | None) -> None:
        """Receive the answer to the pair: the row of the item that won, or None for a tie."""
        ...

    def predict(self, pairs: IntArray) -> FloatArray:
        """Return the (m,) probabilities that the first item of each pair wins."""
        ...

    def recommend(self, count: int) -> Sequence[int] | None:
        """Return at most `count` rows of items, best first.

        None: rank items by their mean predicted probability of winning against the other items.
        """
        ...


class BaseMethod:
    """Base class of methods: random questions, and recommendations that follow from predictions.

    A subclass defines at least `tell` and `predict`.

    Examples
    --------
    >>> import numpy as np
    >>> from pairseek.experiments import BaseMethod
    >>> class Wins(BaseMethod):
    ...     def begin(self, items, vectors, others):
    ...         self.wins = np.zeros(len(items))
    ...     def tell(self, pair, outcome):
    ...         self.wins[outcome] += 1.0
    ...     def predict(self, pairs):
    ...         first, second = self.wins[pairs.T]
    ...         return 1.0 / (1.0 + np.exp(second - first))
    >>> method = Wins()
    >>> method.begin("abc", None, None)
    >>> method.tell((0, 1), 1)
    >>> method.predict(np.array([[1, 2]])).round(2).tolist()
    [0.73]
    """

    knows: Knowledge = "nothing"

    def begin(self, items: Sequence[ItemId], vectors: FloatArray | None, others: Choices | None) -> None:
        """Begin with a new person."""

    def ask(self, allowed: IntArray) -> Sequence[int]:
        """Return the first pair, which is random."""
        first: list[int] = allowed[0].tolist()
        return first

    def tell(self, pair: tuple[int, int], outcome: int | None) -> None:
        """Receive the answer to the pair."""

    def predict(self, pairs: IntArray) -> FloatArray:
        """Return the (m,) probabilities that the first item of each pair wins."""
        raise NotImplementedError

    def recommend(self, count: int) -> Sequence[int] | None:  # noqa: ARG002
        """Leave the ranking to the predictions."""
        return None
