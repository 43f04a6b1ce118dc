"""Beliefs as bytes, to the bit."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from pairseek._types import Belief, BeliefInfo, Reliability, arrays_of

_ARRAYS = ("k", "lapse", "rows", "nodes", "chances", "lapses")
_NUMBERS = ("typical_k", "spread", "typical_lapse", "surprise")


def pack_belief(belief: Belief) -> bytes:
    """A belief for the store, to the bit."""
    file = io.BytesIO()
    info = belief.info
    facts = np.array([info.effective_samples, info.moves, info.stages])
    more: dict[str, Any] = {}
    if belief.reliability is not None:
        more = {name: getattr(belief.reliability, name) for name in _ARRAYS}
        more["numbers"] = np.array([getattr(belief.reliability, name) for name in _NUMBERS])
    arrays: dict[str, Any] = {
        "samples": belief.samples,
        "weights": belief.weights,
        "mean": belief.mean,
        "cov": belief.covariance,
    }
    np.savez(file, **arrays, **more, info=facts)
    return file.getvalue()


def unpack_belief(content: bytes) -> Belief:
    """What `pack_belief` packed."""
    with np.load(io.BytesIO(content), allow_pickle=False) as kept:
        samples, weights, mean, covariance = (np.array(kept[name]) for name in ("samples", "weights", "mean", "cov"))
        effective_samples, moves, stages = kept["info"].tolist()
        reliability = None
        if "numbers" in kept:
            fields: dict[str, Any] = dict(zip(_NUMBERS, kept["numbers"].tolist(), strict=True))
            fields.update({name: np.array(kept[name]) for name in _ARRAYS})
            reliability = Reliability(**fields)
    info = BeliefInfo(effective_samples, int(moves), int(stages))
    belief = Belief(samples, weights, mean, covariance, info, reliability)
    for array in arrays_of(belief):
        array.flags.writeable = False
    return belief
