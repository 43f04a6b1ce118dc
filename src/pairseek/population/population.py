"""What is known of people before the first question: learned from those who came before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from pairseek import records
from pairseek._version import __version__
from pairseek.core import files
from pairseek.core.types import JSON, FloatArray
from pairseek.core.validation import seed_of
from pairseek.errors import InvalidChoices, InvalidFile, InvalidParameter, Unsupported
from pairseek.model.items import Items, Space
from pairseek.model.priors import GaussianPrior
from pairseek.model.responses import Logistic, Response
from pairseek.model.unknowns import Unknown
from pairseek.population import fit as fitting
from pairseek.population.choices import Choices, named
from pairseek.population.model import FitOptions, FittedModel, Plain, coordinates_of, fitted_model, start_of

KIND = files.Kind("pairseek population", 1, "a population")
Wish = bool | Literal["auto"]
# One of more people than this moves a fit so little that a few rounds from the fit of all are enough.
_FEW, _ROUNDS = 60, 10


@dataclass(frozen=True, eq=False)
class Population:
    """Where people tend to be, what most of them like, and how reliably they answer.

    Attributes
    ----------
    items
        The items as a search with this population sees them: with appeal, and with the coordinates that were learned,
        rescaled or added.
    mean, covariance
        (d,) and (d, d), of people's points.
    k
        Noise constant of a typical person, of constant noise.
    honest
        Share of the people whose answers say more than a coin.
    people
        How many it was learned from.
    given
        Hash of the items whose coordinates were given; None if they were learned.
    provenance
        Version, data, configuration and seed.
    """

    items: Items
    mean: FloatArray
    covariance: FloatArray
    k: float
    honest: float
    people: int
    given: str | None
    provenance: JSON = field(repr=False)

    def __post_init__(self) -> None:
        for array in (self.mean, self.covariance):
            array.flags.writeable = False

    def __reduce__(self) -> tuple[Any, ...]:
        fields = (self.items, self.mean, self.covariance, self.k, self.honest, self.people, self.given, self.provenance)
        return type(self), fields

    def __repr__(self) -> str:
        return f"Population({self.people} people, {self.items.n} items, d={self.items.d}, k={self.k:.3g})"

    @property
    def prior(self) -> GaussianPrior:
        """People's points before the first answer."""
        return GaussianPrior(self.mean, self.covariance)

    @property
    def informed(self) -> bool:
        """Whether the choices said more than coins would."""
        return bool(self.provenance.get("informed", True))

    @property
    def response(self) -> Logistic:
        """How a typical person answers."""
        return Logistic(self.k, "constant")

    def answering(self, response: Response | None) -> Response:
        """How somebody new answers: as a typical person, or as given, with an open k filled in.

        The median of an unknown k is that of a typical person. Only logistic answers of constant noise will do: under
        others the appeal that was learned would mean something else.
        """
        if response is None:
            return self.response
        if not isinstance(response, Response):
            return response  # what a search says of that is clear
        if response.noise != "constant" or not isinstance(response, Logistic):
            raise InvalidParameter(
                f"response is {type(response).__name__} with {response.noise} noise, and the population was learned "
                f"for Logistic with constant noise: give ps.Logistic(k, 'constant'), where k may be ps.Unknown(), "
                f"or leave response out"
            )
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
        appeal: Wish = True,
        rescale: Wish = False,
        curvature: Wish = False,
        rng: int | np.random.Generator = 0,
        progress: Callable[[str], None] | None = None,
    ) -> Self:
        """Learn from people's choices, under constant noise.

        Whatever is ``"auto"`` is chosen by how well the choices of held-out people are predicted.

        Parameters
        ----------
        choices
            What people chose.
        items
            Items with coordinates. None: the coordinates are learned.
        dimension
            Learn coordinates in so many dimensions.
        appeal, rescale, curvature
            What else to learn: see `FitOptions`.
        rng
            A seed or a generator, for the folds of a choice.
        progress
            Called with a line for each step of a choice.
        """
        seed = seed_of(rng)
        if (items is None) == (dimension is None):
            what = "neither" if items is None else "both"
            raise InvalidParameter(
                f"a population takes items with coordinates, or the dimension in which to learn them; received {what}"
            )
        usable = _checked(choices, items)
        from pairseek.population.selection import choose, options

        tried = options(len(usable.ids), dimension=dimension, appeal=appeal, rescale=rescale, curvature=curvature)
        chosen = choose(usable, items, tried, rng=seed, progress=progress) if len(tried) > 1 else None
        learned = tried[0] if chosen is None else chosen.best
        made, state, note = fitted(usable, items, learned)
        configuration: JSON = {**learned.record(), "noise": "constant", "items": None if items is None else items.hash}
        provenance: JSON = {
            "pairseek": __version__,
            "choices": choices.hash,
            "pairs": len(choices),
            "ties_left_out": choices.ties,
            "configuration": configuration,
            "seed": seed,
            "rounds": state.rounds,
            "informed": note is None,
            "notes": [*choices.notes, *([] if note is None else [note])],
            "choice": None if chosen is None else chosen.record(),
        }
        return cls.of(made, state, usable, items, provenance)

    @classmethod
    def of(
        cls, made: FittedModel, state: fitting.FitState, choices: Choices, items: Items | None, provenance: JSON
    ) -> Self:
        """A fit, as a population of these items."""
        labels, data = (None, None) if items is None else (items.labels, items.data)
        catalogue = Items._unwarned(made.coordinates, choices.ids, labels, made.appeal, data)
        given = None if items is None else items.hash
        people = len(choices.people)
        return cls(catalogue, made.mean, made.covariance, made.k, state.honest, people, given, provenance)

    def matched(self, items: Items | Space) -> Items:
        """The items with what was learned, if they are those that it was learned about."""
        if isinstance(items, Space):
            raise Unsupported("a population is about items: a continuous Space has none; leave it out")
        if items.hash == self.items.hash:
            return items
        known, given = set(self.items.ids), set(items.ids)
        missing = [name for name in items.ids if name not in known]
        extra = [name for name in self.items.ids if name not in given]
        if missing or extra:
            words = [f"the population does not know {named(missing)}"] if missing else []
            words += [f"the search lacks {named(extra)}"] if extra else []
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
            return "their coordinates were learned, and those of the search are others"
        d = min(items.d, self.items.d)
        rows = [self.items.index(name) for name in items.ids]
        gap = np.abs(self.items.coordinates[rows, :d] - items.coordinates[:, :d]).max(axis=1)
        moved = [items.ids[row] for row in np.flatnonzero(gap > 0)]
        configuration = self.provenance.get("configuration", {})
        if moved and not configuration.get("rescale"):
            return f"{named(moved)} stood elsewhere"
        return "appeal, order or coordinates differ"

    def reliability(self, choices: Choices) -> dict[str, float]:
        """For each person, the probability that they answer by the model and not like a coin."""
        usable = choices.of_items(self.items.ids).usable()
        data = fitting.Data.of(usable)
        base, factors = self.utilities()
        _, _, evidence = fitting.beliefs(data, base, factors, np.asarray(self.covariance))
        honest = min(max(self.honest, 1e-6), 1.0 - 1e-6)
        return dict(zip(usable.people, fitting.trust_of(evidence, data.coins(), honest).tolist(), strict=True))

    def utilities(self) -> tuple[FloatArray, FloatArray]:
        """(n,) utility of each item for somebody at the mean, and (n, d) its change with the point.

        Differences of the first, and the first factor times the covariance times the second, are what choices tell.
        """
        points = np.asarray(self.items.coordinates)
        factors = 2.0 * self.k * points
        return factors @ self.mean - self.k * np.sum(points**2, axis=1) + self.items.appeal, factors

    def save(self, path: str | Path) -> None:
        """Write it as JSON, in one step."""
        files.write(path, self.record(), KIND)

    def record(self) -> JSON:
        """As plain data."""
        return {
            "pairseek_version": __version__,
            "provenance": self.provenance,
            "items": records.items_record(self.items),
            "mean": self.mean.tolist(),
            "covariance": self.covariance.tolist(),
            "k": self.k,
            "honest": self.honest,
            "people": self.people,
            "given": self.given,
        }

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote."""
        record = files.read(path, KIND)
        try:
            return cls.from_record(record)
        except (TypeError, ValueError, LookupError) as error:
            words = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
            raise InvalidFile(
                f"{path} is a population that does not make sense: {words}; it was left as it is"
            ) from None

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """What `record` described."""
        items = records.items_from(record["items"])
        if isinstance(items, Space):
            raise InvalidFile("its items are a continuous space")
        mean, covariance = np.array(record["mean"], dtype=float), np.array(record["covariance"], dtype=float)
        GaussianPrior(mean, covariance).moments(items.d)
        k, honest = float(record["k"]), float(record["honest"])
        Logistic(k)
        if not 0.0 <= honest <= 1.0:
            raise InvalidFile(f"honest is {honest}, not a share")
        return cls(
            items, mean, covariance, k, honest, int(record["people"]), record["given"], dict(record["provenance"])
        )


def _checked(choices: Choices, items: Items | None) -> Choices:
    """The choices of those who have some, about these items; refused where nothing can be learned."""
    if not isinstance(choices, Choices):
        raise InvalidParameter(
            f"choices is {choices!r}: give Choices, as from Choices.read('ratings.csv') or Choices.from_ratings(rows)"
        )
    if items is not None:
        if not isinstance(items, Items):
            raise InvalidParameter(
                f"items is a {type(items).__name__}: give Items with coordinates, or the dimension in which to learn "
                f"them"
            )
        choices = choices.of_items(items.ids)
    if not len(choices):
        why = f"all {choices.ties} pairs are ties" if choices.ties else "nobody compared two items"
        raise InvalidChoices(
            f"there is nothing to learn from {named(choices.people)}: {why}; give choices between two items, or "
            f"ratings that differ"
        )
    usable = choices.usable()
    if len(usable.people) < 2:
        others = f"; {named(choices.unusable)} gave no usable pair" if choices.unusable else ""
        raise InvalidChoices(
            f"only {usable.people[0]!r} gave usable choices{others}: a population needs at least two people"
        )
    if items is None and choices.uncompared:
        raise InvalidChoices(
            f"nobody compared {named(choices.uncompared)} with another item: its place cannot be learned; leave it "
            f"out, or give coordinates"
        )
    return usable


def without(
    population: Population, choices: Choices, items: Items | None, person: int, state: fitting.FitState
) -> Population:
    """The population of all but one person (a row): fitted anew for a few people, else from the fit of all."""
    learned = learned_by(population)
    counts = np.ones(len(choices.people))
    counts[person] = 0.0
    if len(counts) <= _FEW:
        others = choices.only(np.flatnonzero(counts))
        made, found, _ = fitted(others, items, learned)
    else:
        made, found, _ = fitted(choices, items, learned, people=counts, state=state, rounds=_ROUNDS)
    return Population.of(made, found, choices, items, population.provenance)


def learned_by(population: Population) -> FitOptions:
    """What a population learned, from its provenance."""
    configuration = population.provenance["configuration"]
    return FitOptions(**{name: configuration[name] for name in ("dimension", "appeal", "rescale", "curvature")})


def state_of(population: Population, choices: Choices, items: Items | None) -> fitting.FitState:
    """The fit behind a population."""
    return fitted(choices, items, learned_by(population))[1]


def _penalty(choices: Choices, start: fitting.Start) -> float:
    """What a fit must gain on coins, in nats: (1 + log of the people who tell of it)/2 for every unknown number.

    As in BIC, but that the numbers of an item are told by those alone who compared it, and that few people let any
    number gain about a half by chance.
    """
    d, n = start.factors.shape[1], len(choices.ids)
    sides = np.concatenate([choices.winner, choices.loser]) + n * np.tile(choices.person, 2)
    tellers = np.bincount(np.unique(sides) % n, minlength=n)
    of_items = (start.basis is None) + d * start.free
    of_people = (0 if start.basis is None else start.coefficients.size) + (0 if start.free else d * (d + 1) / 2)
    own = np.sum(1.0 + np.log(tellers[tellers > 0]))
    return 0.5 * float(of_items * own + of_people * (1.0 + np.log(len(choices.people))))


def fitted(
    choices: Choices,
    items: Items | None,
    learned: FitOptions,
    *,
    people: FloatArray | None = None,
    state: fitting.FitState | None = None,
    rounds: int = 300,
) -> tuple[FittedModel, fitting.FitState, str | None]:
    """The fit in the terms of a search, the fit itself, and a note where there was nothing to learn.

    Parameters
    ----------
    choices, items, learned
        What people chose, about what, and what to learn.
    people
        (people,) how often each counts; None: once.
    state
        A fit of nearly the same choices to go on from.
    rounds
        At most so many rounds.
    """
    data = fitting.Data.of(choices)
    start = start_of(data, learned, items)
    state = fitting.fit(data, start, people=people, state=state, rounds=rounds)
    gain = state.objective - float(data.coins() @ (np.ones(data.people) if people is None else people))
    if gain > _penalty(choices, start):
        return fitted_model(start, state, learned, items), state, None
    if items is None:
        raise InvalidChoices(
            f"the choices of {len(choices.people)} people say no more than coins: there are no coordinates to learn; "
            f"give more choices, or items with coordinates"
        )
    plain, points = Plain.of(items), coordinates_of(items, learned)
    covariance = np.diag(np.full(points.shape[1], np.trace(plain.covariance) / items.d))
    covariance[: items.d, : items.d] = plain.covariance
    mean = np.append(plain.mean, np.zeros(points.shape[1] - items.d))
    # Curvature that nobody was seen to have stays out of the utilities.
    appeal = np.asarray(items.appeal) + plain.k * np.sum(points[:, items.d :] ** 2, axis=1)
    note = f"the choices of {len(choices.people)} people say no more than coins: nothing was learned from them"
    return FittedModel(points, appeal, plain.k, mean, covariance), state, note
