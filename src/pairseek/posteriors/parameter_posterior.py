"""Posterior of the unknown response parameters: k, the lapse rate and the noise kind."""

from __future__ import annotations

import math

import numpy as np

from pairseek.core.types import FloatArray, Reliability, SampleReliability
from pairseek.model.responses import Response
from pairseek.numerics.constants import GOLDEN_FRACTION
from pairseek.posteriors.mixture_samples import GaussianMixture, JointSamples, Parameters
from pairseek.posteriors.parameter_nodes import NoiseHypothesis, normalized_weights

# Number of samples with a conditional distribution of the parameters.
_CONDITIONAL_ROWS = 256
# Steps of the reported distribution between two nodes of log r.
_STEPS_PER_NODE = 6
# Number of lapses in the reported distribution.
_REPORTED_LAPSES = 48


def reliability_of(source: GaussianMixture | JointSamples, kinds: tuple[NoiseHypothesis, ...]) -> Reliability:
    """Return the posterior of the parameters; k and the lapse rate refer to the likeliest noise kind."""
    parameters = source.parameters
    probabilities = np.bincount(parameters.kind, parameters.weight, minlength=len(kinds))
    likeliest = int(np.argmax(probabilities))
    response = kinds[likeliest].response
    of_kind = parameters.kind == likeliest
    attentive = of_kind & (parameters.lapse < 1.0)
    weights = parameters.weight[attentive] / max(float(np.sum(parameters.weight[attentive])), 1e-300)
    logs = parameters.log_factor[attentive]
    mean = float(np.sum(weights * logs))
    reference = response.typical_reliability * response.typical_k
    return Reliability(
        typical_k=reference * math.exp(mean),
        spread=math.sqrt(max(float(np.sum(weights * (logs - mean) ** 2)), 0.0)),
        typical_lapse=float(np.sum(parameters.weight[of_kind] * parameters.lapse[of_kind]) / probabilities[likeliest]),
        noise={str(kind.response.noise): float(p) for kind, p in zip(kinds, probabilities, strict=True)},
        distribution=lambda: _distribution(parameters, of_kind, response, reference),
        compute_samples=lambda: _sample_reliability(source, parameters, of_kind, reference),
    )


def _sample_reliability(
    source: GaussianMixture | JointSamples, parameters: Parameters, of_kind: np.ndarray, reference: float
) -> SampleReliability:
    """Return the parameters of each sample, and their conditional distribution at a subset of the samples."""
    node = source.default_samples.node
    count = min(len(node), _CONDITIONAL_ROWS)
    # Rows at golden-ratio steps, because evenly spaced rows of a Halton sequence are not evenly spread points.
    rows = np.unique((GOLDEN_FRACTION * np.arange(1, count + 1) % 1.0 * len(node)).astype(np.int64))
    count = len(rows)
    node_probabilities = source.node_probabilities(rows)
    values, group = np.unique(parameters.log_factor[of_kind], return_inverse=True)
    chances, lapses = np.zeros((count, len(values))), np.zeros((count, len(values)))
    for target, column in zip(group.tolist(), np.flatnonzero(of_kind).tolist(), strict=True):
        chances[:, target] += node_probabilities[:, column]
        lapses[:, target] += node_probabilities[:, column] * parameters.lapse[column]
    lapses /= np.maximum(chances, 1e-300)
    chances /= np.maximum(np.sum(chances, axis=1, keepdims=True), 1e-300)
    k = reference * np.exp(parameters.log_factor[node])
    arrays = (k, parameters.lapse[node], rows, reference * np.exp(values), chances, lapses)
    for array in arrays:
        array.flags.writeable = False
    return SampleReliability(*arrays)


def _distribution(
    parameters: Parameters, of_kind: np.ndarray, response: Response, reference: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return values of k, lapses and their probabilities, interpolating the log evidence between the nodes."""
    attentive = of_kind & (parameters.lapse < 1.0)
    usable = attentive & np.isfinite(parameters.log_evidence)
    lapses, log_factors = np.unique(parameters.lapse[usable]), np.unique(parameters.log_factor[usable])
    fine, log_prior = log_factors, np.zeros(1)
    if len(log_factors) > 1:
        assert response.factor_prior is not None
        fine = np.linspace(log_factors[0], log_factors[-1], _STEPS_PER_NODE * (len(log_factors) - 1) + 1)
        log_prior = -0.5 * (fine / response.factor_prior.spread) ** 2
    levels = np.stack([_interpolated(parameters, usable & (parameters.lapse == lapse), fine) for lapse in lapses])
    shown, shares = lapses, np.ones(1)
    prior = response.lapse_prior
    if prior is not None:
        # Space values more densely in the tails of the prior, where people who answer at random end up.
        edges = 0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, _REPORTED_LAPSES + 1))
        shown, shares = prior.quantiles(0.5 * (edges[1:] + edges[:-1])), np.diff(edges)
        levels = np.where(
            (shown > lapses[-1])[:, None],
            _linear(lapses, levels, shown),
            _polynomial(lapses, levels, shown),
        )
    logs = log_prior + levels + np.log(shares)[:, None]
    k, lapse = np.broadcast_arrays(reference * np.exp(fine), shown[:, None])
    random = float(np.sum(parameters.weight[of_kind & ~attentive]) / np.sum(parameters.weight[of_kind]))
    chance = np.append((1.0 - random) * normalized_weights(logs.ravel()), random)
    # Answers at random say nothing about k; assigning them the typical k leaves the median unchanged.
    weights = parameters.weight[attentive]
    typical = math.exp(float(np.sum(weights * parameters.log_factor[attentive]) / np.sum(weights)))
    return np.append(k.ravel(), reference * typical), np.append(lapse.ravel(), 1.0), chance


def _interpolated(parameters: Parameters, rows: np.ndarray, fine: FloatArray) -> FloatArray:
    """Return the log evidence at one lapse rate for values of log r: cubic between the nodes, linear beyond them."""
    order = np.argsort(parameters.log_factor[rows])
    x, y = parameters.log_factor[rows][order], parameters.log_evidence[rows][order]
    beyond = _linear(x, y[:, None], fine)[:, 0]
    if len(x) < 4:
        return beyond
    step = (x[-1] - x[0]) / (len(x) - 1)
    first = np.clip(np.floor((fine - x[0]) / step).astype(np.int64) - 1, 0, len(x) - 4)
    t = (fine - x[first]) / step
    basis = np.stack(
        [
            -(t - 1.0) * (t - 2.0) * (t - 3.0) / 6.0,
            t * (t - 2.0) * (t - 3.0) / 2.0,
            -t * (t - 1.0) * (t - 3.0) / 2.0,
            t * (t - 1.0) * (t - 2.0) / 6.0,
        ]
    )
    inside = np.sum(basis * y[first + np.arange(4)[:, None]], axis=0)
    return np.where((fine < x[0]) | (fine > x[-1]), beyond, inside)


def _polynomial(x: FloatArray, y: FloatArray, fine: FloatArray) -> FloatArray:
    """Return (len(fine), columns) values of the Lagrange polynomial through (len(x), columns) values."""
    out = np.zeros((len(fine), y.shape[1]))
    for i in range(len(x)):
        others = np.delete(x, i)
        out += np.prod((fine[:, None] - others) / (x[i] - others), axis=1)[:, None] * y[i]
    return out


def _linear(x: FloatArray, y: FloatArray, fine: FloatArray) -> FloatArray:
    """Return (len(fine), columns) linear interpolations of (len(x), columns) values, extrapolated at both ends."""
    if len(x) == 1:
        return np.repeat(y, len(fine), axis=0)
    i = np.clip(np.searchsorted(x, fine) - 1, 0, len(x) - 2)
    share = ((fine - x[i]) / (x[i + 1] - x[i]))[:, None]
    return np.asarray((1.0 - share) * y[i] + share * y[i + 1])
