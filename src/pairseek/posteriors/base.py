"""What a posterior is, and what all of them need."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from pairseek._types import Belief, BeliefInfo, Evidence, FloatArray, Reliability, arrays_of
from pairseek.priors import Prior
from pairseek.responses import Response


class Posterior(Protocol):
    """A way of inferring the user point, answer by answer.

    ``update`` is a pure step: the same belief, evidence and generator give the same new belief, and nothing that
    was passed is changed. Whatever the answers, the new belief is finite.

    One that can infer k and lapse says so by ``infers_reliability = True``, and its ``start`` takes the response as
    one more argument; `Particles` does.
    """

    @property
    def name(self) -> str:
        """Its name at the edges: files, commands, HTTP."""
        ...

    def start(self, prior: Prior, d: int, rng: np.random.Generator) -> Belief:
        """The belief before any answer."""
        ...

    def update(
        self, belief: Belief, evidence: Evidence, prior: Prior, response: Response, rng: np.random.Generator
    ) -> Belief:
        """The belief after the newest answer, which is the last row of the evidence."""
        ...


def effective_samples(weights: FloatArray) -> float:
    """1/Σw² for weights that sum to 1 (Kish)."""
    return float(1.0 / np.sum(weights**2))


def frozen_belief(
    samples: FloatArray,
    weights: FloatArray,
    moments: tuple[FloatArray, FloatArray],
    info: BeliefInfo,
    reliability: Reliability | None = None,
) -> Belief:
    """A belief whose arrays are read-only."""
    belief = Belief(samples, weights, *moments, info, reliability)
    for array in arrays_of(belief):
        array.flags.writeable = False
    return belief
