"""Default parts of `Search(items)`; docs/reference/defaults.md explains them."""

from __future__ import annotations

import warnings
from typing import cast

import numpy as np

from pairseek.core.validation import caller_level
from pairseek.errors import DefaultWarning
from pairseek.model.defaults import (
    RESIDUAL,
    RESIDUAL_WITHOUT_COORDINATES,
    SCALED_K,
    check_spread,
    default_prior,
    spread_of,
)
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

MAX_RELATIVE_GAP = 0.03
"""Certified maximum shortfall of the default choice, as a fraction of the best pair's utility."""
RESCORED_PAIRS = 0
"""Number of best pairs that the default rescores by samples."""
RESCORED_PAIRS_CUSTOM_FORMULAS = 64
"""`RESCORED_PAIRS` for a response or prior with formulas of its own, which the tables do not cover."""
RESCORED_PAIRS_UNKNOWN_K = 16
"""`RESCORED_PAIRS` if k is unknown: scores from tables assume that k is independent of the user point."""
SAMPLED_PAIRS_UNKNOWN_K = 20_000
"""Number of pairs sampled for `InfoGain` if k is unknown and there are many pairs."""
RESCORED_SAMPLED_PAIRS = 512
"""Number of the best of these pairs that are rescored by samples."""
MAX_SCORED_PAIRS_WITHOUT_BOUNDS = 500_000
"""Up to this number of pairs, a strategy without bounds on its score scores all of them."""
MAX_SCORED_PAIRS = 100_000
"""Up to this number of pairs, every strategy scores all of them: as fast as branch and bound, without compiling."""
BUDGET_UNKNOWN_K = 2_000_000
"""Budget of branch and bound, in pairs, if k is unknown."""
BUDGET_UNKNOWN_CURVATURE = 100_000
"""Budget of branch and bound, in pairs, if the curvature is unknown: bounds on pairs of remote items are loose."""
MIN_DIMENSIONS_FOR_PROPOSALS = 20
"""Dimensions from which pairs are proposed, because branch and bound takes longer and finds no better pairs."""
PROMISING_ITEMS = 256
"""If the curvature is unknown, all pairs among this many promising items are scored."""
IMPROVED_ITEMS = 4
"""Number of promising items for which the best partner among all items is sought."""
TIE_WIDTH = 0.5
"""Half-width of ties in logits if a study offers ties: a pair with even odds is then a tie with probability 0.24."""


def default_response(items: Items | Space, prior: Prior | None = None, posterior: Posterior | None = None) -> Response:
    """Return the logistic model; for items, with residual utilities and an unknown curvature.

    Coordinates do not explain all of a person's taste, and embeddings differ in whether people like items near a point
    or far in a direction. In a space, or with a posterior or prior that does not support this model, the default is the
    paper's model.
    """
    if not len(items.coordinates):
        return Logistic()
    if not items.d:
        return Logistic(1.0, "constant", residual=RESIDUAL_WITHOUT_COORDINATES)
    if posterior is not None and not posterior_of(posterior).takes_residuals:
        return Logistic()
    prior = default_prior(items) if prior is None else prior
    if is_density(prior):
        return Logistic()
    if not isinstance(prior, GaussianPrior):
        return Logistic(residual=RESIDUAL)
    k = SCALED_K / (spread_of(prior, items.d) ** 2 * np.sqrt(items.d))
    return Logistic(float(k), "constant", residual=RESIDUAL, curvature=Unknown())


def warn_about_default_response(items: Items | Space, prior: Prior, posterior: Posterior) -> None:
    """Warn the caller of `Search` if the posterior, or a prior of their own, changes the default response."""
    is_custom_density = is_density(prior)
    response, usual_response = (
        default_response(items, prior, posterior),
        default_response(items, None if is_custom_density else prior),
    )
    if response == usual_response:
        return
    if is_custom_density:
        cause, alternative = f"{type(prior).__name__} is a custom density", "a GaussianPrior"
    else:
        cause, alternative = f"{type(posterior).__name__} cannot infer residual utilities", "EP() or Particles()"
    warnings.warn(
        f"{cause}, so the default response is Logistic(), the paper's model with {response.noise} noise: give "
        f"response=ps.Logistic() to confirm it, or use {alternative}",
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
    """Replace every None by the default for these items."""
    prior = default_prior(items) if prior is None else cast("Prior", prior)
    spread = spread_of(prior, items.d)
    check_spread(spread, "prior")
    posterior = EP() if posterior is None else posterior
    response = default_response(items, prior, posterior) if response is None else response
    response = response.for_spread(spread)
    if strategy is None:
        strategy = goal.strategy(response)
    return response, prior, posterior, strategy_of(strategy).resolved(items, prior)


def default_candidates(
    items: Items | Space, strategy: BaseUtility | None, response: Response, prior: Prior | None = None
) -> Source | None:
    """Return the default source of pairs; None for a space or a procedure, which need none.

    If the score can be bounded, the source finds the best of all pairs or, in many dimensions, of proposed ones. With
    an unknown k, `InfoGain` takes the best pair of a sample. Any other strategy scores all pairs while they are few,
    and otherwise a sample that favours informative pairs.
    """
    if strategy is None or not len(items.coordinates):
        return None
    shape = strategy.usable_shape(response)
    count = len(items.coordinates) * (len(items.coordinates) - 1) // 2
    sampled = RESCORED_PAIRS_CUSTOM_FORMULAS if not response.compiled or is_density(prior) else RESCORED_PAIRS
    if shape is None and count > MAX_SCORED_PAIRS_WITHOUT_BOUNDS and strategy.promising is None:
        return WeightedPairs(rescore=sampled)
    if sampled:
        return AllPairs(gap=MAX_RELATIVE_GAP, rescore=sampled, listed=MAX_SCORED_PAIRS)
    if shape is not None and items.d >= MIN_DIMENSIONS_FOR_PROPOSALS:
        return ProposedPairs(
            rescore=RESCORED_PAIRS_UNKNOWN_K if response.unknown else RESCORED_PAIRS, listed=MAX_SCORED_PAIRS
        )
    if response.curvature_prior is not None:
        proposes = shape is not None and shape.kind == "table" and strategy.promising is None
        if proposes and not response.unknown:
            return ProposedPairs(
                items=PROMISING_ITEMS, improved=IMPROVED_ITEMS, rescore=RESCORED_PAIRS, listed=MAX_SCORED_PAIRS
            )
        return AllPairs(
            gap=MAX_RELATIVE_GAP, budget=BUDGET_UNKNOWN_CURVATURE, rescore=RESCORED_PAIRS, listed=MAX_SCORED_PAIRS
        )
    many = count > MAX_SCORED_PAIRS
    if response.unknown and many and shape is not None and (shape.kind, shape.table) == ("table", "information"):
        # A sample spends fewer questions on the reliability of reliable people: see the benchmarks.
        return SampledPairs(count=SAMPLED_PAIRS_UNKNOWN_K, rescore=RESCORED_SAMPLED_PAIRS, shared=True)
    # With an unknown k the utility is flat: a certificate would take long, and the score is approximate anyway.
    if response.unknown:
        return AllPairs(
            gap=MAX_RELATIVE_GAP, budget=BUDGET_UNKNOWN_K, rescore=RESCORED_PAIRS_UNKNOWN_K, listed=MAX_SCORED_PAIRS
        )
    return AllPairs(gap=MAX_RELATIVE_GAP, rescore=RESCORED_PAIRS, listed=MAX_SCORED_PAIRS)
