"""Warm-up: compilation of the kernels of searches before anybody waits for them."""

from __future__ import annotations

import math
from time import monotonic

import numpy as np

from pairseek.model.items import Items
from pairseek.posteriors import EP, Particles
from pairseek.search.configuration import SearchConfiguration
from pairseek.search.state import SearchState

# Number of questions in a warm-up search.
_QUESTIONS = 5


def warm_up() -> None:
    """Compile the kernels of the default search and of the goal ``"best"``: EP, and its fallback, particles.

    Few and many items are both needed: few are searched pair by pair, many by branch and bound.
    """
    points = np.random.default_rng(0).normal(size=(600, 3))
    few, many = Items(points[:40]), Items(points)
    for items, posterior in ((few, EP()), (many, EP()), (few, Particles(200))):
        run_search(SearchConfiguration.resolved(items, posterior=posterior))
    run_search(SearchConfiguration.resolved(many, goal="best", askable=300))


def run_search(configuration: SearchConfiguration, until: float = math.inf) -> None:
    """Ask and answer a few questions, estimate and recommend; stop asking at a time on the monotonic clock."""
    state = SearchState(configuration, 0)
    for _ in range(_QUESTIONS):
        query = None if monotonic() > until else state.next_query()
        if query is None:
            break
        state = state.after_answer(query, query.left)
        state.expect(query.left, query.right)
        # The radius draws quasi-random points, whose generator is imported at first use.
        state.estimate().credible_radius()
    state.recommend(3)
