"""Expected durations of reproductions, and EPMV by samples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import pairseek as ps
from pairseek.candidates.context import SelectionContext
from pairseek.experiments import SPECIFICATIONS, run
from pairseek.experiments.durations import TRIAL_SECONDS, calibration, remaining
from pairseek.experiments.sampled_epmv import SampledEPMV


class TestDurations:
    def test_every_figure_and_strategy_has_a_recorded_cost(self):
        for name, make in SPECIFICATIONS.items():
            for preset in ("quick", "paper"):
                assert set(make(preset).labels) <= set(TRIAL_SECONDS[name]), name
        assert all(0.0 < seconds < 60.0 for costs in TRIAL_SECONDS.values() for seconds in costs.values())

    def test_trials_that_are_finished_are_not_counted(self, tmp_path, monkeypatch):
        spec = SPECIFICATIONS["bounds"]("quick")
        spec = replace(spec, settings=spec.settings[:1], queries=2)
        monkeypatch.setitem(TRIAL_SECONDS, "bounds", {"EPMV": 3.0, "Random": 1.0})
        run(replace(spec, trials=1), tmp_path)
        found = remaining("bounds", replace(spec, trials=5), tmp_path, factor=1.5)
        assert found.trials == 8
        assert found.seconds == pytest.approx(1.5 * 4 * (3.0 + 1.0))
        assert remaining("bounds", replace(spec, trials=1), tmp_path).trials == 0

    def test_the_calibration_takes_time(self):
        assert 0.0 < calibration(1) < 60.0


class TestSampledEPMV:
    @pytest.mark.parametrize("noise", ["normalized", "decaying"])
    def test_it_chooses_the_candidate_that_averages_over_all_samples_choose(self, noise):
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
        found, full = strategy.score(features, search.belief), strategy.exact(features, search.belief)
        assert np.argmax(found) == np.argmax(full)
        known = np.isfinite(found)
        np.testing.assert_allclose(found[known], full[known])
        # All others are excluded because their first term is too small.
        assert np.all(features.logit_deviation[~known] < full.max())
        assert np.count_nonzero(~known) > 0
