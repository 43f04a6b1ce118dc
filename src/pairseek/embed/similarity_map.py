"""Map of items learned from similarity judgements, with its honest error, dimension, noise and findings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import Self

import numpy as np

from pairseek.core.text import plural
from pairseek.core.types import JSON, FloatArray, ItemId
from pairseek.embed.dimension import DimensionChoice
from pairseek.embed.findings import Finding, few, of_map, stated
from pairseek.embed.health import check
from pairseek.embed.noise_scale import best_scale
from pairseek.embed.placement import Placement
from pairseek.embed.triplets import Triplets
from pairseek.errors import InvalidItems, InvalidTriplets
from pairseek.model.responses import Logistic
from pairseek.numerics.jit import LOGISTIC

LEAST_JUDGEMENTS = 10
MOST_DIMENSIONS = 4
# With few judgements one dimension predicts as well as two, but questions along one find no second.
_LEAST_DIMENSIONS = 2
_FOLDS = 5
# Bounds of k, where cross-validated judgements agree with the map always or never.
_LEAST_K, _MOST_K = 1e-3, 10.0


@dataclass(frozen=True, eq=False)
class SimilarityMap:
    """Placement of items that was fitted to judgements of similarity, with its measured error.

    Attributes
    ----------
    placement
        Positions that were fitted to the judgements that are not kept apart; further questions are chosen with it.
    final
        Positions that were fitted to all judgements, in the same number of dimensions.
    apart
        Number of random judgements that were kept apart.
    error, standard_error
        Share of the judgements kept apart that `placement` violates; None without any.
    choice
        Cross-validated error against the number of dimensions; the map has at least two.
    k
        Noise constant of the people who judged, by cross-validation, in units of the positions.
    undecided
        (n,) share of triplets around each item that may be in the wrong order: `Placement.undecided`.
    forecast
        Number of judgements needed in all: `Placement.forecast`.
    findings
        Findings of `check`, and of the judgements.
    """

    placement: Placement
    final: Placement
    apart: int
    error: float | None
    standard_error: float | None
    choice: DimensionChoice
    k: float
    undecided: FloatArray
    forecast: int | None
    findings: tuple[Finding, ...]

    @classmethod
    def learn(
        cls,
        judged: Triplets,
        apart: Triplets | None = None,
        *,
        dimensions: int | None = None,
        start: SimilarityMap | None = None,
        labels: Sequence[str] | None = None,
    ) -> Self:
        """Learn a map.

        Parameters
        ----------
        judged
            Judgements to fit.
        apart
            Random judgements of the same items that measure the error.
        dimensions
            Number of dimensions. None: those that cross-validation recommends, and at least 2.
        start
            An earlier map, from which the optimiser begins; a fresh start competes with it.
        labels
            Names of the items in findings.
        """
        rows = judged.rows if apart is None else np.concatenate([judged.rows, apart.rows])
        every = Triplets(rows, judged.ids)
        if len(every) < LEAST_JUDGEMENTS:
            raise InvalidTriplets(
                f"{plural(len(every), 'judgement')}: a map needs at least {LEAST_JUDGEMENTS}; collect more"
            )
        choice, held_out = _cross_validated(every, dimensions)
        d = choice.chosen if dimensions is not None else max(choice.chosen, _LEAST_DIMENSIONS)
        logits = held_out[d]
        placement = Placement.fit(judged, d, start=None if start is None else start.placement)
        final = Placement.fit(every, d, start=placement)
        error = None if apart is None else placement.error(apart)
        deviation = None
        if apart is not None and error is not None:
            # Half a judgement more each way: without it, no error among few judgements would look certain.
            share = (error * len(apart) + 0.5) / (len(apart) + 1.0)
            deviation = math.sqrt(share * (1.0 - share) / len(apart))
        k = float(np.clip(best_scale(logits, LOGISTIC).k, _LEAST_K, _MOST_K))
        found = cls(
            placement,
            final,
            0 if apart is None else len(apart),
            error,
            deviation,
            choice,
            k,
            final.undecided(),
            final.forecast(),
            (),
        )
        return replace(found, findings=_findings(found, every, float(np.mean(logits <= 0.0)), labels))

    @property
    def judgements(self) -> int:
        """Number of all judgements."""
        return len(self.final.rows)

    @property
    def ids(self) -> tuple[ItemId, ...]:
        """Ids of the items."""
        return self.final.ids

    @property
    def response(self) -> Logistic:
        """The response model of the people who judged, for a search among the items."""
        return Logistic(self.k, "constant")

    def record(self) -> JSON:
        """Return the map as plain data."""
        return {
            "kind": "similarity",
            "placement": self.placement.record(),
            "final": self.final.record(),
            "apart": self.apart,
            "error": self.error,
            "standard_error": self.standard_error,
            "choice": {
                "dimensions": list(self.choice.dimensions),
                "errors": self.choice.errors.tolist(),
                "count": self.choice.count,
            },
            "k": self.k,
            "undecided": self.undecided.tolist(),
            "forecast": self.forecast,
            "findings": [list(astuple(one)) for one in self.findings],
        }

    @classmethod
    def from_record(cls, record: JSON) -> Self:
        """Read a map from `record`."""
        choice = record["choice"]
        return cls(
            Placement.from_record(record["placement"]),
            Placement.from_record(record["final"]),
            int(record["apart"]),
            record["error"],
            record["standard_error"],
            DimensionChoice(tuple(choice["dimensions"]), np.array(choice["errors"]), "ste", int(choice["count"])),
            float(record["k"]),
            np.array(record["undecided"], dtype=np.float64),
            record["forecast"],
            tuple(Finding(*one) for one in record["findings"]),
        )


def _cross_validated(triplets: Triplets, dimensions: int | None) -> tuple[DimensionChoice, dict[int, FloatArray]]:
    """Return the error on folds for numbers of dimensions, and by these the logits of triplets when held out."""
    most = min(MOST_DIMENSIONS, triplets.n - 2)
    if dimensions is not None and dimensions > most:
        raise InvalidItems(f"{triplets.n} items in {dimensions} dimensions: use at most {most}")
    tried = tuple(range(1, most + 1)) if dimensions is None else (dimensions,)
    errors = np.empty((len(tried), _FOLDS))
    logits: list[list[FloatArray]] = [[] for _ in tried]
    for column, (fitted, held) in enumerate(triplets.folds(_FOLDS, 0)):
        for row, d in enumerate(tried):
            found = Placement.fit(fitted, d)
            errors[row, column] = found.error(held)
            logits[row].append(found.logits(held.rows))
    choice = DimensionChoice(tried, errors, "ste", len(triplets))
    return choice, {d: np.concatenate(parts) for d, parts in zip(tried, logits, strict=True)}


def _findings(found: SimilarityMap, every: Triplets, wrong: float, labels: Sequence[str] | None) -> tuple[Finding, ...]:
    names = {one: str(one) if labels is None else labels[row] for row, one in enumerate(found.ids)}
    out: list[Finding] = []
    if every.unseen:
        out.append(
            stated(
                "unseen items",
                "act",
                "unseen",
                "unseen.advice",
                values={"count": len(every.unseen), "names": few(names[one] for one in every.unseen)},
            )
        )
    # One-sided test at two standard errors of a coin.
    if wrong > 0.5 - 1.0 / math.sqrt(len(every)):
        out.append(
            stated(
                "agreement",
                "act",
                "agreement",
                "agreement.advice",
                values={"percent": round(100 * wrong), "count": len(every)},
            )
        )
    items = found.final.items()
    health = check(items, every, response=found.response, people=2)
    # Judgements to which the map was fitted agree with it too well; the error on those kept apart is the honest one.
    return (*out, *(of_map(one) for one in health.findings if one.name != "agreement with the triplets"))
