"""Reproduction of the paper's figures by name: their simulations and drawings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from pairseek.core.validation import one_of
from pairseek.datasets import food10k, food10k_dimensions, synthetic
from pairseek.errors import InvalidFile, InvalidParameter
from pairseek.experiments import paper
from pairseek.experiments.common_trials import outcomes_of_shared_trials
from pairseek.experiments.figure_style import NamedFigure, SavedFigure, drawing, require_drawing, save
from pairseek.experiments.figures import curves, posterior
from pairseek.experiments.figures.curves import Panel, draw_panels
from pairseek.experiments.figures.paper import draw_bounds, draw_dimensions, draw_speed, draw_triplet_error
from pairseek.experiments.paper import PRESETS, SPECIFICATIONS, Preset
from pairseek.experiments.report import Section
from pairseek.experiments.results import Results, TableFormat
from pairseek.experiments.runs.journal import JOURNAL_FILE
from pairseek.experiments.runs.plan import Outcome, RunStatus, Task
from pairseek.experiments.simulation import load_items, run
from pairseek.experiments.specification import Specification
from pairseek.model.metrics import triplet_error
from pairseek.model.noise import PUBLISHED_NOISES

DATA_NAMES = ("food10k", "synthetic")
DrawFigures: TypeAlias = Callable[[Results, int], list[NamedFigure]]
"""Function that draws the results with a lag."""


@dataclass(frozen=True)
class ReproductionOptions:
    """Options of a reproduction.

    Parameters
    ----------
    preset
        ``"quick"`` or ``"paper"``.
    data
        ``"food10k"``, or ``"synthetic"`` for a stand-in of the same shape.
    trials, seed, strategies
        Replacements for the values of the preset; strategies are given by label.
    lag
        Number of answers by which figures shift the estimates; the authors' program has a lag of 1.
    triplets
        CSV file of triplets (anchor, near, far; item rows counted from 0), for the triplet error.
    jobs, scheduler, table
        As in `run`.
    finished
        Whether to run no trials, and draw only the finished ones in the folder.

    Examples
    --------
    >>> from pairseek.experiments import ReproductionOptions
    >>> options = ReproductionOptions(data="synthetic", trials=2)
    >>> options.preset, options.jobs
    ('quick', 1)
    """

    preset: Preset = "quick"
    data: str = "food10k"
    trials: int | None = None
    seed: int | None = None
    strategies: tuple[str, ...] = ()
    lag: int = 0
    triplets: Path | None = None
    jobs: int = 1
    scheduler: str | None = None
    table: TableFormat = "csv"
    finished: bool = False

    def __post_init__(self) -> None:
        one_of(self.preset, "preset", PRESETS)
        one_of(self.data, "data", DATA_NAMES)


@dataclass(frozen=True)
class Reproduction:
    """A figure of the paper.

    Attributes
    ----------
    title
        Title of its section in the report.
    draw
        Function that draws the results with a lag; None if the figure needs no trials.
    notes
        Paragraphs of the report.
    """

    title: str
    draw: DrawFigures | None = None
    notes: tuple[str, ...] = ()


def _draw_figure2(results: Results, lag: int) -> list[NamedFigure]:
    trials = results.specification.trials
    titles = {"matched": "matched logistic noise", "mismatched": "mismatched Gaussian noise"}
    panels = [
        Panel(setting, metric, f"({letter}) {metric_title}: {titles[setting]}")
        for letter, (setting, metric, metric_title) in zip(
            "abcd",
            [(s, m, w) for s in titles for m, w in (("squared_error", "error"), ("kendall_tau", "ranking"))],
            strict=True,
        )
    ]
    main = draw_panels(
        results,
        panels,
        name="figure2",
        caption=f"Figure 2: {results.counts[-1]} answers, d = 4, {trials} users per strategy, with one standard error.",
        lag=lag,
    )
    trace = draw_panels(
        results,
        [Panel(setting, "posterior_trace", f"posterior trace: {words}") for setting, words in titles.items()],
        name="figure2-trace",
        caption=(
            "Trace of the posterior covariance. With a matched model it is the expected squared error of the "
            "posterior mean, and scatters far less than the error itself. GaussCloud and ActRank have no posterior."
        ),
        lag=lag,
    )
    return [main, trace]


def _draw_supplement(results: Results, lag: int) -> list[NamedFigure]:
    figures = []
    for d in dict.fromkeys(setting.dimension for setting in results.specification.settings):
        settings = [setting for setting in results.specification.settings if setting.dimension == d]
        panels = [Panel(s.label, "squared_error", s.label.partition(", ")[2]) for s in settings]
        caption = f"Mean squared error, d = {d}, {results.specification.trials} users per strategy, one standard error."
        figures.append(draw_panels(results, panels, name=f"supplement-d{d}", caption=caption, columns=3, lag=lag))
    return figures


def _draw_error_and_trace(name: str, setting: str, caption: str) -> DrawFigures:
    """Return the function that draws estimation error and posterior trace; the caption may name the number of users."""

    def draw(results: Results, lag: int) -> list[NamedFigure]:
        metrics = {"squared_error": "estimation error", "posterior_trace": "posterior trace"}
        panels = [Panel(setting, metric, title) for metric, title in metrics.items()]
        text = caption.format(users=results.specification.trials)
        return [draw_panels(results, panels, name=name, caption=text, lag=lag)]

    return draw


def _draw_fitted(results: Results, lag: int) -> list[NamedFigure]:
    panels = [Panel(s.label, "squared_error", s.label) for s in results.specification.settings]
    caption = (
        f"Panels of the supplement whose published constant never left its starting point, with a fitted constant; "
        f"{results.specification.trials} users per strategy, one standard error."
    )
    return [draw_panels(results, panels, name="fitted", caption=caption, columns=3, lag=lag)]


_AUTHORS_TIME_NOTE = (
    "For scale: the authors' program needs about 10 s for one InfoGain query, so about 11 hours for an InfoGain curve "
    "over 50 trials of 80 queries. Its ActRank-1 needs up to 97 s for one query (24,792 ambiguity tests of three "
    "linear programs each)."
)

_AUTHORS_SPEED_NOTE = (
    "The authors' program, measured on a machine with two cores at d = 4, rate 1e-3, 4000 samples and 60 answers: "
    "9.96 s per query for InfoGain, 4.76 s for EPMV and 1.69 s for MCMV."
)

REPRODUCTIONS: dict[str, Reproduction] = {
    "figure1": Reproduction("Figure 1: planes, posterior and user point in two dimensions, and an animation"),
    "figure2": Reproduction(
        "Figure 2: MSE and Kendall tau distance, matched and mismatched, d = 4", _draw_figure2, (_AUTHORS_TIME_NOTE,)
    ),
    # Comes before the figures that share trials with it.
    "supplement": Reproduction("MSE for d = 3, 5, 7, 9, 12, three noises, matched and mismatched", _draw_supplement),
    "dimensions": Reproduction(
        "MSE against dimension at 20 and 60 answers, three noises",
        lambda results, lag: [draw_dimensions(results, noises=PUBLISHED_NOISES, answers=(20, 60), lag=lag)],
    ),
    "triplet-error": Reproduction("Triplet error against dimension"),
    "speed": Reproduction(
        "MSE against compute time, d = 4, 7, 12, three candidate rates and all pairs",
        lambda results, lag: [draw_speed(results, lag=lag)],
        (_AUTHORS_SPEED_NOTE,),
    ),
    "bounds": Reproduction(
        "Simulation against the bounds: EPMV's stopping time, least MSE",
        lambda results, lag: [draw_bounds(results, lag=lag)],
    ),
    "rivals": Reproduction(
        "GreedyMSE, GreedyVolume and GaussSearch against the paper's strategies",
        _draw_error_and_trace(
            "rivals",
            "matched",
            "The strategies that the paper rejects as too costly, and GaussSearch (Chumbalov and others, 2020), "
            "against the paper's strategies: d = 4, matched normalized noise.",
        ),
    ),
    "particles": Reproduction(
        "EP and 4000 particles: panel (a) of Figure 2 with both posteriors",
        _draw_error_and_trace(
            "particles",
            "matched",
            f"EP and {paper.AUTHORS_SAMPLES} particles with the same {{users}} users: d = 4, matched normalized noise, "
            "one standard error.",
        ),
    ),
    "epmv-samples": Reproduction(
        "EPMV with a table and with 4000 samples, mismatched",
        _draw_error_and_trace(
            "epmv-samples",
            "mismatched",
            f"EPMV with probabilities from a table, and averaged over {paper.AUTHORS_SAMPLES} posterior samples for "
            "every candidate as in the authors' program; the same {users} users, mismatched noise, d = 4.",
        ),
    ),
    "fitted": Reproduction("Panels of the supplement with a fitted noise constant", _draw_fitted),
}
"""The figures of the paper that `reproduce` draws, by name.

Examples
--------
>>> from pairseek.experiments import REPRODUCTIONS
>>> list(REPRODUCTIONS)[:3]
['figure1', 'figure2', 'supplement']
>>> REPRODUCTIONS["triplet-error"].title
'Triplet error against dimension'
"""


def select_figures(names: list[str]) -> list[str]:
    """Return the requested figures in the order of `REPRODUCTIONS`; ``all`` selects every figure."""
    for name in names:
        one_of(name, "figure", (*REPRODUCTIONS, "all"))
    selected = set(REPRODUCTIONS) if "all" in names else set(names)
    return [name for name in REPRODUCTIONS if name in selected]


def specification_of(name: str, options: ReproductionOptions) -> Specification | None:
    """Return the specification of a figure; None if it needs no trials."""
    if name not in paper.SPECIFICATIONS:
        return None
    specification = paper.with_data(paper.SPECIFICATIONS[name](options.preset), options.data)
    if options.strategies:
        for label in options.strategies:
            one_of(label, f"strategies of {name}", specification.labels)
        strategies = tuple(c for c in specification.strategies if c.label in options.strategies)
        specification = replace(specification, strategies=strategies)
    replacements = {key: value for key in ("trials", "seed") if (value := getattr(options, key)) is not None}
    return replace(specification, **replacements)


def require_data(names: Sequence[str], options: ReproductionOptions) -> None:
    """Load the items of these figures, so that missing data is reported before compilation and simulation."""
    for name in names:
        specification = specification_of(name, options)
        if specification is not None and not options.finished:
            load_items(specification)
        elif name == "figure1" and options.data == "food10k":
            food10k(2)
        elif name == "triplet-error" and options.triplets is not None:
            for d in food10k_dimensions():
                food10k(d)


def reproduce(
    name: str, folder: Path, options: ReproductionOptions, *, progress: Callable[[RunStatus], None] | None = None
) -> Section:
    """Run the trials of a figure, draw it, and return its section of the report.

    Parameters
    ----------
    name
        Name of the figure, one of `REPRODUCTIONS`.
    folder
        Folder of the results and figures.
    options
        Options of the reproduction.
    progress
        Called at the start and after every trial.

    Examples
    --------
    The triplet error needs no simulation: it is drawn from the published numbers.

    >>> from pathlib import Path
    >>> from pairseek.experiments import ReproductionOptions, reproduce
    >>> section = reproduce("triplet-error", Path("triplet-error"), ReproductionOptions())
    >>> sorted(path.name for path in Path("triplet-error/figures").iterdir())
    ['triplet-error.png', 'triplet-error.svg']
    """
    require_drawing()
    reproduction = REPRODUCTIONS[one_of(name, "figure", REPRODUCTIONS)]
    specification = specification_of(name, options)
    if specification is None:
        with drawing():
            if name == "figure1":
                pictures = _draw_figure1(folder, options)
            else:
                measured = None if options.triplets is None else _measure_triplet_errors(options.triplets)
                pictures = save([draw_triplet_error(measured)], folder / "figures")
        return Section(reproduction.title, pictures, None, reproduction.notes, folder)
    notes = reproduction.notes
    if options.finished:
        try:
            results = Results.read(folder, finished=True)
        except InvalidFile as error:
            return Section(reproduction.title, (), None, (f"Not run yet: {error}.",), folder)
        if results.specification.trials < specification.trials:
            users = f"{results.specification.trials} of {specification.trials} users"
            notes = (*notes, f"Not finished: figures and numbers are for {users}.")
    else:
        results = run(
            specification,
            folder,
            jobs=options.jobs,
            scheduler=options.scheduler,
            table=options.table,
            progress=progress,
            known=_shared_outcomes(name, specification, folder.parent, options),
        )
    if options.data == "synthetic":
        notes = (
            *notes,
            "With synthetic items of Food-10k's shape, as requested: these are not the paper's figures.",
        )
    assert reproduction.draw is not None
    with drawing():
        pictures = save(reproduction.draw(results, options.lag), folder / "figures")
    return Section(reproduction.title, pictures, results, notes, folder)


def _shared_outcomes(
    name: str, specification: Specification, folder: Path, options: ReproductionOptions
) -> dict[Task, Outcome]:
    """Return the outcomes of a figure's trials that the folders of other figures already hold."""
    outcomes: dict[Task, Outcome] = {}
    for other in SPECIFICATIONS:
        other_specification = specification_of(other, replace(options, strategies=())) if other != name else None
        if other_specification is not None and (folder / other / JOURNAL_FILE).exists():
            outcomes |= outcomes_of_shared_trials(specification, other_specification, folder / other)
    return outcomes


def draw_any(results: Results, folder: Path, *, lag: int = 0) -> list[SavedFigure]:
    """Draw a figure for each setting of any specification."""
    with drawing():
        return save(curves.draw_all(results, lag=lag), folder / "figures")


def _draw_figure1(folder: Path, options: ReproductionOptions) -> list[SavedFigure]:
    items = (food10k(2) if options.data == "food10k" else synthetic(2)).scaled()
    example = posterior.simulate_example(items)
    figures = folder / "figures"
    return [*save([posterior.draw_posterior(example)], figures), posterior.animate(example, figures)]


def _measure_triplet_errors(path: Path) -> dict[int, float]:
    try:
        rows = np.loadtxt(path, delimiter=",", dtype=np.int64, comments="#", ndmin=2)
    except (OSError, ValueError) as error:
        raise InvalidParameter(
            f"the triplets in {path} cannot be read ({error}): give three whole numbers per line, anchor,near,far, "
            f"with item rows counted from 0"
        ) from None
    return {d: triplet_error(food10k(d), rows) for d in food10k_dimensions()}
