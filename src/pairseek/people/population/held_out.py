"""Evidence of people's choices with residual utilities, and held-out predictions of choices from other choices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from scipy.special import expit

from pairseek.core.types import Evidence, FloatArray, IntArray
from pairseek.model.items import Items
from pairseek.model.priors import GaussianPrior, Prior
from pairseek.model.responses import Logistic, Response
from pairseek.numerics.covariances import square_root
from pairseek.pairs.context import SelectionContext
from pairseek.people.choices import Choices
from pairseek.posteriors import EP
from pairseek.posteriors.factors import Factors
from pairseek.posteriors.gaussian import PriorForm, gaussian_fit
from pairseek.posteriors.residuals import infer_with_residuals

SeenAndHidden: TypeAlias = tuple[IntArray, IntArray]
"""(m, 2) pairs of rows that a person's model observes, and (t, 2) pairs that it predicts, winners first."""
# Lower bound on predicted probabilities, so that one wrong prediction does not dominate.
_MIN_PROBABILITY = 1e-4
# Tolerance and largest number of sweeps of EP.
_CONVERGENCE = (1e-3, 40.0)
# Variance of the least residual utilities, without which a person's utilities may be linearly dependent.
_MIN_VARIANCE = 1e-6


def sample_answers(choices: Choices, most: int, rng: np.random.Generator, *, ties: bool) -> Choices:
    """Return a random sample of each person's answers with weight 1: at most this many decided ones, and ties."""

    def sample_rows(person: IntArray) -> IntArray:
        order = np.lexsort((rng.random(len(person)), person))
        rank = np.arange(len(person)) - np.searchsorted(person, person)
        return np.sort(order[rank < most])

    outcomes = choices.outcomes if ties else choices.outcomes[:0]
    decided = choices.rows(np.isin(np.arange(len(choices)), sample_rows(choices.person)))
    return replace(decided, tied=outcomes[sample_rows(outcomes[:, 0])], weight=np.ones(len(decided)))


def evidence_of(
    choices: Choices,
    base: FloatArray,
    factors: FloatArray,
    covariance: FloatArray,
    residual: float = 0.0,
    tie_width: float = 0.0,
) -> FloatArray:
    """Return the (people,) log evidence of everybody's answers, by EP.

    Utilities are base + V z + residual utilities, where z ~ N(0, covariance), in units of the noise of an answer.
    """
    root = factors @ square_root(covariance) if factors.shape[1] else factors
    rows = np.concatenate([np.stack([choices.person, choices.winner, choices.loser], axis=1), choices.outcomes])
    rows, decided = rows[order := np.argsort(rows[:, 0], kind="stable")], (order < len(choices)).astype(np.float64)
    edges = np.searchsorted(rows[:, 0], np.arange(len(choices.people) + 1)).tolist()
    response, out = Logistic(tie_width=tie_width), np.zeros(len(choices.people))
    for person in range(len(out)):
        person_rows = slice(edges[person], edges[person + 1])
        if edges[person] == edges[person + 1]:
            continue
        shown, positions = np.unique(rows[person_rows, 1:], return_inverse=True)
        first, second = positions.reshape(-1, 2).T
        item_root = root[shown]
        utilities = np.linalg.cholesky(item_root @ item_root.T + (residual**2 + _MIN_VARIANCE) * np.eye(len(shown)))
        evidence = Evidence(
            utilities[first] - utilities[second], (base[shown][first] - base[shown][second]), decided[person_rows]
        )
        form = _standard_normal(len(shown))
        fit = gaussian_fit(Factors.of(evidence, response), form, convergence=_CONVERGENCE)
        out[person] = fit.log_evidence - form.log_mass
    return out


@lru_cache(maxsize=128)
def _standard_normal(d: int) -> PriorForm:
    return PriorForm.of(GaussianPrior(0.0, 1.0), d)


def held_out_predictions(
    items: Items, prior: Prior, response: Response, people: Sequence[SeenAndHidden]
) -> tuple[FloatArray, FloatArray]:
    """Return (people,) mean log probabilities of hidden choices, and shares of them that were predicted correctly."""
    scores, accuracy = np.empty((2, len(people)))
    for row, (seen, hidden) in enumerate(people):
        probability, logit = _predicted(items, prior, response, seen, hidden)
        scores[row] = np.mean(np.log(np.maximum(probability, _MIN_PROBABILITY)))
        accuracy[row] = np.mean(0.5 * (np.sign(logit) + 1.0))
    return scores, accuracy


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
