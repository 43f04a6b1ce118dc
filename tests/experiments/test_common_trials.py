"""Trials shared by experiments: copied where they are identical, and nowhere else."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import pairseek as ps
from pairseek.experiments import SPECIFICATIONS, Contender, ReproductionOptions, Results, read_record, reproduce, run
from pairseek.experiments.common_trials import common_trial_indices, outcomes_of_shared_trials
from pairseek.experiments.runs.journal import JOURNAL_FILE, RUN_FILE, read_journal

LONG = replace(
    read_record(
        {
            "name": "long",
            "data": "synthetic",
            "dimension": 2,
            "subsample": 60,
            "response": {"k": "published"},
            "queries": 5,
            "trials": 3,
            "rate": 0.2,
            "metrics": ["squared_error", "kendall_tau", "posterior_trace"],
            "strategies": ["infogain", "random", {"name": "actrank", "votes": 1}],
        }
    ),
    repeats=True,
)
SHORT = replace(LONG, name="short", queries=3, metrics=("posterior_trace", "squared_error"), trials=2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Make a folder with the results of `LONG`, and of `SHORT` alone."""
    folder = tmp_path_factory.mktemp("trials")
    run(LONG, folder / "long")
    run(SHORT, folder / "short")
    return folder


class TestCommonTrials:
    def test_a_longer_experiment_contains_the_shorter_one_to_the_bit(self, folder):
        shared = outcomes_of_shared_trials(SHORT, LONG, folder / "long")
        alone = read_journal(folder / "short" / JOURNAL_FILE)
        assert shared.keys() == alone.keys()
        for task, outcome in shared.items():
            # Both infer the posterior for ActRank.
            np.testing.assert_array_equal(outcome.values, alone[task].values)
            assert outcome.asked == alone[task].asked
            assert len(outcome.seconds) == 4

    def test_known_trials_are_stored_and_not_run(self, folder, tmp_path):
        shared = outcomes_of_shared_trials(SHORT, LONG, folder / "long")
        results = run(SHORT, tmp_path / "again", known=shared)
        assert json.loads((tmp_path / "again" / RUN_FILE).read_text())["sessions"][-1]["trials_run"] == 0
        np.testing.assert_array_equal(results.values, Results.read(folder / "short").values)

    @pytest.mark.parametrize(
        "other",
        [
            replace(LONG, queries=2),
            replace(LONG, seed=1),
            replace(LONG, metrics=("squared_error",)),
            replace(LONG, every=5),
            replace(LONG, samples=50),
            replace(LONG, posterior=ps.EP(64)),
            replace(LONG, settings=(replace(LONG.settings[0], subsample=50),)),
            replace(LONG, settings=(replace(LONG.settings[0], truth="noiseless"),)),
        ],
    )
    def test_trials_that_differ_are_not_shared(self, other):
        assert common_trial_indices(SHORT, other) == {}

    def test_an_option_of_some_strategies_does_not_affect_the_others(self):
        everything = {(0, 0): (0, 0), (0, 1): (0, 1), (0, 2): (0, 2)}
        assert common_trial_indices(SHORT, LONG) == everything
        assert list(common_trial_indices(SHORT, replace(LONG, repeats=False))) == [(0, 2)]
        assert list(common_trial_indices(SHORT, replace(LONG, rate=0.1))) == [(0, 2)]
        assert list(common_trial_indices(SHORT, replace(LONG, procedure_posterior=False))) == [(0, 0), (0, 1)]
        # A rate means the same whether the strategy or the experiment sets it.
        own = tuple(Contender(c.strategy, f"{c.label} own", rate=0.2) for c in LONG.strategies[:2])
        assert common_trial_indices(SHORT, replace(LONG, strategies=own, rate=None)) == {(0, 0): (0, 0), (0, 1): (0, 1)}

    def test_a_folder_of_another_experiment_shares_nothing(self, folder):
        assert outcomes_of_shared_trials(SHORT, replace(LONG, seed=1), folder / "long") == {}
        assert outcomes_of_shared_trials(SHORT, LONG, folder / "nothing") == {}

    def test_figures_of_one_folder_share_their_trials(self, tmp_path, monkeypatch):
        options = ReproductionOptions(data="synthetic", trials=1, strategies=("InfoGain",))
        for name in ("figure2", "particles"):
            make = SPECIFICATIONS[name]
            monkeypatch.setitem(SPECIFICATIONS, name, lambda preset, make=make: replace(make(preset), queries=2))
        reproduce("figure2", tmp_path / "figure2", replace(options, strategies=()))
        reproduce("particles", tmp_path / "particles", options)
        assert json.loads((tmp_path / "particles" / RUN_FILE).read_text())["sessions"][-1]["trials_run"] == 0
