"""Searches of pairseek with only ids, with vectors, or with a population learned from other people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import get_args

import numpy as np

from pairseek.core.types import FloatArray, IntArray, ItemId
from pairseek.core.validation import one_of
from pairseek.experiments.comparison.protocol import KNOWLEDGE, BaseMethod, Knowledge
from pairseek.model.items import Items
from pairseek.pairs.context import SelectionContext
from pairseek.pairs.sources import ListedPairs, Rest
from pairseek.pairs.strategies import UTILITIES
from pairseek.people.choices import Choices
from pairseek.people.population import Population
from pairseek.search import Search
from pairseek.search.goals import Goal


class SearchMethod(BaseMethod):
    """A method that passes the calls on to a search, which chooses its own questions."""

    search: Search

    def __init__(self, search: Search) -> None:
        self.search = search

    def ask(self, allowed: IntArray) -> Sequence[int]:  # noqa: ARG002
        """Return the next query of the search."""
        self._query = self.search.ask()
        items = self.search.modelled_items
        return items.index(self._query.left), items.index(self._query.right)

    def tell(self, pair: tuple[int, int], outcome: int | None) -> None:  # noqa: ARG002
        """Tell the search the answer, and compute its belief."""
        winner = None if outcome is None else self.search.modelled_items.ids[outcome]
        self.search.tell(self._query, winner=winner, tie=outcome is None)
        _ = self.search.belief

    def predict(self, pairs: IntArray) -> FloatArray:
        """Return the (m,) posterior predictive probabilities that the first item wins."""
        search = self.search
        context = SelectionContext.of(search.modelled_items, search.belief, search.response)
        return np.clip(context.features(pairs[:, 0], pairs[:, 1]).sampled(search.belief)[0], 0.0, 1.0)

    def recommend(self, count: int) -> Sequence[int] | None:
        """Return the rows that the search recommends."""
        return [self.search.modelled_items.index(item.id) for item in self.search.recommend(count)]


@dataclass
class PairseekSearch(SearchMethod):
    """A search with its defaults.

    Parameters
    ----------
    knows
        What the search is given: ids, vectors, or a population.
    goal
        Goal of the search, which decides the strategy.
    strategy
        Name of another strategy. None: the strategy of the goal.
    dimension
        Number of coordinates that the population learns. None: use the given vectors as coordinates.
    """

    knows: Knowledge = "others"
    goal: Goal = "taste"
    strategy: str | None = None
    dimension: int | None = 4
    search: Search = field(init=False, repr=False)

    def __post_init__(self) -> None:
        one_of(self.knows, "knows", KNOWLEDGE)
        one_of(self.goal, "goal", get_args(Goal))
        if self.strategy is not None:
            one_of(self.strategy, "strategy", UTILITIES)

    def begin(self, items: Sequence[ItemId], vectors: FloatArray | None, others: Choices | None) -> None:
        """Begin a search."""
        self._population = None
        if others is not None:
            coordinates = None if self.dimension is not None or vectors is None else tuple(map(tuple, vectors.tolist()))
            self._population = fit_population(others, self.dimension, coordinates)
            self._items = self._population.items
        else:
            self._items = Items(ids=list(items)) if vectors is None else Items._without_warnings(vectors, tuple(items))
        self._asked = False
        self.search = self._new_search(None)

    def _new_search(self, allowed: IntArray | None) -> Search:
        pairs = None if allowed is None else ListedPairs(tuple(map(tuple, allowed.tolist())))
        return Search(
            self._items,
            goal=self.goal,
            strategy=None if self.strategy is None else UTILITIES[self.strategy](),
            candidates=pairs,
            stop=(),
            rest=None if allowed is None else Rest(pair=len(allowed)),
            population=self._population,
            rng=0,
        )

    def ask(self, allowed: IntArray) -> Sequence[int]:
        """Return the next query of a search that may ask each initially allowed pair once."""
        if not self._asked:
            self.search, self._asked = self._new_search(allowed), True
        return super().ask(allowed)

    def recommend(self, count: int) -> Sequence[int] | None:
        """Return the rows that the search recommends; None while nothing distinguishes the items."""
        if not self.search.answers and self._population is None:
            return None
        return super().recommend(count)


@cache
def fit_population(
    others: Choices, dimension: int | None, coordinates: tuple[tuple[float, ...], ...] | None
) -> Population:
    """Fit a population to other people."""
    items = None if coordinates is None else Items._without_warnings(np.array(coordinates), others.ids)
    return Population.fit(others, items, dimension=None if items is not None else dimension)
