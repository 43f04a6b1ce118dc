"""Population: the prior, item appeals and response model learned from earlier people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from pairseek._version import __version__
from pairseek.core import files
from pairseek.core.text import quoted
from pairseek.core.types import JSON, FloatArray, ItemId
from pairseek.core.validation import seed_of
from pairseek.errors import InvalidChoices, InvalidFile, InvalidParameter, Unsupported
from pairseek.model.item_records import items_from
from pairseek.model.items import Items, Space
from pairseek.model.priors import GaussianPrior
from pairseek.model.responses import Logistic, Response
from pairseek.model.unknowns import Unknown
from pairseek.model.vector_tables import read_vectors
from pairseek.model.vectors import VectorMap, checked_vectors
from pairseek.people.choices import Choices
from pairseek.people.population import fit as fitting
from pairseek.people.population.data import Data
from pairseek.people.population.model import FitOptions, FittedModel, fit_model
from pairseek.people.population.residual import ResidualSetting, best_residual, scale_of, splits
from pairseek.people.population.selection import choose, options
from pairseek.people.population.vector_fit import (
    VectorFeatures,
    appeal_of,
    choose_shrinkage,
    linear_map,
    population_map,
)

KIND = files.FileFormat("pairseek population", 1, "a population")
Setting = bool | Literal["auto"]
# Up to `_FEW` people, a leave-one-out fit runs from scratch; with more people, `_ROUNDS` iterations from the fit of all
# people suffice.
_FEW, _ROUNDS = 60, 10


@dataclass(frozen=True, eq=False)
class Population:
    """Distribution of people's preferences, learned from recorded choices.

    Attributes
    ----------
    items
        Items for a search with this population. They include the appeal and the coordinates that were learned, rescaled
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
        Hash of the items whose coordinates were given. None if the coordinates were learned.
    provenance
        Version, data, configuration and seed of the fit.
    tie_width
        Half-width t of ties in logits, where people could answer with a tie: P(first) = f(z - t), and
        P(tie) = f(z + t) - f(z - t). 0 if the choices hold no ties.
    utility_error
        (n,) standard errors of the items' utilities for a typical person, in logits, of a population that was learned
        from ratings with an appeal; otherwise None. `utility_belief` takes them into account, and searches do not.
    residual
        Standard deviation of a person's residual utility of an item, in logits, and of what the choices leave open
        about the appeal of an item.
    vector_map
        Map from vectors to the utility of an item over k, for a person at the mean, and to its coordinates; None
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
        """Return the response model of a new person, and fill in an open k with that of a typical person.

        The k of a typical person also becomes the median of an unknown k, and the residual of the population that of a
        response without one. Only the logistic model with constant noise
        is valid, because the learned appeal depends on it.
        """
        if response is None:
            return self.response
        if not isinstance(response, Response):
            return response  # the search itself rejects it with a clear message
        kind = response.noise if isinstance(response.noise, str) else "unknown"
        if kind != "constant" or not isinstance(response, Logistic):
            raise InvalidParameter(
                f"response is {type(response).__name__} with {kind} noise, and the population was learned "
                f"for Logistic with constant noise: give ps.Logistic(k, 'constant'), where k may be ps.Unknown(), "
                f"or leave response out"
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
        appeal: Setting = True,
        rescale: Setting = False,
        curvature: Setting = False,
        residual: float | ResidualSetting = "auto",
        rng: int | np.random.Generator = 0,
        progress: Callable[[fitting.LearningStep], None] | None = None,
    ) -> Self:
        """Fit a population to choices, under constant noise.

        Cross-validation over people selects every option that is ``"auto"``.

        Parameters
        ----------
        choices
            The recorded choices.
        items
            Items with coordinates. None means that the coordinates are learned.
        dimension
            Number of dimensions in which to learn the coordinates.
        vectors
            Vectors of the items, with `dimension`: what `Items.from_vectors` takes, or `Items`; an array without ids
            is in the order of ``choices.ids``. A linear map from them to coordinates and appeal is learned, beside what
            is special about items that were compared, and places items that nobody compared.
        appeal
            Whether to learn an appeal of each item, what most people like. ``"auto"``: by cross-validation.
        rescale
            Whether to learn a factor for each given coordinate; only without `appeal`.
        curvature
            Whether to learn one more coordinate, half of the squared distance from the mean of the items.
        residual
            Standard deviation of residual utilities in logits; 0 for none. ``"auto"``: the one under which answers of a
            person best predict other choices of the same person (`pairseek.people.population.residual`), together with
            what choices between pairs leave open about the appeal of an item (`pairseek.people.population.predictive`).
            ``"implied"``: the same for newcomers whose answers never contradict each other, because ratings imply them.
        rng
            A seed or a generator for the folds of the cross-validation.
        progress
            Called after each step of the cross-validation and each iteration of the fit; `print` shows one line each.
        """
        seed = seed_of(rng)
        if (items is None) == (dimension is None):
            what = "neither" if items is None else "both"
            raise InvalidParameter(
                f"a population takes items with coordinates, or the dimension in which to learn them; received {what}"
            )
        table = None if vectors is None else _vector_table(vectors, choices, items)
        usable = _usable(choices, items) if table is None else _compared(choices, table)
        tried = options(len(usable.ids), dimension=dimension, appeal=appeal, rescale=rescale, curvature=curvature)
        chosen = choose(usable, items, tried, rng=seed, progress=progress) if len(tried) > 1 else None
        learned = tried[0] if chosen is None else chosen.best
        known, smoother, shrunk = None, None, None
        if table is not None:
            places = {name: row for row, name in enumerate(table.ids)}
            known = VectorFeatures.of(table.vectors[[places[name] for name in usable.ids]], usable.ids)
            shrunk = choose_shrinkage(usable, known, learned, seed, progress)
            smoother = known.smoother(np.ones(len(usable.ids), dtype=np.bool_), shrunk.shrinkage)
        model, state, note = fit_model(usable, items, learned, progress=progress, smoother=smoother)
        configuration: JSON = {**learned.record(), "noise": "constant", "items": None if items is None else items.hash}
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
            "choice": None if chosen is None else chosen.record(),
        }
        fitted = cls.of(model, state, usable, items, provenance)
        if table is not None and known is not None and smoother is not None and shrunk is not None:
            provenance["vectors"] = {
                "items": len(table.ids),
                "compared": len(usable.ids),
                "shrinkage": shrunk.shrinkage,
            }
            provenance["vectors"]["tried"] = [list(pair) for pair in shrunk.tried]
            fitted = replace(fitted, vector_map=population_map(known, linear_map(model, smoother)))
        if residual == "auto" or residual == "implied":
            people = splits(usable, seed)
            residual = best_residual(people, fitted.items, fitted.prior, fitted.k, progress, residual)
            residual = float(np.hypot(residual, model.item_deviation))
        fitted = fitted.with_residual(residual)
        return fitted if table is None else fitted.with_vectors(table.vectors, table.ids, labels=table.labels)

    def with_vectors(
        self, vectors: object, ids: Sequence[ItemId] | None = None, *, labels: Sequence[str] | None = None
    ) -> Self:
        """Return the population for the items of these vectors, such as tomorrow's catalogue.

        Items that people compared are where the choices placed them, all others where the map of a population with
        vectors places them.

        Parameters
        ----------
        vectors, ids, labels
            As for `Items.from_vectors`.
        """
        if self.vector_map is None:
            raise Unsupported("this population knows no vectors: fit it with Population.fit(choices, vectors=...)")
        table = read_vectors(vectors)
        names: list[Any] = list(ids if ids is not None else table.ids or ())
        places = self.vector_map.place(table.vectors, names)
        if len(names) != len(places):
            raise InvalidParameter(
                f"there are {len(places)} vectors and {len(names)} ids: give one for each, ids=[...]"
            )
        points, appeal = np.array(places[:, 1:]), appeal_of(places, self.k, np.asarray(self.mean))
        error = None if self.utility_error is None else np.full(len(names), float(np.std(self.utilities()[0])))
        for row, name in enumerate(names):
            own = self.items.find(name)
            if own >= 0:
                points[row], appeal[row] = self.items.coordinates[own], self.items.appeal[own]
                if error is not None and self.utility_error is not None:
                    error[row] = self.utility_error[own]
        texts = table.labels if labels is None else labels
        return replace(self, items=_items(points, names, texts, appeal, dict(table.data)), utility_error=error)

    def with_residual(self, residual: float) -> Self:
        """Return the population with a part of its noise as residual utilities.

        Utilities are multiplied by one factor, so that the choices are as uncertain as before.
        """
        if residual is None:
            raise InvalidParameter('residual is None: give a number of logits, at least 0, "auto" or "implied"')
        deviation = Logistic(1.0, residual=residual).residual_deviation
        factor = scale_of(deviation) / scale_of(self.residual)
        own = self.items
        items = _items(own.coordinates, own.ids, own.labels, factor * np.asarray(own.appeal), own.data)
        return replace(self, items=items, k=factor * self.k, tie_width=factor * self.tie_width, residual=deviation)

    @classmethod
    def of(
        cls, model: FittedModel, state: fitting.FitState, choices: Choices, items: Items | None, provenance: JSON
    ) -> Self:
        """Build a population from a fit."""
        labels, data = (None, None) if items is None else (items.labels, items.data)
        catalogue = _items(model.coordinates, choices.ids, labels, model.appeal, data)
        given = None if items is None else items.hash
        people = len(choices.people)
        width = float(state.thresholds[0]) if state.shift is None and len(state.thresholds) else 0.0
        people_part = (model.mean, model.covariance, model.k, state.honest, people)
        return cls(catalogue, *people_part, given, provenance, width, model.error)

    def extended(self, ids: Sequence[ItemId]) -> Self:
        """Return the population with further items, in this order; it must have learned its own coordinates.

        Of an item that nobody compared nothing is known: it gets the mean of the coordinates, which is 0, and the mean
        utility of the others.
        """
        base, _ = self.utilities()
        rows = [self.items.index(name) for name in ids if name in self._known]
        places = np.array([name in self._known for name in ids])
        points = np.zeros((len(ids), self.items.d))
        appeal = np.full(len(ids), scale_of(self.residual) * base.mean())
        points[places], appeal[places] = self.items.coordinates[rows], self.items.appeal[rows]
        error = None
        if self.utility_error is not None:
            # Of such an item nothing is known but how much items differ.
            error = np.full(len(ids), float(np.std(base)))
            error[places] = self.utility_error[rows]
        return replace(self, items=_items(points, ids, None, appeal, None), utility_error=error)

    @property
    def _known(self) -> set[ItemId]:
        return set(self.items.ids)

    def describes(self, items: Items) -> bool:
        """Return whether it was fitted to exactly these items, so that `matched` takes them."""
        return items.hash in (self.items.hash, self.given)

    def among(self, items: Items) -> Self:
        """Return the population of some of the items that it was fitted to with given coordinates, in their order."""
        rows = np.array([self.items.index(name) for name in items.ids], dtype=np.int64)
        error = None if self.utility_error is None else self.utility_error[rows]
        return replace(self, items=self.items.subset(rows), given=items.hash, utility_error=error)

    def placed(self, items: Items) -> Items:
        """Return other items of the given coordinates as the population has its own, such as tomorrow's catalogue.

        An item that it was fitted to keeps its learned appeal. Others have the appeal, beside their own, that a
        regression of the learned one on the coordinates and their square predicts. A coordinate for the curvature
        follows by the same regression, exactly.
        """
        known, d = self.items, items.d
        if self.given is None or d > known.d or self.provenance.get("configuration", {}).get("rescale"):
            raise Unsupported("this population has learned coordinates of its own: it cannot place other items")
        before, now = (
            np.column_stack([points, np.sum(points**2, axis=1), np.ones(len(points))])
            for points in (np.asarray(known.coordinates)[:, :d], np.asarray(items.coordinates))
        )
        learned = np.column_stack([known.coordinates[:, d:], known.appeal])
        found = now @ np.linalg.lstsq(before, learned, rcond=None)[0]
        found[:, -1] += items.appeal
        rows = np.array([known.find(name) for name in items.ids])
        found[rows >= 0] = learned[rows[rows >= 0]]
        points = np.column_stack([items.coordinates, found[:, :-1]])
        return Items._unwarned(points, items.ids, items.labels, found[:, -1], items.data)

    def matched(self, items: Items | Space) -> Items:
        """Return the items with the learned appeal and coordinates; reject items of another population.

        Items without coordinates get those that the population has learned. They may have been added since: see
        `extended`.
        """
        items = items._catalogue(
            Unsupported(
                "population is given with a Space: a population describes items, and a continuous Space has none; "
                "leave population out"
            )
        )
        if items.hash == self.items.hash:
            return items
        known, given = self._known, set(items.ids)
        if not items.d and self.given is None and known <= given:
            full = self.extended(items.ids).items
            return _items(full.coordinates, items.ids, items.labels, full.appeal, items.data)
        missing = [name for name in items.ids if name not in known]
        extra = [name for name in self.items.ids if name not in given]
        if missing or extra:
            words = [f"the population does not contain {quoted(missing)}"] if missing else []
            words += [f"the search lacks {quoted(extra)}"] if extra else []
            raise InvalidParameter(
                f"this population was fitted to other items: {' and '.join(words)}; fit it to these items, or search "
                f"population.items"
            )
        if items.hash != self.given:
            raise InvalidParameter(
                f"this population was fitted to other coordinates or another order of the items: "
                f"{self._differing(items)}; fit it to these items, or search population.items"
            )
        return Items._unwarned(self.items.coordinates, items.ids, items.labels, self.items.appeal, items.data)

    def _differing(self, items: Items) -> str:
        if self.given is None:
            return "the population learned its own coordinates, which differ from those of the search"
        d = min(items.d, self.items.d)
        rows = [self.items.index(name) for name in items.ids]
        gap = np.abs(self.items.coordinates[rows, :d] - items.coordinates[:, :d]).max(axis=1)
        moved = [items.ids[row] for row in np.flatnonzero(gap > 0)]
        configuration = self.provenance.get("configuration", {})
        if moved and not configuration.get("rescale"):
            return f"the coordinates of {quoted(moved)} differ"
        return "appeal, order or coordinates differ"

    def reliability(self, choices: Choices) -> dict[str, float]:
        """Return, for each person, the posterior probability that their answers are informative rather than random.

        Ratings count by the pairs that they imply.
        """
        usable = choices.of_items(self.items.ids).usable()
        # A population without ties has no probability for them.
        data = Data.of(usable if self.tie_width else usable.rows(np.ones(len(usable), dtype=np.bool_)))
        base, factors = self.utilities()
        width = self.tie_width / scale_of(self.residual)
        _, _, evidence = fitting.beliefs(data, base, factors, np.asarray(self.covariance), tie_width=width)
        honest = min(max(self.honest, 1e-6), 1.0 - 1e-6)
        return dict(
            zip(usable.people, fitting.trust_of(evidence, data.random_likelihood(), honest).tolist(), strict=True)
        )

    def utilities(self) -> tuple[FloatArray, FloatArray]:
        """Return the (n,) utilities of the items for a person at the mean, and the (n, d) factors V.

        Choices identify the differences of the utilities, and V S V' with the people's covariance S. The unit is that
        in which residual utilities and the noise of an answer together are logistic noise.
        """
        points = np.asarray(self.items.coordinates)
        factors = 2.0 * self.k * points
        base = factors @ self.mean - self.k * np.sum(points**2, axis=1) + self.items.appeal
        scale = scale_of(self.residual)
        return base / scale, factors / scale

    def utility_belief(self, mean: FloatArray, covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the means and standard deviations of the items' utilities for a person, centred over the items.

        The standard deviations include the standard errors of the items, if they are known.

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
            # The variance of independent errors after their mean is subtracted.
            error, n = self.utility_error**2, len(base)
            variance = variance + error * (1.0 - 2.0 / n) + error.sum() / n**2
        return centre, np.sqrt(np.maximum(variance, 0.0))

    def save(self, path: str | Path) -> None:
        """Write the population to a JSON file, atomically."""
        files.write(path, self.record(), KIND)

    def record(self) -> JSON:
        """Return the population as JSON data."""
        return {
            "pairseek_version": __version__,
            "provenance": self.provenance,
            "items": self.items.record(),
            "mean": self.mean.tolist(),
            "covariance": self.covariance.tolist(),
            "k": self.k,
            "honest": self.honest,
            "people": self.people,
            "given": self.given,
            "tie_width": self.tie_width,
            "utility_error": None if self.utility_error is None else self.utility_error.tolist(),
            "residual": self.residual,
            "vector_map": None if self.vector_map is None else self.vector_map.record(),
        }

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file that `save` wrote."""
        record = files.read(path, KIND)
        try:
            return cls.from_record(record)
        except (TypeError, ValueError, LookupError) as error:
            words = f"the field {error} is missing" if isinstance(error, KeyError) else str(error)
            raise InvalidFile(f"{path} is not a valid population: {words}; the file is unchanged") from None

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Build a population from the data that `record` returns."""
        refused = InvalidFile("items is a continuous space: expected items with coordinates")
        items = items_from(record["items"])._catalogue(refused)
        mean, covariance = np.array(record["mean"], dtype=float), np.array(record["covariance"], dtype=float)
        if items.d or len(mean):
            GaussianPrior(mean, covariance).moments(items.d)
        covariance = covariance.reshape(items.d, items.d)
        k, honest = float(record["k"]), float(record["honest"])
        Logistic(k)
        width = float(record.get("tie_width", 0.0))
        if not 0.0 <= width < np.inf:
            raise InvalidFile(f"tie_width is {width}: it must be at least 0")
        residual = Logistic(residual=float(record.get("residual", 0.0))).residual_deviation
        if not 0.0 <= honest <= 1.0:
            raise InvalidFile(f"honest is {honest}: it must be a share between 0 and 1")
        error = record.get("utility_error")
        if error is not None:
            error = np.array(error, dtype=float)
            if error.shape != (items.n,) or not np.all((error >= 0.0) & (error < np.inf)):
                raise InvalidFile(f"utility_error must be {items.n} numbers that are at least 0, one for each item")
        people, given, provenance = int(record["people"]), record["given"], dict(record["provenance"])
        vector_map = None if record.get("vector_map") is None else VectorMap.from_record(record["vector_map"])
        return cls(items, mean, covariance, k, honest, people, given, provenance, width, error, residual, vector_map)


@dataclass(frozen=True, eq=False)
class _Table:
    vectors: FloatArray
    ids: list[ItemId]
    labels: Sequence[str] | None


def _vector_table(vectors: object, choices: Choices, items: Items | None) -> _Table:
    """Return vectors with the ids of their items."""
    if not isinstance(choices, Choices):
        _usable(choices, None)
    if items is not None:
        raise InvalidParameter("vectors is given with items: give vectors and a dimension, or items with coordinates")
    if isinstance(vectors, Items):
        return _Table(np.asarray(vectors.coordinates), list(vectors.ids), vectors.labels)
    table = read_vectors(vectors)
    array = checked_vectors(table.vectors, table.ids)
    names = choices.ids if table.ids is None else table.ids
    if len(names) != len(array):
        raise InvalidParameter(
            f"there are {len(array)} vectors without ids and {len(names)} items in the choices: give a mapping of ids "
            f"to vectors, or a table with a column id",
            field="vectors",
        )
    known = Items._unwarned(array, names)
    return _Table(np.asarray(known.coordinates), list(known.ids), table.labels)


def _compared(choices: Choices, table: _Table) -> Choices:
    """Return the usable choices about the items that somebody compared, all of which must have a vector."""
    if not isinstance(choices, Choices):
        return _usable(choices, None)
    alone, known = set(choices.uncompared), set(table.ids)
    names = [name for name in choices.ids if name not in alone]
    missing = [name for name in names if name not in known]
    if missing:
        raise InvalidChoices(f"there is no vector of {quoted(missing)}: give one, or remove the choices about it")
    return _usable(choices.of_items(names), None)


def _items(
    coordinates: FloatArray,
    ids: Sequence[ItemId],
    labels: Sequence[str] | None,
    appeal: FloatArray,
    data: Mapping[str, Sequence[object]] | None,
) -> Items:
    """Return items with (n, d) coordinates, where d may be 0."""
    return Items._unwarned(coordinates if coordinates.shape[1] else None, ids, labels, appeal, data)


def _usable(choices: Choices, items: Items | None) -> Choices:
    """Return the choices of the people with usable pairs; raise an error if a fit is impossible."""
    if not isinstance(choices, Choices):
        raise InvalidParameter(
            f"choices is {choices!r}: give Choices, as from Choices.read('ratings.csv') or Choices.from_ratings(rows)"
        )
    if items is not None:
        if not isinstance(items, Items):
            raise InvalidParameter(
                f"items is a {type(items).__name__}: give Items with coordinates, or give a dimension instead of items"
            )
        choices = choices.of_items(items.ids)
    if not len(choices):
        why = f"all {choices.ties} pairs are ties" if choices.ties else "nobody compared two items"
        raise InvalidChoices(
            f"there is nothing to learn from {quoted(choices.people)}: {why}; give choices between two items, or "
            f"ratings that differ"
        )
    usable = choices.usable()
    if len(usable.people) < 2:
        others = f"; {quoted(choices.unusable)} gave no usable pair" if choices.unusable else ""
        raise InvalidChoices(
            f"only {usable.people[0]!r} gave usable choices{others}: a population needs at least two people"
        )
    if items is None and choices.uncompared:
        raise InvalidChoices(
            f"nobody compared {quoted(choices.uncompared)} with another item: its coordinates cannot be learned; leave "
            f"it out, or give coordinates"
        )
    return usable


def without(
    population: Population, choices: Choices, items: Items | None, person: int, state: fitting.FitState
) -> Population:
    """Fit the population without one person, given by row. With many people the fit of all people is a warm start."""
    learned = options_of(population)
    counts = np.ones(len(choices.people))
    counts[person] = 0.0
    if len(counts) <= _FEW:
        others = choices.only(np.flatnonzero(counts))
        model, found, _ = fit_model(others, items, learned)
    else:
        model, found, _ = fit_model(choices, items, learned, people=counts, state=state, rounds=_ROUNDS)
    return Population.of(model, found, choices, items, population.provenance).with_residual(population.residual)


def options_of(population: Population) -> FitOptions:
    """Return the options of a population's fit, from its provenance."""
    configuration = population.provenance["configuration"]
    return FitOptions(**{name: configuration[name] for name in ("dimension", "appeal", "rescale", "curvature")})


def state_of(population: Population, choices: Choices, items: Items | None) -> fitting.FitState:
    """Repeat the fit of a population, and return its state."""
    return fit_model(choices, items, options_of(population))[1]
