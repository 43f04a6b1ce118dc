"""Tests of user-defined parts: accepted if they meet their contract, else rejected with the missing members."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import pairseek as ps
from helpers.refusals import refused
from pairseek.core.types import Evidence
from pairseek.errors import Unsupported
from pairseek.model.responses import Response

DOCS = Path(__file__).resolve().parents[2] / "docs" / "explanation"
ITEMS = ps.Items(np.random.default_rng(0).normal(size=(12, 2)))


@dataclass(frozen=True)
class Steeper(ps.Logistic):
    """A link twice as steep: what Logistic is at twice the k."""

    def link_function(self, logits):
        return super().link_function(2.0 * np.asarray(logits))

    def log_link(self, logits):
        return super().log_link(2.0 * np.asarray(logits))

    def slope(self, logits):
        return 2.0 * super().slope(2.0 * np.asarray(logits))


@dataclass(frozen=True)
class Cauchy(Response):
    """A link that is neither of the compiled ones."""

    name: ClassVar[str] = "cauchy"

    def link_function(self, logits):
        return 0.5 + np.arctan(logits) / np.pi

    def log_link(self, logits):
        return np.log(self.link_function(logits))

    def slope(self, logits):
        return 1.0 / (np.pi * (1.0 + np.asarray(logits) ** 2) * self.link_function(logits))


@dataclass(frozen=True)
class Renamed(ps.Probit):
    """A subclass that changes no formula."""

    name: ClassVar[str] = "renamed"

    @property
    def doubled(self):
        return 2.0 * self.constant


@dataclass(frozen=True)
class OtherNoise(ps.Logistic):
    def pair_constant(self, length):
        return np.full_like(length, self.constant)


@dataclass(frozen=True)
class OfSubclass(Steeper):
    """Inherits an override from a class in between."""


@pytest.mark.parametrize("response", [Steeper(1.0), Cauchy(1.0), OtherNoise(1.0), OfSubclass(1.0)], ids=repr)
def test_a_formula_of_ones_own_is_refused_by_compiled_posteriors(response):
    message = rf"{type(response).__name__} defines \w+\(\).* itself, but EP .* use Particles\(\), Grid\(\) or"
    with pytest.raises(Unsupported, match=message):
        ps.Search(ITEMS, response=response)
    evidence = Evidence(np.ones((1, 2)), np.zeros(1), np.ones(1))
    with pytest.raises(Unsupported):
        ps.EP().infer(evidence, ps.UniformBox(), response)


def test_a_grid_infers_with_the_formula_itself():
    steeper = ps.Search(ITEMS, response=Steeper(1.0), prior=ps.UniformBox(-3, 3), posterior=ps.Grid(41))
    double = ps.Search(ITEMS, response=ps.Logistic(2.0), prior=ps.UniformBox(-3, 3), posterior=ps.Grid(41))
    for search in (steeper, double):
        for winner, loser in ((0, 1), (2, 3), (4, 5)):
            search.observe(winner, loser, winner=winner)
    assert np.allclose(steeper.belief.mean, double.belief.mean, atol=1e-12)
    assert steeper.ask().info.information > 0.0


def test_a_subclass_that_changes_no_formula_uses_the_kernels():
    one, other = (ps.Search(ITEMS, response=kind(2.0), rng=1) for kind in (ps.Probit, Renamed))
    for search in (one, other):
        search.observe(0, 1, winner=0)
    assert np.array_equal(one.belief.mean, other.belief.mean)
    assert (one.ask().left, one.ask().right) == (other.ask().left, other.ask().right)


def test_a_response_without_a_link_is_refused_with_what_it_lacks():
    @dataclass(frozen=True)
    class Half(Response):
        def link_function(self, logits):
            return logits

    with refused("response") as caught:
        ps.Search(ITEMS, response=Half(1.0))
    assert "whose class lacks log_link() and slope(): a Response must define" in str(caught.value)


class HalfPrior:
    box = quadratic = moments = lambda self, d: None


class HalfStrategy:
    name = "half"

    def next(self, items, history, rng):
        return 0, 1


class Nameless:
    def score(self, candidates, belief):
        return np.zeros(len(candidates))


class HalfRule:
    remaining = 5

    def reached(self, progress):
        return None


@pytest.mark.parametrize(
    ("name", "part", "lacks"),
    [
        (
            "prior",
            HalfPrior(),
            "is not a prior: it lacks sample(); a prior must have box(), quadratic(), moments() and",
        ),
        ("strategy", HalfStrategy(), "is not a strategy: it lacks score();"),
        ("strategy", Nameless(), "is not a strategy: it lacks name;"),
        ("stop", HalfRule(), "is not a stop rule: it lacks remaining();"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_a_part_that_lacks_members_is_rejected_with_their_names(name, part, lacks):
    with refused(name) as caught:
        ps.Search(ITEMS, **{name: part})
    assert lacks in str(caught.value)


def examples_of(page, containing):
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    names: dict = {}
    exec(compile(next(block for block in blocks if containing in block), page, "exec"), names)
    return names


def test_the_response_of_the_docs_is_a_link_with_its_derivative():
    names = examples_of("model.md", "class Laplace")
    response, z = names["Laplace"](1.0), np.linspace(-30.0, 30.0, 61)
    assert np.allclose(response.link_function(z) + response.link_function(-z), 1.0)
    numeric = (response.log_link(z + 1e-6) - response.log_link(z - 1e-6)) / 2e-6
    assert np.allclose(response.slope(z)[z != 0], numeric[z != 0], atol=1e-5)
    assert names["search"].estimate().belief.info.method == "grid"


def test_the_prior_of_the_docs_has_the_moments_that_it_declares():
    prior = examples_of("model.md", "class PositiveNormal")["PositiveNormal"](2.0)
    samples = prior.sample(200_000, 2, np.random.default_rng(0))
    mean, covariance = prior.moments(2)
    assert np.allclose(samples.mean(axis=0), mean, atol=0.01)
    assert np.allclose(np.cov(samples.T), covariance, atol=0.02)
    evidence = Evidence(np.array([[1.0, -0.5]]), np.array([0.2]), np.ones(1))
    ep, grid = (kind().infer(evidence, prior, ps.Logistic(1.0)) for kind in (ps.EP, ps.Grid))
    assert np.allclose(ep.mean, grid.mean, atol=0.02)


def test_the_simulated_user_of_the_docs_answers_a_search():
    names = examples_of("model.md", "class Hesitant")
    assert names["search"].finished
    assert np.linalg.norm(names["search"].estimate().point - [0.3, -0.4]) < 1.0


def test_the_package_itself_does_not_need_pytest():
    code = "import sys, pairseek; sys.exit('pytest' in sys.modules or 'pairseek.testing' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
