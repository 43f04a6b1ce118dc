"""Protocol of a method that is compared: what it is shown, what it is asked, and what it may know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias, get_args

from pairseek.core.types import FloatArray, IntArray, ItemId
from pairseek.people.choices import Choices

Knowledge: TypeAlias = Literal["nothing", "vectors", "others"]
"""What a method may know before the first answer: the ids of the items only; also their vectors; also what other people
chose."""
KNOWLEDGE: tuple[Knowledge, ...] = get_args(Knowledge)


class Method(Protocol):
    """A method that asks one person about pairs of items and predicts the other pairs.

    A fresh instance is made for each person. Items are named by their rows, counted from 0.

    Attributes
    ----------
    knows
        What the method may know. It is shown nothing else, and stands beside its results in every table.

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
            Choices of other people; None unless the method knows others. It is the same object for all people of a
            data set, so that `functools.cache` keeps what was learned from it.
        """
        ...

    def ask(self, allowed: IntArray) -> Sequence[int]:
        """Return one of the (m, 2) pairs that may be asked now.

        The order of the pairs is random and the same for all methods, so `allowed[0]` is a random question.
        """
        ...

    def tell(self, pair: tuple[int, int], outcome: int | None) -> None:
        """Take the answer to the pair: the row of the item that won, or None for a tie."""
        ...

    def predict(self, pairs: IntArray) -> FloatArray:
        """Return the (m,) probabilities that the first item of each pair wins."""
        ...

    def recommend(self, count: int) -> Sequence[int] | None:
        """Return at most `count` rows of items, the best first.

        None: items are ranked by the mean of their predicted probabilities of winning against each other item.
        """
        ...


class BaseMethod:
    """Base of methods: random questions, and recommendations that follow from predictions.

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
        """Return the first pair, which is a random one."""
        first: list[int] = allowed[0].tolist()
        return first

    def tell(self, pair: tuple[int, int], outcome: int | None) -> None:
        """Take the answer to the pair."""

    def predict(self, pairs: IntArray) -> FloatArray:
        """Return the (m,) probabilities that the first item of each pair wins."""
        raise NotImplementedError

    def recommend(self, count: int) -> Sequence[int] | None:  # noqa: ARG002
        """Leave the ranking to the predictions."""
        return None
