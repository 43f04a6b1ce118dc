"""Specifications: what they accept and refuse, and what identifies a run."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import pairseek as ps
from pairseek.errors import InvalidParameter, Unsupported
from pairseek.experiments import (
    MEASURES,
    REPRODUCTIONS,
    SPECIFICATIONS,
    Contender,
    ResponseSpec,
    Setting,
    Specification,
    Task,
    read_record,
    read_specification,
    run_trial,
    to_toml,
)
from pairseek.experiments.paper import with_data
from pairseek.experiments.simulation import SimulationWork, load_items
from pairseek.experiments.specification import NAMED_DATA
from pairseek.experiments.trial import _search

DOCS = Path(__file__).resolve().parents[2] / "docs"

MINIMAL = {"name": "test", "data": "synthetic", "dimension": 2, "strategies": ["infogain", "random"]}
TOML = """
data = "synthetic"
dimension = 3
response = { noise = "normalized", k = "published" }
queries = 10
metrics = ["squared_error"]

[[settings]]
label = "matched"

[[settings]]
label = "mismatched"
dimension = 4
truth = { name = "probit", noise = "best", k = "published" }

[[strategies]]
name = "gausscloud"
stages = 2

[[strategies]]
name = "infogain"
label = "sparse"
rate = 1e-4
"""


@dataclass(frozen=True)
class Widest:
    """A custom strategy that asks the pair with the largest distance."""

    name: ClassVar[str] = "widest"
    power: float = 1.0

    def score(self, candidates, belief):
        return candidates.length**self.power


class TestReading:
    def test_settings_in_a_file_share_the_fields_at_the_top(self, tmp_path):
        path = tmp_path / "mine.toml"
        path.write_text(TOML)
        spec = read_specification(path)
        assert spec.name == "mine"
        assert [setting.dimension for setting in spec.settings] == [3, 4]
        assert spec.settings[0].truth == "matched"
        assert spec.settings[1].truth.response(4) == ps.Probit(0.8372289131462489, "normalized")
        assert spec.settings[0].response.response(3).k == pytest.approx(1.8881614172502807)
        assert spec.strategies[0].strategy == ps.GaussCloud(2, 10)
        assert spec.labels == ("GaussCloud-2", "sparse")
        assert spec.strategies[1].rate == 1e-4
        assert (spec.samples, spec.trials, spec.rate) == (None, 50, 1e-3)

    def test_specifications_round_trip_through_toml(self, tmp_path):
        for name, make in SPECIFICATIONS.items():
            spec = make("paper")
            path = tmp_path / f"{name}.toml"
            path.write_text(to_toml(spec))
            assert read_specification(path) == spec

    def test_a_specification_without_settings_is_one_setting(self):
        spec = read_record(MINIMAL)
        assert [setting.label for setting in spec.settings] == ["simulation"]
        assert spec.settings[0].prior == ps.UniformBox(-1, 1)

    def test_the_prior_can_be_the_default_of_the_items(self):
        assert read_record({**MINIMAL, "prior": "items"}).settings[0].prior is None
        prior = read_record({**MINIMAL, "prior": {"name": "gaussian", "covariance": 0.5}}).settings[0].prior
        assert prior == ps.GaussianPrior(0.0, 0.5)

    def test_data_files_are_looked_for_beside_the_specification(self, tmp_path):
        np.save(tmp_path / "mine.npy", np.random.default_rng(0).normal(size=(9, 2)))
        (tmp_path / "spec.toml").write_text('data = "mine.npy"\nstrategies = ["random"]\n')
        (items,) = load_items(read_specification(tmp_path / "spec.toml"))
        assert (items.n, items.d) == (9, 2)

    def test_a_custom_strategy_is_named_by_module_and_class(self):
        name = f"{__name__}:Widest"
        spec = read_record({**MINIMAL, "strategies": [{"name": name, "power": 2.0}]})
        assert spec.strategies[0].strategy == Widest(2.0)
        assert spec.labels == ("Widest",)
        assert read_record(spec.record()) == spec

    @pytest.mark.parametrize(
        "response", [ps.Probit(1.0), ps.Logistic(1.5, "constant", lapse=0.1), ps.Logistic(ps.Unknown())]
    )
    def test_a_response_object_is_used_as_given(self, response):
        truth = ps.Logistic(2.0) if response.unknown else "matched"
        spec = replace(read_record(MINIMAL), settings=(Setting("a", "colours", response=response, truth=truth),))
        assert spec.settings[0].response_model(3) == response
        again = read_record(tomllib.loads(to_toml(spec)))
        assert again.settings[0].response_model(3) == response
        assert tomllib.loads(to_toml(again)) == tomllib.loads(to_toml(spec))

    def test_a_custom_truth_and_prior_are_read_back(self):
        spec = replace(read_record(MINIMAL), settings=(Setting("a", "colours", prior=Inner(), truth=Stubborn(1.0)),))
        again = read_record(tomllib.loads(to_toml(spec)))
        assert again == spec
        outcome = run_trial(replace(again, queries=2, rate=None), Task(0, 0, 0), load_items(again)[0])
        assert np.isfinite(outcome.values).all()

    @pytest.mark.parametrize("posterior", [ps.Particles(300), ps.EP(points=64)])
    def test_a_posterior_is_used_and_read_back(self, posterior):
        spec = replace(read_record(MINIMAL), posterior=posterior, queries=2)
        again = read_record(tomllib.loads(to_toml(spec)))
        assert again == spec
        assert again.identity(load_items(again)) != replace(spec, posterior=None).identity(load_items(spec))
        first, samples = (
            run_trial(each, Task(0, 0, 0), load_items(spec)[0]).values
            for each in (spec, replace(spec, posterior=None, samples=300))
        )
        assert (first == samples) == isinstance(posterior, ps.Particles)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"posterior": ps.EP(), "samples": 300}, "samples is 300 and posterior is EP"),
            ({"posterior": "ep"}, r"posterior is 'ep', which lacks infer\(\)"),
        ],
    )
    def test_posteriors_that_cannot_be_used(self, change, message):
        with pytest.raises(InvalidParameter, match=message):
            replace(read_record(MINIMAL), **change)


@dataclass(frozen=True)
class Inner(ps.UniformBox):
    """A custom prior."""

    low: float = -0.5
    high: float = 0.5
    name: ClassVar[str] = "inner"


@dataclass(frozen=True)
class Stubborn(ps.Logistic):
    """A custom response of users."""

    name: ClassVar[str] = "stubborn"

    def link_function(self, logits):
        return np.where(np.asarray(logits) > 0, 0.9, 0.1)


class TestRefusing:
    @pytest.mark.parametrize(
        ("parts", "error", "message"),
        [
            ({"response": "logistic"}, InvalidParameter, "response is 'logistic': give a ResponseSpec, or a response"),
            ({"response": ps.Logistic(ps.Unknown())}, InvalidParameter, "simulated users need a known k and lapse"),
            ({"response": Stubborn(1.0)}, Unsupported, "Stubborn"),
            ({"truth": ps.Logistic()}, InvalidParameter, "k of Logistic is not set"),
            ({"truth": 3}, InvalidParameter, "truth is 3"),
            ({"prior": "box"}, InvalidParameter, r"prior is 'box', which lacks box\(\)"),
        ],
    )
    def test_parts_that_cannot_be_simulated_are_refused_at_construction(self, parts, error, message):
        with pytest.raises(error, match=message):
            Setting("a", "colours", **parts)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"quieries": 3}, "unknown field 'quieries'"),
            ({"strategies": ["infogian"]}, r"strategies\[0\]: unknown strategy 'infogian'"),
            ({"strategies": [{"name": "actrank", "vote": 3}]}, r"strategies\[0\]: strategy 'actrank' has no setting"),
            ({"strategies": [{"name": "gausscloud"}]}, r"strategies\[0\]: .*stages"),
            ({"strategies": []}, "strategies is empty"),
            ({"strategies": "random"}, r"strategies is 'random': give a list"),
            ({"strategies": ["random", "random"]}, "strategies has the label 'Random' twice"),
            ({"strategies": ["nowhere_at_all:Thing"]}, "cannot be imported"),
            ({"trials": -5}, "trials is -5"),
            ({"queries": 0}, "queries is 0"),
            ({"queries": 2.5}, "queries is 2.5"),
            ({"samples": True}, "samples is True"),
            ({"seed": -1}, "seed is -1"),
            ({"every": 0}, "every is 0"),
            ({"rate": 2}, "rate is 2"),
            ({"metrics": ["squared_eror"]}, "metrics is 'squared_eror'"),
            ({"metrics": "squared_error"}, "metrics is 'squared_error': give a list of names"),
            ({"metrics": []}, "metrics is empty"),
            ({"data": "food10"}, r"data is 'food10'.*did you mean 'food10k'"),
            ({"data": "food10k", "dimension": 8}, "Food-10k has no embedding in 8 dimensions"),
            ({"dimension": None}, "dimension is missing: data 'synthetic' needs one"),
            ({"dimension": 0}, "dimension is 0"),
            ({"subsample": 1}, "subsample is 1"),
            ({"scaled": "yes"}, "scaled is 'yes'"),
            ({"truth": "mached"}, "truth is 'mached'"),
            ({"truth": {"name": "probit"}}, "truth.k is missing"),
            ({"truth": {"name": "gauss", "k": 1.0}}, "truth.name is 'gauss'"),
            ({"truth": 3}, "truth is 3"),
            ({"response": {"noise": "normalised"}}, "response.noise is 'normalised'"),
            ({"response": {"noise": "best"}}, "give k = 'published', or name the noise"),
            ({"response": {"k": "fitted"}}, "response.k is 'fitted': give a number, or 'published'"),
            ({"response": {"k": -1.0}}, "k is -1.0"),
            ({"response": {"kk": 1}}, "response has an unknown field 'kk'"),
            ({"data": "colours", "dimension": None, "response": {"k": "published"}}, "published for food10k only"),
            ({"settings": [{"label": "a"}, {"label": "a"}]}, "settings has the label 'a' twice"),
            ({"settings": [{"label": "a", "trails": 3}]}, r"settings\[0\] has an unknown field 'trails'"),
            ({"settings": {}}, r"settings is \{\}: give a list"),
            ({"prior": {"name": "uniform"}}, "unknown prior 'uniform'"),
        ],
    )
    def test_a_bad_field_is_named(self, change, message):
        record = {name: value for name, value in {**MINIMAL, **change}.items() if value is not None}
        with pytest.raises(InvalidParameter, match=message):
            read_record(record)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (None, "there is no file"),
            ("queries = = 3", r"a.toml cannot be read as TOML"),
            ('data = "synthetic"\ndimension = 2\nstrategies = ["random"]\ntrials = -1\n', r"a.toml: trials is -1"),
        ],
    )
    def test_a_file_that_is_missing_or_wrong_is_named(self, tmp_path, text, message):
        if text is not None:
            (tmp_path / "a.toml").write_text(text)
        with pytest.raises(InvalidParameter, match=message):
            read_specification(tmp_path / "a.toml")

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"data": "colours", "dimension": 5}, "dimension of setting 'simulation' is 5, but colours has 3"),
            ({"subsample": 13_000}, "subsample of setting 'simulation' is 13000, but there are only"),
        ],
    )
    def test_settings_that_do_not_fit_the_items_are_refused_on_loading(self, change, message):
        with pytest.raises(InvalidParameter, match=message):
            load_items(read_record({**MINIMAL, **change}))


class TestIdentity:
    def identity(self, **change):
        spec = read_record({**MINIMAL, **change})
        return spec.identity(load_items(spec))

    def test_it_changes_with_everything_a_trial_depends_on(self):
        first = self.identity()
        changes = [
            {"seed": 1},
            {"queries": 81},
            {"samples": 100},
            {"rate": 0.5},
            {"dimension": 3},
            {"subsample": 40},
            {"truth": "noiseless"},
            {"scaled": False},
            {"prior": "items"},
            {"response": {"k": 2.0}},
            {"strategies": ["infogain"]},
            {"metrics": ["squared_error"]},
            {"repeats": True},
            {"procedure_posterior": False},
            {"strategies": [{"name": "infogain", "posterior": {"name": "particles", "n": 300}}, "random"]},
        ]
        others = [self.identity(**change) for change in changes]
        assert len({first, *others}) == len(others) + 1

    def test_it_does_not_change_with_title_name_and_number_of_trials(self):
        assert self.identity() == self.identity(title="x", name="y", trials=7)

    def test_it_follows_the_content_of_a_file_and_not_its_path(self, tmp_path):
        points = np.random.default_rng(0).normal(size=(9, 2))
        identities = []
        for name, content in (("a.npy", points), ("b.npy", points), ("c.npy", points + 1e-9)):
            np.save(tmp_path / name, content)
            identities.append(self.identity(data=str(tmp_path / name), dimension=2))
        assert identities[0] == identities[1] != identities[2]


class TestParts:
    def test_labels_are_as_the_paper_writes_them(self):
        strategies = [ps.InfoGain(), ps.ActRank(3), ps.GaussCloud(4, 80), ps.GreedyMSE()]
        assert [Contender(s).label for s in strategies] == ["InfoGain", "ActRank-3", "GaussCloud-4", "GreedyMSE"]
        with pytest.raises(InvalidParameter, match="is not a strategy"):
            Contender("infogain")

    def test_counts_begin_before_the_first_answer_and_end_after_the_last(self):
        spec = read_record({**MINIMAL, "queries": 10, "every": 4})
        assert spec.counts == (0, 4, 8, 10)

    def test_workers_get_items_without_files_and_once_for_settings_that_share_them(self):
        items = ps.Items([[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]], ids=["a", "b", "c"], appeal=[0.0, 1.0, 0.0])
        settings = (
            Setting("one", items, scaled=False),
            Setting("two", items, scaled=False, truth="noiseless"),
            Setting("space", "space", 2),
        )
        spec = Specification("travel", settings, (Contender(ps.Random()),))
        loaded = load_items(spec)
        work = SimulationWork.of(spec, loaded)
        assert len(work.contents) == 2
        assert work.items() == loaded
        assert work.items()[2] == ps.Space((-1.0, -1.0), (1.0, 1.0))

    def test_the_papers_specifications_are_the_papers_numbers(self):
        spec = SPECIFICATIONS["figure2"]("paper")
        assert (spec.queries, spec.trials, spec.samples, spec.rate) == (80, 50, None, 1e-3)
        matched, mismatched = spec.settings
        assert (matched.dimension, matched.response.response(4)) == (4, ps.Logistic(1.5636842555329606))
        assert mismatched.response.response(4) == ps.Logistic(9.706049641165146, "decaying")
        assert mismatched.truth.response(4) == ps.Probit(0.8372289131462489, "normalized")
        assert {"GaussCloud-1", "GaussCloud-4", "ActRank-1", "ActRank-3", "ActRank-5"} <= set(spec.labels)
        speed = SPECIFICATIONS["speed"]("paper")
        assert (speed.queries, speed.trials, [s.dimension for s in speed.settings]) == (60, 40, [4, 7, 12])
        assert sorted({c.rate for c in speed.strategies} - {None}) == pytest.approx([1e-4, 10**-3.5, 1e-3])
        assert speed.rate is None  # all pairs, the default of a search
        assert [c.label for c in speed.strategies if c.rate is None] == ["InfoGain all", "EPMV all", "MCMV all"]
        supplement = SPECIFICATIONS["supplement"]("paper")
        assert len(supplement.settings) == 5 * 3 * 2
        gaussian = {
            s.dimension: s.truth.response(s.dimension).noise for s in supplement.settings if s.truth != "matched"
        }
        assert gaussian == {3: "constant", 5: "normalized", 7: "normalized", 9: "normalized", 12: "normalized"}
        dimensions = SPECIFICATIONS["dimensions"]("paper")
        assert {20, 60} <= set(dimensions.counts)
        assert {s.response.noise for s in dimensions.settings} == {"constant", "normalized", "decaying"}

    def test_the_papers_specifications_allow_repeated_pairs_as_algorithm_1_does(self):
        assert all(make(preset).repeats for make in SPECIFICATIONS.values() for preset in ("quick", "paper"))

    def test_the_quick_preset_differs_in_size_only(self):
        quick, paper = (SPECIFICATIONS["figure2"](preset) for preset in ("quick", "paper"))
        assert quick.trials < paper.trials
        assert replace(quick, trials=50) == paper

    def test_a_stand_in_is_used_only_where_food10k_was(self):
        spec = with_data(SPECIFICATIONS["figure2"]("quick"), "synthetic")
        assert {setting.data for setting in spec.settings} == {"synthetic"}
        assert with_data(SPECIFICATIONS["bounds"]("quick"), "synthetic") == SPECIFICATIONS["bounds"]("quick")

    def test_a_response_spec_fills_in_the_published_constant(self):
        assert ResponseSpec("probit", "best", "published").response(3) == ps.Probit(0.25, "constant")
        assert ResponseSpec("logistic", "decaying", 2).response(None) == ps.Logistic(2.0, "decaying")


class TestDocs:
    PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "experiments.md").read_text()

    def test_the_specification_of_the_page_reads(self):
        block = re.search(r"```toml\n(.*?)```", self.PAGE, re.DOTALL).group(1)
        spec = read_record(
            {"name": "page", **tomllib.loads(block.replace("my_module:MyStrategy", f"{__name__}:Widest"))}
        )
        assert [setting.label for setting in spec.settings] == ["matched", "mismatched"]
        assert spec.labels == ("InfoGain", "GaussCloud-4", "mine")

    def test_every_field_metric_and_name_is_on_the_page(self):
        names = [f.name for part in (Specification, Setting, ResponseSpec, Contender) for f in fields(part)]
        for name in [*names, *MEASURES, *NAMED_DATA]:
            assert re.search(rf"\b{name}\b", self.PAGE), f"{name} is not in docs/how-to/experiments.md"

    def test_every_figure_and_command_is_documented(self):
        page = (Path(__file__).parents[2] / "docs" / "benchmarks" / "reproduction.md").read_text()
        for name in REPRODUCTIONS:
            assert f"`{name}`" in page
        for command in ("reproduce", "simulate", "plan"):
            assert f"pairseek {command}" in self.PAGE


def documented_values():
    """The values in the guide's table of fields, read as TOML."""
    table = (DOCS / "how-to" / "experiments.md").read_text()
    for field, cells in re.findall(r"^\| `(\w+)`(?:, `\w+`)? \| (.*) \|$", table, re.MULTILINE):
        for code in re.findall(r"`([^`]+)`", cells):
            try:
                yield field, tomllib.loads(f"value = {code}")["value"]
            except tomllib.TOMLDecodeError:
                continue  # the name of a field, not a value


@pytest.mark.parametrize(("field", "value"), list(documented_values()), ids=str)
def test_every_value_of_the_guide_is_accepted(field, value):
    given = {"k": value} if field == "response" and isinstance(value, str) else value
    data = {"data": "food10k", "dimension": 4}
    assert read_record({**MINIMAL, **data, field: given})
    if field in ("rate", "posterior"):
        # A strategy may have its own, says the guide.
        assert read_record({**MINIMAL, **data, "strategies": [{"name": "infogain", field: given}]})


def test_any_rate_can_be_the_default_of_a_search():
    text = {**MINIMAL, "strategies": [{"name": "infogain", "rate": "default"}, {"name": "random"}]}
    mixed = read_record(text)
    assert [contender.rate for contender in mixed.strategies] == ["default", None]
    assert read_record(mixed.record()) == mixed
    by_name, by_none = (replace(mixed, rate=rate) for rate in ("default", None))
    assert by_name == by_none
    items = load_items(mixed)
    assert by_name.identity(items) == by_none.identity(items)
    search, sampled = (_search(mixed, Task(0, arm, 0), items[0], 1) for arm in (0, 1))
    assert search.candidates == ps.Search(items[0], response=search.response, prior=search.prior).candidates
    assert sampled.candidates == ps.SampledPairs(rate=1e-3)
    with pytest.raises(InvalidParameter) as caught:
        replace(mixed, rate="usual")
    assert caught.value.field == "rate"
