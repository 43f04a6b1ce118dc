"""Certificates of `AllPairs` in the hardest cases: uncertain k and lapse, and items that nearly coincide."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import entr, expit, ndtr
from test_all_pairs import STRATEGIES, listed, random_scene, rng_of, scene_of, tolerance

from pairseek.model.noise import NOISES
from pairseek.numerics.mixtures import TABLE_NAMES, table
from pairseek.numerics.tables import S_MAX, look_up
from pairseek.pairs.sources import AllPairs
from pairseek.pairs.sources.branch_and_bound import search as _branch
from pairseek.pairs.sources.branch_and_bound import tree as _tree
from pairseek.pairs.sources.branch_and_bound.bounds import bound_pairs
from pairseek.pairs.sources.branch_and_bound.view import CatalogueView
from pairseek.pairs.strategies import EPMV


@pytest.fixture
def small_cells(monkeypatch):
    """Use tiny cells and short rounds, so that small catalogues also have deep trees and long searches."""
    monkeypatch.setattr(_tree, "MAX_LEAF_ITEMS", 4)
    monkeypatch.setattr(_branch, "_ROUND", 16)
    monkeypatch.setattr(_branch, "_FIRST_ROUND", 3)


def uncertain(scene, spread, lapse):
    """Return the context with this standard deviation of log k and this mean lapse."""
    # Of the reliability, tables only use the spread.
    belief = replace(scene.belief, reliability=SimpleNamespace(spread=spread))
    return replace(scene, belief=belief, response=replace(scene.response, lapse=lapse))


def at(values, m, s):
    out = np.empty(len(m))
    look_up(0, len(m), values, m, s, out)
    return out


@pytest.mark.parametrize("link", [0, 1])
@pytest.mark.parametrize("spread", [0.4, 1.3, 2.0])
@pytest.mark.parametrize("lapse", [0.0, 0.13])
def test_tables_of_an_unknown_k_and_lapse_are_monotone(link, spread, lapse):
    rng = rng_of(link, int(10 * spread), int(100 * lapse))
    m, s = 10.0 ** rng.uniform(-6, 5, size=(2, 20_000))
    s[:200] = S_MAX * (1 + 1e-3 * rng.standard_normal(200))
    more_m, more_s = (x * (1 + 10.0 ** rng.uniform(-9, 1, size=len(x))) for x in (m, s))
    for name in TABLE_NAMES:
        sign = 1.0 if name in ("information", "explained") else -1.0
        values = table(link, name, spread, lapse)
        here, nearer, wider = (sign * at(values, *x) for x in ((more_m, s), (m, s), (more_m, more_s)))
        # Rounding of the interpolation, which the bounds allow for.
        slack = 1e-12 * np.abs(here) + 1e-16
        assert np.all(nearer >= here - slack)
        assert np.all(wider >= here - slack)
    assert table(link, "probability", spread, lapse).min() >= 0.5


@pytest.mark.parametrize("link", ["logistic", "probit"])
@pytest.mark.parametrize("spread", [0.5, 1.0, 2.0])
def test_tables_of_an_unknown_k_are_those_of_quadrature(link, spread):
    # Interpolation between the points of the coarser grid costs up to a few per cent of the information, most for a
    # wide spread of k at a narrow s; the probability is right to less than a thousandth.
    u = np.linspace(-8, 8, 2001)
    normal = np.exp(-0.5 * u**2) / np.exp(-0.5 * u**2).sum()
    x, weights = np.polynomial.hermite_e.hermegauss(15)
    lapse = 0.05
    for m in (0.0, 0.02, 0.2, 1.0):
        for s in (0.02, 0.05, 0.2, 1.0, 4.0, 12.0):
            f = (expit if link == "logistic" else ndtr)(np.exp(spread * x) * (m + s * u[:, None]))
            p = lapse / 2 + (1 - lapse) * f @ (weights / weights.sum())
            mean = normal @ p
            bits = (entr(mean) + entr(1 - mean) - normal @ (entr(p) + entr(1 - p))) / np.log(2)
            code = ("logistic", "probit").index(link)
            place = np.array([m]), np.array([s])
            assert at(table(code, "probability", spread, lapse), *place)[0] == pytest.approx(mean, abs=1e-3)
            assert at(table(code, "information", spread, lapse), *place)[0] == pytest.approx(bits, rel=0.02)


def test_epmv_is_exact_where_k_and_lapse_are_uncertain(small_cells):
    # Narrow logits and a wide spread of k. The first three scenes were called exact with a better pair left when the
    # table of the probability was not monotone.
    for seed in (212, 319, 671, *range(12)):
        rng = rng_of(seed, 77)
        n, d = int(rng.integers(5, 60)), int(rng.integers(1, 5))
        scene = random_scene(rng, n, d, strategy=EPMV(float(10.0 ** rng.uniform(-0.5, 1))), noise=NOISES[seed % 3])
        first, second, _ = listed(scene)
        widest = np.max(scene.features(first, second).logit_deviation, initial=0.0)
        if widest == 0.0:
            continue
        k = float(scene.response.k / widest * 10.0 ** rng.uniform(-1.7, -0.7))
        scene = replace(scene, appeal=0.05 * scene.appeal, response=replace(scene.response, k=k))
        scene = uncertain(scene, float(rng.uniform(1, 2)), float(rng.uniform(0, 0.5)))
        _, _, scores = listed(scene)
        choice = AllPairs().choose(scene, rng)
        assert choice.gap == 0.0
        assert choice.utility >= scores.max() - tolerance(scene, scores)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: s.name)
def test_no_pair_of_near_items_exceeds_the_bound_of_their_cells(strategy, noise, monkeypatch):
    # Items 1e-12 to 1e-5 apart, in one cluster or six, from a mean that lies in it or up to ten units away.
    monkeypatch.setattr(_tree, "MAX_LEAF_ITEMS", 1)
    for seed in range(8):
        rng = rng_of(seed, 5, NOISES.index(noise))
        d, apart = int(rng.integers(1, 6)), 10.0 ** rng.uniform(-12, -5)
        centres = rng.standard_normal((6, d)) * rng.integers(2)
        points = np.repeat(centres, 4, axis=0) + apart * rng.standard_normal((24, d)) + rng.choice([0.0, 10.0])
        mean = points[0] + rng.standard_normal(d) * rng.choice([0.0, apart, 1.0, 10.0])
        root = rng.standard_normal((d, d))
        k = 1.0 if noise == "normalized" else 1.0 / apart
        scene = scene_of(points, covariance=root @ root.T, mean=mean, noise=noise, k=k, strategy=strategy)
        view = CatalogueView.of(scene, strategy.shape())
        scores = np.full((24, 24), -np.inf)
        first, second, values = listed(scene)
        scores[first, second] = scores[second, first] = values
        cells = np.array([(a, b) for a in range(len(view.tree.centre)) for b in range(a, len(view.tree.centre))])
        bounds = np.empty(len(cells))
        bound_pairs(0, len(cells), *np.ascontiguousarray(cells.T), view.cells, view.model, bounds)
        for (a, b), bound in zip(cells, bounds, strict=True):
            (i, j), (p, q) = view.tree.spans(np.array([a, b]))
            assert bound >= scores[np.ix_(view.tree.order[i:j], view.tree.order[p:q])].max(initial=-np.inf)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: s.name)
def test_the_best_pair_and_its_bound_hold_with_appeal(strategy, noise, small_cells):
    # k so small that appeal outweighs every distance, so large that appeal is negligible, and in between.
    for seed, factor in enumerate((1e-9, 0.1, 1.0, 1e6)):
        rng = rng_of(seed, 11, NOISES.index(noise))
        scene = random_scene(rng, 90, (1, 2, 4, 12)[seed], strategy=strategy, noise=noise, plain=True)
        response = replace(scene.response, k=scene.response.k * factor + 1e-12, reliability=(0.3, 1.0, 4.0, 1.0)[seed])
        scene = replace(scene, appeal=rng.standard_normal(90), response=response)
        _, _, scores = listed(scene)
        exact = AllPairs().choose(scene, rng)
        assert exact.gap == 0.0
        assert exact.utility >= scores.max() - tolerance(scene, scores)
        near = AllPairs(gap=0.05, budget=4000).choose(scene, rng)
        assert near.bound >= scores.max() - tolerance(scene, scores)
