"""Sampled EPMV."""

from __future__ import annotations

import numpy as np
import pytest

import pairseek as ps
from pairseek.experiments.sampled_epmv import SampledEPMV
from pairseek.pairs.context import SelectionContext


class TestSampledEPMV:
    @pytest.mark.parametrize("noise", ["normalized", "decaying"])
    def test_it_chooses_the_candidate_with_the_best_exact_utility(self, noise):
        rng = np.random.default_rng(3)
        items = ps.Items(rng.normal(size=(300, 3)))
        response = ps.Logistic(2.0, noise)
        search = ps.Search(items, response=response, prior=ps.UniformBox(-1.0, 1.0), posterior=ps.Particles(500), rng=1)
        user = ps.SimulatedUser([0.4, -0.3, 0.2], response, rng=2)
        for _ in range(6):
            query = search.ask()
            search.tell(query, winner=user.answer(items, query))
        context = SelectionContext.of(items, search.belief, search.response)
        first, second = np.triu_indices(300, 1)
        features = context.features(first, second)
        strategy = SampledEPMV().resolved(items, search.prior)
        utilities, exact = strategy.score(features, search.belief), strategy.exact(features, search.belief)
        assert np.argmax(utilities) == np.argmax(exact)
        averaged = np.isfinite(utilities)
        np.testing.assert_allclose(utilities[averaged], exact[averaged])
        # The first term of all others is too small.
        assert np.all(features.logit_deviation[~averaged] < exact.max())
        assert np.count_nonzero(~averaged) > 0
