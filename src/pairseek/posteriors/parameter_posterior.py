"""Posterior of unknown parameters of the response: what a belief says of k, of the lapse and of the noise kind."""

from __future__ import annotations

import math

import numpy as np

from pairseek.core.types import FloatArray, Reliability, SampleReliability
from pairseek.model.responses import Response
from pairseek.posteriors.mixture_samples import GOLDEN, GaussianMixture, JointSamples, Parameters
from pairseek.posteriors.parameter_nodes import Kind, normalized

# Samples with a conditional distribution of the parameters.
_ROWS = 256
# Points of the reported distribution between two nodes of log r, and of the lapse.
_FINE = 6
_FINE_LAPSES = 48


def reliability_of(source: GaussianMixture | JointSamples, kinds: tuple[Kind, ...]) -> Reliability:
    """Return the posterior of the parameters; k and lapse under the likeliest noise kind."""
    found = source.parameters
    share = np.bincount(found.kind, found.weight, minlength=len(kinds))
    likeliest = int(np.argmax(share))
    response = kinds[likeliest].response
    own = found.kind == likeliest
    looks = own & (found.lapse < 1.0)
    weights, logs = found.weight[looks] / max(float(np.sum(found.weight[looks])), 1e-300), found.log_factor[looks]
    mean = float(np.sum(weights * logs))
    reference = response.typical_reliability * response.typical_k
    return Reliability(
        typical_k=reference * math.exp(mean),
        spread=math.sqrt(max(float(np.sum(weights * (logs - mean) ** 2)), 0.0)),
        typical_lapse=float(np.sum(found.weight[own] * found.lapse[own]) / share[likeliest]),
        noise={str(kind.response.noise): float(part) for kind, part in zip(kinds, share, strict=True)},
        distribution=lambda: _distribution(found, own, response, reference),
        of_samples=lambda: _of_samples(source, found, own, reference),
    )


def _of_samples(
    source: GaussianMixture | JointSamples, found: Parameters, own: np.ndarray, reference: float
) -> SampleReliability:
    """Return the parameters of each sample, and their conditional distribution at some of the points."""
    node = source.drawn.node
    count = min(len(node), _ROWS)
    # Evenly strided points of a Halton sequence are not evenly spread.
    rows = np.unique((GOLDEN * np.arange(1, count + 1) % 1.0 * len(node)).astype(np.int64))
    count = len(rows)
    chance = source.conditional(rows)
    values, group = np.unique(found.log_factor[own], return_inverse=True)
    chances, lapses = np.zeros((count, len(values))), np.zeros((count, len(values)))
    for place, column in zip(group.tolist(), np.flatnonzero(own).tolist(), strict=True):
        chances[:, place] += chance[:, column]
        lapses[:, place] += chance[:, column] * found.lapse[column]
    lapses /= np.maximum(chances, 1e-300)
    chances /= np.maximum(np.sum(chances, axis=1, keepdims=True), 1e-300)
    k = reference * np.exp(found.log_factor[node])
    arrays = (k, found.lapse[node], rows, reference * np.exp(values), chances, lapses)
    for array in arrays:
        array.flags.writeable = False
    return SampleReliability(*arrays)


def _distribution(
    found: Parameters, own: np.ndarray, response: Response, reference: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return values of k, lapses and their probabilities: the log evidence is interpolated between the nodes."""
    looks = own & (found.lapse < 1.0)
    usable = looks & np.isfinite(found.log_evidence)
    lapses, places = np.unique(found.lapse[usable]), np.unique(found.log_factor[usable])
    fine, log_prior = places, np.zeros(1)
    if len(places) > 1:
        assert response.factor_prior is not None
        fine = np.linspace(places[0], places[-1], _FINE * (len(places) - 1) + 1)
        log_prior = -0.5 * (fine / response.factor_prior.spread) ** 2
    levels = np.stack([_interpolated(found, usable & (found.lapse == lapse), fine) for lapse in lapses])
    shown, shares = lapses, np.ones(1)
    prior = response.lapse_prior
    if prior is not None:
        # More places in the tails of the prior, where the posterior of somebody who answers at random is.
        edges = 0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, _FINE_LAPSES + 1))
        shown, shares = prior.quantiles(0.5 * (edges[1:] + edges[:-1])), np.diff(edges)
        levels = np.where(
            (shown > lapses[-1])[:, None],
            _between(lapses, levels, shown),
            _polynomial(lapses, levels, shown),
        )
    logs = log_prior + levels + np.log(shares)[:, None]
    k, lapse = np.broadcast_arrays(reference * np.exp(fine), shown[:, None])
    random = float(np.sum(found.weight[own & ~looks]) / np.sum(found.weight[own]))
    chance = np.append((1.0 - random) * normalized(logs.ravel()), random)
    # Nothing is known of the k of somebody who answers at random; the typical one leaves the median as it is.
    typical = math.exp(float(np.sum(found.weight[looks] * found.log_factor[looks]) / np.sum(found.weight[looks])))
    return np.append(k.ravel(), reference * typical), np.append(lapse.ravel(), 1.0), chance


def _interpolated(found: Parameters, rows: np.ndarray, fine: FloatArray) -> FloatArray:
    """Return the log evidence of one lapse at values of log r, by cubic interpolation; lines beyond the nodes."""
    order = np.argsort(found.log_factor[rows])
    x, y = found.log_factor[rows][order], found.log_evidence[rows][order]
    beyond = _between(x, y[:, None], fine)[:, 0]
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
    """Return (len(fine), columns) values of the polynomial through (len(x), columns) values: Lagrange's formula."""
    out = np.zeros((len(fine), y.shape[1]))
    for i in range(len(x)):
        others = np.delete(x, i)
        out += np.prod((fine[:, None] - others) / (x[i] - others), axis=1)[:, None] * y[i]
    return out


def _between(x: FloatArray, y: FloatArray, fine: FloatArray) -> FloatArray:
    """Return (len(fine), columns) linear interpolations of (len(x), columns), extended by the outermost lines."""
    if len(x) == 1:
        return np.repeat(y, len(fine), axis=0)
    i = np.clip(np.searchsorted(x, fine) - 1, 0, len(x) - 2)
    share = ((fine - x[i]) / (x[i + 1] - x[i]))[:, None]
    return np.asarray((1.0 - share) * y[i] + share * y[i + 1])
