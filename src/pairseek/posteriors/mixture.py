"""Inference with unknown response parameters: a mixture over the nodes of a grid, weighted by their evidence.

With θ = (noise kind, log r, lapse), p(w, θ | answers) ∝ p(θ) p(answers | θ) p(w | answers, θ). At each node θ_i, the
posterior of the user point and the evidence p(answers | θ_i) are computed as for known parameters, by default with EP.
The belief is the mixture of these posteriors with weights p(θ_i) p(answers | θ_i). `parameter_nodes` places the nodes,
`mixture_samples` draws points, and `parameter_posterior` reports the posterior of θ.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from pairseek.core.types import Belief, BeliefInfo, Evidence
from pairseek.model.priors import Prior, WithResiduals, moments_of
from pairseek.model.responses import Response
from pairseek.posteriors.gaussian import log_prior_mass
from pairseek.posteriors.mixture_samples import GaussianMixture, JointSamples
from pairseek.posteriors.parameter_nodes import (
    Node,
    NodeInference,
    NoiseHypothesis,
    evidence_of,
    nodes_of,
    normalized_weights,
)
from pairseek.posteriors.parameter_posterior import reliability_of

# Nodes of less weight are not checked.
_MIN_CHECKED_WEIGHT = 0.02
# If the nodes that fail the check have a larger total weight than this, joint importance samples of all nodes replace
# the mixture.
_MAX_FAILED_WEIGHT = 0.1
# Joint importance samples are used if their effective size is at least _MIN_EFFECTIVE_FRACTION of their number, and at
# least _MIN_EFFECTIVE_PER_DIMENSION * (d + 1); otherwise the nodes that failed are refined one by one.
_MIN_EFFECTIVE_FRACTION = 0.1
_MIN_EFFECTIVE_PER_DIMENSION = 50.0
# At least this many joint importance samples are drawn for each of d + 1: the error of a covariance grows with d.
_MIN_SAMPLES_PER_DIMENSION = 384


def mixture_belief(
    evidence: Evidence, prior: Prior, response: Response, inference: NodeInference, points: int
) -> Belief:
    """Return the belief with the unknown parameters of the response integrated out.

    Lapses can make the posterior of the point multimodal, and EP finds one of the modes. Its Gaussians then only serve
    as a proposal for joint importance samples, together with the prior itself, which reaches every mode.
    """
    start_time = time.perf_counter()
    kinds = [
        NoiseHypothesis(single, math.log(probability), evidence_of(evidence, response, single))
        for single, probability in response.kinds
    ]
    # With residual utilities there are too many dimensions for importance samples.
    allows_samples = not inference.is_exact and len(evidence.offsets) > 0 and not isinstance(prior, WithResiduals)
    has_lapses = allows_samples and not (response.lapse_prior is None and response.lapse_rate == 0.0)

    def infer_nodes(*, all_lapses: bool) -> list[Node]:
        return [
            node
            for index, kind in enumerate(kinds)
            for node in nodes_of(index, kind, prior, inference, all_lapses=all_lapses)
        ]

    nodes = infer_nodes(all_lapses=not has_lapses)
    weights = normalized_weights([node.log_weight for node in nodes])

    def failed_nodes() -> list[int]:
        return [
            i
            for i in np.flatnonzero(weights > _MIN_CHECKED_WEIGHT).tolist()
            if not inference.is_accurate(nodes[i].point, nodes[i].factors, prior)
        ]

    source: GaussianMixture | JointSamples = GaussianMixture(tuple(nodes), weights, points)
    effective = None
    if has_lapses or (allows_samples and float(np.sum(weights[failed_nodes()])) > _MAX_FAILED_WEIGHT):
        count = max(points, _MIN_SAMPLES_PER_DIMENSION * (evidence.slopes.shape[1] + 1))
        joint = JointSamples(tuple(nodes), weights, tuple(kinds), prior, count, for_proposal=has_lapses)
        effective = joint.effective_samples
        if effective >= max(
            _MIN_EFFECTIVE_FRACTION * count, _MIN_EFFECTIVE_PER_DIMENSION * (evidence.slopes.shape[1] + 1.0)
        ):
            source = joint
        else:
            effective = None
            if has_lapses:
                nodes = infer_nodes(all_lapses=True)
                weights = normalized_weights([node.log_weight for node in nodes])
            for i in np.flatnonzero(weights > _MIN_CHECKED_WEIGHT).tolist() if has_lapses else failed_nodes():
                nodes[i] = replace(nodes[i], point=inference.refined(nodes[i].point, nodes[i].factors, prior))
            source = GaussianMixture(tuple(nodes), normalized_weights([node.log_weight for node in nodes]), points)
    d, log_evidence = evidence.slopes.shape[1], 0.0
    if len(evidence.offsets):
        mean, covariance = source.moments()
        log_evidence = source.log_evidence - log_prior_mass(prior, d)
    else:
        mean, covariance = moments_of(prior, d)
    for array in (mean, covariance):
        array.flags.writeable = False
    info = BeliefInfo(
        "mixture" if response.unknown else "weighted" if effective is not None else "particles",
        effective_samples=effective,
        logit_deviation=max(node.point.belief.info.logit_deviation for node in nodes),
        sweeps=max(node.point.belief.info.sweeps for node in nodes),
        nodes=len(nodes),
        log_evidence=log_evidence,
        seconds=time.perf_counter() - start_time,
    )
    return Belief(mean, covariance, info, source, reliability_of(source, tuple(kinds)) if response.unknown else None)
