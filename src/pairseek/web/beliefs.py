"""Beliefs as bytes, to the bit."""

from __future__ import annotations

import io

import numpy as np

from pairseek._types import Belief, BeliefInfo


def pack_belief(belief: Belief) -> bytes:
    """A belief for the store, to the bit."""
    file = io.BytesIO()
    info = belief.info
    facts = np.array([info.effective_samples, info.moves, info.stages])
    np.savez(file, samples=belief.samples, weights=belief.weights, mean=belief.mean, cov=belief.covariance, info=facts)
    return file.getvalue()


def unpack_belief(content: bytes) -> Belief:
    """What `pack_belief` packed."""
    with np.load(io.BytesIO(content), allow_pickle=False) as kept:
        samples, weights, mean, covariance = (np.array(kept[name]) for name in ("samples", "weights", "mean", "cov"))
        effective_samples, moves, stages = kept["info"].tolist()
    for array in (samples, weights, mean, covariance):
        array.flags.writeable = False
    return Belief(samples, weights, mean, covariance, BeliefInfo(effective_samples, int(moves), int(stages)))
