"""Posterior of the items' mean utilities over a population, with individual tastes integrated out.

In the population model of `pairseek.people.population.fit`, a person's utilities are base_i + V_i·z, where z ~ N(0, S)
differs between people, so base holds the mean utilities. They are linear in coefficients c, base = B c, whose posterior
is approximated by a Gaussian around the estimate: each choice counts as an observation of its logit with the expected
curvature of its likelihood, and z is eliminated person by person. Their covariance S remains uncertain if people are
few, so the Gaussian is widened to a t distribution with one degree of freedom less than there are people.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.special import softmax

from pairseek.core.text import plural
from pairseek.core.types import FloatArray, IntArray
from pairseek.errors import InvalidChoices, InvalidParameter
from pairseek.model.items import Items
from pairseek.people.choices import Choices
from pairseek.people.population.data import PairData
from pairseek.people.population.e_step import beliefs
from pairseek.people.population.fit import fit
from pairseek.people.population.fit_state import FitState, Start
from pairseek.people.population.model import FitOptions, start_of
from pairseek.people.population.predictive import MAX_TREND_ITEMS, expected_slope

# Minimum number of people for a group ranking.
MIN_PEOPLE = 3
# Maximum number of dimensions of taste learned for items without coordinates.
_MAX_DIMENSIONS = 2
# Maximum number of EM iterations. The mean utilities converge well before the covariance of people.
_MAX_ITERATIONS = 100
# Maximum number of compared items without coordinates, whose covariance is one matrix.
_MAX_COMPARED = 4000

# The scale of S, the covariance of people, relative to the default model: prior standard deviation of its logarithm,
# and the logarithms at which its posterior is computed.
_LOG_SPREAD_DEVIATION = 1.0
_LOG_SPREADS = np.linspace(-2.0, 5.0, 15)
# With more people than this, the scale of S is taken as estimated: its posterior mean is then within a few percent.
_MAX_RESCALED_PEOPLE = 300


@dataclass(frozen=True, eq=False)
class UtilityPosterior:
    """Fit of a population model, and the posterior of the items' mean utilities.

    Attributes
    ----------
    choices
        Choices of the people who count, over all items.
    base
        (n,) estimates of the mean utilities, in logits.
    design, precision_root
        (n, b) matrix B, and the (b, b) Cholesky factor of the precision of the coefficients.
    degrees_of_freedom
        Degrees of freedom of the t distribution.
    factors, taste_covariance
        (n, d) factors V and (d, d) covariance S of the people's tastes.
    person_means, person_covariances
        (people, d) means and (people, d, d) covariances of each person's posterior of z.
    trust
        (people,) posterior probabilities that a person's answers are informative.
    tie_width
        Half-width of ties in logits.
    """

    choices: Choices
    base: FloatArray
    design: sparse.csr_array
    precision_root: FloatArray
    degrees_of_freedom: float
    factors: FloatArray
    taste_covariance: FloatArray
    person_means: FloatArray
    person_covariances: FloatArray
    trust: FloatArray
    tie_width: float

    def draws(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw (count, n) mean utilities from the posterior."""
        noise = np.linalg.solve(self.precision_root.T, rng.standard_normal((self.precision_root.shape[0], count)))
        noise *= np.sqrt(self.degrees_of_freedom / rng.chisquare(self.degrees_of_freedom, size=count))
        return np.asarray(self.base + np.asarray(self.design @ noise).T)


def group_choices(choices: Choices, items: Items | None) -> Choices:
    """Return the choices of the people with usable pairs; raise `InvalidChoices` if a group ranking is impossible."""
    if not isinstance(choices, Choices):
        raise InvalidParameter(
            f"choices is {choices!r}: give Choices, as from Choices.read('choices.csv') or Choices.from_pairs(rows)",
            field="choices",
        )
    if items is not None:
        if not isinstance(items, Items):
            raise InvalidParameter(f"items is a {type(items).__name__}: give Items, or leave items out", field="items")
        choices = choices.of_items(items.ids)
    # Ratings count as the pairs that they imply.
    usable = replace(choices, ratings=None).usable()
    if not len(usable):
        ties = usable.ties or choices.ties
        reason = f"all {plural(ties, 'answer')} are ties" if ties else "nobody compared two items"
        raise InvalidChoices(
            f"there is nothing to rank: {reason}; collect answers that prefer one item to another",
            reason="ties" if ties else "no_pair",
            count=ties,
        )
    if len(usable.people) < MIN_PEOPLE:
        count = "1 person" if len(usable.people) == 1 else f"{len(usable.people)} people"
        raise InvalidChoices(
            f"only {count} gave usable answers, and a group ranking needs at least {MIN_PEOPLE} people: collect more "
            f"answers",
            reason="few_people",
            count=len(usable.people),
        )
    return usable


def mean_utilities(choices: Choices, items: Items | None = None) -> UtilityPosterior:
    """Fit the population model to choices, and return the posterior of the mean utilities.

    Without coordinates, up to two dimensions of taste are learned from the choices. More than 1500 items with
    coordinates get no individual appeal: they differ only by their coordinates.
    """
    usable = group_choices(choices, items)
    return _fit_posterior(usable, FitInputs.of(usable, items))


@dataclass(frozen=True, eq=False)
class FitInputs:
    """Inputs of the population model behind a ranking.

    Attributes
    ----------
    choices
        Choices of the compared items.
    items
        The items if they have coordinates, otherwise None.
    fit_options
        Options of the fit.
    rows
        Rows of the compared items among all items.
    """

    choices: Choices
    items: Items | None
    fit_options: FitOptions
    rows: IntArray

    @classmethod
    def of(cls, usable: Choices, items: Items | None) -> FitInputs:
        """Return the inputs for usable choices; raise `InvalidChoices` if they compare too many items."""
        if items is not None and items.d:
            return cls(usable, items, FitOptions(appeal=items.n <= MAX_TREND_ITEMS), np.arange(items.n))
        # Items that nobody compared are left out of the fit, and then get the distribution of all items.
        compared = np.unique(np.concatenate([usable.winner, usable.loser, usable.outcomes[:, 1:].ravel()]))
        if len(compared) > _MAX_COMPARED:
            raise InvalidChoices(
                f"the choices compare {len(compared)} items without coordinates, but a ranking takes at most "
                f"{_MAX_COMPARED}: give items with coordinates",
                reason="many_items",
                count=len(compared),
            )
        about_compared = usable.of_items([usable.ids[row] for row in compared])
        return cls(about_compared, None, FitOptions(dimension=min(_MAX_DIMENSIONS, len(compared) - 1)), compared)


def _fit_posterior(usable: Choices, inputs: FitInputs) -> UtilityPosterior:
    """Fit the model to choices about the compared items, then add the other items."""
    data, items, rows = PairData.of(inputs.choices), inputs.items, inputs.rows
    start = start_of(data, inputs.fit_options, items)
    state = fit(data, start, rounds=_MAX_ITERATIONS)
    if items is not None:
        # A small number of noisy people often look alike by chance.
        scale = spread_scale(data, start, state, state.trust)
        state = replace(state, spread=scale * state.spread)
    design = sparse.csr_array(np.eye(data.n) if start.basis is None else start.basis)
    deviation = np.where(np.isnan(start.prior_deviation), state.scale, start.prior_deviation)
    precision = marginal_information(data, start, state, design) + np.diag(deviation**-2.0)
    root, base, factors = np.asarray(np.linalg.cholesky(precision)), start.base(state.coefficients), state.factors
    n = len(usable.ids)
    if len(rows) < n:
        base, factors, design, root = _with_unseen(n, rows, base, factors, design, root, state.scale)
    return UtilityPosterior(
        usable,
        base,
        design,
        root,
        max(float(state.trust.sum()) - 1.0, 1.0),
        factors,
        state.spread,
        state.posteriors.mean,
        state.posteriors.covariance,
        state.trust,
        float(state.thresholds.sum()),
    )


def _with_unseen(
    n: int,
    rows: IntArray,
    base: FloatArray,
    factors: FloatArray,
    design: sparse.csr_array,
    root: FloatArray,
    deviation: float,
) -> tuple[FloatArray, FloatArray, sparse.csr_array, FloatArray]:
    """Add the items that nobody compared, with the estimated distribution of all items' utilities."""
    unseen = np.setdiff1d(np.arange(n), rows)
    order = np.argsort(np.concatenate([rows, unseen]))
    base = np.concatenate([base, np.full(len(unseen), base.mean())])[order]
    factors = np.concatenate([factors, np.tile(factors.mean(axis=0), (len(unseen), 1))])[order]
    full_design = sparse.block_diag([design, sparse.eye_array(len(unseen))], format="csr")
    root = np.asarray(
        np.block(
            [
                [root, np.zeros((len(root), len(unseen)))],
                [np.zeros((len(unseen), len(root))), np.eye(len(unseen)) / deviation],
            ]
        )
    )
    return base, factors, sparse.csr_array(full_design[order]), root


def marginal_information(data: PairData, start: Start, state: FitState, design: sparse.csr_array) -> FloatArray:
    """Return the (b, b) information of the choices about the coefficients of `design`, with z integrated out.

    For pairs with design rows x_r, factors δ_r and expected curvatures w_r, a person contributes
    Σ w xx' - (Σ w xδ')(S^-1 + Σ w δδ')^-1(Σ w δx'), weighted by the trust in the person.
    """
    person = np.repeat(np.arange(data.people), np.diff(data.starts))
    first, second = data.rows.T
    base, d = start.base(state.coefficients), state.factors.shape[1]
    delta = state.factors[first] - state.factors[second]
    mean = base[first] - base[second] + np.einsum("rd,rd->r", delta, state.posteriors.mean[person])
    variance = np.einsum("ri,rij,rj->r", delta, state.posteriors.covariance[person], delta)
    weight = data.weight * expected_slope(mean, variance)
    pairs = design[first] - design[second]
    inner = np.tile(np.linalg.inv(state.spread), (data.people, 1, 1))
    np.add.at(inner, person, weight[:, None, None] * delta[:, :, None] * delta[:, None, :])
    inverse_root = np.linalg.cholesky(np.linalg.inv(inner))
    projected = (
        weight[:, None] * np.einsum("ri,rij->rj", delta, inverse_root[person]) * np.sqrt(state.trust[person])[:, None]
    )
    columns = person[:, None] * d + np.arange(d)
    rows = np.repeat(np.arange(len(person)), d)
    shape = (len(person), data.people * d)
    cross = pairs.T @ sparse.csr_array((projected.ravel(), (rows, columns.ravel())), shape=shape)
    total = pairs.T @ (pairs * (state.trust[person] * weight)[:, None])
    return np.asarray((total - cross @ cross.T).toarray())


def _size(base: FloatArray, factors: FloatArray, spread: FloatArray) -> float:
    """Return the root mean square of the utilities, centred over the items."""
    factors = factors - factors.mean(axis=0)
    return float(np.sqrt(np.var(base) + np.einsum("ni,ij,nj->", factors, spread, factors) / len(base)))


def _default_size(start: Start) -> float:
    return _size(start.base(start.coefficients), start.factors, start.spread)


def _evidence(data: PairData, start: Start, state: FitState, counts: FloatArray, spread: FloatArray) -> float:
    """Return the log evidence with this covariance of people."""
    base, tie = start.base(state.coefficients), float(state.thresholds.sum())
    return float(counts @ beliefs(data, base, state.factors, spread, tie_width=tie)[2])


def spread_scale(data: PairData, start: Start, state: FitState, counts: FloatArray) -> float:
    """Return the posterior mean of the scale of S relative to the estimate, at least 1."""
    if counts.sum() > _MAX_RESCALED_PEOPLE:
        return 1.0
    size = _size(start.base(state.coefficients), state.factors, state.spread)
    usual = (size / _default_size(start)) ** 2 * start.spread
    away = np.log(np.trace(np.linalg.solve(usual, state.spread)) / len(usual)) + _LOG_SPREADS
    evidence = [_evidence(data, start, state, counts, np.exp(t) * state.spread) for t in _LOG_SPREADS]
    share = softmax(np.array(evidence) - 0.5 * (away / _LOG_SPREAD_DEVIATION) ** 2)
    return max(float(share @ np.exp(_LOG_SPREADS)), 1.0)
