"""What every posterior must do, for all that the registry names: a new one is tested without a change here."""

from __future__ import annotations

import numpy as np
import pytest

from pairseek.core.types import Evidence
from pairseek.model.priors import GaussianPrior, UniformBox
from pairseek.model.responses import Logistic, Probit
from pairseek.posteriors import POSTERIORS
from reference import naive_covariance, naive_log_posterior, naive_mean, quadrature_moments
from situations import answers_from, beliefs_along, evidence_of, first_of, last_belief, standardized

USER = [0.3, -0.2]
HARSH = {
    "k = 0": (Logistic(0.0), [0.3, -0.2]),
    "k = 1e6": (Logistic(1e6), [0.3, -0.2]),
    "k = 1e6, probit": (Probit(1e6), [0.3, -0.2]),
    "user outside": (Logistic(50.0), [4.0, 3.0]),
    "user in a corner": (Probit(30.0), [1.0, 1.0]),
}
NOTHING = Evidence(np.empty((0, 2)), np.empty(0), np.empty(0))
PRIORS = {
    "a box": UniformBox((-1.0, 0.0), (2.0, 0.5)),
    "a Gaussian": GaussianPrior(0.5, np.array([[1.0, 0.3], [0.3, 0.5]])),
}


@pytest.fixture(params=sorted(POSTERIORS))
def posterior(request):
    return POSTERIORS[request.param]()


def assert_is_a_belief(belief, d):
    n = len(belief.samples)
    assert belief.samples.shape == (n, d)
    assert (belief.weights.shape, belief.mean.shape, belief.covariance.shape) == ((n,), (d,), (d, d))
    for array in (belief.samples, belief.weights, belief.mean, belief.covariance):
        assert np.all(np.isfinite(array))
        assert not array.flags.writeable
    assert belief.samples.flags.c_contiguous
    assert np.all(belief.weights >= 0)
    assert belief.weights.sum() == pytest.approx(1.0, abs=1e-9)
    assert np.allclose(belief.covariance, belief.covariance.T, rtol=1e-12)
    assert np.linalg.eigvalsh(belief.covariance)[0] >= -1e-12 * np.trace(belief.covariance)
    assert belief.info.effective_samples is None or belief.info.effective_samples >= 1.0 - 1e-9


class PosteriorContract:
    @pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
    def test_starts_at_the_prior(self, posterior, prior):
        belief = last_belief(posterior, Logistic(1.0), NOTHING, prior=prior)
        assert_is_a_belief(belief, 2)
        distance, least, most = standardized(belief, *prior.moments(2))
        assert distance < 0.01
        assert 0.99 < least <= most < 1.01
        low, high = prior.box(2)
        assert np.all((belief.samples >= low) & (belief.samples <= high))

    def test_samples_have_the_moments_it_reports(self, posterior):
        """To within 0.1 deviations and 10 %: reported moments may be better than those of the samples, not other."""
        response = Logistic(2.0)
        answers = answers_from(np.random.default_rng(1), USER, 8, response)
        belief = last_belief(posterior, response, evidence_of(response, answers))
        samples, weights = belief.samples.tolist(), belief.weights.tolist()
        mean, covariance = np.array(naive_mean(samples, weights)), np.array(naive_covariance(samples, weights))
        distance, least, most = standardized(belief, mean, covariance)
        assert distance < 0.1
        assert 0.9 < least <= most < 1.1

    def test_infers_by_a_pure_function(self, posterior):
        response = Logistic(3.0)
        evidence = evidence_of(response, answers_from(np.random.default_rng(2), USER, 6, response))
        held = [evidence.slopes, evidence.offsets, evidence.decided]
        copies = [array.copy() for array in held]
        one = last_belief(posterior, response, evidence)
        last_belief(posterior, response, first_of(evidence, 3))  # what was inferred between leaves no trace
        two = last_belief(posterior, response, evidence)
        assert all(np.array_equal(array, copy) for array, copy in zip(held, copies, strict=True))
        for name in ("samples", "weights", "mean", "covariance"):
            assert np.array_equal(getattr(one, name), getattr(two, name))
        assert one.info == two.info

    def test_gives_the_same_bits_on_any_number_of_threads(self, posterior, on_threads):
        response = Logistic(30.0)
        evidence = evidence_of(response, answers_from(np.random.default_rng(3), USER, 9, response))
        one, two = (on_threads(count, lambda: last_belief(posterior, response, evidence)) for count in (1, 2))
        for name in ("samples", "weights", "mean", "covariance"):
            assert np.array_equal(getattr(one, name), getattr(two, name))

    @pytest.mark.filterwarnings("ignore::pairseek.errors.AccuracyWarning")
    @pytest.mark.parametrize("name", HARSH)
    def test_stays_finite_and_inside_the_box(self, posterior, name):
        response, user = HARSH[name]
        answers = answers_from(np.random.default_rng(4), user, 10, response)
        answers += [(p, q, "second" if outcome == "first" else "first") for p, q, outcome in answers[:3]]
        answers += [(p, q, "tie") for p, q, _ in answers[5:7]]
        for belief in beliefs_along(posterior, response, evidence_of(response, answers)):
            assert_is_a_belief(belief, 2)
            assert np.all(np.abs(belief.samples) <= 1.0)
            assert np.all(np.abs(belief.mean) <= 1.0)

    def test_an_answer_that_tells_nothing_changes_nothing(self, posterior):
        flat = Evidence(np.zeros((3, 2)), np.array([0.0, 5.0, -800.0]), np.array([1.0, 1.0, 0.0]))
        belief = last_belief(posterior, Logistic(0.0), flat)
        distance, least, most = standardized(belief, *UniformBox().moments(2))
        # The samples of Particles are moved: control variates leave a hundredth of their noise.
        assert distance < 0.01
        assert 0.98 < least <= most < 1.02

    @pytest.mark.parametrize("d", [1, 2])
    def test_is_near_the_truth_after_many_answers(self, posterior, d):
        """Thirty answers make the posterior near Gaussian, so that every way must come near quadrature."""
        response = Logistic(3.0)
        answers = answers_from(np.random.default_rng(5), USER[:d], 30, response)
        belief = last_belief(posterior, response, evidence_of(response, answers))
        mean, covariance = quadrature_moments(
            lambda x: naive_log_posterior(x, answers, 3.0, "normalized", "logistic"), -np.ones(d), np.ones(d)
        )
        distance, least, most = standardized(belief, mean, covariance)
        assert distance < 0.08
        assert 0.9 < least <= most < 1.1

    def test_a_user_on_the_other_side_moves_the_mean_to_the_other_side(self, posterior):
        p, q = [0.5, 0.0], [-0.5, 0.0]
        response = Logistic(4.0)
        means = [
            last_belief(posterior, response, evidence_of(response, [(p, q, outcome)])).mean[0]
            for outcome in ("first", "second")
        ]
        # The truth is 0.4085, by quadrature.
        assert means == pytest.approx([0.4085, -0.4085], abs=0.005)


class TestEveryPosterior(PosteriorContract):
    """The contract, for each of `POSTERIORS`."""
