"""Immutable records that several packages share: queries, events, beliefs and evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from pairseek.core.lazy import cached_property
from pairseek.core.user_parts import Part, PartAdapter

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
ItemId: TypeAlias = int | str
Point: TypeAlias = tuple[float, ...]
Side: TypeAlias = ItemId | Point
"""One side of a query: an item id, or coordinates in a continuous space."""
EventOutcome: TypeAlias = Literal["answer", "tie", "skip"]


@dataclass(frozen=True, slots=True)
class QueryInfo:
    """Explanation of a query: the strategy, its candidates, and the expected result.

    Attributes
    ----------
    strategy
        Name of the strategy that chose the pair.
    candidates
        Description of the candidates.
    considered
        Number of pairs that were scored.
    utility
        The strategy's utility of the pair; None for a strategy without one.
    information
        Expected information gain from the answer, in bits.
    probability_left
        Predictive probability that the left side is chosen.
    gap
        Upper bound on how far the pair's score falls short of the best pair's: see `AllPairs`. None if unknown.
    probability_tie
        Predictive probability of a tie; 0 if ties are not offered.
    chance
        Probability with which this pair was chosen, given the answers before: 1 if the strategy leaves nothing to
        chance, and 1 / (number of permitted pairs) for a uniform draw; None if unknown. Either item may be on the left.
    seconds
        Time taken to choose; ignored in comparisons.
    """

    strategy: str
    candidates: str
    considered: int
    utility: float | None
    information: float
    probability_left: float
    gap: float | None = None
    probability_tie: float = 0.0
    chance: float | None = None
    seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class Query:
    """Two sides to choose between; ``left`` and ``right`` are item ids, or points of a `Space`.

    Examples
    --------
    >>> import pairseek as ps
    >>> search = ps.Search(ps.datasets.colours(), rng=7)
    >>> query = search.ask()
    >>> query == search.ask(), query.left != query.right
    (True, True)
    """

    id: str
    left: Side
    right: Side
    info: QueryInfo | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Event:
    """An answer, a tie or a skip, in response to a query; ``query`` is None for an observed pair.

    Examples
    --------
    >>> import pairseek as ps
    >>> search = ps.Search(ps.Items([[0.0], [1.0]], ids=["a", "b"]), rng=7)
    >>> search.observe("a", "b", winner="b")
    >>> search.history[0].winner, search.history[0].loser
    ('b', 'a')
    """

    left: Side
    right: Side
    outcome: EventOutcome
    winner: Side | None = None
    query: Query | None = None

    @property
    def loser(self) -> Side | None:
        """Return the side that was not chosen; None for ties and skips."""
        if self.winner is None:
            return None
        return self.right if self.winner == self.left else self.left


Method: TypeAlias = Literal["ep", "weighted", "particles", "grid", "mixture"]


@dataclass(frozen=True, slots=True)
class BeliefInfo:
    """Diagnostics of the computation of a belief.

    Attributes
    ----------
    method
        Source of the moments. ``"ep"``: expectation propagation. ``"weighted"``: samples from EP's Gaussian, weighted
        by the posterior. ``"particles"``: a sampler. ``"grid"``: a grid. ``"mixture"``: Gaussians at several values of
        an unknown k, lapse rate or noise kind, weighted by their evidence.
    effective_samples
        Effective sample size (Σw)²/Σw² of the weights behind the moments; None if no samples were needed.
    logit_deviation
        Largest standard deviation of an answer's logit given all other answers; `EP` is accurate while it is small.
    sweeps
        Number of EP sweeps over the answers.
    stages
        Number of tempering stages of a sampler.
    nodes
        Number of values of the unknown parameters at which the posterior of the point was computed.
    resolved
        False if a grid is coarser than the posterior, so that its moments are wrong.
    log_evidence
        log p(answers), in nats: the probability of all answers and ties under the prior and the response, averaged over
        everything unknown, such as the point, the curvature, residual utilities and k. It is 0 before the first answer.
        Its error is about 0.05 for `EP`, 0.1 for samples (with lapses, or by `Particles`), and negligible for a `Grid`
        that is resolved. None only for a user-defined posterior that does not compute it.
    seconds
        Time taken; ignored in comparisons.
    """

    method: Method
    effective_samples: float | None = None
    logit_deviation: float = 0.0
    sweeps: int = 0
    stages: int = 0
    nodes: int = 0
    resolved: bool = True
    log_evidence: float | None = None
    seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True, eq=False)
class SampleReliability:
    """Reliability of each sample of a belief, and its conditional distribution at some samples.

    Attributes
    ----------
    k
        (S,) noise constant of each sample of the belief: k times the reliability.
    lapse
        (S,) lapse rate of each sample: the fraction of random answers.
    rows
        (R,) rows of the samples for which the conditional distribution of k and the lapse rate is given.
    nodes
        (Q,) values of k.
    chances
        (R, Q) probability of each value of k at the point of each row; rows sum to 1.
    lapses
        (R, Q) mean lapse rate at that point and that k.
    """

    k: FloatArray
    lapse: FloatArray
    rows: IntArray
    nodes: FloatArray
    chances: FloatArray
    lapses: FloatArray


@dataclass(frozen=True, eq=False)
class Reliability:
    """Posterior distribution of k times the reliability, of the lapse rate and of the noise kind.

    Attributes
    ----------
    typical_k
        Geometric mean of k under the likeliest noise kind.
    spread
        Standard deviation of log k under the likeliest noise kind.
    typical_lapse
        Mean lapse rate under the likeliest noise kind.
    noise
        Probability of each noise kind.
    distribution
        Function without arguments that returns (A,) values of k, (A,) lapse rates and their (A,) probabilities.
    compute_samples
        Function without arguments that returns the reliability of each sample of the belief.
    """

    typical_k: float
    spread: float
    typical_lapse: float
    noise: dict[str, float]
    distribution: Callable[[], tuple[FloatArray, FloatArray, FloatArray]] = field(repr=False)
    compute_samples: Callable[[], SampleReliability] = field(repr=False)

    @cached_property
    def samples(self) -> SampleReliability:
        """The reliability of each sample of the belief, computed at first use."""
        return self.compute_samples()

    @property
    def k(self) -> FloatArray:
        """(S,) noise constant of each sample of the belief."""
        return self.samples.k

    @property
    def lapse(self) -> FloatArray:
        """(S,) lapse rate of each sample."""
        return self.samples.lapse

    @property
    def rows(self) -> IntArray:
        """(R,) rows of the samples with a conditional distribution of k and the lapse rate."""
        return self.samples.rows

    @property
    def nodes(self) -> FloatArray:
        """(Q,) values of k."""
        return self.samples.nodes

    @property
    def chances(self) -> FloatArray:
        """(R, Q) probability of each value of k at the point of each row."""
        return self.samples.chances

    @property
    def lapses(self) -> FloatArray:
        """(R, Q) mean lapse rate at that point and that k."""
        return self.samples.lapses


@dataclass(frozen=True, eq=False)
class Residuals:
    """Posterior of the residual utilities ε of the items shown so far; all other items keep their prior.

    Attributes
    ----------
    deviation
        Prior standard deviation of every ε, in logits; if it is unknown, the square root of its mean square.
    rows
        (S,) rows of the items shown, in ascending order.
    compute_moments
        Function without arguments that returns the (S,) mean and (S, S) covariance of these items' ε, and the (d, S)
        covariance between the user point and ε.
    compute_samples
        Function without arguments that returns the (samples, S) ε of each sample of the belief.
    """

    deviation: float
    rows: IntArray
    compute_moments: Callable[[], tuple[FloatArray, FloatArray, FloatArray]] = field(repr=False)
    compute_samples: Callable[[], FloatArray] = field(repr=False)

    @cached_property
    def _moments(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        # Deferred, because questions about items not shown yet do not need them.
        moments = self.compute_moments()
        for array in moments:
            array.flags.writeable = False
        return moments

    @property
    def mean(self) -> FloatArray:
        """(S,) mean of ε."""
        return self._moments[0]

    @property
    def covariance(self) -> FloatArray:
        """(S, S) covariance of ε."""
        return self._moments[1]

    @property
    def cross(self) -> FloatArray:
        """(d, S) covariance between the user point and ε."""
        return self._moments[2]

    @cached_property
    def samples(self) -> FloatArray:
        """The (samples, S) residual utilities of each sample of the belief, computed at first use."""
        return self.compute_samples()

    def for_catalogue(self, positions: IntArray) -> Residuals:
        """Return the marginal for another catalogue; (S,) positions are rows of it, -1 for items that it lacks."""
        kept = np.flatnonzero(positions >= 0)
        kept = kept[np.argsort(positions[kept], kind="stable")]
        return Residuals(
            self.deviation,
            positions[kept],
            lambda: (self.mean[kept], self.covariance[np.ix_(kept, kept)], self.cross[:, kept]),
            lambda: self.samples[:, kept],
        )


class SampleSource(Protocol):
    """A source of weighted samples of a belief."""

    def draw(self, count: int | None) -> tuple[FloatArray, FloatArray]:
        """Return (S, d) points and (S,) weights that sum to 1: about `count` of them if the source can choose."""
        ...


class BaseSampleSource(Part):
    """Base class of sample sources, with defaults for optional members."""

    draw: Callable[[int | None], tuple[FloatArray, FloatArray]]
    leading: Callable[[int | None, int], tuple[FloatArray, FloatArray]] | None = None
    """Method (count, d) that returns only the d leading coordinates of the points, and the weights, faster than `draw`.
    None: take the coordinates from `draw`."""


class _SampleSourceAdapter(PartAdapter, BaseSampleSource):
    """Adapter of a sample source that does not derive from `BaseSampleSource`."""


def sample_source_of(source: object) -> BaseSampleSource:
    """Return a sample source with all members, wrapped in an adapter if necessary."""
    return source if isinstance(source, BaseSampleSource) else _SampleSourceAdapter(source)


@dataclass(frozen=True, eq=False)
class Belief:
    """Posterior distribution of the user point: mean, covariance, and weighted samples on demand.

    Attributes
    ----------
    mean
        (d,) posterior mean. If the curvature is unknown, as in a default search, there is one more dimension:
        `Estimate.curvature` and `Estimate.ideal` explain it.
    covariance
        (d, d) posterior covariance.
    info
        Diagnostics of the computation.
    sample_source
        Source of the samples.
    reliability
        Posterior of the unknown parameters of the response; None if all are known.
    residuals
        Posterior of the residual utilities of items; None if the response has none.

    Examples
    --------
    >>> import pairseek as ps
    >>> search = ps.Search(ps.datasets.colours(), response=ps.Logistic(), rng=7)
    >>> search.belief.mean.shape, search.belief.covariance.shape
    ((3,), (3, 3))
    """

    mean: FloatArray
    covariance: FloatArray
    info: BeliefInfo
    sample_source: SampleSource = field(repr=False)
    reliability: Reliability | None = None
    residuals: Residuals | None = None

    @cached_property
    def _drawn(self) -> tuple[FloatArray, FloatArray]:
        return self.sample_source.draw(None)

    @property
    def samples(self) -> FloatArray:
        """Return (S, d) samples, drawn at first use."""
        return self._drawn[0]

    @property
    def weights(self) -> FloatArray:
        """Return the (S,) non-negative weights of the samples, which sum to 1."""
        return self._drawn[1]

    def draw(self, count: int) -> tuple[FloatArray, FloatArray]:
        """Return (S, d) points and (S,) weights: about `count` for `EP`, all of them for a sampler or a grid."""
        return self.sample_source.draw(count)

    def for_catalogue(self, positions: IntArray) -> Belief:
        """Return the belief for another catalogue; positions are its rows of the items shown, -1 for missing ones."""
        if self.residuals is None:
            return self
        return replace(self, sample_source=_SharedSamples(self), residuals=self.residuals.for_catalogue(positions))


@dataclass(frozen=True, eq=False)
class _SharedSamples:
    """Samples shared with another belief, so that they are drawn only once."""

    belief: Belief

    def draw(self, count: int | None) -> tuple[FloatArray, FloatArray]:
        return (self.belief.samples, self.belief.weights) if count is None else self.belief.draw(count)


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """All answers so far, each as a linear logit of the user point.

    The logit of answer j at the point w is ``slopes[j] @ w + offsets[j]``, oriented towards the winner (for a tie,
    towards the left side): see `Response.planes`. If k or the reliability is unknown, the logit is computed at its
    prior median, and proportional to it. If the noise kind is unknown, slopes are a and offsets -b.

    Attributes
    ----------
    slopes
        (m, d) values of r k_pq a.
    offsets
        (m,) values of r k_pq ((appeal difference)/k - b).
    decided
        (m,) 1.0 for an answer, 0.0 for a tie.
    """

    slopes: FloatArray
    offsets: FloatArray
    decided: FloatArray


JSON: TypeAlias = dict[str, Any]
