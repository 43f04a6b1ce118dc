"""Pairwise Gaussian processes of BoTorch; they need the extra ``rivals``."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from scipy.special import ndtr

from pairseek.core.types import FloatArray, IntArray, ItemId
from pairseek.core.validation import one_of
from pairseek.errors import MissingExtra
from pairseek.experiments.comparison.methods.linear_taste import Questions, expected_logistic
from pairseek.experiments.comparison.methods.others import utility_moments
from pairseek.experiments.comparison.protocol import BaseMethod, Knowledge
from pairseek.people.choices import Choices

ProcessKernel: TypeAlias = Literal["rbf", "linear and rbf", "others"]
"""BoTorch's default kernel; that plus a linear kernel; or the mean and covariance of other people's utilities."""
Likelihood: TypeAlias = Literal["probit", "logit"]


@dataclass
class PairwiseProcess(BaseMethod):
    """`PairwiseGP` with inputs scaled to [0, 1], fitted by its marginal likelihood.

    The model is fitted before predictions and, unless questions are random, before each question except the first,
    which is random as in BoTorch's tutorials.

    Parameters
    ----------
    questions
        Random, or chosen by an acquisition function of BoTorch: BALD (``"information"``) or analytic EUBO.
    kernel
        See `ProcessKernel`.
    likelihood
        Likelihood of an answer; BoTorch's default is probit.
    scale
        Logits per standard deviation of other people's utilities, if they are the kernel.
    refit
        Whether to fit before each chosen question. False: choose questions with the model of the last prediction, which
        is five to ten times as fast.
    """

    questions: Questions = "random"
    kernel: ProcessKernel = "rbf"
    likelihood: Likelihood = "probit"
    scale: float = 2.0
    refit: bool = True
    mean: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        one_of(self.questions, "questions", get_args(Questions))
        one_of(self.kernel, "kernel", get_args(ProcessKernel))
        one_of(self.likelihood, "likelihood", get_args(Likelihood))

    @property
    def knows(self) -> Knowledge:  # type: ignore[override]
        """Other people, if their covariance is the kernel."""
        return "others" if self.kernel == "others" else "vectors"

    def begin(self, items: Sequence[ItemId], vectors: FloatArray | None, others: Choices | None) -> None:
        """Begin with the prior."""
        self._torch = _torch()
        self._torch.set_num_threads(1)
        self._torch.manual_seed(0)
        self._answers: list[tuple[int, int]] = []
        self._is_current = True
        self._model: Any = None
        assert vectors is not None
        low = vectors.min(axis=0)
        self._points = (vectors - low) / np.maximum(np.ptp(vectors, axis=0), 1e-12)
        self._offset, self._prior = np.zeros(len(items)), np.eye(len(items))
        if self.kernel == "others":
            assert others is not None
            mean, covariance = utility_moments(others)
            # `PairwiseGP` has no prior mean, so the mean is added to its predictions.
            self._offset, self._prior = self.scale * mean, self.scale**2 * covariance + 1e-4 * np.eye(len(mean))
            self._points = np.arange(len(items), dtype=np.float64)[:, None]
        self.mean, self._covariance = self._offset, self._prior

    def ask(self, allowed: IntArray) -> Sequence[int]:
        """Return the best allowed pair."""
        if self.questions != "random" and self._answers and self.refit and not self._is_current:
            self._fit()
        if self.questions == "random" or self._model is None:
            return super().ask(allowed)
        from botorch.acquisition import preference

        acquisition = {
            "eubo": preference.AnalyticExpectedUtilityOfBestOption,
            "information": preference.PairwiseBayesianActiveLearningByDisagreement,
        }[self.questions]
        points = self._torch.tensor(self._points[allowed], dtype=self._torch.float64)
        with self._torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            best = int(acquisition(pref_model=self._model)(points).argmax())
        best_pair: list[int] = allowed[best].tolist()
        return best_pair

    def tell(self, pair: tuple[int, int], outcome: int | None) -> None:
        """Store the answer."""
        if outcome is not None:
            self._answers.append((outcome, sum(pair) - outcome))
            self._is_current = False

    def predict(self, pairs: IntArray) -> FloatArray:
        """Return the (m,) probabilities that the first item wins."""
        if not self._is_current:
            self._fit()
        first, second = pairs.T
        variances = np.diag(self._covariance)
        margin = self.mean[first] - self.mean[second]
        variance = np.maximum(variances[first] + variances[second] - 2.0 * self._covariance[first, second], 0.0)
        if self.likelihood == "logit":
            return expected_logistic(margin, variance)
        # The likelihood is Φ((u_p - u_q)/√2).
        return np.asarray(ndtr(margin / np.sqrt(2.0 + variance)))

    def _fit(self) -> None:
        from botorch.exceptions.errors import ModelFittingError
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import pairwise_gp
        from botorch.models.likelihoods.pairwise import PairwiseLogitLikelihood, PairwiseProbitLikelihood

        likelihood = {"probit": PairwiseProbitLikelihood, "logit": PairwiseLogitLikelihood}[self.likelihood]()
        shown_items = sorted({item for answer in self._answers for item in answer})
        row_of = {item: row for row, item in enumerate(shown_items)}
        pairs = self._torch.tensor([[row_of[a], row_of[b]] for a, b in self._answers], dtype=self._torch.long)
        points = self._torch.tensor(self._points, dtype=self._torch.float64)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kernel = {} if self.kernel == "rbf" else {"covar_module": self._kernel()}
            model = pairwise_gp.PairwiseGP(points[shown_items], pairs, likelihood=likelihood, **kernel)
            if self.kernel != "others":
                # If every attempt fails, the model keeps its initial hyperparameters.
                with contextlib.suppress(ModelFittingError):
                    fit_gpytorch_mll(pairwise_gp.PairwiseLaplaceMarginalLogLikelihood(model.likelihood, model))
            model.eval()
            self._model = model
            with self._torch.no_grad():
                posterior: Any = model.posterior(points)
                self.mean = self._offset + posterior.mean.squeeze(-1).numpy()
                self._covariance = posterior.covariance_matrix.numpy()
        self._is_current = True

    def _kernel(self) -> Any:
        from botorch.models.pairwise_gp import PairwiseGP
        from gpytorch.kernels import Kernel, LinearKernel, ScaleKernel
        from gpytorch.priors import GammaPrior

        if self.kernel == "linear and rbf":
            points = self._torch.tensor(self._points[:2], dtype=self._torch.float64)
            default_kernel = PairwiseGP(points, self._torch.tensor([[0, 1]])).covar_module
            # The prior of the lengthscale as shipped keeps the variance from being large and small at once.
            default_kernel.base_kernel = default_kernel.base_kernel + LinearKernel(variance_prior=GammaPrior(2.4, 2.7))
            return default_kernel
        table = self._torch.tensor(self._prior, dtype=self._torch.float64)

        class TableKernel(Kernel):  # type: ignore[misc, unused-ignore]
            def forward(self, x1: Any, x2: Any, diag: bool = False, **_: Any) -> Any:  # noqa: FBT001, FBT002
                rows, columns = x1.squeeze(-1).long(), x2.squeeze(-1).long()
                return table[rows, columns] if diag else table[rows.unsqueeze(-1), columns.unsqueeze(-2)]

        kernel = ScaleKernel(TableKernel())
        kernel.outputscale = 1.0
        return kernel


def _torch() -> Any:
    try:
        import botorch  # noqa: F401
        import torch
    except ModuleNotFoundError:
        raise MissingExtra("BoTorch", "rivals") from None
    return torch
