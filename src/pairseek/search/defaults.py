"""Default parts of `Search(items)`; docs/reference/defaults.md gives their reasons."""

from __future__ import annotations

import warnings
from typing import cast

import numpy as np

from pairseek.core.validation import caller_level
from pairseek.errors import DefaultWarning
from pairseek.model.defaults import RESIDUAL_ALONE, check_spread, default_prior, spread_of
from pairseek.model.items import Items
from pairseek.model.priors import AnyPrior, GaussianPrior, Prior, is_density
from pairseek.model.responses import Logistic, Response
from pairseek.model.spaces import Space
from pairseek.model.unknowns import Unknown
from pairseek.pairs.context import Source
from pairseek.pairs.sources import AllPairs, ProposedPairs, SampledPairs, WeightedPairs
from pairseek.pairs.strategies.base import BaseUtility, Procedure, RandomUtility, Utility, strategy_of
from pairseek.posteriors import EP, Posterior
from pairseek.posteriors.base import posterior_of
from pairseek.search.goals import TASTE, SearchGoal

GAP = 0.03
"""Certified shortfall of the default choice, as a share of the best pair's utility."""
RESCORE = 0
"""Number of best pairs that the default scores again by samples."""
RESCORE_OWN = 64
"""The same where a response or a prior has formulas of its own, for which no table is right."""
RESCORE_UNKNOWN = 16
"""The same where k is unknown, and the score by table takes k for independent of the point."""
DRAWN = 20_000
"""Number of pairs that are drawn for `InfoGain` where k is unknown and pairs are many."""
RESCORE_DRAWN = 512
"""Number of the best of them that are scored again by samples."""
LISTED = 500_000
"""Largest number of pairs that are all scored for a strategy whose score cannot be bounded."""
FEW = 100_000
"""Largest number of pairs that are all scored for any strategy: as fast as branch and bound, without compiling it."""
ROUGH = 2_000_000
"""Budget of branch and bound, in pairs, where k is unknown."""
BRIEF = 100_000
"""The same where the curvature is unknown: few items are far out, and bounds on pairs with them are loose."""
MANY_DIMENSIONS = 20
"""Dimensions from which pairs are proposed, since branch and bound takes longer and finds no better ones."""
PROMISING = 256
"""Promising items of which all pairs are scored, where the curvature is unknown."""
IMPROVED = 4
"""Those of them whose best partner among all items is sought."""
TIE_WIDTH = 0.5
"""Width of a tie in logits where a study offers ties: a pair of even odds is then a tie with probability 0.24."""


def default_response(items: Items | Space, prior: Prior | None = None, posterior: Posterior | None = None) -> Response:
    """Return the logistic model; for items, with the residual and the curvature of utilities unknown.

    Whether people like what is near to a point or what is far in a direction, and how much taste the coordinates leave
    unexplained, differs from one embedding to the next, so both are inferred. In a space, for a posterior or a prior
    that does not allow it, the default is the paper's model.
    """
    if not len(items.coordinates):
        return Logistic()
    if not items.d:
        return Logistic(1.0, "constant", residual=RESIDUAL_ALONE)
    if posterior is not None and not posterior_of(posterior).takes_residuals:
        return Logistic()
    prior = default_prior(items) if prior is None else prior
    if is_density(prior):
        return Logistic()
    if not isinstance(prior, GaussianPrior):
        return Logistic(residual=Unknown())
    k = 1.0 / (spread_of(prior, items.d) ** 2 * np.sqrt(items.d))
    return Logistic(float(k), "constant", residual=Unknown(), curvature=Unknown())


def warn_of_response(items: Items | Space, prior: Prior, posterior: Posterior) -> None:
    """Warn the caller of `Search` where the posterior, or a prior of their own, changes the default response."""
    density = is_density(prior)
    response, usual = default_response(items, prior, posterior), default_response(items, None if density else prior)
    if response == usual:
        return
    if density:
        cause, other = f"{type(prior).__name__} is a density of its own", "a GaussianPrior"
    else:
        cause, other = f"{type(posterior).__name__} cannot infer residual utilities", "EP() or Particles()"
    warnings.warn(
        f"{cause}, so the default response is Logistic(), the paper's model with {response.noise} noise: give "
        f"response=ps.Logistic() to say that you want it, or use {other}",
        DefaultWarning,
        stacklevel=caller_level(),
    )


def resolve(
    items: Items | Space,
    response: Response | None,
    prior: AnyPrior | None,
    posterior: Posterior | None,
    strategy: Utility | RandomUtility | Procedure | None,
    goal: SearchGoal = TASTE,
) -> tuple[Response, Prior, Posterior, Utility | Procedure]:
    """Return the parts with every None replaced by the default for these items."""
    prior = default_prior(items) if prior is None else cast("Prior", prior)
    spread = spread_of(prior, items.d)
    check_spread(spread)
    posterior = EP() if posterior is None else posterior
    response = default_response(items, prior, posterior) if response is None else response
    response = response.for_spread(spread)
    if strategy is None:
        strategy = goal.strategy(response)
    return response, prior, posterior, strategy_of(strategy).resolved(items, prior)


def default_candidates(
    items: Items | Space, strategy: BaseUtility | None, response: Response, prior: Prior | None = None
) -> Source | None:
    """Return the source of pairs for these items and a utility; None where a space or a procedure needs none.

    The best of all pairs for a strategy whose score can be bounded, and in many dimensions that of a proposal; with an
    unknown k the best of a sample, for `InfoGain`; for any other strategy all pairs while they are few, else a sample
    that favours pairs of high information.
    """
    if strategy is None or not len(items.coordinates):
        return None
    shape = strategy.usable_shape(response)
    count = len(items.coordinates) * (len(items.coordinates) - 1) // 2
    sampled = RESCORE_OWN if not response.compiled or is_density(prior) else RESCORE
    if shape is None and count > LISTED and strategy.promising is None:
        return WeightedPairs(rescore=sampled)
    if sampled:
        return AllPairs(gap=GAP, rescore=sampled, listed=FEW)
    if shape is not None and items.d >= MANY_DIMENSIONS:
        return ProposedPairs(rescore=RESCORE_UNKNOWN if response.unknown else RESCORE, listed=FEW)
    if response.curvature_prior is not None:
        proposes = shape is not None and shape.kind == "table" and strategy.promising is None
        if proposes and not response.unknown:
            return ProposedPairs(items=PROMISING, improved=IMPROVED, rescore=RESCORE, listed=FEW)
        return AllPairs(gap=GAP, budget=BRIEF, rescore=RESCORE, listed=FEW)
    many = count > FEW
    if response.unknown and many and shape is not None and (shape.kind, shape.table) == ("table", "information"):
        # Fewer of these questions are spent on the reliability of people who are reliable: see the benchmarks.
        return SampledPairs(count=DRAWN, rescore=RESCORE_DRAWN, shared=True)
    # With an unknown k the utility is flat, so that a certificate takes long, and the score is an approximation anyway.
    if response.unknown:
        return AllPairs(gap=GAP, budget=ROUGH, rescore=RESCORE_UNKNOWN, listed=FEW)
    return AllPairs(gap=GAP, rescore=RESCORE, listed=FEW)
