"""The residual of a population: the part of the noise in people's choices that is lasting taste.

A fit explains a choice by coordinates and appeal, and calls everything else noise: logits z with logistic noise of
variance π²/3. A share ρ of that noise is residual utility of the two items, which stays the same whenever the person
meets them, and 1 - ρ is noise of the answer. In units that make the noise of the answer logistic again, all utilities
are multiplied by c = 1/sqrt(1 - ρ), and a residual utility has the variance σ² = ρ c² π²/6: two of them make up
ρ c² π²/3.

The chosen share is the one under which some answers of a person best predict their other choices.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.model.items import Items
from pairseek.model.priors import Prior
from pairseek.model.responses import Logistic
from pairseek.people.choices import Choices
from pairseek.people.population.fit import LearningStep
from pairseek.people.population.held_out import SeenAndHidden, held_out_predictions

ResidualSetting: TypeAlias = Literal["auto", "implied"]
RESIDUAL_SHARES: dict[ResidualSetting, tuple[float, ...]] = {
    "auto": (0.0, 0.2, 0.4, 0.6),
    "implied": (0.0, 0.2, 0.4, 0.6, 0.8, 0.9),
}
"""Candidate shares. People rate each item once, so the pairs implied by ratings never contradict each other and favour
a share of 1. People who answer pairs do contradict themselves; the largest share of ``"auto"`` allows for it.
``"implied"`` does not: it is for newcomers whose answers are implied by ratings too, as in an evaluation."""
# Largest number of people whose choices are predicted.
_MAX_PEOPLE = 120
# Largest number of a person's answers that the model observes.
_MAX_ANSWERS = 15
# Largest number of a person's choices that are predicted.
_MAX_PREDICTED = 30
# A person with fewer pairs leaves nothing to predict, and fewer people say too little about others.
_MIN_PAIRS = 4
_MIN_PEOPLE = 10


def scale_of(residual: float) -> float:
    """Return c, the factor that this residual puts on all utilities."""
    return math.sqrt(1.0 + 6.0 * residual**2 / math.pi**2)


def residual_of(share: float) -> float:
    """Return the residual σ for a share ρ."""
    return math.sqrt(share / (1.0 - share) * math.pi**2 / 6.0)


def splits(choices: Choices, seed: int) -> list[SeenAndHidden]:
    """Return, for a sample of people, (m, 2) pairs that they answer and (t, 2) pairs to predict, winners first."""
    rng = np.random.default_rng(seed)
    starts = choices.starts
    out = []
    for row in rng.permutation(len(choices.people)).tolist():
        span = slice(starts[row], starts[row + 1])
        pairs = np.stack([choices.winner[span], choices.loser[span]], axis=1)
        _, first = np.unique(np.sort(pairs, axis=1), axis=0, return_index=True)
        pairs = pairs[rng.permutation(first)]
        if len(pairs) >= _MIN_PAIRS:
            answers = min(_MAX_ANSWERS, len(pairs) // 2)
            out.append((pairs[:answers], pairs[answers : answers + _MAX_PREDICTED]))
        if len(out) == _MAX_PEOPLE:
            break
    return out


def predicted(people: list[SeenAndHidden], items: Items, prior: Prior, k: float, residual: float) -> FloatArray:
    """Return the (people,) mean log probability of the choices to predict, given each person's answers."""
    factor = scale_of(residual)
    scaled = Items._unwarned(
        items.coordinates if items.d else None, items.ids, appeal=factor * np.asarray(items.appeal)
    )
    response = Logistic(factor * k, "constant", residual=residual)
    return held_out_predictions(scaled, prior, response, people)[0]


def best_residual(
    people: list[SeenAndHidden],
    items: Items,
    prior: Prior,
    k: float,
    progress: Callable[[LearningStep], None] | None = None,
    setting: ResidualSetting = "auto",
) -> float:
    """Return the residual under which people's answers best predict their other choices.

    The smallest share within one standard error of the best wins. The residual is 0 for fewer than ten people, and
    unless the best share beats 0 by two standard errors.
    """
    if len(people) < _MIN_PEOPLE:
        return 0.0
    shares = RESIDUAL_SHARES[setting]
    scores = np.stack([predicted(people, items, prior, k, residual_of(share)) for share in shares])
    best = int(np.argmax(scores.mean(axis=1)))
    behind = scores[best] - scores
    error = behind.std(axis=1, ddof=1) / math.sqrt(len(people))
    chosen = int(np.argmax(behind.mean(axis=1) <= error))
    if behind[0].mean() < 2.0 * error[0]:
        chosen = 0
    if progress is not None:
        gained = float(scores[chosen].mean() - scores[0].mean())
        text = f"residual {residual_of(shares[chosen]):.2f} logits: log-likelihood {gained:+.4f} a choice"
        progress(LearningStep("residual", 1.0, text))
    return residual_of(shares[chosen])
