"""Segments: groups of people with similar tastes, by a mixture of Gaussians over the people's points.

The population model gives every person a Gaussian likelihood of their taste z, the posterior divided by the prior. EM
fits a mixture with one covariance for all segments to these likelihoods, so a person with few answers has little
influence. Cross-validation over people chooses the number of segments: a mixture fitted to the others predicts each
person's answers. With one segment, this is the population model itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, softmax

from pairseek.core.types import FloatArray, IntArray, ItemId
from pairseek.core.validation import seed_of
from pairseek.model.items import Items
from pairseek.people.choices import Choices
from pairseek.people.ranking.kernels import fit_mixture
from pairseek.people.ranking.utilities import UtilityPosterior, mean_utilities

MAX_SEGMENTS = 5
# Minimum number of people per segment, on average.
_MIN_PEOPLE = 8
# Segments are sought in at most this many directions of taste, the ones along which utilities vary most.
_MAX_DIMENSIONS = 3
_FOLDS = 8
# Number of starting points of EM.
_STARTS = 6
# EM iterations from each starting point.
_BURN_IN = 12
# Largest number of further EM iterations from the best starting point.
_MAX_ITERATIONS = 100
# EM stops when an iteration improves the log-likelihood by less than this, in nats per person.
_EM_TOLERANCE = 1e-4
# The covariance within segments has an inverse-Wishart prior that counts as _PSEUDO_PEOPLE people, whose variance is
# the fraction _WITHIN_SHARE of the variance of all people.
_PSEUDO_PEOPLE = 4.0
_WITHIN_SHARE = 0.5
# The Dirichlet prior of the shares counts as this many people per segment.
_PSEUDO_PEOPLE_PER_SEGMENT = 1.0
# Improvement of the score, in nats per person, below which fewer segments win even if it is significant. With many
# people, the Gaussian approximation of their likelihoods alone changes scores by about 0.01.
_MIN_GAIN = 0.02
# The search for the number of segments ends after this many numbers in a row without improvement.
_PATIENCE = 2
# Number of favourite and of distinctive items that describe a segment.
_ITEMS_SHOWN = 5


@dataclass(frozen=True, eq=False)
class Segment:
    """A group of people with similar tastes.

    Attributes
    ----------
    share
        Share of all people.
    favourites
        Ids of the items with the highest mean utility in the segment, best first.
    distinctive
        Ids of the items that the segment likes more than other people do, in order of the difference in mean utility.
    utility
        (n,) mean utilities of the items in the segment, in logits, centred over the items.
    """

    share: float
    favourites: tuple[ItemId, ...]
    distinctive: tuple[ItemId, ...]
    utility: FloatArray


@dataclass(frozen=True, eq=False)
class Segmentation:
    """Segments of a group of people, largest first.

    Attributes
    ----------
    segments
        The segments; only one if the answers do not support a division.
    people
        Names of the people.
    membership
        (people, segments) probabilities that each person belongs to each segment.
    scores
        Mean held-out log-likelihood of a person's answers with 1, 2, ... segments, relative to one segment.
    errors
        Standard errors of the scores over people.
    """

    segments: tuple[Segment, ...]
    people: tuple[str, ...]
    membership: FloatArray
    scores: tuple[float, ...]
    errors: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.segments)

    def __repr__(self) -> str:
        shares = ", ".join(f"{segment.share:.0%}" for segment in self.segments)
        return f"Segmentation({len(self)} of {len(self.people)} people: {shares})"

    def of(self, person: str) -> int:
        """Return the index of the segment to which a person most probably belongs."""
        return int(self.membership[self.people.index(person)].argmax())


@dataclass(frozen=True, eq=False)
class _Likelihoods:
    """Gaussian likelihoods of the people's tastes in natural parameters: exp(η·z - z'Λz/2).

    Attributes
    ----------
    linear, precision
        (people, q) vectors η and (people, q, q) matrices Λ.
    weight
        (people,) weights.
    """

    linear: FloatArray
    precision: FloatArray
    weight: FloatArray

    def subset(self, rows: IntArray) -> _Likelihoods:
        return _Likelihoods(self.linear[rows], self.precision[rows], self.weight[rows])


@dataclass(frozen=True, eq=False)
class _Mixture:
    """Mixture of Gaussians: (s,) shares, (s, q) centres, and the (q, q) covariance within the segments."""

    share: FloatArray
    centre: FloatArray
    within: FloatArray

    def joint(self, data: _Likelihoods) -> FloatArray:
        """Return the (people, s) log-likelihoods in each segment, plus the log of its share."""
        return _run(data, self, max_iterations=0)[1]

    def scores(self, data: _Likelihoods) -> FloatArray:
        """Return the (people,) log-likelihoods under the mixture."""
        return np.asarray(logsumexp(self.joint(data), axis=1))

    def membership(self, data: _Likelihoods) -> FloatArray:
        """Return the (people, s) probabilities of the segments."""
        return np.asarray(softmax(self.joint(data), axis=1))


def find_segments(
    choices: Choices,
    items: Items | None = None,
    *,
    most: int = MAX_SEGMENTS,
    rng: int | np.random.Generator = 0,
) -> Segmentation:
    """Divide people into segments with similar tastes.

    Parameters
    ----------
    choices, items
        As for `pairseek.rank`.
    most
        Maximum number of segments.
    rng
        A seed or a generator for the folds and the starting points.
    """
    return segmented(mean_utilities(choices, items), most=most, rng=rng)


def segmented(
    posterior: UtilityPosterior, *, most: int = MAX_SEGMENTS, rng: int | np.random.Generator = 0
) -> Segmentation:
    """Find the segments of a fitted population model."""
    generator = np.random.default_rng(seed_of(rng))
    axes, data = _likelihoods(posterior)
    people = len(data.weight)
    most = max(1, min(most, people // _MIN_PEOPLE))
    folds = generator.permutation(people) % _FOLDS
    scores = _scores_by_count(data, most, folds, generator)
    gain = scores - scores[0]
    mean = gain.mean(axis=1)
    errors = gain.std(axis=1, ddof=1) / np.sqrt(people) if people > 1 else np.zeros(len(scores))
    mixture = _fit(data, _best_count(scores), generator)
    order = np.argsort(-mixture.share, kind="stable")
    mixture = _Mixture(mixture.share[order], mixture.centre[order], mixture.within)
    membership = mixture.membership(data)
    return Segmentation(
        _describe(posterior, axes, mixture),
        posterior.choices.people,
        membership,
        tuple(mean.tolist()),
        tuple(errors.tolist()),
    )


def _likelihoods(posterior: UtilityPosterior) -> tuple[FloatArray, _Likelihoods]:
    """Return the (d, q) axes of the tastes with the largest variance of utilities, and the likelihoods along them.

    z = axes @ y + rest, where y has the covariance I in the population and is independent of the rest.
    """
    root = np.linalg.cholesky(posterior.taste_covariance)
    centred_factors = (posterior.factors - posterior.factors.mean(axis=0)) @ root
    rotation = np.linalg.svd(centred_factors, full_matrices=False)[2].T
    axes = root @ rotation
    to_axes = np.linalg.inv(axes)
    q = min(_MAX_DIMENSIONS, len(rotation))
    mean = (posterior.person_means @ to_axes.T)[:, :q]
    covariance = (to_axes @ posterior.person_covariances @ to_axes.T)[:, :q, :q]
    precision = np.linalg.inv(covariance)
    linear = np.einsum("pij,pj->pi", precision, mean)
    # The people's posteriors contain the prior N(0, I) of y. Rounding must not make a likelihood improper.
    values, vectors = np.linalg.eigh(precision - np.eye(q))
    precision = np.einsum("pij,pj,pkj->pik", vectors, np.maximum(values, 0.0), vectors)
    return axes[:, :q], _Likelihoods(linear, np.ascontiguousarray(precision), np.ascontiguousarray(posterior.trust))


def _scores_by_count(data: _Likelihoods, most: int, folds: IntArray, rng: np.random.Generator) -> FloatArray:
    """Return the (counts, people) held-out scores of 1, 2, ... segments; stop after `_PATIENCE` without improvement.

    For one segment, the covariance has the better of two priors: the population's, or the one used for several
    segments. Otherwise people could be divided just because they vary less than the population model says.
    """
    one_segment = [_held_out_scores(data, 1, folds, rng, prior_variance) for prior_variance in (1.0, _WITHIN_SHARE)]
    scores = [max(one_segment, key=lambda score: float(score.mean()))]
    while len(scores) < most:
        scores.append(_held_out_scores(data, len(scores) + 1, folds, rng))
        if len(scores) - int(np.argmax([score.mean() for score in scores])) > _PATIENCE:
            break
    return np.stack(scores)


def _held_out_scores(
    data: _Likelihoods, count: int, folds: IntArray, rng: np.random.Generator, prior_variance: float = _WITHIN_SHARE
) -> FloatArray:
    """Return the (people,) weighted log-likelihoods under mixtures fitted to the other folds."""
    out = np.empty(len(folds))
    for fold in np.unique(folds):
        held_out = np.flatnonzero(folds == fold)
        mixture = _fit(data.subset(np.flatnonzero(folds != fold)), count, rng, prior_variance)
        out[held_out] = data.weight[held_out] * mixture.scores(data.subset(held_out))
    return out


def _best_count(scores: FloatArray) -> int:
    """Return the smallest number of segments within one standard error, or a negligible difference, of the best."""
    best = int(scores.mean(axis=1).argmax())
    shortfall = scores[best] - scores
    error = (
        shortfall.std(axis=1, ddof=1) / np.sqrt(scores.shape[1]) if scores.shape[1] > 1 else np.zeros(len(shortfall))
    )
    return int((shortfall.mean(axis=1) <= np.maximum(error, _MIN_GAIN)).argmax()) + 1


def _fit(data: _Likelihoods, count: int, rng: np.random.Generator, prior_variance: float | None = None) -> _Mixture:
    """Return the mixture of highest likelihood from several starting points.

    By default, a single segment has the variance of all people as its prior variance.
    """
    if prior_variance is None:
        prior_variance = 1.0 if count == 1 else _WITHIN_SHARE
    if count == 1:
        return _run(data, _initial(data, 1, rng), max_iterations=_MAX_ITERATIONS, prior_variance=prior_variance)[0]
    runs = [
        _run(data, _initial(data, count, rng), max_iterations=_BURN_IN, prior_variance=prior_variance)
        for _ in range(_STARTS)
    ]
    best = max(runs, key=lambda run: float(data.weight @ logsumexp(run[1], axis=1)))
    return _run(data, best[0], max_iterations=_MAX_ITERATIONS, prior_variance=prior_variance)[0]


def _initial(data: _Likelihoods, count: int, rng: np.random.Generator) -> _Mixture:
    """Return starting values, centred on the tastes of people drawn far from each other (k-means++)."""
    q = data.linear.shape[1]
    tastes = np.linalg.solve(data.precision + np.eye(q), data.linear[:, :, None])[:, :, 0]
    if count == 1:
        return _Mixture(np.ones(1), np.zeros((1, q)), np.eye(q))
    centres = [tastes[rng.choice(len(tastes), p=data.weight / data.weight.sum())]]
    for _ in range(count - 1):
        distance_weight = data.weight * np.min([np.sum((tastes - centre) ** 2, axis=1) for centre in centres], axis=0)
        probability = distance_weight / distance_weight.sum() if distance_weight.sum() > 0 else None
        centres.append(tastes[rng.choice(len(tastes), p=probability)])
    return _Mixture(np.full(count, 1.0 / count), np.array(centres), _WITHIN_SHARE * np.eye(q))


def _run(
    data: _Likelihoods, mixture: _Mixture, *, max_iterations: int, prior_variance: float = 1.0
) -> tuple[_Mixture, FloatArray]:
    """Run at most `max_iterations` EM iterations; return the mixture and the (people, s) joint log-likelihoods."""
    q = data.linear.shape[1]
    fitted = _Mixture(mixture.share.copy(), mixture.centre.copy(), mixture.within.copy())
    joint = np.empty((len(data.weight), len(fitted.share)))
    prior_counts = np.array([_PSEUDO_PEOPLE, _PSEUDO_PEOPLE_PER_SEGMENT])
    tolerance = _EM_TOLERANCE * float(data.weight.sum())
    parameters = (fitted.share, fitted.centre, fitted.within)
    fit_mixture(
        data.linear,
        data.precision,
        data.weight,
        *parameters,
        prior_variance * np.eye(q),
        prior_counts,
        max_iterations,
        tolerance,
        joint,
    )
    return fitted, joint


def _describe(posterior: UtilityPosterior, axes: FloatArray, mixture: _Mixture) -> tuple[Segment, ...]:
    """Return the segments with the items that they like."""
    utility = posterior.base + mixture.centre @ (posterior.factors @ axes).T
    utility = utility - utility.mean(axis=1, keepdims=True)
    segments = []
    for row, share in enumerate(mixture.share.tolist()):
        other_shares = np.delete(mixture.share, row)
        others = np.delete(utility, row, axis=0)
        excess = utility[row] - (other_shares @ others / other_shares.sum() if len(other_shares) else utility[row])
        favourites, distinctive = (
            np.argsort(-values, kind="stable")[:_ITEMS_SHOWN] for values in (utility[row], excess)
        )
        ids = posterior.choices.ids
        segments.append(
            Segment(
                share,
                tuple(ids[item] for item in favourites),
                tuple(ids[item] for item in distinctive if excess[item] > 0.0),
                utility[row],
            )
        )
    return tuple(segments)
