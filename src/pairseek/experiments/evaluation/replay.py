"""Replay of one person: queries are restricted to recorded pairs, and withheld pairs are predicted."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.optimize
from scipy.special import expit

from pairseek.core.types import BoolArray, FloatArray, IntArray, ItemId
from pairseek.experiments.evaluation.picks import pick_measures, values_of
from pairseek.experiments.evaluation.specification import PICKS, PREDICTIONS, WITHHOLD, Arm, Ties
from pairseek.model.items import Items
from pairseek.pairs.context import SelectionContext
from pairseek.pairs.sources import Candidates, ListedPairs, Rest
from pairseek.people.population import Choices, Population
from pairseek.posteriors import Particles
from pairseek.search import Search
from pairseek.search.recommending import expected_utilities

_BINS = 5
# Nodes over a logit, most pairs from which the width of ties follows, and its range.
_PLACES = 40
_MOST_PAIRS = 500
_MOST_TIED, _WIDEST = 0.95, 60.0
# Probabilities are clipped here, so that one wrong prediction does not dominate the mean log loss.
_LEAST = 1e-4
_NOTHING = (float("nan"),) * (len(PREDICTIONS) + 3 * _BINS + len(PICKS))


@dataclass(frozen=True, eq=False)
class Person:
    """The distinct pairs of a person with the first answer to each.

    Attributes
    ----------
    winner, loser
        (m,) rows of the items of decided pairs.
    withheld
        (m,) mask of the decided pairs that are never asked.
    tied
        (t, 2) rows of the items of pairs without a winner that may be asked. By a coin, the first item wins.
    value
        (n,) values of the items for the person, such as ratings; NaN where unknown: see `values_of`.
    """

    winner: IntArray
    loser: IntArray
    withheld: BoolArray
    tied: IntArray
    value: FloatArray

    @classmethod
    def of(cls, choices: Choices, row: int, *, withhold: float = WITHHOLD, seed: int = 0) -> Person:
        """Build from the row of a person, and withhold a share of the decided and of the tied pairs.

        Which pairs are withheld, and how coins fall, depends on the seed, the name of the person and the ids of the
        items alone. No strategy can influence it, and all strategies have the same.
        """
        starts = choices.starts
        span = slice(starts[row], starts[row + 1])
        decided = _distinct(np.stack([choices.winner[span], choices.loser[span]], axis=1), len(choices.ids))
        ends = np.searchsorted(choices.tied[:, 0], [row, row + 1])
        # A pair with a winner elsewhere counts as decided.
        both = _distinct(np.concatenate([decided, choices.tied[ends[0] : ends[1], 1:]]), len(choices.ids))
        tied = both[len(decided) :]
        key = _Key(seed, choices.people[row], choices.ids)
        withheld = key.smallest(decided, _share(withhold, len(decided), least=1))
        tied = tied[~key.smallest(tied, _share(withhold, len(tied)))]
        up = np.array([key("coin", pair) % 2 == 0 for pair in tied.tolist()], dtype=np.bool_)
        tied = np.sort(tied, axis=1)
        tied = np.where(up[:, None], tied, tied[:, ::-1])
        return cls(decided[:, 0], decided[:, 1], withheld, tied, values_of(choices, row))

    def __len__(self) -> int:
        return len(self.winner)

    @property
    def askable(self) -> IntArray:
        """Return the (a, 2) rows of the pairs that may be asked, decided ones first."""
        decided = np.stack([self.winner, self.loser], axis=1)
        return np.concatenate([decided[~self.withheld], self.tied])


@dataclass(frozen=True)
class _Key:
    """Hashes of a person's pairs, independent of the order of people, pairs and items."""

    seed: int
    person: str
    ids: tuple[ItemId, ...]

    def __call__(self, purpose: str, pair: Sequence[int]) -> int:
        names = sorted((self.ids[row] for row in pair), key=str)
        return int.from_bytes(hashlib.sha256(repr((self.seed, purpose, self.person, *names)).encode()).digest()[:8])

    def smallest(self, pairs: IntArray, count: int) -> BoolArray:
        """Return a mask of the pairs with the smallest hashes."""
        hashes = np.array([self("withhold", pair) for pair in pairs.tolist()], dtype=np.uint64)
        out = np.zeros(len(pairs), dtype=np.bool_)
        out[np.argsort(hashes, kind="stable")[:count]] = True
        return out


def _share(share: float, count: int, *, least: int = 0) -> int:
    """Return the rounded share of a count; of a share above 0 at least `least`, and one less than all."""
    return max(min(int(share * count + 0.5), count - 1), least if share > 0 else 0)


def _distinct(pairs: IntArray, n: int) -> IntArray:
    """Return the pairs of rows without later repetitions, in their order."""
    _, first = np.unique(pairs.min(axis=1) * n + pairs.max(axis=1), return_index=True)
    return pairs[np.sort(first)]


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
    return items if items is not None else Items._unwarned(population.items.coordinates, population.items.ids)


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

    A row is NaN where the person has too few pairs for so many answers, or where no pair remains to be predicted. Pairs
    to be predicted are decided ones. Where a share `tied` of other people's pairs is not, a prediction is the
    probability of an outcome given that the pair is decided: see `decided_width`.
    """
    popular = popularity.chance(person)
    askable = person.askable
    if arm.strategy is None:
        scored = person.withheld if person.withheld.any() else ~person.withheld
        tau = _tau(popularity.score, person, scored)
        row = _measured(popular[scored], popular[scored], popular[scored], tau)
        row += pick_measures(popularity.score, person.value, ())
        return [row if count <= len(askable) else _NOTHING for count in answers], [0.0] * len(answers), 0
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
    decided = len(askable) - len(person.tied) if ties == "tie" else len(askable)
    winners = {frozenset(pair): catalogue.ids[pair[0]] for pair in askable[:decided].tolist()}
    width = decided_width(search, tied)
    alone = _chances(search, person, width)
    remaining = person.withheld if person.withheld.any() else ~person.withheld
    rows: list[tuple[float, ...]] = []
    seconds: list[float] = []
    shown: list[int] = []
    spent = 0.0
    for count in range(max(answers) + 1):
        if count and count <= len(askable):
            began = time.perf_counter()
            query = search.ask()
            pair = frozenset((catalogue.index(query.left), catalogue.index(query.right)))
            search.tell(query, winner=winners.get(pair), tie=pair not in winners)
            _ = search.belief
            spent += time.perf_counter() - began
            remaining = remaining & ~_is(pair, person)
            shown += sorted(pair)
        if count in answers:
            rows.append(
                _row(search, person, remaining, (alone, popular), shown, width) if count <= len(askable) else _NOTHING
            )
            seconds.append(spent)
    return rows, seconds, search.answers


def _is(pair: frozenset[int], person: Person) -> BoolArray:
    low, high = min(pair), max(pair)
    same = (np.minimum(person.winner, person.loser) == low) & (np.maximum(person.winner, person.loser) == high)
    return np.asarray(same)


def decided_width(search: Search, share: float) -> float:
    """Return the width of ties under which this share of all pairs is tied before the first answer; 0 for none.

    Whoever rates two items equally finds them alike, to within a width. Pairs that are decided are therefore easier
    than others, and a prediction that does not know this claims too little.
    """
    if share <= 0.0:
        return 0.0
    items = search.modelled_items
    rows = np.stack(np.triu_indices(items.n, 1))
    if rows.shape[1] > _MOST_PAIRS:
        rows = rows[:, np.random.default_rng(0).choice(rows.shape[1], _MOST_PAIRS, replace=False)]
    features = SelectionContext.of(items, search.belief, search.response).features(rows[0], rows[1])

    def excess(width: float) -> float:
        first, second = _outcomes(features, width)
        return float(np.mean(1.0 - first - second)) - min(share, _MOST_TIED)

    return float(scipy.optimize.brentq(excess, 0.0, _WIDEST))


def _outcomes(features: Candidates, width: float) -> tuple[FloatArray, FloatArray]:
    """Return the (m,) probabilities of either side for a Gaussian logit and this width of ties."""
    places, weights = np.polynomial.hermite_e.hermegauss(_PLACES)
    z = features.logit_mean[:, None] + features.logit_deviation[:, None] * places
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
        return _NOTHING
    items, belief = search.modelled_items, search.belief
    utility = expected_utilities(items, belief, search.response)
    chance = _chances(search, person, width)[remaining]
    alone, popular = (chances[remaining] for chances in others)
    told = _measured(chance, alone, popular, _tau(utility, person, remaining))
    return (*told, *pick_measures(utility, person.value, shown))


def _tau(utility: FloatArray, person: Person, scored: BoolArray) -> float:
    return float(np.sign(utility[person.winner[scored]] - utility[person.loser[scored]]).mean())


def _measured(chance: FloatArray, alone: FloatArray, popular: FloatArray, tau: float) -> tuple[float, ...]:
    loss, before = (-float(np.log(np.maximum(x, _LEAST)).mean()) for x in (chance, alone))
    sure = np.maximum(chance, 1.0 - chance)
    bins = np.minimum(((sure - 0.5) * 2 * _BINS).astype(int), _BINS - 1)
    counts = np.bincount(bins, minlength=_BINS)
    right = np.bincount(bins, _right(chance), minlength=_BINS)
    total = np.bincount(bins, sure, minlength=_BINS)
    calibration = np.stack([counts, right, total], axis=1).ravel().tolist()
    gain = 1.0 if loss < before else 0.5 if loss == before else 0.0
    accuracies = [float(_right(x).mean()) for x in (popular, alone)]
    return (float(_right(chance).mean()), loss, tau, gain, *accuracies, float(len(chance)), *calibration)


def _right(chance: FloatArray) -> FloatArray:
    return np.where(chance == 0.5, 0.5, (chance > 0.5).astype(np.float64))
