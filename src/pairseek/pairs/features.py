"""Derived quantities of pairs under a belief: `PairFeatures`, the input of a strategy's `score`."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import entr

from pairseek.core.lazy import cached_property
from pairseek.core.types import Belief, BoolArray, FloatArray, IntArray, Residuals
from pairseek.model.responses import Response
from pairseek.numerics.covariances import principal_root
from pairseek.numerics.jit import read_only
from pairseek.numerics.mixtures import TableName, table
from pairseek.numerics.moments import sample_moments
from pairseek.numerics.pair_kernels import (
    CONSTANT,
    describe,
    expect,
    expect_mixed,
    expect_ties,
    shadow,
    weigh,
    weigh_mixed,
)
from pairseek.numerics.parallel import for_ranges
from pairseek.numerics.tables import look_up
from pairseek.numerics.ties import expected_outcomes
from pairseek.pairs import expectations

__all__ = ["PairFeatures", "TableName", "credits_of", "logit_constant", "typical_response"]

# Pairs per thread and chunk: large enough to amortise scheduling, and independent of the number of threads.
_CHUNK = 8192
_SAMPLED_CHUNK = 16
# Nodes over the part of a logit that the point explains.
_PLACES = 9
# Rounding leaves no significant digit in the moments after an outcome this rare, so its probability counts as 0.
_RARE = 1e-12
# Appeal over a smaller k would overflow when squared.
_LEAST_K = 1e-100


def typical_response(response: Response, belief: Belief) -> Response:
    """Return the response with an unknown k, lapse or residual replaced by its typical value under the belief."""
    known = belief.reliability
    if response.residual_prior is not None and belief.residuals is not None:
        response = response.with_numbers(residual=belief.residuals.deviation)
    if known is None:
        return response
    # The likeliest noise kind, with its own reference k.
    kind = next(one for one, _ in response.kinds if one.noise == max(known.noise, key=lambda name: known.noise[name]))
    factor = known.typical_k / kind.typical_k if kind.typical_k > 0.0 else 1.0
    return kind.with_numbers(k=kind.typical_k, reliability=factor, lapse=known.typical_lapse)


def credits_of(appeal: FloatArray, response: Response) -> FloatArray:
    """Return appeal/k: the squared distance from the user point that the appeal of an item makes up for."""
    return appeal / max(response.typical_k, _LEAST_K)


def logit_constant(response: Response) -> float:
    """Return k times the reliability. A k of 0 counts as 1e-100, so that logits are differences of appeal alone."""
    return max(response.typical_k, _LEAST_K) * response.typical_reliability


def residual_unit(points: FloatArray, response: Response) -> float:
    """Return `PairFeatures.residual_unit` for (n, d) points."""
    if response.noise_kind.code == CONSTANT:
        return 1.0
    kind = response.noise_kind
    length = kind.steepest_length(0.0, 2.0 * float(np.sqrt(2.0 * np.sum(np.var(points, axis=0)))))
    return 1.0 / float(kind.pair_constant(1.0, np.array([length]))[0])


def _places(rows: IntArray, wanted: IntArray) -> IntArray:
    """Return the place of each wanted row among sorted ones, -1 if it is not there."""
    if not len(rows):
        return np.full(len(wanted), -1)
    places = np.minimum(np.searchsorted(rows, wanted), len(rows) - 1)
    return np.where(rows[places] == wanted, places, -1)


@dataclass(frozen=True, eq=False)
class PairFeatures:
    """Margin, length, noise constant and variance of m pairs under a belief. Strategies need no coordinates.

    Attributes
    ----------
    points
        (n, d) coordinates of the points.
    first, second
        (m,) rows of `points`: p and q.
    margin
        (m,) a·μ - b + (appeal_p - appeal_q)/k: the utility of p less that of q at μ, over k.
    length
        (m,) |a|.
    constant
        (m,) k_pq times the reliability.
    variance
        (m,) a'Σa, the projected variance σ².
    item_appeal
        (n,) appeal of the points, which `margin` accounts for.
    response
        The response model, with typical values in place of an unknown k or lapse: see `typical_response`.
    spread
        Standard deviation of log k; 0 where it is known.
    residual_mean, residual_variance
        (m,) what residual utilities add to the mean and to the variance of the logit; None where there are none.

    Examples
    --------
    >>> import pairseek as ps
    >>> class Closest:
    ...     name = "closest"
    ...     def score(self, candidates: ps.Candidates, belief: ps.Belief):
    ...         return -candidates.length   # the pair whose items are nearest to each other
    >>> query = ps.Search(ps.Items([[0.0], [1.0], [5.0]]), strategy=Closest(), rng=7).ask()
    >>> sorted([query.left, query.right])
    [0, 1]
    """

    points: FloatArray
    first: IntArray
    second: IntArray
    margin: FloatArray
    length: FloatArray
    constant: FloatArray
    variance: FloatArray
    item_appeal: FloatArray
    response: Response
    spread: float = 0.0
    residual_mean: FloatArray | None = None
    residual_variance: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.first)

    @classmethod
    def of(
        cls,
        points: FloatArray,
        first: IntArray,
        second: IntArray,
        *,
        belief: Belief,
        response: Response,
        appeal: FloatArray | None = None,
    ) -> PairFeatures:
        """Compute the features of pairs of rows of `points`; `appeal` is (n,), one for each point."""
        m = len(first)
        out = np.empty((4, m))
        # Project every item once; where items greatly outnumber pairs, project only the items of the pairs.
        few = 4 * m < len(points)
        used = read_only(points[np.concatenate([first, second])] if few else points)
        i, j = (np.arange(m), np.arange(m, 2 * m)) if few else (first, second)
        shadows = np.empty_like(used)
        mean, root = read_only(belief.mean), principal_root(belief.covariance)
        for_ranges(shadow, len(used), _CHUNK, used, mean, root, shadows)
        model = (logit_constant(response), response.noise_kind.code)
        for_ranges(describe, m, _CHUNK, i, j, used, shadows, (mean, root), model, out)
        margin, length, constant, variance = out
        if appeal is None:
            appeal = np.zeros(len(points))
        elif few or np.any(appeal):
            margin += credits_of(appeal[first], response) - credits_of(appeal[second], response)
        spread = 0.0 if belief.reliability is None else belief.reliability.spread
        found = cls(points, first, second, margin, length, constant, variance, appeal, response, spread)
        if not response.compiled:
            found = found._of_planes(mean, root)
        return found if belief.residuals is None else found._with_residuals(belief.residuals)

    def _of_planes(self, mean: FloatArray, root: FloatArray) -> PairFeatures:
        """Return the features with margin, constant and variance by the planes of the response itself."""
        slopes, offsets = self.planes()
        steepness = np.linalg.norm(slopes, axis=1)
        usable = (self.length > 0.0) & (steepness > 0.0)
        constant = np.divide(steepness, self.length, out=np.where(self.length > 0.0, 0.0, self.constant), where=usable)
        logits, shadows = np.einsum("md,d->m", slopes, mean) + offsets, np.einsum("md,de->me", slopes, root)
        margin = np.divide(logits, constant, out=self.margin.copy(), where=usable)
        variance = np.divide(np.sum(shadows**2, axis=1), constant**2, out=self.variance.copy(), where=usable)
        return replace(self, margin=margin, constant=constant, variance=variance)

    def _with_residuals(self, found: Residuals) -> PairFeatures:
        """Return the features with what the residual utilities ε add to the logit, r (ε_p - ε_q).

        Its variance is r² Var(ε_p - ε_q) and twice the covariance with the other part of the logit.
        """
        r = self.response.typical_reliability
        p, q = (_places(found.rows, side) for side in (self.first, self.second))
        if max(p.max(initial=-1), q.max(initial=-1)) < 0:
            nothing, alike = np.zeros(len(self)), np.full(len(self), r * r * (found.deviation**2 + found.deviation**2))
            return replace(self, residual_mean=nothing, residual_variance=alike)
        # The last entry is about an item that was not shown; the place of such an item is -1.
        mean, variance = np.append(found.mean, 0.0), np.append(np.diag(found.covariance), found.deviation**2)
        total = r * r * (variance[p] + variance[q])
        both = np.flatnonzero((p >= 0) & (q >= 0))
        total[both] -= 2.0 * r * r * found.covariance[p[both], q[both]]
        for sign, side in ((1.0, p), (-1.0, q)):
            shown = np.flatnonzero(side >= 0)
            normal = 2.0 * (self.points[self.first[shown]] - self.points[self.second[shown]])
            along = np.einsum("md,md->m", normal, found.cross.T[side[shown]])
            total[shown] += 2.0 * r * sign * self.constant[shown] * along
        return replace(self, residual_mean=r * (mean[p] - mean[q]), residual_variance=total)

    def take(self, rows: IntArray) -> PairFeatures:
        """Return the features of a subset of the pairs."""
        columns = ["first", "second", "margin", "length", "constant", "variance"]
        if self.residual_mean is not None:
            columns += ["residual_mean", "residual_variance"]
        return replace(self, **{name: getattr(self, name)[rows] for name in columns})

    @cached_property
    def logit_mean(self) -> FloatArray:
        """(m,) mean of the logit, k_pq (a·μ - b + (appeal_p - appeal_q)/k) times the reliability, and of residuals."""
        explained = self.constant * self.margin
        return explained if self.residual_mean is None else explained + self.residual_mean

    @cached_property
    def logit_deviation(self) -> FloatArray:
        """(m,) standard deviation of the logit, k_pq sqrt(a'Σa); of both parts where there are residual utilities."""
        if self.residual_variance is None:
            return self.constant * np.sqrt(self.variance)
        return np.sqrt(np.maximum(self.constant**2 * self.variance + self.residual_variance, 0.0))

    @cached_property
    def residual_unit(self) -> float:
        """Factor that converts a residual utility from logits to the unit of appeal - k|w - x|².

        It is 1 under constant noise, whose logits are differences of utilities. Under the other kinds, a difference of
        utilities is multiplied by k_pq/k; the factor is its inverse for a pair of typical length |a|: the root mean
        square over all pairs or, under decaying noise, that at which a pair is most informative, if it is shorter.
        """
        return residual_unit(self.points, self.response)

    @property
    def utility_deviation(self) -> FloatArray:
        """(m,) standard deviation of the difference of two utilities, for a reliability of 1."""
        explained = self.response.typical_k**2 * self.variance
        if self.residual_variance is None:
            return np.sqrt(explained)
        factor = self.residual_unit / max(self.response.typical_reliability, _LEAST_K)
        return np.sqrt(np.maximum(explained + factor**2 * self.residual_variance, 0.0))

    @property
    def distinct(self) -> BoolArray:
        """(m,) whether an answer can tell anything: the two points differ, or their residual utilities do."""
        # A deviation that is not a number is not hidden here: scores report it.
        return self.length > 0 if self.residual_variance is None else ~(self.logit_deviation <= 0)

    def tabulated(self, name: TableName) -> FloatArray:
        """Return (m,) tabulated expectations for a Gaussian logit: see `pairseek.numerics.tables`.

        ``"probability"`` is that of the likelier outcome. An unknown k or lapse is treated as independent of the user
        point: see `pairseek.numerics.mixtures`. Where ties are offered, ``"information"`` is that of three outcomes;
        the others are about two, as if no tie were offered.
        """
        return self._expected(name, self.logit_mean, self.logit_deviation)

    def _expected(self, name: TableName, mean: FloatArray, deviation: FloatArray) -> FloatArray:
        """Return `gaussian` for logits of these means and deviations."""
        response = self.response
        if not response.compiled:
            return expectations.gaussian_expectation(response, name, mean, deviation)
        out = np.empty(len(self))
        values = table(response.link, name, self.spread, response.lapse_rate, response.tie_width)
        for_ranges(look_up, len(self), _CHUNK, values, mean, deviation, out)
        return out

    def point_information(self) -> FloatArray:
        """Return the (m,) information of an answer about the user point alone, in bits, for a Gaussian logit.

        It is what the answer tells of everything, less what it would tell of the two residual utilities if the point
        were known, their dependence on the point left out.
        """
        told = self.tabulated("information")
        if self.residual_variance is None:
            return told
        explained = self.constant * np.sqrt(self.variance)
        alone = np.sqrt(np.maximum(self.residual_variance, 0.0))
        places, weights = np.polynomial.hermite_e.hermegauss(_PLACES)
        for place, weight in zip(places, weights / np.sum(weights), strict=True):
            told = told - weight * self._expected("information", self.logit_mean + place * explained, alone)
        return np.maximum(told, 0.0)

    def planes(self) -> tuple[FloatArray, FloatArray]:
        """Return (m, d) slopes and (m,) offsets of the logits."""
        appeal = self.item_appeal[self.first] - self.item_appeal[self.second]
        return self.response.planes(self.points[self.first], self.points[self.second], appeal)

    def sampled(self, belief: Belief) -> tuple[FloatArray, FloatArray]:
        """Return (m,) E P and (m,) E h_b(P) in bits, P = P(first | w), over samples of the belief: O(samples d) a pair.

        If k or the lapse is unknown, the average runs over the samples for which the belief stores their conditional
        distribution, so that P is the probability given the user point alone.
        """
        if self.residual_mean is not None:
            # Given the point alone an answer depends on residual utilities, which no sample of the point holds.
            return self._by_tables()
        slopes, offsets = self.planes()
        if not self.response.compiled:
            plain = expectations.two_outcomes(self.response)
            chances, conditional = expectations.sampled_outcomes(
                plain, (slopes, offsets), belief.samples, belief.weights
            )
            return chances[0], conditional
        out = np.empty((2, len(self)))
        if not (belief.reliability is None and self.response.is_log_concave):
            samples, weights, mixture = self._links(belief)
            mixed = ((slopes, offsets), np.ascontiguousarray(samples.T), weights, mixture, self.response.link, out)
            for_ranges(expect_mixed, len(self), _SAMPLED_CHUNK, *mixed)
            return out[0], out[1] / np.log(2)
        columns = np.ascontiguousarray(belief.samples.T)
        arguments = (slopes, offsets, columns, belief.weights, self.response.link, out)
        for_ranges(expect, len(self), _SAMPLED_CHUNK, *arguments)
        return out[0], out[1] / np.log(2)

    def _by_tables(self) -> tuple[FloatArray, FloatArray]:
        """Return (m,) E P and (m,) E h_b(P) in bits for a Gaussian logit, as if no tie were offered."""
        plain = replace(self, response=replace(self.response, tie_width=0.0))
        chance = plain.outcome_probabilities()[0]
        entropy = (entr(chance) + entr(1.0 - chance)) / np.log(2)
        return chance, np.maximum(entropy - plain.tabulated("information"), 0.0)

    def sampled_information(self, belief: Belief) -> FloatArray:
        """Return the (m,) information of an answer in bits over samples of the belief, of three outcomes with ties."""
        if self.residual_mean is not None:
            return self.tabulated("information")
        width = self.response.tie_width
        if width == 0.0:
            probability, conditional = self.sampled(belief)
            return np.asarray((entr(probability) + entr(1 - probability)) / np.log(2) - conditional)
        if not self.response.compiled:
            drawn = belief.samples, belief.weights
            chances, conditional = expectations.sampled_outcomes(self.response, self.planes(), *drawn)
            return np.asarray(np.sum(entr(chances), axis=0) / np.log(2) - conditional)
        samples, weights, mixture = self._links(belief)
        # A lapse is spread over three outcomes instead of two.
        bases, parts, ratios = mixture
        out = np.empty((3, len(self)))
        arguments = (self.planes(), np.ascontiguousarray(samples.T), weights, (bases * (2 / 3), parts, ratios), width)
        for_ranges(expect_ties, len(self), _SAMPLED_CHUNK, *arguments, self.response.link, out)
        first, second, conditional = out
        tie = np.maximum(1.0 - first - second, 0.0)
        return np.asarray((entr(first) + entr(second) + entr(tie) - conditional) / np.log(2))

    def outcome_probabilities(self) -> tuple[FloatArray, FloatArray]:
        """Return the (m,) probabilities of "first" and of a tie for a Gaussian logit; the latter 0 if none is offered.

        With ties they are computed one by one, for few pairs.
        """
        response = self.response
        if not response.compiled:
            return expectations.gaussian_outcomes(response, self.logit_mean, self.logit_deviation)
        if response.tie_width == 0.0:
            likelier = np.minimum(self.tabulated("probability"), 1.0)
            return np.where(self.logit_mean >= 0.0, likelier, 1.0 - likelier), np.zeros(len(self))
        model = (response.link, response.tie_width, self.spread, response.lapse_rate)
        logits = zip(self.logit_mean.tolist(), self.logit_deviation.tolist(), strict=True)
        first, tie = zip(*(expected_outcomes(m, s, *model) for m, s in logits), strict=True)
        return np.array(first), np.array(tie)

    def _links(self, belief: Belief) -> tuple[FloatArray, FloatArray, tuple[FloatArray, FloatArray, FloatArray]]:
        """Return samples, weights, and the mixture of links of each sample, as `expect_mixed` expects it."""
        known = belief.reliability
        if known is None:
            lapse, one = self.response.lapse_rate, np.ones(len(belief.weights))
            return belief.samples, belief.weights, (0.5 * lapse * one, (1.0 - lapse) * one[None], np.ones(1))
        weights = belief.weights[known.rows]
        parts = known.chances * (1.0 - known.lapses)
        bases = 0.5 * np.sum(known.chances * known.lapses, axis=1)
        mixture = (bases, np.ascontiguousarray(parts.T), known.nodes / logit_constant(self.response))
        return belief.samples[known.rows], weights / weights.sum(), mixture

    def moments_by_outcome(self, belief: Belief) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
        """Return, for the outcomes "first" and "second", (m,) probability, (m, d) mean and (m, d, d) covariance.

        The samples of the belief are reweighted; none are drawn.
        """
        slopes, offsets = self.planes()
        d = self.points.shape[1]
        out = np.empty((len(self), 1 + d + d * d))
        # The moments are those of the samples, not of the belief, because the two outcomes must sum to the total over
        # the samples. Centring preserves precision for samples far from zero.
        mean, covariance = sample_moments(belief.samples, belief.weights)
        columns = np.ascontiguousarray((belief.samples - mean).T)
        moved = offsets + np.einsum("md,d->m", slopes, mean)
        known = belief.reliability
        if not self.response.compiled:
            out = expectations.reweighted_moments(self.response, (slopes, moved), columns.T, belief.weights)
        elif known is None and self.response.is_log_concave:
            arguments = (slopes, moved, columns, belief.weights)
            for_ranges(weigh, len(self), _SAMPLED_CHUNK, *arguments, self.response.link, out)
        else:
            one = np.ones(len(belief.weights))
            answering = (one, self.response.lapse_rate * one)
            if known is not None:
                answering = (known.k / logit_constant(self.response), np.array(known.lapse))
            mixed = ((slopes, moved), columns, belief.weights, answering, self.response.link, out)
            for_ranges(weigh_mixed, len(self), _SAMPLED_CHUNK, *mixed)
        whole = np.concatenate(([1.0], np.zeros(d), covariance.ravel()))
        outcomes = []
        for part in (out, whole - out):
            rare = part[:, 0] < _RARE
            part = np.where(rare[:, None], whole, part)
            shift = part[:, 1 : 1 + d] / part[:, :1]
            square = (part[:, 1 + d :] / part[:, :1]).reshape(-1, d, d)
            probability = np.where(rare, 0.0, np.minimum(part[:, 0], 1.0))
            outcomes.append((probability, mean + shift, square - shift[:, :, None] * shift[:, None, :]))
        return outcomes
