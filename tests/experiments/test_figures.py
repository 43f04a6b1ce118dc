"""Figures and the report: they show the measured values, and the page is self-contained."""

from __future__ import annotations

import base64
import html.parser
import math
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import pairseek as ps
from helpers.refusals import missing_extra, refused
from pairseek.errors import InvalidParameter
from pairseek.experiments import REPRODUCTIONS, SPECIFICATIONS, ReproductionOptions, Results, read_record
from pairseek.experiments.figure_style import COLOURS, canvas, drawing, line_style, save, set_log_scale
from pairseek.experiments.figures import curves, paper, posterior
from pairseek.experiments.paper import with_data
from pairseek.experiments.report import Section, write_report
from pairseek.experiments.reproduction import draw_any, reproduce, select_figures, specification_of
from pairseek.experiments.runs.plan import Outcome, RunPlan
from pairseek.experiments.study_plan import PlanningInputs, plan


def tasks(spec):
    """All tasks of a specification, without its items."""
    return RunPlan(tuple(setting.label for setting in spec.settings), spec.labels, spec.trials, {}, "").tasks()


def invented(spec, trials=4):
    """Results without a search: falling curves that differ by strategy and user."""
    spec = replace(spec, trials=trials)
    rng = np.random.default_rng(0)
    counts = np.array(spec.counts)
    outcomes = {}
    for task in tasks(spec):
        scale = (1 + 0.2 * task.arm) * rng.uniform(0.8, 1.2, (len(counts), len(spec.metrics)))
        values = 0.4 * scale * np.exp(-counts / 30)[:, None]
        seconds = tuple(((1 + task.arm) * 0.01 * (counts + 1)).tolist())
        outcomes[task] = Outcome(task, tuple(map(tuple, values.tolist())), seconds, spec.queries)
    run = {"identity": "0" * 64, "sessions": [{"seconds": 3725.0, "jobs": 2, "cores": 2, "processor": "<fast> chip"}]}
    return Results.of(spec, outcomes, run)


def width_of(path):
    with Image.open(path) as image:
        return image.size[0]


def lines_of(axes):
    return {line.get_label(): line for line in axes.lines}


class TestStyle:
    def test_families_share_a_colour_and_differ_in_dash(self):
        labels = SPECIFICATIONS["figure2"]("paper").labels
        looks = {label: line_style(label, labels) for label in labels}
        assert len({(look.colour, str(look.dash)) for look in looks.values()}) == len(labels)
        assert looks["ActRank-1"].colour == looks["ActRank-5"].colour != looks["GaussCloud-1"].colour
        assert looks["InfoGain"].colour == COLOURS["InfoGain"]

    def test_a_strategy_looks_the_same_in_every_figure(self):
        for name in ("figure2", "rivals", "supplement"):
            labels = SPECIFICATIONS[name]("paper").labels
            for label in ("InfoGain", "EPMV", "MCMV", "Random"):
                assert line_style(label, labels) == line_style(label, SPECIFICATIONS["figure2"]("paper").labels)

    def test_rates_share_the_colour_of_their_strategy(self):
        labels = SPECIFICATIONS["speed"]("paper").labels
        looks = [line_style(label, labels) for label in labels if label.startswith("EPMV")]
        assert {look.colour for look in looks} == {COLOURS["EPMV"]}
        assert len({str(look.dash) for look in looks}) == len(looks) == 4

    def test_unknown_strategies_get_distinct_colours(self):
        labels = ("InfoGain", "mine", "yours")
        assert len({line_style(label, labels).colour for label in labels}) == 3

    @pytest.mark.parametrize(("low", "high"), [(0.2, 2.0), (2.4, 3.9), (0.01, 40.0), (0.9, 1.0), (0.93, 2.27)])
    def test_logarithmic_axes_have_enough_ticks_that_do_not_overlap(self, low, high):
        with drawing():
            _, (axes,) = canvas(3, 3)
            axes.plot([0, 1], [low, high])
            set_log_scale(axes, [low, high])
            ticks = [tick for tick in axes.get_yticks() if low <= tick <= high]
        assert 4 <= len(ticks) <= 12
        assert np.diff(np.log(np.sort(ticks))).min() > 0.05 * np.log(high / low)

    def test_without_matplotlib_the_extra_is_named(self, monkeypatch, tmp_path):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        with missing_extra("plots"):
            reproduce("figure2", tmp_path, ReproductionOptions(data="synthetic"))
        assert list(tmp_path.iterdir()) == []


class TestDrawings:
    @pytest.mark.parametrize("name", list(SPECIFICATIONS))
    def test_every_figure_is_written_as_png_and_svg(self, name, tmp_path):
        spec = SPECIFICATIONS[name]("quick")
        results = invented(replace(spec, settings=spec.settings[:6]) if name == "supplement" else spec)
        with drawing():
            pictures = save(REPRODUCTIONS[name].draw(results, 1), tmp_path)
        assert pictures
        for picture in pictures:
            png, svg = picture.paths
            assert width_of(png) > 800
            assert svg.read_text().startswith("<?xml")
            assert picture.caption

    def test_svg_files_are_the_same_in_every_run(self, tmp_path):
        results = invented(SPECIFICATIONS["rivals"]("quick"))
        written = []
        for folder in ("a", "b"):
            with drawing():
                (picture,) = save(REPRODUCTIONS["rivals"].draw(results, 0), tmp_path / folder)
            written.append(picture.paths[1].read_bytes())
        assert written[0] == written[1]

    def test_figure_2_shows_mean_and_band_of_one_standard_error_in_four_panels(self):
        results = invented(SPECIFICATIONS["figure2"]("quick"))
        with drawing():
            main, trace = REPRODUCTIONS["figure2"].draw(results, 0)
        assert [axes.get_title(loc="left")[:3] for axes in main.figure.axes] == ["(a)", "(b)", "(c)", "(d)"]
        assert [axes.get_yscale() for axes in main.figure.axes] == ["log", "linear", "log", "linear"]
        mean, error = results.curve("mismatched", "EPMV", "squared_error")
        panel = main.figure.axes[2]
        assert lines_of(panel)["EPMV"].get_ydata() == pytest.approx(mean)
        band = panel.collections[1].get_paths()[0].vertices[:, 1]
        assert band.max() == pytest.approx((mean + error).max())
        assert band.min() == pytest.approx((mean - error).min())
        assert len(trace.figure.axes) == 2
        legend = main.figure.legends[0]
        assert [text.get_text() for text in legend.get_texts()] == list(results.specification.labels)

    def test_lag_one_moves_the_curves_by_an_answer(self):
        results = invented(SPECIFICATIONS["rivals"]("quick"))
        with drawing():
            shown = [REPRODUCTIONS["rivals"].draw(results, lag)[0].figure.axes[0] for lag in (0, 1)]
        now, late = (lines_of(axes)["MCMV"].get_ydata() for axes in shown)
        assert late[1:] == pytest.approx(now[:-1])

    def test_the_dimensions_figure_shows_20_and_60_answers_for_three_noises(self):
        results = invented(SPECIFICATIONS["dimensions"]("quick"))
        with drawing():
            (drawn,) = REPRODUCTIONS["dimensions"].draw(results, 0)
        titles = [axes.get_title(loc="left") for axes in drawn.figure.axes]
        assert len(titles) == 6
        assert "matched decaying noise, 60 answers" in titles
        panel = drawn.figure.axes[titles.index("matched decaying noise, 60 answers")]
        container = next(c for c in panel.containers if c.get_label() == "Random")
        expected = [results.curve(f"d = {d}, decaying", "Random", "squared_error")[0][60] for d in (2, 4, 7, 12)]
        assert container.lines[0].get_ydata() == pytest.approx(expected)

    def test_the_speed_figure_has_seconds_along_and_error_up(self):
        results = invented(SPECIFICATIONS["speed"]("quick"))
        with drawing():
            (drawn,) = REPRODUCTIONS["speed"].draw(results, 0)
        line = lines_of(drawn.figure.axes[1])["EPMV 1e-4"]
        assert line.get_xdata() == pytest.approx(results.time("d = 7", "EPMV 1e-4")[1:])
        assert "one thread" in drawn.caption

    def test_any_specification_gets_a_figure_for_each_setting(self, tmp_path):
        record = {"name": "own", "data": "synthetic", "dimension": 2, "strategies": ["random"], "queries": 12}
        record["settings"] = [{"label": "a"}, {"label": "b", "truth": "noiseless"}]
        results = invented(read_record(record))
        pictures = draw_any(results, tmp_path)
        assert [picture.name for picture in pictures] == ["own-1", "own-2"]
        assert len(curves.draw_all(results)[0].figure.axes) == 2


class TestBounds:
    def results(self):
        spec = SPECIFICATIONS["bounds"]("quick")
        return invented(spec)

    def test_the_stopping_time_is_the_first_count_below_the_volume(self):
        results = self.results()
        label = results.specification.settings[0].label
        volume = results.trials(label, "EPMV", "posterior_volume")
        limits = paper.volume_thresholds(results, label)
        times = paper.stopping_times(results, label, limits)
        assert np.isfinite(times).all()
        for row, limit in enumerate(limits):
            for trial in range(4):
                first = next(i for i, value in enumerate(volume[trial]) if value < limit)
                assert times[row, trial] == results.counts[first]
        assert np.isnan(paper.stopping_times(results, label, np.array([1e-9]))).all()

    def test_simulation_lies_between_the_bounds(self):
        # EPMV in a space with little noise, d = 2 and k = 1000: six users are enough for a factor
        spec = replace(SPECIFICATIONS["bounds"]("quick"), queries=14, trials=6, samples=800)
        setting = spec.settings[0]
        spec = replace(spec, settings=(setting,), strategies=spec.strategies[:1])
        from pairseek.experiments import run_trial
        from pairseek.experiments.simulation import load_items

        space = load_items(spec)[0]
        results = Results.of(spec, {task: run_trial(spec, task, space) for task in tasks(spec)}, {})
        for volume in (1e-1, 1e-2, 1e-3):
            mean = paper.stopping_times(results, setting.label, np.array([volume])).mean()
            limits = ps.bounds.stopping_time_bounds(volume, 1e3, ps.UniformBox(-1, 1), 2)
            assert limits.lower <= mean <= limits.upper
        error = results.trials(setting.label, "EPMV", "squared_error")[:, 10].mean()
        assert error >= ps.bounds.mse_lower_bound(10, ps.UniformBox(-1, 1), 2) / 2


class TestFigure1:
    def test_planes_and_posterior_belong_to_the_search(self):
        shown = posterior.simulate_example(ps.datasets.synthetic(2, n=400).scaled(), answers=5)
        assert shown.normals.shape == (5, 2)
        assert shown.log_density.shape[0] == shown.estimates.shape[0] == 6
        # the mean of the density on the grid is the estimate of 4000 particles
        axis = np.linspace(-1, 1, shown.log_density.shape[1])
        weights = np.exp(shown.log_density[-1] - shown.log_density[-1].max())
        mean = [(weights * axis).sum() / weights.sum(), (weights * axis[:, None]).sum() / weights.sum()]
        assert mean == pytest.approx(shown.estimates[-1], abs=0.02)
        assert shown.correct.dtype == bool

    def test_it_is_drawn_and_moves(self, tmp_path, monkeypatch):
        monkeypatch.setattr(posterior, "ANSWERS", 3)
        shown = posterior.simulate_example(ps.datasets.synthetic(2, n=200).scaled(), answers=3)
        with drawing():
            (picture,) = save([posterior.draw_posterior(shown)], tmp_path)
            movie = posterior.animate(shown, tmp_path)
        assert width_of(picture.paths[0]) > 800
        # before the first answer and after each; Pillow merges frames that are alike
        with Image.open(movie.paths[0]) as image:
            assert image.n_frames >= 4


class Page(html.parser.HTMLParser):
    """Collector of all addresses in a page."""

    def __init__(self):
        super().__init__()
        self.sources = []

    def handle_starttag(self, tag, attributes):
        self.sources += [value for name, value in attributes if name in ("src", "href")]


def in_the_page(value, error, text):
    """Whether the text has a number with its error, both rounded to the error's second digit."""
    unit = 10.0 ** (math.floor(math.log10(error)) - 1)
    cells = re.findall(r"([+-]?[\d.]+) <span class=se>\(([\d.]+)\)</span>", text)
    return any(abs(float(a) - value) <= 0.51 * unit and abs(float(b) - error) <= 0.51 * unit for a, b in cells)


class TestReport:
    @pytest.fixture
    def page(self, tmp_path):
        results = invented(SPECIFICATIONS["figure2"]("quick"))
        with drawing():
            pictures = save(REPRODUCTIONS["figure2"].draw(results, 0), tmp_path / "figures")
        section = Section("Figure 2", pictures, results, REPRODUCTIONS["figure2"].notes, tmp_path)
        return write_report(tmp_path / "report.html", "The paper, reproduced", [section]).read_text(), results

    def test_it_is_self_contained(self, page):
        text, _ = page
        parsed = Page()
        parsed.feed(text)
        assert len(parsed.sources) == 2
        for source in parsed.sources:
            assert source.startswith("data:image/svg+xml;base64,")
            assert base64.b64decode(source.partition(",")[2]).startswith(b"<?xml")
        outside = re.sub(r'src="data:[^"]*"', "", text)
        assert "http" not in outside.replace("http-equiv", "")
        assert "<script" not in text

    def test_it_has_the_numbers_at_20_40_60_80(self, page):
        text, results = page
        for mark in (20, 40, 60, 80):
            assert f"<th>{mark} answers</th>" in text
        mean, error = results.curve("matched", "MCMV", "squared_error")
        assert in_the_page(mean[40], error[40], text)

    def test_it_has_paired_differences_and_says_what_ran_for_how_long(self, page):
        text, results = page
        paired = results.paired("matched", ("InfoGain", "Random"), "squared_error", 60)
        assert in_the_page(paired.difference, paired.standard_error, text)
        assert "1 h 2 min of wall time in 1 session, 2 processes, on &lt;fast&gt; chip (2 cores)" in text
        assert "80 trials of 80 answers: 4 users, 2 settings, 10 strategies" in text
        assert "about 10 s for one InfoGain query, so about 11 hours" in text
        assert "up to 97 s for one query (24,792 ambiguity tests" in text
        assert "name = &quot;figure2&quot;" in text

    def test_it_states_the_lag(self, tmp_path):
        text = write_report(tmp_path / "report.html", "x", [Section("empty")], lag=1).read_text()
        assert "Shown with a lag of 1" in text


class TestReproducing:
    def test_an_unknown_figure_is_refused(self):
        assert select_figures(["speed", "figure1"]) == ["figure1", "speed"]
        assert select_figures(["all"]) == list(REPRODUCTIONS)
        with pytest.raises(InvalidParameter) as caught:
            select_figures(["figur2"])
        assert caught.value.field == "figure"

    def test_options_change_the_specification(self):
        spec = specification_of(
            "figure2", ReproductionOptions(trials=3, seed=5, strategies=("Random", "EPMV"), data="synthetic")
        )
        assert (spec.trials, spec.seed, spec.labels) == (3, 5, ("EPMV", "Random"))
        assert spec.settings[0].data == "synthetic"
        assert specification_of("figure1", ReproductionOptions()) is None
        with pytest.raises(InvalidParameter):
            specification_of("figure2", ReproductionOptions(strategies=("Randon",)))
        for bad, message in (({"preset": "fast"}, "preset is 'fast'"), ({"data": "foo"}, "data is 'foo'")):
            with pytest.raises(InvalidParameter, match=message):
                ReproductionOptions(**bad)

    def test_the_triplet_error_is_drawn_from_published_figures_and_from_triplets(self, tmp_path, monkeypatch):
        module = sys.modules["pairseek.experiments.reproduction"]
        monkeypatch.setattr(module, "food10k", lambda d: ps.datasets.synthetic(d, n=50))
        rows = np.random.default_rng(0).permuted(np.tile(np.arange(50), (40, 1)), axis=1)[:, :3]
        np.savetxt(tmp_path / "triplets.csv", rows, fmt="%d", delimiter=",")
        section = reproduce("triplet-error", tmp_path / "out", ReproductionOptions(triplets=tmp_path / "triplets.csv"))
        assert "your triplets" not in section.pictures[0].caption
        measured = module._measure_triplet_errors(tmp_path / "triplets.csv")
        assert measured[4] == ps.metrics.triplet_error(ps.datasets.synthetic(4, n=50), rows)
        (tmp_path / "triplets.csv").write_text("a,b,c\n")
        with pytest.raises(InvalidParameter, match="give three whole numbers per line, anchor,near,far"):
            module._measure_triplet_errors(tmp_path / "triplets.csv")

    def test_all_of_figure_2_runs_on_a_stand_in(self, tmp_path):
        spec = with_data(SPECIFICATIONS["figure2"]("quick"), "synthetic")
        assert {setting.data for setting in spec.settings} == {"synthetic"}
        options = ReproductionOptions(data="synthetic", trials=1, strategies=("Random",), jobs=1)
        section = reproduce("figure2", tmp_path / "figure2", options)
        assert (tmp_path / "figure2" / "table.csv").exists()
        assert (tmp_path / "figure2" / "figures" / "figure2.png").exists()
        assert any("synthetic" in note for note in section.notes)


class TestPlanning:
    def test_it_counts_the_questions_until_the_radius_is_small_enough(self, tmp_path):
        items = ps.Items(np.random.default_rng(0).uniform(-1, 1, (40, 2)))
        question = PlanningInputs(k=8.0, target=0.6, strategies=("infogain", "random"), questions=12, users=6)
        planned = plan(items, question, tmp_path / "plan")
        for need in planned.required_answers:
            radius = planned.results.trials("plan", need.strategy, "credible_radius")
            firsts = sorted(next((i for i, r in enumerate(row) if r < 0.6), 99) for row in radius)
            assert need.half == (firsts[2] if firsts[2] < 99 else None)
            assert need.nine_in_ten == (firsts[5] if firsts[5] < 99 else None)
            assert need.reached == np.mean(np.array(firsts) < 99)
        assert planned.required_answers[0].half is not None
        # Theorem 3.2 turned around, by hand: d 2^(2(h0 - i)/d)/(2πe) <= 2 σ², σ² = 0.36/5.991
        prior = ps.Search(items).prior
        bound = prior.entropy_bits(2) - np.log2(2 * np.pi * np.e * 0.36 / 5.991464547107979)
        assert planned.lower_bound == max(0, int(np.ceil(bound)))
        assert planned.lower_bound <= planned.required_answers[0].half
        # Theorem 3.4 assumes a uniform prior.
        assert planned.upper_bound is None
        record = planned.record()
        assert record["target_radius"] == 0.6
        assert [entry["strategy"] for entry in record["strategies"]] == ["InfoGain", "Random"]
        assert Path(tmp_path / "plan" / "table.csv").exists()

    def test_the_default_target_is_half_the_first_radius(self, tmp_path):
        items = ps.Items(np.random.default_rng(0).uniform(-1, 1, (20, 2)))
        planned = plan(items, PlanningInputs(strategies=("random",), questions=2, users=2), tmp_path / "plan")
        assert planned.target == pytest.approx(planned.required_answers[0].radius[0] / 2)
        assert planned.required_answers[0].half is None
        assert planned.response.k == pytest.approx(ps.Search(items, response=ps.Logistic(), rng=0).response.k)

    def test_a_bad_target_is_named(self):
        with refused("target"):
            PlanningInputs(target=-1.0)
