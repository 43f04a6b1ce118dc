"""Trials as pure functions of specification and task, with the same users for all strategies; and their results."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

import pairseek as ps
from pairseek.errors import InvalidFile, InvalidParameter
from pairseek.experiments import MEASURES, Contender, Results, Setting, Specification, Task, read_record, run_trial
from pairseek.experiments import trial as trial_module
from pairseek.experiments.results import standard_error
from pairseek.experiments.runs.plan import Outcome, RunPlan
from pairseek.experiments.simulation import SimulationWork, load_items

RECORD = {
    "name": "small",
    "data": "synthetic",
    "dimension": 2,
    "subsample": 80,
    "response": {"k": "published"},
    "queries": 6,
    "trials": 3,
    "samples": 300,
    "rate": 0.2,
    "metrics": ["squared_error", "kendall_tau", "posterior_trace", "posterior_volume", "credible_radius"],
    "strategies": ["infogain", "random", {"name": "actrank", "votes": 3}, {"name": "gausscloud", "stages": 2}],
}
SPEC = read_record(RECORD)
ITEMS = load_items(SPEC)


def tasks(spec):
    """All tasks of a specification, without its items."""
    return RunPlan(tuple(setting.label for setting in spec.settings), spec.labels, spec.trials, {}, "").tasks()


def outcomes_of(spec):
    items = load_items(spec)
    return {task: run_trial(spec, task, items[task.group]) for task in tasks(spec)}


@pytest.fixture(scope="module")
def results():
    return Results.of(SPEC, outcomes_of(SPEC), {})


@dataclass(frozen=True)
class Watched:
    """A procedure that always asks the first two items, and remembers the answers."""

    name: ClassVar[str] = "watched"
    heard: ClassVar[list] = []
    stop: int = 100

    def next(self, items, history, rng):
        return None if len(history) >= self.stop else (0, 1)

    def estimate(self, items, history):
        Watched.heard.append(tuple(event.winner for event in history))
        return np.zeros(items.d)


class TestRepeats:
    @pytest.mark.parametrize("arm", [0, 2, 3])
    def test_procedures_ask_and_estimate_the_same_without_a_posterior(self, arm):
        task = Task(0, arm, 0)
        spec = replace(SPEC, procedure_posterior=False)
        before, after = (np.array(run_trial(each, task, ITEMS[0]).values) for each in (SPEC, spec))
        own, of_posterior = [0, 1], [2, 3, 4]
        np.testing.assert_array_equal(after[:, own], before[:, own])
        if SPEC.labels[arm] == "InfoGain":
            np.testing.assert_array_equal(after, before)
        else:
            assert np.all(np.isnan(after[:, of_posterior]))

    @pytest.mark.parametrize("repeats", [False, True])
    def test_a_pair_repeats_only_where_that_is_allowed(self, monkeypatch, repeats):
        """With three items and uninformative answers, the same pair is always the best."""
        items = ps.Items([[0.0], [1.0], [10.0]])
        setting = Setting(data=items, scaled=False, prior=ps.GaussianPrior([0.5], [[0.01]]), response=ps.Logistic(0.1))
        spec = Specification("few", (setting,), (Contender(ps.InfoGain()),), rate=1.0, queries=3, repeats=repeats)
        asked = []
        tell = ps.Search.tell
        monkeypatch.setattr(
            ps.Search, "tell", lambda s, q, **answer: asked.append({q.left, q.right}) or tell(s, q, **answer)
        )
        run_trial(spec, Task(0, 0, 0), items)
        assert [pair == asked[0] for pair in asked] == [True, repeats, repeats]

    def test_procedures_ignore_the_rule_of_repeats(self):
        spec = read_record({**RECORD, "strategies": ["actrank", {"name": "gausscloud", "stages": 2}]})
        for arm in (0, 1):
            task = Task(0, arm, 0)
            values = [run_trial(replace(spec, repeats=repeats), task, ITEMS[0]).values for repeats in (False, True)]
            assert values[0] == values[1]


class TestTrials:
    def test_tasks_are_complete_and_ordered_by_user(self):
        planned = tasks(SPEC)
        assert len(planned) == len(set(planned)) == 3 * 4
        assert [task.unit for task in planned] == sorted(task.unit for task in planned)

    def test_a_trial_has_the_same_bits_alone_again_and_in_a_worker(self):
        task = Task(0, 1, 2)
        first = run_trial(SPEC, task, ITEMS[0])
        sent = SimulationWork.of(SPEC, ITEMS)
        assert run_trial(sent.specification, task, sent.items()[0]).values == first.values
        more = replace(SPEC, trials=50, strategies=SPEC.strategies[:2])
        assert run_trial(more, task, ITEMS[0]).values == first.values
        assert run_trial(SPEC, Task(0, 1, 1), ITEMS[0]).values != first.values
        assert run_trial(replace(SPEC, seed=1), task, ITEMS[0]).values != first.values

    def test_strategies_face_the_same_user_point(self, monkeypatch):
        points = []
        user = ps.SimulatedUser

        def spied(point, response, rng):
            points.append(tuple(point))
            return user(point, response, rng=rng)

        monkeypatch.setattr(trial_module, "SimulatedUser", spied)
        for strategy in range(4):
            run_trial(SPEC, Task(0, strategy, 1), ITEMS[0])
        run_trial(SPEC, Task(0, 0, 2), ITEMS[0])
        assert len(set(points[:4])) == 1
        assert points[4] != points[0]
        assert np.abs(points).max() <= 1

    def test_the_n_th_answer_to_the_same_two_is_the_same_for_all_and_votes_are_independent(self):
        # With k = 0 every answer is a coin toss, so neither equal nor constant sequences arise by chance.
        spec = replace(
            SPEC,
            queries=24,
            settings=(replace(SPEC.settings[0], subsample=None, response=replace(SPEC.settings[0].response, k=0.0)),),
            strategies=(Contender(Watched(), "one"), Contender(Watched(99), "two")),
            metrics=("squared_error",),
        )
        heard = []
        for strategy in range(2):
            Watched.heard.clear()
            run_trial(spec, Task(0, strategy, 0), ITEMS[0])
            heard.append(Watched.heard[-1])
        assert heard[0] == heard[1]
        assert len(heard[0]) == 24
        # 24 fair coins agree with probability 2^-23.
        assert len(set(heard[0])) == 2

    def test_a_procedure_that_has_finished_keeps_its_estimate_to_the_end(self):
        spec = replace(SPEC, strategies=(Contender(Watched(2), "short"),))
        outcome = run_trial(spec, Task(0, 0, 0), ITEMS[0])
        assert outcome.asked == 2
        assert len(outcome.values) == 7
        assert outcome.values[2] == outcome.values[-1]

    def test_noiseless_users_name_the_nearer_item(self):
        setting = replace(SPEC.settings[0], truth="noiseless")
        spec = replace(SPEC, settings=(setting,), strategies=(Contender(Watched(), "one"),), queries=12)
        Watched.heard.clear()
        run_trial(spec, Task(0, 0, 0), ITEMS[0])
        assert len(set(Watched.heard[-1])) == 1

    def test_users_answer_by_the_truth_and_not_by_the_model_of_the_search(self, monkeypatch):
        seen = []
        user = ps.SimulatedUser
        monkeypatch.setattr(
            trial_module,
            "SimulatedUser",
            lambda point, response, rng: seen.append(response) or user(point, response, rng),
        )
        truth = {"name": "probit", "noise": "normalized", "k": "published"}
        spec = read_record({**RECORD, "truth": truth, "response": {"noise": "decaying", "k": "published"}})
        run_trial(spec, Task(0, 0, 0), ITEMS[0])
        run_trial(SPEC, Task(0, 0, 0), ITEMS[0])
        assert seen == [ps.Probit(1.1461985059571953, "normalized"), ps.Logistic(2.164773871634581, "normalized")]

    def test_each_user_gets_a_sample_of_the_items(self):
        few = trial_module._subsample(ITEMS[0], 80, (1, 2))
        assert few.n == 80
        assert few == trial_module._subsample(ITEMS[0], 80, (1, 2))
        assert few != trial_module._subsample(ITEMS[0], 80, (1, 3))
        assert all(np.array_equal(few.coordinates[few.index(i)], ITEMS[0].coordinates[i]) for i in few.ids)

    def test_rates_differ_by_strategy(self, monkeypatch):
        sources = []
        search = ps.Search
        monkeypatch.setattr(trial_module, "Search", lambda *a, **k: sources.append(k["candidates"]) or search(*a, **k))
        spec = replace(SPEC, strategies=(Contender(ps.Random()), Contender(ps.Random(), "sparse", 0.01)))
        for strategy in range(2):
            run_trial(spec, Task(0, strategy, 0), ITEMS[0])
        run_trial(replace(spec, rate=None), Task(0, 0, 0), ITEMS[0])
        assert sources == [ps.SampledPairs(rate=0.2), ps.SampledPairs(rate=0.01), None]

    def test_a_continuous_space_can_be_searched(self):
        setting = Setting("space", "space", 2, response=replace(SPEC.settings[0].response, k=50.0))
        spec = Specification(
            "space",
            (setting,),
            (Contender(ps.EPMV()),),
            samples=300,
            queries=6,
            metrics=("squared_error", "posterior_volume", "kendall_tau"),
        )
        values = np.array(run_trial(spec, Task(0, 0, 0), load_items(spec)[0]).values)
        # Six reliable answers are worth about six bits: they reduce the volume, 1/3 at first, by about 2^6.
        assert values[-1, 1] < values[0, 1] / 16
        assert np.isnan(values[:, 2]).all()

    def test_measures_before_the_first_answer_are_those_of_the_prior(self, results):
        first = {name: results.trials("simulation", "InfoGain", name)[:, 0] for name in MEASURES}
        # The estimate is the centre of [-1, 1]^2, with variance 1/3 in each coordinate.
        assert first["posterior_trace"] == pytest.approx(2 / 3, rel=1e-6)
        assert first["posterior_volume"] == pytest.approx(1 / 3, rel=1e-3)
        # π r² less four caps is 95 % of the square at r = 1.198; 300 samples estimate that quantile to 0.022.
        assert first["credible_radius"] == pytest.approx(1.198, abs=0.07)
        # All strategies have the same users.
        for strategy in ("Random", "ActRank-3", "GaussCloud-2"):
            others = results.trials("simulation", strategy, "squared_error")[:, 0]
            assert others == pytest.approx(first["squared_error"], abs=1e-3)

    def test_cumulative_time_increases(self, results):
        seconds = results.seconds
        assert np.all(np.diff(seconds, axis=-1) > 0)
        assert results.time("simulation", "Random").shape == (7,)


class TestResults:
    def test_curves_are_means_with_standard_errors(self, results):
        values = results.trials("simulation", "Random", "squared_error")
        mean, error = results.curve("simulation", "Random", "squared_error")
        assert mean == pytest.approx(values.mean(axis=0))
        assert error == pytest.approx(np.sqrt(values.var(axis=0, ddof=1) / 3))
        assert standard_error(values[:1]) == pytest.approx(0.0)

    def test_lag_one_shows_the_estimate_one_answer_earlier(self, results):
        mean, _ = results.curve("simulation", "InfoGain", "squared_error")
        lagged, _ = results.curve("simulation", "InfoGain", "squared_error", lag=1)
        assert lagged[1:] == pytest.approx(mean[:-1])
        assert lagged[0] == mean[0]
        sparse = Results.of(replace(SPEC, every=3), outcomes_of(replace(SPEC, every=3)), {})
        with pytest.raises(InvalidParameter, match="a lag of 1 needs the estimate after 2 answers"):
            sparse.curve("simulation", "InfoGain", "squared_error", lag=1)

    def test_paired_differences_are_user_by_user(self, results):
        first, second = (results.trials("simulation", name, "squared_error")[:, 6] for name in ("InfoGain", "Random"))
        paired = results.paired("simulation", ("InfoGain", "Random"), "squared_error", 6)
        assert paired.difference == pytest.approx(np.mean(first - second))
        assert paired.standard_error == pytest.approx(np.std(first - second, ddof=1) / np.sqrt(3))
        assert paired.trials == 3

    def test_the_table_has_a_row_for_each_trial_and_count_and_reads_back_exactly(self, results, tmp_path):
        results.write(tmp_path)
        text = (tmp_path / "table.csv").read_text().splitlines()
        assert text[0] == "setting,strategy,trial,answers," + ",".join(SPEC.metrics)
        assert len(text) == 1 + 4 * 3 * 7
        row = text[1 + 7 * 3 + 2].split(",")
        assert row[:4] == ["simulation", "Random", "0", "2"]
        assert float(row[4]) == results.values[0, 1, 0, 2, 0]
        assert "seconds" in (tmp_path / "durations.csv").read_text()

    def test_the_table_can_be_parquet(self, results, tmp_path):
        import pyarrow.parquet

        results.write(tmp_path, "parquet")
        table = pyarrow.parquet.read_table(tmp_path / "table.parquet").to_pydict()
        assert table == results.columns()

    def test_wrong_names_and_counts_are_refused(self, results):
        with pytest.raises(InvalidParameter) as caught:
            results.curve("simulation", "Randon", "squared_error")
        assert caught.value.field == "strategy"
        with pytest.raises(InvalidParameter) as caught:
            results.curve("simulation", "Random", "mse")
        assert caught.value.field == "metric"
        with pytest.raises(InvalidParameter, match="nothing was measured after 99 answers"):
            results.paired("simulation", ("Random", "InfoGain"), "squared_error", 99)
        assert results.marks((2, 4, 90)) == [2, 4]
        assert results.marks() == [6]

    def test_missing_trials_are_counted(self):
        first = {Task(0, 0, 0): Outcome(Task(0, 0, 0), ((0.0,) * 5,) * 7, (0.0,) * 7, 6)}
        with pytest.raises(InvalidFile):
            Results.of(SPEC, first, {})
