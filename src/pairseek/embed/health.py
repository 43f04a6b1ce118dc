"""Is a catalogue fit to be searched? What can be said before any person is asked, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pairseek.core.types import JSON, BoolArray, FloatArray, IntArray
from pairseek.defaults import default_prior, resolve
from pairseek.embed.findings import (
    Finding,
    agreeing,
    answers,
    box,
    calibrated,
    crowded,
    directions,
    first_pairs,
    informative,
    judgements,
    lonely,
    near_duplicates,
    neighbours,
    outlying,
    scales,
    size,
)
from pairseek.embed.noise import NoiseFit, fit_noise
from pairseek.embed.triplets import Triplets, as_triplets
from pairseek.errors import InvalidParameter
from pairseek.model.items import Items
from pairseek.model.priors import Prior
from pairseek.model.responses import Response


@dataclass(frozen=True, eq=False)
class Health:
    """What a check found.

    Attributes
    ----------
    items, prior, response
        What was looked at, every default filled in.
    findings
        In words.
    numbers
        The same for programs.
    duplicates, outliers, outside
        (n,) True for such items.
    information
        (pairs,) bits that the first answer is expected to tell, for random pairs.
    noise
        The fit to the triplets; None without any.
    calibration
        (bins, 3) predicted share of agreeing triplets, observed share, count; empty without triplets.
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
        """Whether nothing needs doing."""
        return all(finding.level != "act" for finding in self.findings)

    def __str__(self) -> str:
        lines = []
        for finding in self.findings:
            lines.append(f"[{finding.level}] {finding.name}: {finding.found}")
            if finding.advice:
                lines.append(f"    {finding.advice}")
        return "\n".join(lines)

    def record(self) -> JSON:
        """As plain data."""
        words = [{"name": f.name, "level": f.level, "found": f.found, "advice": f.advice} for f in self.findings]
        return {"good": self.good, **self.numbers, "findings": words}


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
    """Look at a catalogue as a search will see it.

    Parameters
    ----------
    items
        As they shall be searched: scaled or not.
    triplets
        Judgements of likeness, best such as the embedding was not fitted to: they give the noise, and a comparison of
        what the model predicts with what people said.
    response
        How people answer. None: as the triplets say, or what a search takes by itself.
    prior
        Where people may be. None: the box that the items fill, as in a search.
    radius
        Radius that should hold a person with 95 % certainty. None: half of that before the first answer.
    people
        Simulated people, to count the answers that they need.
    rng
        For the pairs and users that are drawn.
    """
    if isinstance(people, bool) or not isinstance(people, int | np.integer) or people < 1:
        raise InvalidParameter(f"people is {people!r}: give a whole number, at least 1")
    if radius is not None and not (np.isfinite(radius) and radius > 0):
        raise InvalidParameter(f"radius is {radius!r}: give a number above 0")
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
    reach, nearest = neighbours(items)
    duplicates, outliers = crowded(items, reach), lonely(reach)
    low, high = prior.box(items.d)
    outside = np.asarray(((items.coordinates < low) | (items.coordinates > high)).any(axis=1))
    information, agreement = first_pairs(items, prior, response, generator)
    calibration = np.empty((0, 3)) if rows is None else calibrated(items, rows, response)
    parts = [
        size(items),
        scales(items),
        directions(items),
        near_duplicates(items, duplicates, nearest),
        outlying(items, outliers),
        box(items, prior, outside),
        *(judgements(items, rows, noise, calibration) if rows is not None else ()),
        informative(information),
        agreeing(response, agreement),
        answers(items, response, prior, radius, people=int(people), rng=generator),
    ]
    findings = tuple(finding for finding, _ in parts)
    numbers: JSON = {}
    for _, more in parts:
        numbers |= more
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
