"""Held-out predictions of people's choices from their other choices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from scipy.special import expit

from pairseek.core.types import Evidence, FloatArray, IntArray
from pairseek.model.items import Items
from pairseek.model.priors import Prior
from pairseek.model.responses import Response
from pairseek.pairs.context import SelectionContext
from pairseek.posteriors import EP
from pairseek.posteriors.residuals import infer_with_residuals

SeenAndHidden: TypeAlias = tuple[IntArray, IntArray]
"""(m, 2) pairs of rows that a person's model observes, and (t, 2) pairs that it predicts, winners first."""
# Lower bound on predicted probabilities, so that one wrong prediction does not dominate.
_MIN_PROBABILITY = 1e-4


def held_out_predictions(
    items: Items, prior: Prior, response: Response, people: Sequence[SeenAndHidden]
) -> tuple[FloatArray, FloatArray]:
    """Return (people,) mean log probabilities of hidden choices, and shares of them that were predicted correctly."""
    scores, right = np.empty((2, len(people)))
    for row, (seen, hidden) in enumerate(people):
        chance, logit = _predicted(items, prior, response, seen, hidden)
        scores[row] = np.mean(np.log(np.maximum(chance, _MIN_PROBABILITY)))
        right[row] = np.mean(0.5 * (np.sign(logit) + 1.0))
    return scores, right


def _predicted(
    items: Items, prior: Prior, response: Response, seen: IntArray, hidden: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return the (t,) probabilities of hidden choices, given that they are not ties, and the means of their logits."""
    if not items.d and response.residual_deviation == 0.0:
        # There is nothing to infer about a person.
        logit = -np.diff(items.appeal[hidden])[:, 0]
        return expit(logit), logit
    winner, loser = seen.T
    slopes, offsets = response.planes(
        items.coordinates[winner], items.coordinates[loser], items.appeal[winner] - items.appeal[loser]
    )
    evidence = Evidence(np.ascontiguousarray(slopes), offsets, np.ones(len(seen)))
    if response.residual_deviation:
        belief = infer_with_residuals(EP(), evidence, seen, prior, response)
    else:
        belief = EP().infer(evidence, prior, response)
    features = SelectionContext.of(items, belief, response).features(*hidden.T)
    first, tie = features.outcome_probabilities()
    return first / (1.0 - tie), features.logit_mean
