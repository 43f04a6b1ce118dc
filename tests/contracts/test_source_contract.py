"""The contract of candidate sources, for every registered source."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import pairseek as ps
from pairseek.pairs.context import SelectionContext, best_of
from pairseek.pairs.sources import SOURCES
from pairseek.testing import CandidateSourceContract

SETTINGS = {"listed_pairs": {"pairs": tuple(combinations(range(12), 2))}, "sampled_pairs": {"count": 40}}


class TestEverySource(CandidateSourceContract):
    @pytest.fixture(params=sorted(SOURCES))
    def source(self, request):
        return SOURCES[request.param](**SETTINGS.get(request.param, {}))


def test_a_constant_utility_draws_uniformly_from_the_pairs_of_distinct_points():
    """The draw equals a draw from the rows whose features say that the points differ."""
    points = np.random.default_rng(1).normal(size=(8, 2))
    points[5] = points[2]
    points[6, 0] = points[1, 0]
    search = ps.Search(ps.Items(points), response=ps.Logistic(1.0), strategy=ps.Random(), rng=0)
    context = SelectionContext.of(search.items, search.belief, search.response, ps.Random())
    first, second = np.array(list(combinations(range(8), 2))).T
    distinct = np.flatnonzero(context.features(first, second).distinct)
    assert len(distinct) == 27
    for seed in range(20):
        best = best_of(context, first, second, np.random.default_rng(seed), rescore=0, words="all")
        row = int(np.random.default_rng(seed).choice(distinct))
        assert (best.first, best.second, best.considered) == (first[row], second[row], 28)
    same = best_of(context, np.array([2]), np.array([5]), np.random.default_rng(0), rescore=0, words="one")
    assert same is None
