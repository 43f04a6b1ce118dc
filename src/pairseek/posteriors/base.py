"""The posterior protocol, and helpers that all posteriors share."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np

from pairseek.core.own_parts import OwnPart, Part
from pairseek.core.types import BaseSampleSource, Belief, BeliefInfo, Evidence, FloatArray
from pairseek.model.priors import Prior
from pairseek.model.responses import Response


class Posterior(Protocol):
    """Inference of the user point from all answers.

    ``infer`` is a pure function: the same evidence, prior and response give the same belief, to the bit, whatever was
    inferred before and on any number of threads. Random draws are keyed by the arguments. The belief is
    finite for any answers, and no argument is modified.

    `BasePosterior` declares the optional members, by which a posterior tells what it can do.
    """

    @property
    def name(self) -> str:
        """Return the name used in files, commands and HTTP."""
        ...

    def infer(self, evidence: Evidence, prior: Prior, response: Response) -> Belief:
        """Return the belief after these answers, computed from nothing."""
        ...


class BasePosterior(Part):
    """Base of a posterior, with the default of every optional member.

    A search reads these members to refuse a combination at once. A posterior of your own may derive from this class, or
    be a plain class that defines some of them beside `Posterior.infer`.
    """

    name: ClassVar[str]
    infer: Callable[[Evidence, Prior, Response], Belief]
    infers_reliability: ClassVar[bool] = False
    """Whether it can infer k, the reliability, the lapse and the noise kind, as `EP` does."""
    takes_lapses: ClassVar[bool] = False
    """Whether it accepts a known lapse, with which the posterior is not log-concave."""
    takes_residuals: ClassVar[bool] = False
    """Whether it accepts a prior of d coordinates of the point and further ones of residual utilities,
    `pairseek.model.priors.WithResiduals`, and returns a belief of all of them."""
    uses_kernels: ClassVar[bool] = False
    """Whether it evaluates compiled formulas, not the methods of the response and the prior, so that a response with a
    link of its own and a prior known only by ``log_density`` are refused."""
    most_dimensions: ClassVar[int | None] = None
    """The largest number of dimensions it accepts; None: any."""


class _OwnPosterior(OwnPart, BasePosterior):
    """A posterior that does not derive from `BasePosterior`."""


def posterior_of(posterior: object) -> BasePosterior:
    """Return a posterior with all its members: itself, or behind an adapter."""
    return posterior if isinstance(posterior, BasePosterior) else _OwnPosterior(posterior)


@dataclass(frozen=True, eq=False)
class FixedSamples(BaseSampleSource):
    """Samples that were computed together with the belief."""

    samples: FloatArray
    weights: FloatArray

    def __post_init__(self) -> None:
        for array in (self.samples, self.weights):
            array.flags.writeable = False

    def draw(self, count: int | None) -> tuple[FloatArray, FloatArray]:  # noqa: ARG002
        """Return all samples, whatever was asked for."""
        return self.samples, self.weights


def effective_samples(weights: FloatArray) -> float:
    """Return 1/Σw² for weights that sum to 1 (Kish)."""
    return float(1.0 / np.sum(weights**2))


def sampled_belief(
    samples: FloatArray, weights: FloatArray, moments: tuple[FloatArray, FloatArray], info: BeliefInfo
) -> Belief:
    """Return a belief that rests on these samples; all its arrays become read-only."""
    for array in moments:
        array.flags.writeable = False
    if info.effective_samples is None:
        info = replace(info, effective_samples=effective_samples(weights))
    return Belief(*moments, info, FixedSamples(samples, weights))


class Sloped(Protocol):
    """Answers with (m, d) slopes: `Evidence` or `Factors`."""

    @property
    def slopes(self) -> FloatArray:
        """Return the (m, d) slopes of the logits."""
        ...


def generator_for(evidence: Sloped, *settings: object) -> np.random.Generator:
    """Return a generator keyed by the number of answers and by settings, whose `repr` tells them apart.

    The answers are not part of the key: their last digits differ between processors, and the draws must not.
    """
    digest = hashlib.sha256(repr((evidence.slopes.shape, settings)).encode())
    return np.random.default_rng(np.frombuffer(digest.digest(), dtype="<u4"))
