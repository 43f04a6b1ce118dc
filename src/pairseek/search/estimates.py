"""Estimates of a search: the user point, the ideal point, curvature and reliability."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

import numpy as np

from pairseek.core import notebook
from pairseek.core.lazy import cached_property
from pairseek.core.maps import map_plane
from pairseek.core.text import plural
from pairseek.core.types import Belief, FloatArray
from pairseek.core.validation import is_number
from pairseek.errors import InvalidParameter
from pairseek.model.curvature import CurvedUtility
from pairseek.model.responses import Response
from pairseek.numerics.balls import quantile_radius
from pairseek.numerics.jit import read_only


@dataclass(frozen=True, slots=True)
class Interval:
    """Posterior median and 95 % credible interval of a number."""

    median: float
    low: float
    high: float


ReliabilityWord: TypeAlias = Literal["consistent", "noisy", "random"]
# Number of samples for a credible radius, if there are residual utilities.
_RADIUS_SAMPLES = 1024
CONSISTENT_AGREEMENT = 0.8
"""`agreement` from which answers are called consistent."""
RANDOM_AGREEMENT = 0.6
"""`agreement` below which answers are called random."""


@dataclass(frozen=True, slots=True)
class ReliabilityEstimate:
    """Inferred reliability of a person's answers.

    Attributes
    ----------
    k
        Noise constant.
    lapse
        Fraction of answers given at random.
    agreement
        Fraction of answers that follow the person's own taste, lapse/2 + (1 - lapse) f(z), for questions whose plane is
        one standard deviation of the prior away from the person: 0.5 for random answers, 0.88 for the default response
        of a search.
    word
        The likeliest of consistent (`agreement` of at least 0.8), noisy, and random (below 0.6).
    """

    k: Interval
    lapse: Interval
    agreement: Interval
    word: ReliabilityWord


@dataclass(frozen=True, eq=False)
class IdealPoint:
    """The point at which a person's utility is highest.

    For a user point w, curvature c above 0, and prior mean m, it is m + (w - m)/c. For other curvatures there is no
    ideal point, because the utility grows without bound.

    Attributes
    ----------
    probability
        Posterior probability that the person has an ideal point, that is, c > 0.
    point
        (d,) point of highest expected utility, computed from the posterior means of w and c. None if the mean of c is 0
        or below, because the expected utility then has no maximum.
    low, high
        (d,) ends of the 95 % credible interval of each coordinate, given that the person has an ideal point. None if
        ``point`` is None.

    Examples
    --------
    >>> import pairseek as ps
    >>> response = ps.Logistic(1.0, "constant", curvature=ps.Unknown(ps.Normal(1.0, 0.5)))
    >>> ideal = ps.Search(ps.datasets.colours(), response=response, rng=7).estimate().ideal
    >>> 0 < ideal.probability < 1, ideal.point.shape
    (True, (3,))
    >>> bool((ideal.low < ideal.high).all())
    True
    """

    probability: float
    point: FloatArray | None
    low: FloatArray | None
    high: FloatArray | None


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimate of the user point with its uncertainty.

    Attributes
    ----------
    point
        (d,) posterior mean, or a procedure's own estimate.
    covariance
        (d, d) posterior covariance.
    belief
        The belief that the estimate summarizes. If the curvature is unknown, it has one more dimension, which
        `curvature` and `ideal` interpret.
    note
        A procedure's remark on its own estimate, for example that the answers contradict each other.
    reliability
        Inferred reliability; None if k is known and there are no lapses.
    utility
        Shape of the person's utility, which determines `curvature` and `ideal`; None for items without coordinates.

    Examples
    --------
    >>> import pairseek as ps
    >>> search = ps.Search(ps.datasets.colours(), rng=7)
    >>> estimate = search.estimate()
    >>> estimate.point.shape, estimate.credible_radius(0.5) < estimate.credible_radius(0.95)
    ((3,), True)
    >>> estimate.curvature.low < 0 < estimate.curvature.high
    True
    >>> 0 < estimate.ideal.probability < 1
    True
    """

    point: FloatArray
    covariance: FloatArray
    belief: Belief
    note: str | None = None
    reliability: ReliabilityEstimate | None = None
    utility: CurvedUtility | None = field(default=None, repr=False)

    @cached_property
    def curvature(self) -> Interval | None:
        """Curvature of the person's utility: 1 for the distance from an ideal point, 0 for a linear utility.

        The posterior ``median``, and the ends ``low`` and ``high`` of the 95 % credible interval; all three equal the
        curvature if it is known. None for items without coordinates.
        """
        if self.utility is None:
            return None
        if self.utility.given is not None:
            return Interval(self.utility.given, self.utility.given, self.utility.given)
        return _interval(self.utility.curvatures(self.belief.samples), self.belief.weights)

    @cached_property
    def ideal(self) -> IdealPoint | None:
        """The point at which the person's utility is highest, if there is one; None for items without coordinates.

        It follows from the belief, even if a procedure has an estimate of its own. The user point in `point` is the
        ideal point only for a curvature of 1.
        """
        if self.utility is None:
            return None
        mean, samples, weights = self.belief.mean[None], self.belief.samples, self.belief.weights
        curved = self.utility.curvatures(samples) > 0.0
        probability = min(float(np.sum(weights[curved]) / np.sum(weights)), 1.0)
        if not (self.utility.curvatures(mean)[0] > 0.0 and np.any(curved)):
            return IdealPoint(probability, None, None, None)
        ideals = self.utility.ideals(samples[curved])
        ends = [_interval(column, weights[curved]) for column in ideals.T]
        low, high = (np.array([getattr(interval, end) for interval in ends]) for end in ("low", "high"))
        return IdealPoint(probability, self.utility.ideals(mean)[0], low, high)

    def credible_radius(self, level: float = 0.95) -> float:
        """Return the radius of the ball around the point with this posterior probability, accurate to about 2 %."""
        if not (is_number(level) and 0 < level < 1):
            raise InvalidParameter(
                f"the level of a credible radius is {level!r}: give a probability between 0 and 1", field="level"
            )
        belief = self.belief
        # With residual utilities, samples are drawn from Gaussians, and one number does not need thousands of them.
        points, weights = (belief.samples, belief.weights) if belief.residuals is None else belief.draw(_RADIUS_SAMPLES)
        points = read_only(np.ascontiguousarray(points))
        return float(quantile_radius(points, read_only(weights), read_only(self.point), float(level)))

    def _repr_html_(self) -> str:
        return estimate_panel(self)


def estimate_panel(estimate: Estimate) -> str:
    """Return an estimate as HTML: the point, and the samples of the belief in two dimensions."""
    point, deviation = estimate.point, np.sqrt(np.diag(estimate.covariance))
    rows = [(f"x{i}", f"{x:.3g} ± {s:.2g}") for i, (x, s) in enumerate(zip(point, deviation, strict=True))]
    drawing, note = notebook.Html(""), estimate.note or ""
    if len(point) > 1:
        # If the curvature is unknown, samples have an extra coordinate, which the map leaves out.
        samples = estimate.belief.samples[:, : len(point)]
        plane = map_plane(samples)
        mean, outline = plane.region(point, estimate.covariance, notebook.REGION_PROBABILITY)
        drawing = notebook.plane_map(
            plane.project(samples),
            description="Samples of the posterior, and the region that contains the point with probability 95 %",
            point=mean,
            outline=outline,
        )
        caption = f"The map shows the two widest axes of {len(point)}: {plane.share:.0%} of the variance."
        note = " ".join(filter(None, (note, caption if len(point) > 2 else "")))
    reliability = estimate.reliability
    extra_facts: list[tuple[str, object]] = []
    curvature = estimate.curvature
    if curvature is not None and curvature.low < curvature.high:
        extra_facts = [("curvature", f"{curvature.median:.2g} ({curvature.low:.2g} to {curvature.high:.2g})")]
    if reliability is not None:
        extra_facts += [
            ("answers are", reliability.word),
            ("k", reliability.k.median),
            ("lapse", reliability.lapse.median),
        ]
    if len(point):
        extra_facts.insert(0, ("95 % radius", estimate.credible_radius()))
    title = f"Estimate in {plural(len(point), 'dimension')}"
    values = notebook.table(["coordinate", "mean ± deviation"], rows, limit=8) if rows else ""
    return notebook.panel(title, drawing, values, notebook.facts(extra_facts) if extra_facts else "", note=note)


def reliability_estimate(belief: Belief, response: Response, spread: float) -> ReliabilityEstimate | None:
    """Summarize a person's reliability, for a prior with this standard deviation along a coordinate."""
    inferred = belief.reliability
    if inferred is None:
        return None
    try:
        default_k = dataclasses.replace(response, k=None, lapse=0.0).for_spread(spread).constant
    except InvalidParameter:  # decaying noise at a scale without a default k
        default_k = response.typical_k
    ks, lapses, weights = inferred.distribution()
    f = response.link_function(response.typical * ks / default_k)
    agreement = np.asarray(0.5 * lapses + (1.0 - lapses) * f)
    word_probabilities = [
        float(np.sum(weights[within]))
        for within in (
            agreement >= CONSISTENT_AGREEMENT,
            (agreement >= RANDOM_AGREEMENT) & (agreement < CONSISTENT_AGREEMENT),
            agreement < RANDOM_AGREEMENT,
        )
    ]
    k, lapse, agreement_interval = (_interval(values, weights) for values in (ks, lapses, agreement))
    return ReliabilityEstimate(
        k, lapse, agreement_interval, get_args(ReliabilityWord)[int(np.argmax(word_probabilities))]
    )


def _interval(values: FloatArray, weights: FloatArray) -> Interval:
    order = np.argsort(values, kind="stable")
    mass = np.cumsum(weights[order])
    indices = np.searchsorted(mass, np.array([0.5, 0.025, 0.975]) * mass[-1])
    return Interval(*values[order[np.minimum(indices, len(order) - 1)]].tolist())
