"""Health check of a catalogue: problems to fix before people are asked, and advice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pairseek.core.types import JSON, BoolArray, FloatArray, IntArray
from pairseek.core.validation import whole
from pairseek.embed.findings import (
    Finding,
    agreement_finding,
    answers_finding,
    direction_finding,
    duplicate_finding,
    duplicate_mask,
    first_pair_information,
    information_finding,
    judgement_findings,
    measure_calibration,
    nearest_neighbours,
    outlier_finding,
    outlier_mask,
    prior_finding,
    scale_finding,
    size_finding,
)
from pairseek.embed.noise import NoiseFit, fit_noise
from pairseek.embed.triplets import Triplets, as_triplets
from pairseek.errors import InvalidParameter
from pairseek.model.defaults import default_prior
from pairseek.model.items import Items
from pairseek.model.priors import Prior
from pairseek.model.responses import Response
from pairseek.search.defaults import resolve


@dataclass(frozen=True, eq=False)
class Health:
    """The result of a health check.

    Attributes
    ----------
    items, prior, response
        The catalogue, prior and response model, with all defaults resolved.
    findings
        Findings in words.
    numbers
        Findings as numbers.
    duplicates, outliers, outside
        (n,) masks of near-duplicates, outliers, and items outside the prior.
    information
        (pairs,) expected information of the first answer, in bits, for random pairs.
    noise
        Noise fit to the triplets; None without triplets.
    calibration
        (bins, 3) predicted and observed fraction of agreeing triplets, and their count; empty without triplets.

    Examples
    --------
    >>> import pairseek as ps
    >>> from pairseek.embed import check
    >>> health = check(ps.Items([[0.0, 0.0], [1.0, 0.2], [0.3, 1.0], [0.8, 0.9]]), people=1)
    >>> health.good
    False
    >>> [finding.name for finding in health.findings if finding.level == "act"]
    ['size', 'expected answers']
    >>> health.numbers["items"], health.numbers["near_duplicates"]
    (4, 0)
    """

    items: Items
    prior: Prior
    response: Response
    findings: tuple[Finding, ...]
    numbers: JSON
    duplicates: BoolArray
    outliers: BoolArray
    outside: BoolArray
    information: FloatArray
    noise: NoiseFit | None
    calibration: FloatArray

    @property
    def good(self) -> bool:
        """Whether no finding requires action."""
        return all(finding.level != "act" for finding in self.findings)

    def __str__(self) -> str:
        lines = []
        for finding in self.findings:
            lines.append(f"[{finding.level}] {finding.name}: {finding.found}")
            if finding.advice:
                lines.append(f"    {finding.advice}")
        return "\n".join(lines)

    def record(self) -> JSON:
        """Return the findings as plain data."""
        findings = [{"name": f.name, "level": f.level, "found": f.found, "advice": f.advice} for f in self.findings]
        return {"good": self.good, **self.numbers, "findings": findings}


def check(
    items: Items,
    triplets: Triplets | npt.ArrayLike | None = None,
    *,
    response: Response | None = None,
    prior: Prior | None = None,
    radius: float | None = None,
    people: int = 5,
    rng: int | np.random.Generator = 0,
) -> Health:
    """Check a catalogue for properties that make searches fail or take long.

    Parameters
    ----------
    items
        The items as they will be searched, scaled or not.
    triplets
        Similarity judgements, preferably not those that the embedding was fitted to. The noise is fitted to them, and
        their agreement with the items is compared with the model's prediction.
    response
        Response model. None: the one fitted to the triplets, or the default of a search.
    prior
        Prior of the user point. None: the default of a search.
    radius
        Target of the 95 % credible radius. None: half the radius before the first answer.
    people
        Number of simulated people whose answers are counted.
    rng
        Seed or generator for random pairs and users.

    Examples
    --------
    >>> import numpy as np
    >>> import pairseek as ps
    >>> from pairseek.embed import check, simulate_triplets
    >>> items = ps.Items(np.random.default_rng(0).standard_normal((30, 2)))
    >>> judgements = simulate_triplets(items, 300, rng=0, response=ps.Logistic(1.0))
    >>> health = check(items, judgements, people=1)
    >>> health.good
    True
    >>> print(health)
    [good] size: 30 items in 2 dimensions, 435 pairs
    ...
    """
    people = whole(people, "people")
    if radius is not None and not (np.isfinite(radius) and radius > 0):
        raise InvalidParameter(f"radius is {radius!r}: give a number above 0", field="radius")
    generator = np.random.default_rng(rng)
    rows = _rows(items, triplets)
    noise = None
    if rows is not None:
        kinds = None if response is None else [response]
        noise = fit_noise(items, Triplets(rows, items.ids), responses=kinds, folds=None).best
        if response is None and not noise.bound:
            response = noise.response
    prior = default_prior(items) if prior is None else prior
    response = resolve(items, response, prior, None, None)[0]
    neighbour_distances, nearest = nearest_neighbours(items)
    duplicates, outliers = duplicate_mask(items, neighbour_distances), outlier_mask(neighbour_distances)
    low, high = prior.box(items.d)
    outside = np.asarray(((items.coordinates < low) | (items.coordinates > high)).any(axis=1))
    information, agreement = first_pair_information(items, prior, response, generator)
    calibration = np.empty((0, 3)) if rows is None else measure_calibration(items, rows, response)
    findings_and_numbers = [
        size_finding(items),
        scale_finding(items),
        direction_finding(items),
        duplicate_finding(items, duplicates, nearest),
        outlier_finding(items, outliers),
        prior_finding(items, prior, outside),
        *(judgement_findings(items, rows, noise, calibration) if rows is not None else ()),
        information_finding(information),
        agreement_finding(response, agreement),
        answers_finding(items, response, prior, radius, people=people, rng=generator),
    ]
    findings = tuple(finding for finding, _ in findings_and_numbers)
    numbers: JSON = {}
    for _, part_numbers in findings_and_numbers:
        numbers |= part_numbers
    noise_record = None if noise is None else noise.record()
    model = {"name": response.name, "noise": response.noise, "k": response.constant}
    return Health(
        items,
        prior,
        response,
        findings,
        {**numbers, "response": model, "noise_fit": noise_record},
        duplicates,
        outliers,
        outside,
        information,
        noise,
        calibration,
    )


def _rows(items: Items, triplets: Triplets | npt.ArrayLike | None) -> IntArray | None:
    if triplets is None:
        return None
    data = triplets if isinstance(triplets, Triplets) else Triplets(as_triplets(triplets).rows, items.ids)
    return data.among(items)
