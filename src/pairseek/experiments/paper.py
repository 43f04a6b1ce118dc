"""Experiments of the paper as named specifications.

Items are Food-10k, centred and scaled by the paper's rule. Users are uniform on [-1, 1]^d, which is also the prior.
Candidates are a thousandth of all pairs, drawn anew for each query and including pairs asked before (algorithm 1).
Constants are as published. The paper says that Q takes "several" values; here GaussCloud has 1, 2 and 4 stages, and
ActRank has the 1, 3 and 5 votes that the authors' program offers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, TypeAlias

from pairseek.experiments.sampled_epmv import SampledEPMV
from pairseek.experiments.specification import Contender, ResponseSpec, Setting, Specification, Truth
from pairseek.model.noise import PUBLISHED_NOISES, Noise
from pairseek.pairs.strategies import EPMV, MCMV, GreedyMSE, GreedyVolume, InfoGain, Random
from pairseek.pairs.strategies.baselines import ActRank, GaussCloud, GaussSearch
from pairseek.posteriors import Particles

Preset: TypeAlias = Literal["quick", "paper"]
PRESETS: tuple[Preset, ...] = ("quick", "paper")
DIMENSIONS = {"quick": (2, 4, 7, 12), "paper": (2, 3, 4, 5, 6, 7, 9, 12)}
SUPPLEMENT_DIMENSIONS = (3, 5, 7, 9, 12)
SPEED_DIMENSIONS = (4, 7, 12)
AUTHORS_SAMPLES = 4000
"""Number of posterior samples in the authors' program."""
# Noise constants that `fit_noise` estimates from triplets simulated with the likeliest published model; see
# benchmarks/constants.py.
FITTED_LOGISTIC = {7: 0.09808, 12: 0.03209}
"""Constants of the logistic response, by dimension."""
FITTED_GAUSSIAN_3 = 0.27583
"""Constant of the Gaussian response in three dimensions."""
SAMPLING_RATES = {"1e-3": 1e-3, "1e-3.5": 10**-3.5, "1e-4": 1e-4}

PAPER_STRATEGIES = (Contender(InfoGain()), Contender(EPMV()), Contender(MCMV()), Contender(Random()))


def _baselines(
    queries: int, stages: tuple[int, ...] = (1, 2, 4), votes: tuple[int, ...] = (1, 3, 5)
) -> tuple[Contender, ...]:
    clouds = tuple(Contender(GaussCloud(count, queries)) for count in stages)
    return clouds + tuple(Contender(ActRank(count)) for count in votes)


def _setting(label: str, d: int, noise: Noise, truth: Truth = "matched") -> Setting:
    return Setting(label, "food10k", d, response=ResponseSpec("logistic", noise, "published"), truth=truth)


GAUSSIAN_BEST = ResponseSpec("probit", "best", "published")


def figure2(preset: Preset) -> Specification:
    """Return figure 2: d = 4, with normalized matched noise, and with Gaussian users and a decaying logistic model."""
    return Specification(
        name="figure2",
        title="Figure 2: estimation error and ranking, d = 4",
        settings=(
            _setting("matched", 4, "normalized"),
            _setting("mismatched", 4, "decaying", ResponseSpec("probit", "normalized", "published")),
        ),
        strategies=PAPER_STRATEGIES + _baselines(80),
        metrics=("squared_error", "kendall_tau", "posterior_trace"),
        trials=50 if preset == "paper" else 12,
        repeats=True,
        procedure_posterior=False,
    )


def dimensions(preset: Preset) -> Specification:
    """Return the supplement's figure of MSE against dimension at 20 and 60 answers, for three noises."""
    return Specification(
        name="dimensions",
        title="MSE against dimension",
        settings=tuple(
            _setting(f"d = {d}, {noise}", d, noise) for d in DIMENSIONS[preset] for noise in PUBLISHED_NOISES
        ),
        strategies=PAPER_STRATEGIES + (_baselines(60) if preset == "paper" else _baselines(60, (2,), (3,))),
        queries=60,
        trials=50 if preset == "paper" else 6,
        repeats=True,
        procedure_posterior=False,
    )


def speed(preset: Preset) -> Specification:
    """Return the supplement's figure of MSE against compute time, for three dimensions, three rates and all pairs."""
    return Specification(
        name="speed",
        title="MSE against compute time",
        settings=tuple(_setting(f"d = {d}", d, "normalized") for d in SPEED_DIMENSIONS),
        strategies=tuple(
            Contender(strategy, f"{label} {name}", rate)
            for label, strategy in (("InfoGain", InfoGain()), ("EPMV", EPMV()), ("MCMV", MCMV()))
            for name, rate in (*SAMPLING_RATES.items(), ("all", None))
        ),
        queries=60,
        rate=None,
        trials=40 if preset == "paper" else 5,
        repeats=True,
        metrics=("squared_error",),
    )


def supplement(preset: Preset) -> Specification:
    """Return the supplement's figures of MSE: five dimensions, three noises, matched or likeliest Gaussian noise."""
    truths: tuple[tuple[str, Truth], ...] = (("matched", "matched"), ("mismatched", GAUSSIAN_BEST))
    return Specification(
        name="supplement",
        title="MSE in 3 to 12 dimensions",
        settings=tuple(
            _setting(f"d = {d}, {noise}, {truth_label}", d, noise, truth)
            for d in SUPPLEMENT_DIMENSIONS
            for truth_label, truth in truths
            for noise in PUBLISHED_NOISES
        ),
        strategies=PAPER_STRATEGIES + (_baselines(80) if preset == "paper" else _baselines(80, (2,), (3,))),
        trials=50 if preset == "paper" else 3,
        repeats=True,
        procedure_posterior=False,
    )


def bounds(preset: Preset) -> Specification:
    """Return a test of the paper's bounds: EPMV in a continuous space with little noise."""
    return Specification(
        name="bounds",
        title="Simulation against the bounds",
        settings=tuple(
            Setting(f"d = {d}, k = {name}", "space", d, response=ResponseSpec("logistic", "normalized", k))
            for d in (2, 4)
            for name, k in (("1000", 1e3), ("100,000", 1e5))
        ),
        strategies=(Contender(EPMV()), Contender(Random())),
        queries=40,
        rate=None,
        trials=50 if preset == "paper" else 10,
        repeats=True,
        metrics=("squared_error", "posterior_volume"),
    )


def rivals(preset: Preset) -> Specification:
    """Return a comparison with the strategies that the paper rejects as too costly, and with GaussSearch."""
    # The logistic f(kh) is best approximated by Φ(h/σ) with σ = 1.702/k.
    noise = 1.702 / 1.5636842555329606
    return Specification(
        name="rivals",
        title="GreedyMSE, GreedyVolume and GaussSearch against the paper's strategies, d = 4",
        settings=(_setting("matched", 4, "normalized"),),
        strategies=(
            *PAPER_STRATEGIES,
            Contender(GreedyMSE()),
            Contender(GreedyVolume()),
            Contender(GaussSearch(noise=noise)),
        ),
        metrics=("squared_error", "kendall_tau", "posterior_trace"),
        trials=50 if preset == "paper" else 10,
        repeats=True,
    )


def particles(preset: Preset) -> Specification:
    """Return panel (a) of figure 2 with `EP` and with 4000 particles, for the same users."""
    return Specification(
        name="particles",
        title="EP and particles, d = 4",
        settings=(_setting("matched", 4, "normalized"),),
        strategies=(
            *PAPER_STRATEGIES,
            *(
                Contender(contender.strategy, f"{contender.label} particles", posterior=Particles(AUTHORS_SAMPLES))
                for contender in PAPER_STRATEGIES
            ),
        ),
        trials=50 if preset == "paper" else 6,
        repeats=True,
    )


def epmv_samples(preset: Preset) -> Specification:
    """Return tabulated and sampled EPMV in the mismatched setting of figure 2, for the same users."""
    return Specification(
        name="epmv-samples",
        title="Tabulated and sampled EPMV, mismatched, d = 4",
        settings=(figure2(preset).settings[1],),
        strategies=(
            Contender(EPMV(), "EPMV"),
            Contender(EPMV(), "EPMV particles", posterior=Particles(AUTHORS_SAMPLES)),
            Contender(SampledEPMV(), "EPMV samples", posterior=Particles(AUTHORS_SAMPLES)),
        ),
        trials=100 if preset == "paper" else 4,
        repeats=True,
    )


def fitted(preset: Preset) -> Specification:
    """Return the supplement's panels whose published constant is just the optimiser's start, with a fitted constant."""
    settings = [
        replace(
            _setting(f"d = {d}, constant, matched", d, "constant"), response=ResponseSpec("logistic", "constant", k)
        )
        for d, k in FITTED_LOGISTIC.items()
    ]
    for noise in PUBLISHED_NOISES:
        truth = ResponseSpec("probit", "constant", FITTED_GAUSSIAN_3)
        settings.append(_setting(f"d = 3, {noise}, mismatched", 3, noise, truth))
    return Specification(
        name="fitted",
        title="Panels with a fitted noise constant",
        settings=tuple(settings),
        strategies=PAPER_STRATEGIES + (_baselines(80) if preset == "paper" else _baselines(80, (2,), (3,))),
        trials=50 if preset == "paper" else 3,
        repeats=True,
        procedure_posterior=False,
    )


SPECIFICATIONS: dict[str, Callable[[Preset], Specification]] = {
    "figure2": figure2,
    "dimensions": dimensions,
    "speed": speed,
    "supplement": supplement,
    "bounds": bounds,
    "rivals": rivals,
    "particles": particles,
    "epmv-samples": epmv_samples,
    "fitted": fitted,
}
"""The experiments of the paper by name: functions from a preset, ``"quick"`` or ``"paper"``, to a `Specification`.

Examples
--------
>>> from pairseek.experiments import SPECIFICATIONS
>>> specification = SPECIFICATIONS["figure2"]("paper")
>>> specification.trials, specification.queries
(50, 80)
>>> [setting.label for setting in specification.settings]
['matched', 'mismatched']
"""


def with_data(specification: Specification, data: str) -> Specification:
    """Replace Food-10k with other data of the same shape."""
    settings = tuple(
        replace(setting, data=data) if setting.data == "food10k" else setting for setting in specification.settings
    )
    return replace(specification, settings=settings)
