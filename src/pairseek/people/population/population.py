"""Population: the prior, item appeals and response model learned from earlier people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from pairseek._version import __version__
from pairseek.core import files
from pairseek.core.types import JSON, FloatArray, ItemId
from pairseek.core.validation import seed_of
from pairseek.errors import InvalidFile, InvalidParameter
from pairseek.model.items import Items
from pairseek.model.priors import GaussianPrior
from pairseek.model.responses import Logistic, Response
from pairseek.model.spaces import Space
from pairseek.model.unknowns import Unknown
from pairseek.model.vectors import VectorMap
from pairseek.people.choices import Choices
from pairseek.people.population.catalogues import catalogue_of, errors_of, matched_items, placed_items, vector_items
from pairseek.people.population.data import PairData
from pairseek.people.population.e_step import trust_of
from pairseek.people.population.fit import LearningStep
from pairseek.people.population.fit_state import FitState
from pairseek.people.population.held_out import evidence_of, sample_answers
from pairseek.people.population.inputs import compared_choices, usable_choices, vector_table
from pairseek.people.population.model import FittedModel, fit_model
from pairseek.people.population.records import fields_of, record_of
from pairseek.people.population.residual import (
    IMPLIED_SHARES,
    ResidualSetting,
    calibrate,
    checked_residual,
    scale_of,
)
from pairseek.people.population.selection import candidate_options, choose
from pairseek.people.population.vector_fit import (
    VectorFeatures,
    choose_shrinkage,
    linear_map,
    population_map,
)

FILE_FORMAT = files.FileFormat("pairseek population", 1, "a population")
LearnedOption = bool | Literal["auto"]
# Largest number of a person's answers by which their reliability is judged.
_MAX_JUDGED = 100
# Largest prior probability that someone does not toss coins: newcomers may differ from the people of the fit.
_MAX_HONEST = 0.9


@dataclass(frozen=True, eq=False)
class Population:
    """Distribution of people's preferences, learned from recorded choices.

    Attributes
    ----------
    items
        Items for a search with this population, with the learned appeal and the coordinates that were learned, rescaled
        or added.
    mean, covariance
        (d,) mean and (d, d) covariance of the user points.
    k
        Noise constant of a typical person under constant noise.
    honest
        Share of people whose answers are more informative than random answers.
    people
        Number of people in the data.
    given
        Hash of the items whose coordinates were given; None if the coordinates were learned.
    provenance
        Version, data, configuration and seed of the fit.
    tie_width
        Half-width t of ties in logits, for people who may answer with a tie: P(first) = f(z - t), and
        P(tie) = f(z + t) - f(z - t). 0 if the choices have no ties.
    utility_error
        (n,) standard errors of the items' utilities for a typical person, in logits, if the population was learned from
        ratings with an appeal; otherwise None. `utility_belief` takes them into account, but searches do not.
    residual
        Standard deviation of residual utilities, in logits: how much a newcomer's utility of an item departs from the
        model.
    vector_map
        Map from the vector of an item to its coordinates and to its utility over k for a person at the mean; None
        without vectors.

    Examples
    --------
    >>> import pairseek as ps
    >>> ratings = [(f"guest {p}", f"tea {i}", (p * i) % 5) for p in range(30) for i in range(6)]
    >>> population = ps.Population.fit(ps.Choices.from_ratings(ratings), dimension=1)
    >>> population.people, population.items.n
    (30, 6)
    """

    items: Items
    mean: FloatArray
    covariance: FloatArray
    k: float
    honest: float
    people: int
    given: str | None
    provenance: JSON = field(repr=False)
    tie_width: float = 0.0
    utility_error: FloatArray | None = None
    residual: float = 0.0
    vector_map: VectorMap | None = None

    def __post_init__(self) -> None:
        for array in (self.mean, self.covariance, self.utility_error):
            if array is not None:
                array.flags.writeable = False

    def __reduce__(self) -> tuple[Any, ...]:
        fields = (self.items, self.mean, self.covariance, self.k, self.honest, self.people, self.given, self.provenance)
        return type(self), (*fields, self.tie_width, self.utility_error, self.residual, self.vector_map)

    def __repr__(self) -> str:
        return f"Population({self.people} people, {self.items.n} items, d={self.items.d}, k={self.k:.3g})"

    @property
    def prior(self) -> GaussianPrior:
        """Gaussian prior of a new person's user point."""
        return GaussianPrior(self.mean, self.covariance) if self.items.d else GaussianPrior()

    @property
    def informed(self) -> bool:
        """Whether the choices were more informative than random answers."""
        return bool(self.provenance.get("informed", True))

    @property
    def response(self) -> Logistic:
        """Response model of a typical person."""
        return Logistic(self.k, "constant", tie_width=self.tie_width, residual=self.residual)

    def answering(self, response: Response | None) -> Response:
        """Return the response model of a new person, with missing settings filled in from the population.

        The population provides k, or the median of an unknown k, and the residual if the response has none. The
        response must be logistic with constant noise, because the learned appeal depends on it.
        """
        if response is None:
            return self.response
        if not isinstance(response, Response):
            return response  # the search itself rejects it with a clear message
        kind = response.noise if isinstance(response.noise, str) else "unknown"
        if kind != "constant" or not isinstance(response, Logistic):
            raise InvalidParameter(
                f"response is {type(response).__name__} with {kind} noise, but the population was learned for Logistic "
                f"with constant noise: give ps.Logistic(k, 'constant'), where k may be ps.Unknown(), or leave response "
                f"out"
            )
        if response.residual is None:
            response = replace(response, residual=self.residual)
        if response.k is None:
            return replace(response, k=self.k)
        prior = response.k_prior
        if prior is None or prior.median is not None:
            return response
        return replace(response, k=Unknown(replace(prior, median=self.k)))

    @classmethod
    def fit(
        cls,
        choices: Choices,
        items: Items | None = None,
        *,
        dimension: int | Literal["auto"] | None = None,
        vectors: object = None,
        appeal: LearnedOption = True,
        rescale: LearnedOption = False,
        curvature: LearnedOption = False,
        residual: float | ResidualSetting = "auto",
        rng: int | np.random.Generator = 0,
        progress: Callable[[LearningStep], None] | None = None,
    ) -> Self:
        """Fit a population to choices, under constant noise.

        Cross-validation over people selects every option that is ``"auto"``.

        Parameters
        ----------
        choices
            The recorded choices.
        items
            Items with coordinates; None to learn the coordinates.
        dimension
            Number of dimensions in which to learn the coordinates.
        vectors
            Vectors of the items, together with `dimension`: anything that `Items.from_vectors` accepts, or `Items`. An
            array without ids must be in the order of ``choices.ids``. The fit learns a linear map from vectors to
            coordinates and appeal. Items that were compared may deviate from the map; it places all others.
        appeal
            Whether to learn the appeal of each item, which is what most people like.
        rescale
            Whether to learn a factor for each given coordinate; requires ``appeal=False``.
        curvature
            Whether to add a coordinate, half of the squared distance from the mean of the items.
        residual
            Standard deviation of residual utilities in logits; 0 for none. ``"auto"`` judges it on people left out of a
            fit, like the scale of all utilities: see `pairseek.people.population.residual`. ``"implied"`` is for
            newcomers whose answers never contradict each other, because ratings imply them.
        rng
            A seed or a generator for the folds of the cross-validation.
        progress
            Called after each step of the cross-validation and each iteration of the fit; `print` shows one line each.
        """
        seed = seed_of(rng)
        residual = residual if residual in IMPLIED_SHARES else checked_residual(residual)
        if (items is None) == (dimension is None):
            what = "neither" if items is None else "both"
            raise InvalidParameter(
                f"a population needs either items with coordinates or the dimension in which to learn them; received "
                f"{what}"
            )
        table = None if vectors is None else vector_table(vectors, choices, items)
        usable = usable_choices(choices, items) if table is None else compared_choices(choices, table)
        tried = candidate_options(
            len(usable.ids), dimension=dimension, appeal=appeal, rescale=rescale, curvature=curvature
        )
        validation = choose(usable, items, tried, rng=seed, progress=progress) if len(tried) > 1 else None
        fit_options = tried[0] if validation is None else validation.best
        features, smoother, shrinkage = None, None, None
        if table is not None:
            places = {name: row for row, name in enumerate(table.ids)}
            features = VectorFeatures.of(table.vectors[[places[name] for name in usable.ids]], usable.ids)
            shrinkage = choose_shrinkage(usable, features, fit_options, seed, progress)
            smoother = features.smoother(np.ones(len(usable.ids), dtype=np.bool_), shrinkage.shrinkage)
        model, state, note = fit_model(usable, items, fit_options, progress=progress, smoother=smoother)
        configuration: JSON = {
            **fit_options.record(),
            "noise": "constant",
            "items": None if items is None else items.hash,
        }
        provenance: JSON = {
            "pairseek": __version__,
            "choices": choices.hash,
            "pairs": len(choices),
            "ties": choices.ties,
            "ratings": 0 if choices.ratings is None else len(choices.ratings),
            "configuration": configuration,
            "seed": seed,
            "rounds": state.rounds,
            "informed": note is None,
            "notes": [*choices.notes, *([] if note is None else [note])],
            "choice": None if validation is None else validation.record(),
        }
        calibration = calibrate(usable, items, fit_options, residual, smoother=smoother, seed=seed, progress=progress)
        provenance["calibration"], model = calibration.record(), model.scaled(calibration.scale)
        state = state if calibration.honest is None else replace(state, honest=calibration.honest)
        fitted = cls.of(model, state, usable, items, provenance)
        if table is not None and features is not None and smoother is not None and shrinkage is not None:
            provenance["vectors"] = {
                "items": len(table.ids),
                "compared": len(usable.ids),
                "shrinkage": shrinkage.shrinkage,
                "tried": [list(pair) for pair in shrinkage.tried],
            }
            fitted = replace(fitted, vector_map=population_map(features, linear_map(model, smoother)))
        fitted = fitted.with_residual(calibration.residual if isinstance(residual, str) else residual)
        return fitted if table is None else fitted.with_vectors(table.vectors, table.ids, labels=table.labels)

    def with_vectors(
        self, vectors: object, ids: Sequence[ItemId] | None = None, *, labels: Sequence[str] | None = None
    ) -> Self:
        """Return the population for the items of these vectors, such as tomorrow's catalogue.

        Items that people compared keep their learned places; the learned map places all others.

        Parameters
        ----------
        vectors, ids, labels
            As for `Items.from_vectors`.
        """
        items, error = vector_items(self, vectors, ids, labels)
        return replace(self, items=items, utility_error=error)

    def with_residual(self, residual: float) -> Self:
        """Return the population with part of its noise attributed to residual utilities.

        All utilities are multiplied by one factor that keeps the choices as uncertain as before.
        """
        deviation = checked_residual(residual)
        factor = scale_of(deviation) / scale_of(self.residual)
        own = self.items
        items = catalogue_of(own.coordinates, own.ids, own.labels, factor * np.asarray(own.appeal), own.data)
        return replace(self, items=items, k=factor * self.k, tie_width=factor * self.tie_width, residual=deviation)

    @classmethod
    def of(cls, model: FittedModel, state: FitState, choices: Choices, items: Items | None, provenance: JSON) -> Self:
        """Build a population from a fit."""
        labels, data = (None, None) if items is None else (items.labels, items.data)
        catalogue = catalogue_of(model.coordinates, choices.ids, labels, model.appeal, data)
        given = None if items is None else items.hash
        people = len(choices.people)
        width = float(state.thresholds[0]) if state.shift is None and len(state.thresholds) else 0.0
        people_part = (model.mean, model.covariance, model.k, state.honest, people)
        return cls(catalogue, *people_part, given, provenance, width, model.error)

    def extended(self, ids: Sequence[ItemId]) -> Self:
        """Return the population with further items, in this order; it must have learned its own coordinates.

        Nothing is known about the new items, which nobody compared. They get the mean coordinates, which are 0, and the
        mean utility of the other items.
        """
        base, _ = self.utilities()
        known = set(self.items.ids)
        rows = [self.items.index(name) for name in ids if name in known]
        places = np.array([name in known for name in ids])
        points = np.zeros((len(ids), self.items.d))
        appeal = np.full(len(ids), scale_of(self.residual) * base.mean())
        points[places], appeal[places] = self.items.coordinates[rows], self.items.appeal[rows]
        error = None
        if self.utility_error is not None:
            # A new item differs from the mean as much as items differ from each other.
            error = np.full(len(ids), float(np.std(base)))
            error[places] = self.utility_error[rows]
        return replace(self, items=catalogue_of(points, ids, None, appeal, None), utility_error=error)

    def describes(self, items: Items) -> bool:
        """Return whether the population was fitted to exactly these items, so that `matched` accepts them."""
        return items.hash in (self.items.hash, self.given)

    def among(self, items: Items) -> Self:
        """Return the population of some of its items, in this order; their coordinates must have been given."""
        rows = np.array([self.items.index(name) for name in items.ids], dtype=np.int64)
        error = None if self.utility_error is None else self.utility_error[rows]
        return replace(self, items=self.items.subset(rows), given=items.hash, utility_error=error)

    def placed(self, items: Items) -> Items:
        """Return other items with a predicted appeal, such as tomorrow's catalogue in the given coordinates.

        Items that the population was fitted to keep their learned appeal. For the others, a regression of the learned
        appeal on the coordinates and their squared length predicts an appeal, which is added to their own. A coordinate
        for the curvature follows exactly by the same regression. If the population learned its own coordinates, the
        others must come from `with_vectors`, which has predicted both, and stay as they are.
        """
        return placed_items(self, items)

    def for_items(self, items: Items) -> Self:
        """Return the population of other items, such as tomorrow's catalogue; `placed` places the new ones."""
        if self.describes(items):
            return self
        error = None if self.utility_error is None else errors_of(self, items.ids)
        return replace(self, items=self.placed(items), given=items.hash, utility_error=error)

    def matched(self, items: Items | Space) -> Items:
        """Return the items with the learned appeal and coordinates; reject items of another population.

        Items without coordinates get the learned ones. They may include items added since the fit: see `extended`.
        """
        return matched_items(self, items)

    def reliability(self, choices: Choices) -> dict[str, float]:
        """Return, for each person, the posterior probability that their answers are informative rather than random.

        Informative answers follow from what people share or from a taste of the person's own, given by residual
        utilities. At most 100 answers of a person are judged. Ratings count as the pairs that they imply, which never
        contradict each other, so that people who rate are hardly ever called random.
        """
        usable = choices.of_items(self.items.ids).usable()
        # A population without ties gives ties no probability.
        judged = sample_answers(usable, _MAX_JUDGED, np.random.default_rng(0), ties=self.tie_width > 0.0)
        utilities = self._fitted.utilities()
        evidence = evidence_of(judged, *utilities, self.residual, self.tie_width)
        honest = min(max(self.honest, 1e-6), _MAX_HONEST)
        trust = trust_of(evidence, PairData.of(judged).random_likelihood(), honest)
        return dict(zip(usable.people, trust.tolist(), strict=True))

    def utilities(self) -> tuple[FloatArray, FloatArray]:
        """Return the (n,) utilities of the items for a person at the mean, and the (n, d) factors V.

        Choices identify the differences of the utilities, and V S V', where S is the people's covariance. The unit
        makes residual utilities and the noise of an answer together logistic noise.
        """
        return self._fitted.utilities(1.0 / scale_of(self.residual))[:2]

    @property
    def _fitted(self) -> FittedModel:
        own = self.items
        return FittedModel(np.asarray(own.coordinates), np.asarray(own.appeal), self.k, self.mean, self.covariance)

    def utility_belief(self, mean: FloatArray, covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the means and standard deviations of the items' utilities for a person, centred over the items.

        The standard deviations include the items' standard errors, if they are known.

        Parameters
        ----------
        mean, covariance
            (..., d) means and (..., d, d) covariances of Gaussian beliefs about user points, such as the posterior of a
            search.
        """
        base, factors = self.utilities()
        base, factors = base - base.mean(), factors - factors.mean(axis=0)
        centre = base + (np.asarray(mean) - self.mean) @ factors.T
        variance = np.sum((factors @ np.asarray(covariance)) * factors, axis=-1)
        if self.utility_error is not None:
            # Variance of independent errors after subtracting their mean.
            error, n = self.utility_error**2, len(base)
            variance = variance + error * (1.0 - 2.0 / n) + error.sum() / n**2
        return centre, np.sqrt(np.maximum(variance, 0.0))

    def save(self, path: str | Path) -> None:
        """Write the population to a JSON file, atomically."""
        files.write(path, self.record(), FILE_FORMAT)

    def record(self) -> JSON:
        """Return the population as JSON data."""
        return record_of(self)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file that `save` wrote."""
        record = files.read(path, FILE_FORMAT)
        try:
            return cls.from_record(record)
        except (TypeError, ValueError, LookupError) as error:
            reason = f"the field {error} is missing" if isinstance(error, KeyError) else str(error)
            raise InvalidFile(f"{path} is not a valid population: {reason}; fit it again") from None

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Build a population from the data that `record` returns."""
        return cls(**fields_of(record))
