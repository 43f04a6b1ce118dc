"""Protocol of posteriors, and functions that all posteriors share."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np

from pairseek.core.types import BaseSampleSource, Belief, BeliefInfo, Evidence, FloatArray
from pairseek.core.user_parts import Part, PartAdapter
from pairseek.model.priors import Prior
from pairseek.model.responses import Response


class Posterior(Protocol):
    """Inference of the user point from all answers.

    ``infer`` is a pure function: equal evidence, prior and response give identical beliefs, to the bit, regardless of
    earlier calls and of the number of threads. Random draws are keyed by the arguments. The belief is finite for any
    answers, and no argument is modified.

    `BasePosterior` declares the optional members, which state what a posterior supports.
    """

    @property
    def name(self) -> str:
        """Return the name used in files, commands and HTTP."""
        ...

    def infer(self, evidence: Evidence, prior: Prior, response: Response) -> Belief:
        """Return the belief after these answers, computed from scratch."""
        ...


class BasePosterior(Part):
    """Base class of posteriors, with a default for every optional member.

    A search reads these members to reject an unsupported combination when it is created. Your own posterior may derive
    from this class, or be a plain class that defines `Posterior.infer` and any of these members.
    """

    name: ClassVar[str]
    infer: Callable[[Evidence, Prior, Response], Belief]
    infers_reliability: ClassVar[bool] = False
    """Whether it can infer k, the reliability, the lapse rate and the noise kind, as `EP` does."""
    takes_lapses: ClassVar[bool] = False
    """Whether it accepts a known lapse rate, which makes the posterior non-log-concave."""
    takes_residuals: ClassVar[bool] = False
    """Whether it accepts a joint prior over the d coordinates of the point and residual utilities,
    `pairseek.model.priors.WithResiduals`, and returns a belief about all of them."""
    uses_kernels: ClassVar[bool] = False
    """Whether it evaluates compiled formulas instead of calling the methods of the response and the prior. A response
    with a custom link, or a prior known only by its ``log_density``, is then rejected."""
    most_dimensions: ClassVar[int | None] = None
    """The largest number of dimensions it accepts; None means any."""


class _PosteriorAdapter(PartAdapter, BasePosterior):
    """Adapter of a posterior that does not derive from `BasePosterior`."""


def posterior_of(posterior: object) -> BasePosterior:
    """Return a posterior with all members, wrapped in an adapter if necessary."""
    return posterior if isinstance(posterior, BasePosterior) else _PosteriorAdapter(posterior)


@dataclass(frozen=True, eq=False)
class FixedSamples(BaseSampleSource):
    """Samples computed together with the belief."""

    samples: FloatArray
    weights: FloatArray

    def __post_init__(self) -> None:
        for array in (self.samples, self.weights):
            array.flags.writeable = False

    def draw(self, count: int | None) -> tuple[FloatArray, FloatArray]:  # noqa: ARG002
        """Return all samples, whatever the requested count."""
        return self.samples, self.weights


def effective_samples(weights: FloatArray) -> float:
    """Return the effective sample size 1/Σw² (Kish) of weights that sum to 1."""
    return float(1.0 / np.sum(weights**2))


def sampled_belief(
    samples: FloatArray, weights: FloatArray, moments: tuple[FloatArray, FloatArray], info: BeliefInfo
) -> Belief:
    """Return a belief represented by these samples, and make all its arrays read-only."""
    for array in moments:
        array.flags.writeable = False
    if info.effective_samples is None:
        info = replace(info, effective_samples=effective_samples(weights))
    return Belief(*moments, info, FixedSamples(samples, weights))


class HasSlopes(Protocol):
    """Answers with (m, d) slopes: `Evidence` or `Factors`."""

    @property
    def slopes(self) -> FloatArray:
        """Return the (m, d) slopes of the logits."""
        ...


def generator_for(evidence: HasSlopes, *settings: object) -> np.random.Generator:
    """Return a generator seeded by the number of answers and the `repr` of the settings.

    The answers themselves do not enter the seed: their last digits differ between processors, and the draws must not.
    """
    digest = hashlib.sha256(repr((evidence.slopes.shape, settings)).encode())
    return np.random.default_rng(np.frombuffer(digest.digest(), dtype="<u4"))
