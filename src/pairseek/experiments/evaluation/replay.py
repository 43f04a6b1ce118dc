"""Replay of one person: queries are restricted to recorded pairs, and withheld pairs are predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.optimize
from scipy.special import expit

from pairseek.core.types import BoolArray, FloatArray
from pairseek.experiments.comparison.measures import MIN_PROBABILITY, hit_values, prediction_measures
from pairseek.experiments.comparison.methods.search import SearchMethod
from pairseek.experiments.comparison.person import Person
from pairseek.experiments.comparison.picks import pick_measures
from pairseek.experiments.comparison.replay import play, without_watch
from pairseek.experiments.evaluation.specification import CALIBRATION_BINS, PICK_MEASURES, PREDICTIONS, Arm, Ties
from pairseek.model.items import Items
from pairseek.pairs.context import SelectionContext
from pairseek.pairs.sources import Candidates, ListedPairs, Rest
from pairseek.people.population import Choices, Population
from pairseek.posteriors import Particles
from pairseek.search import Search
from pairseek.search.recommending import expected_utilities

# Number of nodes over a logit.
_LOGIT_NODES = 40
# The width of ties is computed from at most this many pairs.
_MAX_WIDTH_PAIRS = 500
# Limits of the share of ties and of the width of ties in logits.
_MAX_TIE_RATE = 0.95
_MAX_TIE_WIDTH = 60.0
_MISSING_MEASURES = (float("nan"),) * (len(PREDICTIONS) + 3 * CALIBRATION_BINS + len(PICK_MEASURES))


@dataclass(frozen=True, eq=False)
class Popularity:
    """Popularity baseline: a score for each item from its share of wins."""

    score: FloatArray

    @classmethod
    def of(cls, choices: Choices) -> Popularity:
        """Compute log((wins + 1)/(losses + 1)) with weighted pairs."""
        n = len(choices.ids)
        wins = np.bincount(choices.winner, choices.weight, minlength=n)
        losses = np.bincount(choices.loser, choices.weight, minlength=n)
        return cls(np.log((wins + 1.0) / (losses + 1.0)))

    def chance(self, person: Person) -> FloatArray:
        """Return the (m,) probabilities of the recorded choices."""
        return np.asarray(expit(self.score[person.winner] - self.score[person.loser]))


def plain_items(population: Population, items: Items | None) -> Items:
    """Return the items of the plain model: the given ones, or the learned coordinates without learned appeal."""
    return items if items is not None else Items._without_warnings(population.items.coordinates, population.items.ids)


def replayed(
    person: Person,
    arm: Arm,
    population: Population,
    items: Items | None,
    popularity: Popularity,
    *,
    answers: Sequence[int],
    samples: int | None,
    seed: int,
    ties: Ties = "coin",
    tied: float = 0.0,
) -> tuple[list[tuple[float, ...]], list[float], int]:
    """Return rows of measures at each answer count, cumulative seconds, and the number of questions asked.

    A row is NaN if the person has fewer pairs than answers, or if no pair remains to be predicted. Only decided pairs
    are predicted. If a share `tied` of other people's pairs is undecided, a prediction is the probability of an outcome
    given that the pair is decided: see `decided_width`.
    """
    popular = popularity.chance(person)
    askable = person.askable
    if arm.strategy is None:
        scored = person.withheld if person.withheld.any() else ~person.withheld
        tau = _tau(popularity.score, person, scored)
        row = _measured(popular[scored], popular[scored], popular[scored], tau)
        row += pick_measures(popularity.score, person.value, ())
        return [row if count <= len(askable) else _MISSING_MEASURES for count in answers], [0.0] * len(answers), 0
    catalogue = population.items if arm.population else plain_items(population, items)
    search = Search(
        catalogue,
        strategy=arm.strategy,
        posterior=None if samples is None else Particles(samples),
        candidates=ListedPairs(tuple(map(tuple, askable.tolist()))),
        rest=Rest(pair=len(askable)),
        rng=seed,
        population=population if arm.population else None,
    )
    width = decided_width(search, tied)
    alone = _chances(search, person, width)
    predicted = person.withheld if person.withheld.any() else ~person.withheld
    rows: list[tuple[float, ...]] = []
    seconds: list[float] = []
    method = SearchMethod(search)
    for moment in play(method, person, answers, key=(seed,), ties=ties == "tie", watch=without_watch):
        asked = {frozenset(pair) for pair in zip(moment.shown[::2], moment.shown[1::2], strict=True)}
        is_asked = [frozenset(pair) in asked for pair in zip(person.winner, person.loser, strict=True)]
        remaining = predicted & ~np.array(is_asked, dtype=np.bool_)
        rows.append(_row(search, person, remaining, (alone, popular), moment.shown, width))
        seconds.append(moment.seconds)
    missing = len(answers) - len(rows)
    last = seconds[-1] if seconds else 0.0
    return [*rows, *[_MISSING_MEASURES] * missing], [*seconds, *[last] * missing], search.answers


def decided_width(search: Search, share: float) -> float:
    """Return the width of ties under which this share of all pairs is tied before the first answer; 0 for none.

    People rate two items equally if their utilities differ by less than some width. Decided pairs are therefore easier
    to predict than others, and a prediction that ignores this is underconfident.
    """
    if share <= 0.0:
        return 0.0
    items = search.modelled_items
    rows = np.stack(np.triu_indices(items.n, 1))
    if rows.shape[1] > _MAX_WIDTH_PAIRS:
        rows = rows[:, np.random.default_rng(0).choice(rows.shape[1], _MAX_WIDTH_PAIRS, replace=False)]
    features = SelectionContext.of(items, search.belief, search.response).features(rows[0], rows[1])

    def excess(width: float) -> float:
        first, second = _outcomes(features, width)
        return float(np.mean(1.0 - first - second)) - min(share, _MAX_TIE_RATE)

    return float(scipy.optimize.brentq(excess, 0.0, _MAX_TIE_WIDTH))


def _outcomes(features: Candidates, width: float) -> tuple[FloatArray, FloatArray]:
    """Return the (m,) probabilities of either side for a Gaussian logit and this width of ties."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(_LOGIT_NODES)
    z = features.logit_mean[:, None] + features.logit_deviation[:, None] * nodes
    weights = weights / np.sum(weights)
    return np.asarray(expit(z - width) @ weights), np.asarray(expit(-z - width) @ weights)


def _chances(search: Search, person: Person, width: float) -> FloatArray:
    """Return the (m,) posterior predictive probabilities of the recorded choices, given that they are decided."""
    items = search.modelled_items
    pairs = Candidates.of(
        items.coordinates,
        person.winner,
        person.loser,
        belief=search.belief,
        response=search.response,
        appeal=items.appeal,
    )
    if width == 0.0:
        return pairs.sampled(search.belief)[0]
    first, second = _outcomes(pairs, width)
    return np.asarray(first / (first + second))


def _row(
    search: Search,
    person: Person,
    remaining: BoolArray,
    others: tuple[FloatArray, FloatArray],
    shown: Sequence[int],
    width: float,
) -> tuple[float, ...]:
    """Return the measures of the remaining pairs; `others` are the chances before any answer, and by popularity."""
    if not remaining.any():
        return _MISSING_MEASURES
    items, belief = search.modelled_items, search.belief
    utility = expected_utilities(items, belief, search.response)
    chance = _chances(search, person, width)[remaining]
    alone, popular = (chances[remaining] for chances in others)
    told = _measured(chance, alone, popular, _tau(utility, person, remaining))
    return (*told, *pick_measures(utility, person.value, shown))


def _tau(utility: FloatArray, person: Person, scored: BoolArray) -> float:
    return float(np.sign(utility[person.winner[scored]] - utility[person.loser[scored]]).mean())


def _measured(chance: FloatArray, alone: FloatArray, popular: FloatArray, tau: float) -> tuple[float, ...]:
    accuracy, loss, bins = prediction_measures(chance, np.ones(len(chance)), bins=CALIBRATION_BINS)
    before = -float(np.log(np.maximum(alone, MIN_PROBABILITY)).mean())
    gain = 1.0 if loss < before else 0.5 if loss == before else 0.0
    accuracies = [float(hit_values(x).mean()) for x in (popular, alone)]
    return (accuracy, loss, tau, gain, *accuracies, float(len(chance)), *bins.ravel().tolist())
