"""EP and Particles against Stan: ten posteriors of the paper's setting.

The moments by Stan are part of the shared data. Without them the same test runs on synthetic items of the same ten
shapes, against another sampler: Metropolis, one coordinate at a time, in plain numpy, which shares nothing with ours.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from conftest import shared_folder
from helpers.reference import naive_log_posterior, quadrature_moments
from helpers.situations import answers_from, evidence_of, first_of, last_belief
from pairseek.model.items import Items
from pairseek.model.responses import Logistic
from pairseek.posteriors import EP, Particles

SHAPES = [
    (2, "normalized", 2.165, 1),
    (2, "constant", 0.919, 15),
    (4, "normalized", 1.564, 20),
    (4, "normalized", 1.564, 80),
    (4, "constant", 0.28, 40),
    (4, "decaying", 9.706, 60),
    (7, "normalized", 1.022, 50),
    (12, "normalized", 0.608, 30),
    (12, "normalized", 0.608, 80),
    (12, "decaying", 66.32, 60),
]
"""Dimensions, noise, k and answers of the ten cases."""


def metropolis(log_density, d, *, rng, chains=400, sweeps=300):
    """Return samples of a density on [-1, 1]^d from many chains that propose each coordinate uniformly in turn."""
    at = rng.uniform(-1, 1, size=(chains, d))
    logs = log_density(at)
    kept = []
    for sweep in range(sweeps):
        for i in rng.permutation(d):
            there = at.copy()
            there[:, i] = rng.uniform(-1, 1, size=chains)
            new = log_density(there)
            go = np.log(rng.random(chains)) < new - logs
            at[go], logs[go] = there[go], new[go]
        if sweep >= sweeps // 5:
            kept.append(at.copy())
    return np.concatenate(kept)


@lru_cache(maxsize=16)
def synthetic(index):
    """Return answers of a shape, and the moments by Metropolis sampling."""
    d, noise, k, count = SHAPES[index]
    rng = np.random.default_rng(index)
    response = Logistic(k, noise)
    answers = answers_from(rng, rng.uniform(-1, 1, size=d).tolist(), count, response)
    winners, losers = (
        np.array([(p, q) if outcome == "first" else (q, p) for p, q, outcome in answers])[:, side] for side in (0, 1)
    )
    # Equivalent to `naive_log_posterior`, which would take minutes for all chains.
    length = 2 * np.linalg.norm(winners - losers, axis=1)
    constant = {"constant": k + 0 * length, "normalized": k / length, "decaying": k * np.exp(-length)}[noise]

    def log_density(points):
        gap = 2 * points @ (winners - losers).T - (winners**2).sum(axis=1) + (losers**2).sum(axis=1)
        return -np.logaddexp(0.0, -constant * gap).sum(axis=1)

    some = rng.uniform(-1, 1, size=(3, d))
    assert log_density(some) == pytest.approx(naive_log_posterior(some, answers, k, noise, "logistic"), abs=1e-9)
    samples = metropolis(log_density, d, rng=rng)
    return response, evidence_of(response, answers), samples.mean(axis=0), np.cov(samples.T)


@lru_cache(maxsize=16)
def by_stan(folder: Path, index):
    case = json.loads((folder / "reference" / "stan-posteriors.json").read_text())["cases"][index]
    points = Items(np.load(folder / "data" / "food10k" / f"items-d{case['d']:02d}.npy")).scaled().coordinates
    response = Logistic(case["k"], case["noise"])
    answers = [
        (points[i], points[j], "first" if won else "second")
        for i, j, won in zip(case["first"], case["second"], case["first_preferred"], strict=True)
    ]
    return response, evidence_of(response, answers), np.array(case["mean"]), np.array(case["covariance"])


def assert_agrees(belief, mean, covariance, *, deviations, share):
    """Check means to a tolerance in posterior standard deviations, and covariances in relative Frobenius norm."""
    assert np.max(np.abs(belief.mean - mean) / np.sqrt(np.diag(covariance))) < deviations
    assert np.linalg.norm(belief.covariance - covariance) < share * np.linalg.norm(covariance)


# EP is deterministic, so its figures do not depend on the seed; particles are allowed four times their noise.
WITHIN = {"ep": (EP(), 0.03, 0.04)} | {f"particles {seed}": (Particles(4000, seed=seed), 0.08, 0.10) for seed in (1, 2)}


@pytest.mark.parametrize("name", WITHIN)
@pytest.mark.parametrize("index", range(10))
def test_posteriors_agree_with_stan_or_where_its_figures_are_missing_with_metropolis(index, name):
    folder = shared_folder()
    response, evidence, mean, covariance = by_stan(folder, index) if folder else synthetic(index)
    posterior, deviations, share = WITHIN[name]
    if folder is None:
        # Metropolis itself has about 2000 independent samples, which adds as much noise again.
        deviations, share = max(deviations, 0.08), max(share, 0.10)
    assert_agrees(last_belief(posterior, response, evidence), mean, covariance, deviations=deviations, share=share)


@pytest.mark.parametrize("posterior", [EP(), Particles(4000)], ids=lambda posterior: posterior.name)
@pytest.mark.parametrize("index", [1, 5])
def test_posteriors_agree_with_metropolis_on_synthetic_items(index, posterior):
    response, evidence, mean, covariance = synthetic(index)
    assert_agrees(last_belief(posterior, response, evidence), mean, covariance, deviations=0.08, share=0.10)


def test_metropolis_agrees_with_quadrature():
    rng = np.random.default_rng(0)
    response = Logistic(2.0)
    answers = answers_from(rng, [0.3, -0.2], 10, response)

    def log_density(points):
        return naive_log_posterior(points, answers, 2.0, "normalized", "logistic")

    samples = metropolis(log_density, 2, rng=rng)
    mean, covariance = quadrature_moments(log_density, [-1, -1], [1, 1])
    # About 10 sweeps of autocorrelation: 10,000 independent samples, four standard errors.
    assert np.max(np.abs(samples.mean(axis=0) - mean) / np.sqrt(np.diag(covariance))) < 0.05
    assert np.linalg.norm(np.cov(samples.T) - covariance) < 0.06 * np.linalg.norm(covariance)


def test_the_tolerances_can_be_missed():
    """The check has power: it detects that the last answer is missing."""
    response, evidence, mean, covariance = synthetic(1)
    before = last_belief(EP(), response, first_of(evidence, len(evidence.offsets) - 1))
    with pytest.raises(AssertionError):
        assert_agrees(before, mean, covariance, deviations=0.08, share=0.10)
