"""Contract tests of posteriors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pairseek.core.types import Belief, Evidence
from pairseek.model.priors import GaussianPrior, Prior, UniformBox
from pairseek.model.responses import Logistic, Probit, Response
from pairseek.numerics.parallel import set_thread_count
from pairseek.posteriors.base import Posterior
from pairseek.testing.scenes import evidence_of, first_of, moments_by_quadrature, random_answers, standardized

_USER_POINT = (0.3, -0.2)
_NO_ANSWERS = Evidence(np.empty((0, 2)), np.empty(0), np.empty(0))
_PRIORS: dict[str, Prior] = {
    "box": UniformBox((-1.0, 0.0), (2.0, 0.5)),
    "gaussian": GaussianPrior(0.5, np.array([[1.0, 0.3], [0.3, 0.5]])),
}
_EXTREME_MODELS: dict[str, tuple[Response, tuple[float, float]]] = {
    "k = 0": (Logistic(0.0), _USER_POINT),
    "k = 1e6": (Logistic(1e6), _USER_POINT),
    "k = 1e6, probit": (Probit(1e6), _USER_POINT),
    "user outside the box": (Logistic(50.0), (4.0, 3.0)),
    "user in a corner": (Probit(30.0), (1.0, 1.0)),
}
_BELIEF_ARRAYS = ("samples", "weights", "mean", "covariance")


def assert_valid_belief(belief: Belief, d: int) -> None:
    """Assert finite, read-only arrays of the right shapes, weights that sum to 1, and a valid covariance."""
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
    """Invariants of every posterior; override the fixture `posterior`.

    - Before the first answer the belief is the prior.
    - ``infer`` is a pure function: equal arguments give bit-identical beliefs on any number of threads, regardless of
      earlier calls, and no argument is modified.
    - The belief is finite, read-only and inside the prior's box for any answers, even contradictory or noiseless ones.
    - The moments match the samples and are close to those of the exact posterior.
    """

    @pytest.fixture
    def posterior(self) -> Posterior:
        """Return the posterior under test."""
        raise NotImplementedError("override the fixture `posterior` to return the posterior under test")

    @pytest.mark.parametrize("prior", _PRIORS.values(), ids=_PRIORS)
    def test_before_any_answer_the_belief_is_the_prior(self, posterior: Posterior, prior: Prior) -> None:
        """Assert the prior's mean, covariance and box."""
        belief = posterior.infer(_NO_ANSWERS, prior, Logistic(1.0))
        assert_valid_belief(belief, 2)
        distance, low, high = standardized(belief, *prior.moments(2))
        assert distance < 0.01
        assert 0.99 < low <= high < 1.01
        lower, upper = prior.box(2)
        assert np.all((belief.samples >= lower) & (belief.samples <= upper))

    def test_the_moments_are_those_of_the_samples(self, posterior: Posterior) -> None:
        """Assert agreement within 0.1 deviations and 10 %; the moments may be more precise than the samples."""
        response = Logistic(2.0)
        evidence = evidence_of(response, random_answers(np.random.default_rng(1), _USER_POINT, 8, response))
        belief = posterior.infer(evidence, UniformBox(), response)
        mean = belief.weights @ belief.samples
        centred = belief.samples - mean
        distance, low, high = standardized(belief, mean, (centred * belief.weights[:, None]).T @ centred)
        assert distance < 0.1
        assert 0.9 < low <= high < 1.1

    def test_inference_is_a_pure_function(self, posterior: Posterior) -> None:
        """Assert bit-identical beliefs with another inference in between, and unmodified evidence."""
        response = Logistic(3.0)
        evidence = evidence_of(response, random_answers(np.random.default_rng(2), _USER_POINT, 6, response))
        arrays = [evidence.slopes, evidence.offsets, evidence.decided]
        copies = [array.copy() for array in arrays]
        before = posterior.infer(evidence, UniformBox(), response)
        posterior.infer(first_of(evidence, 3), UniformBox(), response)
        after = posterior.infer(evidence, UniformBox(), response)
        assert all(np.array_equal(array, copy) for array, copy in zip(arrays, copies, strict=True))
        for name in _BELIEF_ARRAYS:
            assert np.array_equal(getattr(before, name), getattr(after, name))
        assert before.info == after.info

    def test_the_number_of_threads_does_not_change_a_bit(self, posterior: Posterior) -> None:
        """Assert bit-identical beliefs on one thread and two threads."""
        response = Logistic(30.0)
        evidence = evidence_of(response, random_answers(np.random.default_rng(3), _USER_POINT, 9, response))
        single, double = (
            _on_threads(count, lambda: posterior.infer(evidence, UniformBox(), response)) for count in (1, 2)
        )
        for name in _BELIEF_ARRAYS:
            assert np.array_equal(getattr(single, name), getattr(double, name))

    @pytest.mark.filterwarnings("ignore::pairseek.errors.AccuracyWarning")
    @pytest.mark.parametrize("name", _EXTREME_MODELS)
    def test_the_belief_is_finite_and_inside_the_box(self, posterior: Posterior, name: str) -> None:
        """Assert a valid belief after each of fifteen answers, with contradictions and ties."""
        response, user = _EXTREME_MODELS[name]
        answers = random_answers(np.random.default_rng(4), user, 10, response)
        answers += [(p, q, "second" if outcome == "first" else "first") for p, q, outcome in answers[:3]]
        answers += [(p, q, "tie") for p, q, _ in answers[5:7]]
        evidence = evidence_of(response, answers)
        for count in range(len(answers) + 1):
            belief = posterior.infer(first_of(evidence, count), UniformBox(), response)
            assert_valid_belief(belief, 2)
            assert np.all(np.abs(belief.samples) <= 1.0)
            assert np.all(np.abs(belief.mean) <= 1.0)

    def test_uninformative_answers_leave_the_prior(self, posterior: Posterior) -> None:
        """Assert the prior's moments after answers whose likelihood does not depend on the user point."""
        flat = Evidence(np.zeros((3, 2)), np.array([0.0, 5.0, -800.0]), np.array([1.0, 1.0, 0.0]))
        belief = posterior.infer(flat, UniformBox(), Logistic(0.0))
        distance, low, high = standardized(belief, *UniformBox().moments(2))
        assert distance < 0.01
        assert 0.98 < low <= high < 1.02

    @pytest.mark.parametrize("d", [1, 2])
    def test_the_moments_are_near_the_exact_posterior(self, posterior: Posterior, d: int) -> None:
        """Assert the mean and covariance after thirty answers, when the posterior is nearly Gaussian."""
        response = Logistic(3.0)
        evidence = evidence_of(response, random_answers(np.random.default_rng(5), _USER_POINT[:d], 30, response))
        belief = posterior.infer(evidence, UniformBox(), response)
        distance, low, high = standardized(belief, *moments_by_quadrature(response, evidence))
        assert distance < 0.08
        assert 0.9 < low <= high < 1.1

    def test_opposite_answers_give_mirrored_means(self, posterior: Posterior) -> None:
        """Assert the mean after one answer against its exact value, 0.4085, on either side."""
        p, q, response = np.array([0.5, 0.0]), np.array([-0.5, 0.0]), Logistic(4.0)
        towards_p, towards_q = evidence_of(response, [(p, q, "first")]), evidence_of(response, [(p, q, "second")])
        means = [posterior.infer(evidence, UniformBox(), response).mean[0] for evidence in (towards_p, towards_q)]
        assert means == pytest.approx([0.4085, -0.4085], abs=0.005)


def _on_threads(count: int, function: Callable[[], Belief]) -> Belief:
    set_thread_count(count)
    try:
        return function()
    finally:
        set_thread_count(None)
