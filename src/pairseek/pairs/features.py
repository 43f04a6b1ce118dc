"""Derived quantities of pairs under a belief: `PairFeatures`, the input of a strategy's `score`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import entr

from pairseek.core.lazy import LazyModule, cached_property
from pairseek.core.types import Belief, BoolArray, FloatArray, IntArray, Residuals
from pairseek.model.responses import Response
from pairseek.numerics.covariances import principal_root
from pairseek.numerics.jit import read_only
from pairseek.numerics.mixtures import TableName, table
from pairseek.numerics.moments import sample_moments
from pairseek.numerics.pair_kernels import (
    CONSTANT,
    answer_moments,
    answer_moments_mixed,
    expected_answer,
    expected_answer_mixed,
    expected_answer_with_ties,
    pair_geometry,
    write_projections,
)
from pairseek.numerics.parallel import for_ranges
from pairseek.numerics.tables import look_up
from pairseek.pairs import expectations

if TYPE_CHECKING:
    from pairseek.numerics import ties
else:
    ties = LazyModule("pairseek.numerics.ties")  # few responses permit ties

__all__ = ["PairFeatures", "TableName", "credits_of", "logit_constant", "typical_response"]

# Pairs per chunk: enough to amortise scheduling, and independent of the number of threads.
_PAIRS_PER_CHUNK = 8192
# Pairs per chunk if each is averaged over all samples.
_SAMPLED_PAIRS_PER_CHUNK = 16
# Gauss-Hermite nodes over the part of a logit explained by the point.
_QUADRATURE_NODES = 9
# Moments after a rarer outcome lose all significant digits to rounding, so its probability counts as 0.
_MIN_PROBABILITY = 1e-12
# Appeal divided by a smaller k would overflow when squared.
_MIN_K = 1e-100


def typical_response(response: Response, belief: Belief) -> Response:
    """Return the response with an unknown k or lapse replaced by its typical value under the belief."""
    reliability = belief.reliability
    if reliability is None:
        return response
    # The likeliest noise kind, with its own reference k.
    likeliest = max(reliability.noise, key=lambda name: reliability.noise[name])
    kind = next(kind for kind, _ in response.kinds if kind.noise == likeliest)
    factor = reliability.typical_k / kind.typical_k if kind.typical_k > 0.0 else 1.0
    return kind.with_numbers(k=kind.typical_k, reliability=factor, lapse=reliability.typical_lapse)


def credits_of(appeal: FloatArray, response: Response) -> FloatArray:
    """Return appeal/k: the squared distance from the user point that an item's appeal compensates."""
    return appeal / max(response.typical_k, _MIN_K)


def logit_constant(response: Response) -> float:
    """Return k times the reliability. A k of 0 counts as 1e-100, so that only differences of appeal matter."""
    return max(response.typical_k, _MIN_K) * response.typical_reliability


def residual_unit(points: FloatArray, response: Response) -> float:
    """Return `PairFeatures.residual_unit` for (n, d) points."""
    if response.noise_kind.code == CONSTANT:
        return 1.0
    kind = response.noise_kind
    length = kind.steepest_length(0.0, 2.0 * float(np.sqrt(2.0 * np.sum(np.var(points, axis=0)))))
    return 1.0 / float(kind.pair_constant(1.0, np.array([length]))[0])


def _positions(sorted_rows: IntArray, rows: IntArray) -> IntArray:
    """Return the position of each row among sorted rows, or -1 if it is absent."""
    if not len(sorted_rows):
        return np.full(len(rows), -1)
    positions = np.minimum(np.searchsorted(sorted_rows, rows), len(sorted_rows) - 1)
    return np.where(sorted_rows[positions] == rows, positions, -1)


@dataclass(frozen=True, eq=False)
class PairFeatures:
    """Margin, length, noise constant and variance of m pairs under a belief; strategies need no coordinates.

    Attributes
    ----------
    points
        (n, d) coordinates of the points.
    first, second
        (m,) rows of `points`: p and q.
    margin
        (m,) a·μ - b + (appeal_p - appeal_q)/k: the utility difference of p and q at μ, divided by k.
    length
        (m,) |a|.
    constant
        (m,) k_pq times the reliability.
    variance
        (m,) a'Σa, the projected variance σ².
    item_appeal
        (n,) appeal of the points, already included in `margin`.
    response
        The response model, with typical values in place of unknown k and lapse: see `typical_response`.
    spread
        Standard deviation of log k; 0 if k is known.
    residual_mean, residual_variance
        (m,) contributions of the residual utilities to the mean and variance of the logit; None without residuals.

    Examples
    --------
    >>> import pairseek as ps
    >>> class Closest:
    ...     name = "closest"
    ...     def score(self, candidates: ps.Candidates, belief: ps.Belief):
    ...         return -candidates.length   # the pair whose items are closest together
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
        """Compute the features of pairs of rows of `points`; `appeal` is (n,), one value per point."""
        m = len(first)
        out = np.empty((4, m))
        # Project every item once or, if items greatly outnumber pairs, only the items of the pairs.
        few = 4 * m < len(points)
        used = read_only(points[np.concatenate([first, second])] if few else points)
        i, j = (np.arange(m), np.arange(m, 2 * m)) if few else (first, second)
        projections = np.empty_like(used)
        mean, root = read_only(belief.mean), principal_root(belief.covariance)
        for_ranges(write_projections, len(used), _PAIRS_PER_CHUNK, used, mean, root, projections)
        model = (logit_constant(response), response.noise_kind.code)
        for_ranges(pair_geometry, m, _PAIRS_PER_CHUNK, i, j, used, projections, (mean, root), model, out)
        margin, length, constant, variance = out
        if appeal is None:
            appeal = np.zeros(len(points))
        elif few or np.any(appeal):
            margin += credits_of(appeal[first], response) - credits_of(appeal[second], response)
        spread = 0.0 if belief.reliability is None else belief.reliability.spread
        features = cls(points, first, second, margin, length, constant, variance, appeal, response, spread)
        if not response.compiled:
            features = features._with_response_planes(mean, root)
        return features if belief.residuals is None else features._with_residuals(belief.residuals)

    def _with_response_planes(self, mean: FloatArray, root: FloatArray) -> PairFeatures:
        """Return the features with margin, constant and variance recomputed from the response's own planes."""
        slopes, offsets = self.planes()
        steepness = np.linalg.norm(slopes, axis=1)
        usable = (self.length > 0.0) & (steepness > 0.0)
        constant = np.divide(steepness, self.length, out=np.where(self.length > 0.0, 0.0, self.constant), where=usable)
        logits, projections = np.einsum("md,d->m", slopes, mean) + offsets, np.einsum("md,de->me", slopes, root)
        margin = np.divide(logits, constant, out=self.margin.copy(), where=usable)
        variance = np.divide(np.sum(projections**2, axis=1), constant**2, out=self.variance.copy(), where=usable)
        return replace(self, margin=margin, constant=constant, variance=variance)

    def _with_residuals(self, residuals: Residuals) -> PairFeatures:
        """Return the features including the contribution of the residual utilities ε to the logit, r (ε_p - ε_q).

        The variance of the logit grows by r² Var(ε_p - ε_q) plus twice the covariance with the other part of the logit.
        """
        r = self.response.typical_reliability
        p, q = (_positions(residuals.rows, side) for side in (self.first, self.second))
        if max(p.max(initial=-1), q.max(initial=-1)) < 0:
            mean = np.zeros(len(self))
            variance = np.full(len(self), r * r * (residuals.deviation**2 + residuals.deviation**2))
            return replace(self, residual_mean=mean, residual_variance=variance)
        # Items that were not shown have position -1, the last entry.
        mean = np.append(residuals.mean, 0.0)
        variance = np.append(np.diag(residuals.covariance), residuals.deviation**2)
        total = r * r * (variance[p] + variance[q])
        both = np.flatnonzero((p >= 0) & (q >= 0))
        total[both] -= 2.0 * r * r * residuals.covariance[p[both], q[both]]
        for sign, side in ((1.0, p), (-1.0, q)):
            shown = np.flatnonzero(side >= 0)
            normal = 2.0 * (self.points[self.first[shown]] - self.points[self.second[shown]])
            along = np.einsum("md,md->m", normal, residuals.cross.T[side[shown]])
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
        """(m,) mean of the logit, k_pq (a·μ - b + (appeal_p - appeal_q)/k) times the reliability, plus residuals."""
        explained = self.constant * self.margin
        return explained if self.residual_mean is None else explained + self.residual_mean

    @cached_property
    def logit_deviation(self) -> FloatArray:
        """(m,) standard deviation of the logit: k_pq sqrt(a'Σa), including any residual utilities."""
        if self.residual_variance is None:
            return self.constant * np.sqrt(self.variance)
        return np.sqrt(np.maximum(self.constant**2 * self.variance + self.residual_variance, 0.0))

    @cached_property
    def residual_unit(self) -> float:
        """Factor that converts a residual utility from logits to the unit of appeal - k|w - x|².

        It is 1 under constant noise, where logits are differences of utilities. Under other noise kinds it is
        k/k_pq at a typical length |a|: the root mean square over all pairs, under decaying noise at most the most
        informative length.
        """
        return residual_unit(self.points, self.response)

    @property
    def utility_deviation(self) -> FloatArray:
        """(m,) standard deviation of the difference of the two utilities, at a reliability of 1."""
        explained = self.response.typical_k**2 * self.variance
        if self.residual_variance is None:
            return np.sqrt(explained)
        factor = self.residual_unit / max(self.response.typical_reliability, _MIN_K)
        return np.sqrt(np.maximum(explained + factor**2 * self.residual_variance, 0.0))

    @property
    def distinct(self) -> BoolArray:
        """(m,) whether an answer can be informative: the two points differ, or their residual utilities do."""
        # Do not filter NaN here: the check of the scores reports it.
        return self.length > 0 if self.residual_variance is None else ~(self.logit_deviation <= 0)

    def tabulated(self, name: TableName) -> FloatArray:
        """Return (m,) tabulated expectations for a Gaussian logit: see `pairseek.numerics.tables`.

        ``"probability"`` is the probability of the likelier outcome. An unknown k or lapse is treated as independent of
        the user point: see `pairseek.numerics.mixtures`. With ties, ``"information"`` covers three outcomes; the other
        tables ignore ties.
        """
        return self._expected(name, self.logit_mean, self.logit_deviation)

    def _expected(self, name: TableName, mean: FloatArray, deviation: FloatArray) -> FloatArray:
        """Return `tabulated` for logits with these means and standard deviations."""
        response = self.response
        if not response.compiled:
            return expectations.gaussian_expectation(response, name, mean, deviation)
        out = np.empty(len(self))
        values = table(response.link, name, self.spread, response.lapse_rate, response.tie_width)
        for_ranges(look_up, len(self), _PAIRS_PER_CHUNK, values, mean, deviation, out)
        return out

    def point_information(self) -> FloatArray:
        """Return the (m,) information of an answer about the user point only, in bits, for a Gaussian logit.

        This is the total information minus the information about the two residual utilities once the point is known,
        ignoring their dependence on the point.
        """
        information = self.tabulated("information")
        if self.residual_variance is None:
            return information
        explained = self.constant * np.sqrt(self.variance)
        residual_deviation = np.sqrt(np.maximum(self.residual_variance, 0.0))
        nodes, weights = np.polynomial.hermite_e.hermegauss(_QUADRATURE_NODES)
        for node, weight in zip(nodes, weights / np.sum(weights), strict=True):
            mean = self.logit_mean + node * explained
            information = information - weight * self._expected("information", mean, residual_deviation)
        return np.maximum(information, 0.0)

    def planes(self) -> tuple[FloatArray, FloatArray]:
        """Return (m, d) slopes and (m,) offsets of the logits."""
        appeal = self.item_appeal[self.first] - self.item_appeal[self.second]
        return self.response.planes(self.points[self.first], self.points[self.second], appeal)

    def sampled(self, belief: Belief) -> tuple[FloatArray, FloatArray]:
        """Return (m,) E P and (m,) E h_b(P) in bits, P = P(first | w), over the belief's samples.

        If k or the lapse rate is unknown, the average runs over the samples w for which p(k, lapse | w) is stored, and
        P is averaged over k and the lapse rate. O(samples d) per pair.
        """
        if self.residual_mean is not None:
            # The answer also depends on residual utilities, which samples of the point lack.
            return self._tabulated_expectations()
        slopes, offsets = self.planes()
        if not self.response.compiled:
            without_ties = expectations.without_ties(self.response)
            chances, conditional = expectations.sampled_outcomes(
                without_ties, (slopes, offsets), belief.samples, belief.weights
            )
            return chances[0], conditional
        out = np.empty((2, len(self)))
        if not (belief.reliability is None and self.response.is_log_concave):
            samples, weights, mixture = self._samples_with_links(belief)
            mixed = ((slopes, offsets), np.ascontiguousarray(samples.T), weights, mixture, self.response.link, out)
            for_ranges(expected_answer_mixed, len(self), _SAMPLED_PAIRS_PER_CHUNK, *mixed)
            return out[0], out[1] / np.log(2)
        columns = np.ascontiguousarray(belief.samples.T)
        arguments = (slopes, offsets, columns, belief.weights, self.response.link, out)
        for_ranges(expected_answer, len(self), _SAMPLED_PAIRS_PER_CHUNK, *arguments)
        return out[0], out[1] / np.log(2)

    def _tabulated_expectations(self) -> tuple[FloatArray, FloatArray]:
        """Return (m,) E P and (m,) E h_b(P) in bits for a Gaussian logit, ignoring ties."""
        plain = replace(self, response=replace(self.response, tie_width=0.0))
        chance = plain.outcome_probabilities()[0]
        entropy = (entr(chance) + entr(1.0 - chance)) / np.log(2)
        return chance, np.maximum(entropy - plain.tabulated("information"), 0.0)

    def sampled_information(self, belief: Belief) -> FloatArray:
        """Return the (m,) information of an answer in bits, over samples of the belief; ties are a third outcome."""
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
        samples, weights, mixture = self._samples_with_links(belief)
        # With ties, a lapse is spread over three outcomes instead of two.
        bases, parts, ratios = mixture
        out = np.empty((3, len(self)))
        arguments = (self.planes(), np.ascontiguousarray(samples.T), weights, (bases * (2 / 3), parts, ratios), width)
        for_ranges(expected_answer_with_ties, len(self), _SAMPLED_PAIRS_PER_CHUNK, *arguments, self.response.link, out)
        first, second, conditional = out
        tie = np.maximum(1.0 - first - second, 0.0)
        return np.asarray((entr(first) + entr(second) + entr(tie) - conditional) / np.log(2))

    def outcome_probabilities(self) -> tuple[FloatArray, FloatArray]:
        """Return the (m,) probabilities of "first" and of a tie for a Gaussian logit; 0 for ties not offered.

        With ties, pairs are computed one by one, so keep them few.
        """
        response = self.response
        if not response.compiled:
            return expectations.gaussian_outcomes(response, self.logit_mean, self.logit_deviation)
        if response.tie_width == 0.0:
            likelier = np.minimum(self.tabulated("probability"), 1.0)
            return np.where(self.logit_mean >= 0.0, likelier, 1.0 - likelier), np.zeros(len(self))
        model = (response.link, response.tie_width, self.spread, response.lapse_rate)
        logits = zip(self.logit_mean.tolist(), self.logit_deviation.tolist(), strict=True)
        first, tie = zip(*(ties.expected_outcomes(m, s, *model) for m, s in logits), strict=True)
        return np.array(first), np.array(tie)

    def _samples_with_links(
        self, belief: Belief
    ) -> tuple[FloatArray, FloatArray, tuple[FloatArray, FloatArray, FloatArray]]:
        """Return samples, weights, and each sample's mixture of links, as `expected_answer_mixed` takes it."""
        reliability = belief.reliability
        if reliability is None:
            lapse, ones = self.response.lapse_rate, np.ones(len(belief.weights))
            return belief.samples, belief.weights, (0.5 * lapse * ones, (1.0 - lapse) * ones[None], np.ones(1))
        weights = belief.weights[reliability.rows]
        parts = reliability.chances * (1.0 - reliability.lapses)
        bases = 0.5 * np.sum(reliability.chances * reliability.lapses, axis=1)
        mixture = (bases, np.ascontiguousarray(parts.T), reliability.nodes / logit_constant(self.response))
        return belief.samples[reliability.rows], weights / weights.sum(), mixture

    def moments_by_outcome(self, belief: Belief) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
        """Return (m,) probability, (m, d) mean and (m, d, d) covariance for each of the outcomes "first" and "second".

        The samples of the belief are reweighted; no new ones are drawn.
        """
        slopes, offsets = self.planes()
        d = self.points.shape[1]
        out = np.empty((len(self), 1 + d + d * d))
        # Use the moments of the samples, not of the belief, because the two outcomes must add up to the samples' total.
        # Centring preserves precision for samples far from zero.
        mean, covariance = sample_moments(belief.samples, belief.weights)
        columns = np.ascontiguousarray((belief.samples - mean).T)
        moved = offsets + np.einsum("md,d->m", slopes, mean)
        reliability = belief.reliability
        if not self.response.compiled:
            out = expectations.reweighted_moments(self.response, (slopes, moved), columns.T, belief.weights)
        elif reliability is None and self.response.is_log_concave:
            arguments = (slopes, moved, columns, belief.weights)
            for_ranges(answer_moments, len(self), _SAMPLED_PAIRS_PER_CHUNK, *arguments, self.response.link, out)
        else:
            ones = np.ones(len(belief.weights))
            factors_and_lapses = (ones, self.response.lapse_rate * ones)
            if reliability is not None:
                factors_and_lapses = (reliability.k / logit_constant(self.response), np.array(reliability.lapse))
            mixed = ((slopes, moved), columns, belief.weights, factors_and_lapses, self.response.link, out)
            for_ranges(answer_moments_mixed, len(self), _SAMPLED_PAIRS_PER_CHUNK, *mixed)
        total = np.concatenate(([1.0], np.zeros(d), covariance.ravel()))
        outcomes = []
        for part in (out, total - out):
            rare = part[:, 0] < _MIN_PROBABILITY
            part = np.where(rare[:, None], total, part)
            shift = part[:, 1 : 1 + d] / part[:, :1]
            square = (part[:, 1 + d :] / part[:, :1]).reshape(-1, d, d)
            probability = np.where(rare, 0.0, np.minimum(part[:, 0], 1.0))
            outcomes.append((probability, mean + shift, square - shift[:, :, None] * shift[:, None, :]))
        return outcomes
