"""The posterior contract, for every registered posterior and for the example in the docs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from helpers.reference import naive_log_posterior, quadrature_moments
from helpers.situations import answers_from, evidence_of, last_belief, standardized
from pairseek.model.responses import Logistic
from pairseek.posteriors import POSTERIORS
from pairseek.testing import PosteriorContract

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "posterior.md"


class TestEveryPosterior(PosteriorContract):
    @pytest.fixture(params=sorted(POSTERIORS))
    def posterior(self, request):
        return POSTERIORS[request.param]()

    @pytest.mark.parametrize("d", [1, 2])
    def test_the_moments_are_near_those_of_an_independent_quadrature(self, posterior, d):
        """The contract's quadrature uses the library's likelihood; this one shares no code with it."""
        response = Logistic(3.0)
        answers = answers_from(np.random.default_rng(5), [0.3, -0.2][:d], 30, response)
        belief = last_belief(posterior, response, evidence_of(response, answers))
        mean, covariance = quadrature_moments(
            lambda x: naive_log_posterior(x, answers, 3.0, "normalized", "logistic"), -np.ones(d), np.ones(d)
        )
        distance, least, most = standardized(belief, mean, covariance)
        assert distance < 0.08
        assert 0.9 < least <= most < 1.1


class TestThePosteriorOfTheDocs(PosteriorContract):
    @pytest.fixture
    def posterior(self):
        code = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
        names: dict = {}
        exec(compile(next(block for block in code if "class ImportanceSampling" in block), PAGE.name, "exec"), names)
        return names["ImportanceSampling"]()
