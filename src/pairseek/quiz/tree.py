"""Tree of a quiz: the next pair after every path of answers, and the result at the end of each path."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from pairseek.core.types import Event, FloatArray
from pairseek.errors import Unsupported
from pairseek.model.items import Items
from pairseek.search.state import SearchState

AnswerPath: TypeAlias = str
"""The chosen sides in order, each ``"L"`` or ``"R"``."""


@dataclass(frozen=True, eq=False)
class QuizResult:
    """Result at the end of a path.

    Attributes
    ----------
    point, covariance
        (d,) and (d, d) estimate of the search.
    radius
        95 % credible radius.
    recommended
        Rows of the recommended items and the probability that each is chosen over a random other item, in decreasing
        order of that probability, as on the result page of a study.
    """

    point: FloatArray
    covariance: FloatArray
    radius: float
    recommended: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class QuizTree:
    """Pairs and results by path, for a whole quiz or a part of it.

    Attributes
    ----------
    pairs
        Rows of the left and right items.
    results
        Results of the paths that have ended.
    cut
        Events of the paths at which this part of the tree ends and other parts continue.
    """

    pairs: dict[AnswerPath, tuple[int, int]] = field(default_factory=dict)
    results: dict[AnswerPath, QuizResult] = field(default_factory=dict)
    cut: dict[AnswerPath, tuple[Event, ...]] = field(default_factory=dict)

    def add(self, other: QuizTree) -> None:
        """Add the pairs and results of another part."""
        self.pairs.update(other.pairs)
        self.results.update(other.results)

    def shown_items(self) -> list[int]:
        """Return the rows of all items that the tree shows, in increasing order."""
        shown = {row for pair in self.pairs.values() for row in pair}
        return sorted(shown | {row for result in self.results.values() for row, _ in result.recommended})


def grow(search: SearchState, path: AnswerPath, answers: int, recommended: int, *, cut: int | None = None) -> QuizTree:
    """Grow the part of the tree below a path.

    The walk is depth first, so that a node costs only one update of the belief and one selection of a pair.

    Parameters
    ----------
    search
        Search after the answers of the path.
    path
        The answers so far.
    answers
        Number of answers after which every path ends.
    recommended
        Number of recommended items per result.
    cut
        Number of answers at which the walk stops and records the events instead; None to walk to the end.
    """
    tree = QuizTree()
    _visit(search, path, answers, recommended, answers + 1 if cut is None else cut, tree)
    return tree


def _visit(search: SearchState, path: AnswerPath, answers: int, recommended: int, cut: int, tree: QuizTree) -> None:
    if len(path) == cut:
        tree.cut[path] = search.events
        return
    query = search.next_query() if len(path) < answers else None
    if query is None:
        tree.results[path] = result_of(search, recommended)
        return
    items = items_of(search)
    tree.pairs[path] = items.index(query.left), items.index(query.right)
    for side, winner in (("L", query.left), ("R", query.right)):
        _visit(search.after_answer(query, winner), path + side, answers, recommended, cut, tree)


def result_of(search: SearchState, recommended: int) -> QuizResult:
    """Return the result of a search."""
    estimate = search.estimate()
    items = items_of(search)
    ids = [item.id for item in search.recommend(min(recommended, items.n))]
    shares = sorted(zip(search.choice_shares(ids), ids, strict=True), key=lambda ranked: -ranked[0])
    best = tuple((items.index(name), share) for share, name in shares)
    return QuizResult(
        np.asarray(estimate.point), np.asarray(estimate.covariance), float(estimate.credible_radius()), best
    )


def items_of(search: SearchState) -> Items:
    """Return the items of a search; raise `Unsupported` for a continuous space."""
    items = search.configuration.items
    if not isinstance(items, Items):
        raise Unsupported(
            "a quiz asks about items, and a continuous Space has none: use points sampled from it as items"
        )
    return items
