"""Tests of Grid and its limits."""

from __future__ import annotations

import numpy as np
import pytest

import pairseek as ps
from helpers.reference import naive_log_posterior, quadrature_moments
from helpers.refusals import refused
from helpers.situations import answers_from, evidence_of, last_belief, standardized
from pairseek.core.types import Evidence
from pairseek.errors import AccuracyWarning
from pairseek.model.priors import GaussianPrior, UniformBox
from pairseek.model.responses import Logistic, Probit
from pairseek.posteriors import Grid, Particles

USER = [0.3, -0.2, 0.1]


def last(posterior, response, answers):
    """Return the belief after all answers."""
    return last_belief(posterior, response, evidence_of(response, answers))


def at_the_prior(grid, prior, d):
    return grid.infer(Evidence(np.empty((0, d)), np.empty(0), np.empty(0)), prior, Logistic(1.0))


def by_quadrature(response, answers, d):
    return quadrature_moments(
        lambda x: naive_log_posterior(x, answers, response.k, response.noise, response.name), -np.ones(d), np.ones(d)
    )


class TestGrid:
    @pytest.mark.parametrize("response", [Logistic(2.0), Probit(2.0, "constant"), Logistic(0.0)], ids=repr)
    @pytest.mark.parametrize("d", [1, 2])
    def test_agrees_with_quadrature(self, response, d):
        answers = answers_from(np.random.default_rng(d), USER[:d], 12, response)
        answers += [(p, q, "tie") for p, q, _ in answers[:2]]
        belief = last(Grid(), response, answers)
        distance, least, most = standardized(belief, *by_quadrature(response, answers, d))
        # The midpoint rule is second order in the step: (2/201)² of the box at d = 2.
        assert distance < 1e-3
        assert least == pytest.approx(1.0, abs=2e-3)
        assert most == pytest.approx(1.0, abs=2e-3)

    def test_is_of_second_order_in_its_step(self):
        response = Logistic(3.0)
        answers = answers_from(np.random.default_rng(3), USER[:1], 6, response)
        mean, _ = by_quadrature(response, answers, 1)
        errors = [abs(last(Grid(points), response, answers).mean[0] - mean[0]) for points in (20, 40, 80)]
        assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.2)
        assert errors[1] / errors[2] == pytest.approx(4.0, rel=0.2)

    def test_agrees_with_particles_in_three_dimensions(self):
        response = Logistic(1.5)
        answers = answers_from(np.random.default_rng(4), USER, 15, response)
        exact = last(Grid(), response, answers)
        distance, least, most = standardized(last(Particles(4000), response, answers), exact.mean, exact.covariance)
        assert distance < 0.05
        assert 0.95 < least <= most < 1.05

    def test_loses_no_cell_to_underflow(self):
        """Two contradicting answers with logits of 1e6: the likelihood of every cell underflows."""
        response = Logistic(1e6)
        answers = [([0.5, 0.0], [-0.5, 0.0], "first"), ([0.5, 0.0], [-0.5, 0.0], "second")] * 2
        belief = last(Grid(), response, answers)
        assert belief.weights.sum() == pytest.approx(1.0)
        assert belief.mean[0] == pytest.approx(0.0, abs=0.01)
        assert belief.covariance[1, 1] == pytest.approx(1 / 3, rel=0.01)

    def test_covers_a_gaussian_prior_to_six_deviations(self):
        prior = GaussianPrior(3.0, 4.0)
        belief = at_the_prior(Grid(), prior, 1)
        assert belief.samples.min() == pytest.approx(3 - 12, abs=0.02)
        assert belief.mean[0] == pytest.approx(3.0)
        assert belief.covariance[0, 0] == pytest.approx(4.0, rel=1e-6)

    def test_refuses_too_many_dimensions(self):
        with refused("posterior"):
            ps.Search(np.eye(5)[:, :4], posterior=Grid())

    def test_refuses_too_few_points(self):
        with refused("points") as caught:
            Grid(1)
        assert "points=1 is too few for a Grid: give at least 2" in str(caught.value)

    @pytest.mark.parametrize(("d", "points"), [(1, 2001), (2, 201), (3, 41)])
    def test_has_as_many_cells_as_it_says(self, d, points):
        assert len(at_the_prior(Grid(), UniformBox(), d).samples) == points**d
        assert at_the_prior(Grid(), UniformBox(), d).info.resolved

    def test_covers_the_part_that_has_mass(self):
        """Thirty sharp answers leave a single cell of the initial grid, whose moments are off by factors."""
        response = Logistic(300.0)
        answers = answers_from(np.random.default_rng(8), USER[:2], 30, response)
        belief = last(Grid(), response, answers)
        assert belief.info.resolved
        assert np.ptp(belief.samples, axis=0).max() < 0.5
        distance, least, most = standardized(belief, *by_quadrature(response, answers, 2))
        assert distance < 0.02
        assert 0.97 < least <= most < 1.03

    def test_finds_its_way_back_where_the_first_grid_was_drawn_in_too_far(self):
        """A ridge so thin that the first cell centres miss it: mass at an edge makes the grid grow again."""
        response = Logistic(3e4)
        answers = answers_from(np.random.default_rng(2), USER[:2], 25, response)
        belief = last(Grid(), response, answers)
        distance, least, most = standardized(belief, *by_quadrature(response, answers, 2))
        assert distance < 0.05
        assert 0.9 < least <= most < 1.1

    def test_says_so_where_no_grid_of_cells_resolves_the_posterior(self):
        """All planes along one diagonal, nearly noiseless: a slanted ridge from corner to corner."""
        rng = np.random.default_rng(8)
        answers = []
        for shift in rng.normal(scale=1e-5, size=30):
            p, q = [0.3 + shift, 0.2 + shift], [-0.3 + shift, -0.2 + shift]
            answers.append((p, q, "first" if shift < 0 else "second"))
        with pytest.warns(AccuracyWarning, match=r"narrower than the cells of a Grid .*: use EP\(\) or Particles\(\)"):
            belief = last(Grid(), Logistic(1e5), answers)
        assert not belief.info.resolved

    def test_follows_answers_that_move_the_mass_beyond_its_first_reach(self):
        """Nine hundred answers for a point over six prior standard deviations away, where the initial grid ends."""
        evidence = Evidence(np.ones((900, 1)), np.full(900, -3.0), np.ones(900))
        belief = Grid().infer(evidence, GaussianPrior(0.0, 1.0), Logistic(1.0))
        w = np.linspace(0.0, 15.0, 60_001)
        logs = -0.5 * w**2 - 900 * np.logaddexp(0.0, 3.0 - w)
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        assert belief.mean[0] == pytest.approx(weights @ w, abs=1e-3)
        assert belief.mean[0] > 6.0
