"""Map of items learned from similarity judgements, with its error, dimension, noise and findings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import Self

import numpy as np

from pairseek.core.text import plural
from pairseek.core.types import JSON, FloatArray, ItemId
from pairseek.embed.dimension import DimensionChoice
from pairseek.embed.findings import Finding, finding_from_messages, first_names, map_finding
from pairseek.embed.health import check
from pairseek.embed.noise_scale import best_scale
from pairseek.embed.placement import Placement
from pairseek.embed.triplets import Triplets
from pairseek.errors import InvalidItems, InvalidTriplets
from pairseek.model.responses import Logistic
from pairseek.numerics.jit import LOGISTIC

MIN_JUDGEMENTS = 10
MAX_DIMENSIONS = 4
# With few judgements one dimension predicts as well as two, but questions chosen for one dimension never reveal
# another.
_MIN_DIMENSIONS = 2
_FOLDS = 5
# Bounds on k, which apply when cross-validated judgements always or never agree with the map.
_MIN_K = 1e-3
_MAX_K = 10.0


@dataclass(frozen=True, eq=False)
class SimilarityMap:
    """Positions of items fitted to similarity judgements, with their measured error.

    Attributes
    ----------
    placement
        Positions fitted without the held-out judgements, used to choose further questions.
    final
        Positions fitted to all judgements, in the same number of dimensions.
    held_out
        Number of held-out random judgements.
    error, standard_error
        Fraction of the held-out judgements that `placement` violates, and its standard error; None without any.
    choice
        Cross-validated error against the number of dimensions; the map has at least two.
    k
        Noise constant of the judges, by cross-validation, in units of the positions.
    undecided
        (n,) expected fraction of wrongly ordered triplets around each item; see `Placement.undecided`.
    forecast
        Total number of judgements needed; see `Placement.forecast`.
    findings
        Findings of `check`, and about the judgements.
    """

    placement: Placement
    final: Placement
    held_out: int
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
        """Fit a map.

        Parameters
        ----------
        judged
            Judgements to fit.
        apart
            Random judgements of the same items, held out to measure the error.
        dimensions
            Number of dimensions. None: the number that cross-validation recommends, but at least 2.
        start
            An earlier map where the optimiser starts; a fresh start competes with it.
        labels
            Names of the items in findings.
        """
        rows = judged.rows if apart is None else np.concatenate([judged.rows, apart.rows])
        all_judgements = Triplets(rows, judged.ids)
        if len(all_judgements) < MIN_JUDGEMENTS:
            raise InvalidTriplets(
                f"{plural(len(all_judgements), 'judgement')}: a map needs at least {MIN_JUDGEMENTS}; collect more"
            )
        choice, held_out = _cross_validated(all_judgements, dimensions)
        d = choice.chosen if dimensions is not None else max(choice.chosen, _MIN_DIMENSIONS)
        logits = held_out[d]
        placement = Placement.fit(judged, d, start=None if start is None else start.placement)
        final = Placement.fit(all_judgements, d, start=placement)
        error = None if apart is None else placement.error(apart)
        standard_error = None
        if apart is not None and error is not None:
            # Adding half a judgement on each side keeps the standard error above 0 when no judgement is violated.
            share = (error * len(apart) + 0.5) / (len(apart) + 1.0)
            standard_error = math.sqrt(share * (1.0 - share) / len(apart))
        k = float(np.clip(best_scale(logits, LOGISTIC).k, _MIN_K, _MAX_K))
        fitted = cls(
            placement,
            final,
            0 if apart is None else len(apart),
            error,
            standard_error,
            choice,
            k,
            final.undecided(),
            final.forecast(),
            (),
        )
        return replace(fitted, findings=_findings(fitted, all_judgements, float(np.mean(logits <= 0.0)), labels))

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
        """The response model of the judges, for a search among the items."""
        return Logistic(self.k, "constant")

    def record(self) -> JSON:
        """Return the map as plain data."""
        return {
            "kind": "similarity",
            "placement": self.placement.record(),
            "final": self.final.record(),
            "apart": self.held_out,
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
            "findings": [list(astuple(finding)) for finding in self.findings],
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
            tuple(Finding(*values) for values in record["findings"]),
        )


def _cross_validated(triplets: Triplets, dimensions: int | None) -> tuple[DimensionChoice, dict[int, FloatArray]]:
    """Return the cross-validated error by dimension, and the (m,) logits of triplets when held out, by dimension."""
    limit = min(MAX_DIMENSIONS, triplets.n - 2)
    if dimensions is not None and dimensions > limit:
        raise InvalidItems(f"{triplets.n} items in {dimensions} dimensions: use at most {limit}")
    candidates = tuple(range(1, limit + 1)) if dimensions is None else (dimensions,)
    errors = np.empty((len(candidates), _FOLDS))
    logits: list[list[FloatArray]] = [[] for _ in candidates]
    for column, (fitted, held) in enumerate(triplets.folds(_FOLDS, 0)):
        for row, d in enumerate(candidates):
            placement = Placement.fit(fitted, d)
            errors[row, column] = placement.error(held)
            logits[row].append(placement.logits(held.rows))
    choice = DimensionChoice(candidates, errors, "ste", len(triplets))
    return choice, {d: np.concatenate(parts) for d, parts in zip(candidates, logits, strict=True)}


def _findings(
    fitted: SimilarityMap, all_judgements: Triplets, violated_share: float, labels: Sequence[str] | None
) -> tuple[Finding, ...]:
    names = {name: str(name) if labels is None else labels[row] for row, name in enumerate(fitted.ids)}
    findings: list[Finding] = []
    if all_judgements.unseen:
        findings.append(
            finding_from_messages(
                "unseen items",
                "act",
                "unseen",
                "unseen.advice",
                values={
                    "count": len(all_judgements.unseen),
                    "names": first_names(names[name] for name in all_judgements.unseen),
                },
            )
        )
    # One-sided test against a fair coin, at two standard errors.
    if violated_share > 0.5 - 1.0 / math.sqrt(len(all_judgements)):
        findings.append(
            finding_from_messages(
                "agreement",
                "act",
                "agreement",
                "agreement.advice",
                values={"percent": round(100 * violated_share), "count": len(all_judgements)},
            )
        )
    items = fitted.final.items()
    health = check(items, all_judgements, response=fitted.response, people=2)
    # The map agrees too well with the judgements it was fitted to; only the error on held-out judgements is unbiased.
    return (
        *findings,
        *(map_finding(finding) for finding in health.findings if finding.name != "agreement with the triplets"),
    )
