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
from pairseek.pairs.sources import AllPairs, ProposedPairs
from pairseek.pairs.strategies.base import BaseUtility, Procedure, RandomUtility, Utility, strategy_of
from pairseek.posteriors import EP, Posterior
from pairseek.posteriors.base import posterior_of
from pairseek.search.goals import TASTE, SearchGoal

MAX_RELATIVE_GAP = 0.03
"""Certified maximum shortfall of the default choice, as a fraction of the best pair's utility."""
MAX_SCORED_PAIRS = 100_000
"""Up to this number of pairs, every strategy scores all of them: as fast as branch and bound, without compiling."""
RESCORED_PAIRS = 64
"""Number of best pairs that are rescored by samples where tables are inaccurate: a response or prior with formulas of
its own, and an unknown k or lapse, which the tables treat as independent of the user point."""
MIN_DIMENSIONS_FOR_PROPOSALS = 20
"""Dimensions from which pairs are proposed, because branch and bound takes longer and finds no better pairs."""
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

    Under the paper's model, the source finds the best of all pairs. Pairs are proposed where bounds are loose (in many
    dimensions, and with an unknown curvature), where scores by table are approximate anyway (with an unknown k or
    lapse), and for a strategy without bounds, of which `ProposedPairs` scores all pairs or a weighted sample.
    """
    if strategy is None or not len(items.coordinates):
        return None
    is_approximate = response.unknown or not response.compiled or is_density(prior)
    rescored = RESCORED_PAIRS if is_approximate else 0
    has_loose_bounds = response.curvature_prior is not None or items.d >= MIN_DIMENSIONS_FOR_PROPOSALS
    if has_loose_bounds or response.unknown or strategy.usable_shape(response) is None:
        return ProposedPairs(rescore=rescored, listed=MAX_SCORED_PAIRS)
    return AllPairs(gap=MAX_RELATIVE_GAP, rescore=rescored, listed=MAX_SCORED_PAIRS)
