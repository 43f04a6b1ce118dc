"""Findings of a health check: sentences with their numbers and advice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import scipy

from pairseek.core.messages import words
from pairseek.core.types import JSON, BoolArray, FloatArray, IntArray
from pairseek.embed.noise import NoiseFit
from pairseek.embed.objective import distances
from pairseek.model.items import Items
from pairseek.model.metrics import triplet_error
from pairseek.model.priors import Prior
from pairseek.model.responses import Response
from pairseek.pairs.sources import SampledPairs
from pairseek.search import Search
from pairseek.search.simulate import SimulatedUser
from pairseek.search.stopping import RadiusBelow

Level = Literal["good", "note", "act"]

CREDIBLE_LEVEL = 0.95
DUPLICATE_SPREAD = 1e-3
"""Near-duplicates are closer than this fraction of the spread of the items."""
DUPLICATE_NEIGHBOUR = 0.02
"""Near-duplicates are also closer than this fraction of the median distance to the nearest neighbour."""
OUTLIER_FACTOR = 5.0
"""Outliers are items whose fifth neighbour is farther than this multiple of the median distance."""
NARROW_DIRECTION = 0.1
"""Narrow directions have a standard deviation below this fraction of the largest."""
MIN_INFORMATIVE_BITS = 0.1
"""Least expected information, in bits, of an informative pair."""
_OUTLIER_NEIGHBOURS = 5
MAX_ANSWERS = 100
"""Maximum number of simulated answers; people rarely give more in a session."""
_CANDIDATE_PAIRS = 2000
_RANDOM_PAIRS = 4000
"""Number of random pairs whose expected information is computed."""
_SIMULATED_USERS = 400
"""Number of user points over which the information of a pair is averaged."""
_CHUNK_SIZE = 500
"""Pairs per chunk, to limit the memory for the probabilities of all users."""
_MIN_TRIPLETS_PER_DIMENSION = 5
"""Recommended number of triplets per item and dimension."""


@dataclass(frozen=True)
class Finding:
    """A finding about one aspect of a catalogue.

    Attributes
    ----------
    name
        Name of the aspect.
    level
        ``"good"``, ``"note"`` (worth knowing) or ``"act"`` (fix before people are asked).
    found
        Description of the finding with its numbers, in English.
    advice
        Recommended action, in English; empty if there is nothing to do.
    key, advice_key
        Keys of the two sentences below ``finding.`` in the message catalogue, which pages use to translate them.
    values
        Values of the placeholders in the sentences.

    Examples
    --------
    >>> import pairseek as ps
    >>> from pairseek.embed import check
    >>> items = ps.Items([[0.0, 0.0], [1.0, 0.2], [0.3, 1.0], [0.8, 0.9]])
    >>> size = check(items, people=1).findings[0]
    >>> size.name, size.level
    ('size', 'act')
    >>> print(size.found)
    4 items in 2 dimensions, 6 pairs
    """

    name: str
    level: Level
    found: str
    advice: str = ""
    key: str = ""
    advice_key: str = ""
    values: JSON = field(default_factory=dict, hash=False)


def finding_from_messages(
    name: str, level: Level, key: str, advice_key: str = "", *, values: JSON | None = None
) -> Finding:
    """Build a finding from its entries in the message catalogue."""
    say, values = words().say, values or {}
    text = say(f"finding.{key}", **values)
    advice = say(f"finding.{advice_key}", **values) if advice_key else ""
    return Finding(name, level, text, advice, key, advice_key, values)


def map_finding(finding: Finding) -> Finding:
    """Reword a finding for a map that was learned from judgements.

    Messages below ``items.`` are about items that a researcher supplies. The counterpart for a map has the same key
    without ``items.``.
    """
    keys = (finding.key.removeprefix("items."), finding.advice_key.removeprefix("items."))
    return finding_from_messages(finding.name, finding.level, *keys, values=finding.values)


FindingWithNumbers = tuple[Finding, JSON]


def first_names(names: Iterable[str], limit: int = 5) -> str:
    """Join the first names; an ellipsis, which needs no translation, stands for the others."""
    all_names = list(names)
    return ", ".join(all_names[:limit]) + (", …" if len(all_names) > limit else "")


def size_finding(items: Items) -> FindingWithNumbers:
    """Report the number of items and dimensions."""
    n, d = items.n, items.d
    pairs = n * (n - 1) // 2
    numbers: JSON = {"items": n, "dimensions": d}
    values: JSON = {**numbers, "pairs": pairs, "count": d}
    if n < 10 * d:
        return finding_from_messages("size", "act", "size", "size.few", values=values), numbers
    return finding_from_messages("size", "good", "size", values=values), numbers


def scale_finding(items: Items) -> FindingWithNumbers:
    """Compare the standard deviations of the columns."""
    contrast = items.scale_contrast
    if contrast is None:
        return finding_from_messages("scales", "good", "items.scales.none"), {"scale_ratio": None}
    numbers: JSON = {"scale_ratio": contrast.ratio}
    values: JSON = {"ratio": _round(contrast.ratio) if contrast.ratio < 1e6 else f"{contrast.ratio:.0e}"}
    values |= {"widest": str(contrast.widest), "narrow": str(contrast.narrowest)}
    if not contrast.uneven:
        return finding_from_messages("scales", "good", "items.scales", values=values), numbers
    keys = ("items.scales.uneven", "items.scales.uneven.advice")
    return finding_from_messages("scales", "act", *keys, values=values), numbers


def direction_finding(items: Items) -> FindingWithNumbers:
    """Report the standard deviation along each principal direction."""
    variances = np.linalg.eigvalsh(np.atleast_2d(np.cov(items.coordinates, rowvar=False)))[::-1]
    deviations = np.sqrt(np.maximum(variances, 0.0))
    relative = deviations / deviations[0]
    flat, narrow = int((relative <= 1e-6).sum()), int((relative < NARROW_DIRECTION).sum())
    level: Level = "act" if flat else "note" if narrow else "good"
    advice = "items.directions.flat" if flat else "directions.narrow" if narrow else ""
    values: JSON = {"widest": _round(deviations[0]), "narrowest": _round(deviations[-1]), "count": flat or narrow}
    values |= {"rest": items.d - values["count"], "all": ", ".join(f"{x:.3g}" for x in deviations)}
    name = "spread along each direction"
    return finding_from_messages(name, level, "items.directions", advice, values=values), {
        "spread": deviations.tolist()
    }


def nearest_neighbours(items: Items) -> tuple[FloatArray, IntArray]:
    """Return the (n, k) distances to the nearest neighbours and the (n,) index of the nearest."""
    count = min(_OUTLIER_NEIGHBOURS, items.n - 1)
    neighbour_distances, neighbour_indices = scipy.spatial.cKDTree(items.coordinates).query(
        items.coordinates, k=count + 1
    )
    # With several items at one point, an item may not be its own first neighbour.
    is_self = neighbour_indices[:, 0] == np.arange(items.n)
    return neighbour_distances[:, 1:], np.where(is_self, neighbour_indices[:, 1], neighbour_indices[:, 0])


def duplicate_mask(items: Items, neighbour_distances: FloatArray) -> BoolArray:
    """Return the (n,) mask of items with a near-duplicate."""
    limit = min(DUPLICATE_SPREAD * items.spread, DUPLICATE_NEIGHBOUR * float(np.median(neighbour_distances[:, 0])))
    return np.asarray(neighbour_distances[:, 0] <= limit)


def outlier_mask(neighbour_distances: FloatArray) -> BoolArray:
    """Return the (n,) mask of outliers."""
    fifth = neighbour_distances[:, -1]
    median = float(np.median(fifth))
    return np.asarray((fifth > OUTLIER_FACTOR * median) & (median > 0))


def duplicate_finding(items: Items, duplicates: BoolArray, nearest: IntArray) -> FindingWithNumbers:
    """Report items with nearly equal coordinates."""
    count = int(duplicates.sum())
    if not count:
        return finding_from_messages("near-duplicates", "good", "duplicates.none"), {"near_duplicates": 0}
    first = int(duplicates.argmax())
    level: Level = "act" if count > 0.05 * items.n else "note"
    values = {
        "count": count,
        "percent": _round(100 * count / items.n),
        "first": items.labels[first],
        "second": items.labels[int(nearest[first])],
    }
    keys = ("duplicates", "duplicates.advice")
    return finding_from_messages("near-duplicates", level, *keys, values=values), {"near_duplicates": count}


def outlier_finding(items: Items, outliers: BoolArray) -> FindingWithNumbers:
    """Report items far from all others."""
    count = int(outliers.sum())
    if not count:
        return finding_from_messages("outliers", "good", "outliers.none"), {"outliers": 0}
    level: Level = "act" if count > 0.05 * items.n else "note"
    values = {
        "count": count,
        "percent": _round(100 * count / items.n),
        "names": first_names(items.labels[i] for i in np.flatnonzero(outliers).tolist()),
    }
    return finding_from_messages("outliers", level, "outliers", "outliers.advice", values=values), {"outliers": count}


def prior_finding(items: Items, prior: Prior, outside: BoolArray) -> FindingWithNumbers:
    """Report whether the prior covers the items."""
    share = float(outside.mean())
    low, high = prior.box(items.d)
    numbers: JSON = {"outside_prior": share, "prior_covers_items": not outside.any()}
    if not np.all(np.isfinite(low)):
        return finding_from_messages("prior", "good", "prior.normal"), numbers
    values: JSON = {"low": _vector_text(low), "high": _vector_text(high), "percent": _round(100 * share)}
    if not outside.any():
        wide = (high - low) > 3.0 * np.ptp(items.coordinates, axis=0)
        if wide.any():
            return finding_from_messages("prior", "act", "prior.wide", "prior.wide.advice", values=values), numbers
        return finding_from_messages("prior", "good", "prior.covers", values=values), numbers
    return finding_from_messages("prior", "note", "prior.outside", "items.prior.outside.advice", values=values), numbers


def _round(value: float) -> float:
    """Round to three significant digits."""
    return float(f"{value:.3g}")


def _vector_text(values: FloatArray) -> str:
    return f"{values[0]:.3g}" if np.ptp(values) == 0 else "(" + ", ".join(f"{x:.3g}" for x in values) + ")"


def first_pair_information(
    items: Items, prior: Prior, response: Response, rng: np.random.Generator
) -> tuple[FloatArray, float]:
    """Return the (pairs,) expected information of random first pairs, and the expected fraction of agreeing answers."""
    users = prior.sample(_SIMULATED_USERS, items.d, rng)
    first = rng.integers(items.n, size=_RANDOM_PAIRS)
    second = (first + rng.integers(1, items.n, size=_RANDOM_PAIRS)) % items.n
    information = np.empty(_RANDOM_PAIRS)
    agreeing = 0.0
    for start in range(0, _RANDOM_PAIRS, _CHUNK_SIZE):
        p, q = first[start : start + _CHUNK_SIZE], second[start : start + _CHUNK_SIZE]
        appeal = items.appeal[p] - items.appeal[q]
        slopes, offsets = response.planes(items.coordinates[p], items.coordinates[q], appeal)
        probability = response.probability(slopes @ users.T + offsets[:, None])
        information[start : start + _CHUNK_SIZE] = _entropy(probability.mean(axis=1)) - _entropy(probability).mean(
            axis=1
        )
        agreeing += float(np.maximum(probability, 1.0 - probability).sum())
    return np.maximum(information, 0.0), agreeing / (_RANDOM_PAIRS * _SIMULATED_USERS)


def _entropy(probability: FloatArray) -> FloatArray:
    return np.asarray(
        -(scipy.special.xlogy(probability, probability) + scipy.special.xlogy(1 - probability, 1 - probability))
        / np.log(2)
    )


def information_finding(information: FloatArray) -> FindingWithNumbers:
    """Report the fraction of informative pairs."""
    share, best = float(np.mean(information >= MIN_INFORMATIVE_BITS)), float(information.max())
    numbers: JSON = {"informative_pairs": share, "best_pair_bits": best}
    values: JSON = {"percent": round(100 * share), "bits": MIN_INFORMATIVE_BITS, "best": round(best, 2)}
    level: Level = "good"
    advice = ""
    if best < MIN_INFORMATIVE_BITS:
        level, advice = "act", "items.informative.random"
    elif share < 0.05:
        level, advice = "note", "informative.few"
    return finding_from_messages("informative pairs", level, "informative", advice, values=values), numbers


def agreement_finding(response: Response, agreement: float) -> FindingWithNumbers:
    """Report the expected fraction of answers that agree with the noiseless ones."""
    numbers: JSON = {"agreeing_answers": agreement}
    values: JSON = {"percent": round(100 * agreement), "k": _round(response.constant)}
    values |= {"response": response.name, "noise": str(response.noise)}
    level: Level = "good"
    advice = ""
    if agreement < 0.6:
        level, advice = "act", "agreeing.random"
    elif agreement > 0.98:
        level, advice = "note", "items.agreeing.always"
    return finding_from_messages("predicted agreement", level, "items.agreeing", advice, values=values), numbers


def answers_finding(
    items: Items,
    response: Response,
    prior: Prior,
    radius: float | None,
    *,
    people: int,
    rng: np.random.Generator,
) -> FindingWithNumbers:
    """Report the number of answers that simulated people need to reach a credible radius."""
    first_radius = _search(items, response, prior, None, rng).estimate().credible_radius(CREDIBLE_LEVEL)
    target = first_radius / 2 if radius is None else radius
    middle = (people - 1) // 2
    needed: list[int] = []
    for _ in range(people):
        needed.append(_answers_needed(items, response, prior, target, rng))
        # The median already exceeds the limit, whatever the remaining people need.
        if sum(count > MAX_ANSWERS for count in needed) >= people - middle:
            break
    median = sorted(needed, reverse=True)[people - 1 - middle]
    numbers: JSON = {
        "start_radius": first_radius,
        "target_radius": target,
        "expected_answers": median if median <= MAX_ANSWERS else None,
    }
    values: JSON = {
        "count": min(median, MAX_ANSWERS),
        "percent": round(100 * CREDIBLE_LEVEL),
        "first": _round(first_radius),
        "target": _round(target),
        "people": people,
    }
    if median > MAX_ANSWERS:
        keys = ("answers.many", "items.answers.many.advice")
        return finding_from_messages("expected answers", "act", *keys, values=values), numbers
    advice = "answers.advice" if median else ""
    return finding_from_messages("expected answers", "good", "answers", advice, values=values), numbers


def _search(items: Items, response: Response, prior: Prior, target: float | None, rng: np.random.Generator) -> Search:
    # With fewer candidates than a real search this is faster, and the number of answers is nearly the same.
    return Search(
        items,
        response=response,
        prior=prior,
        candidates=SampledPairs(count=min(_CANDIDATE_PAIRS, items.n * (items.n - 1) // 2)),
        stop=None if target is None else RadiusBelow(target, CREDIBLE_LEVEL),
        rng=int(rng.integers(2**31)),
    )


def _answers_needed(items: Items, response: Response, prior: Prior, target: float, rng: np.random.Generator) -> int:
    """Return the number of answers that a simulated person needs; the limit plus one if the target is not reached."""
    search = _search(items, response, prior, target, rng)
    user = SimulatedUser(prior.sample(1, items.d, rng)[0], response, rng)
    while search.finished is None:
        if search.answers == MAX_ANSWERS:
            return MAX_ANSWERS + 1
        query = search.ask()
        search.tell(query, winner=user.answer(items, query))
    return search.answers


def judgement_findings(
    items: Items, rows: IntArray, noise: NoiseFit | None, calibration: FloatArray
) -> Iterator[FindingWithNumbers]:
    """Report how well triplets cover the items, and how well they agree with them."""
    counts = np.bincount(rows.ravel(), minlength=items.n)
    rare = counts < _MIN_TRIPLETS_PER_DIMENSION * items.d
    values: JSON = {
        "triplets": len(rows),
        "mean": round(float(counts.mean())),
        "fewest": int(counts.min()),
        "count": int(rare.sum()),
        "wanted": _MIN_TRIPLETS_PER_DIMENSION * items.d,
        "names": first_names(items.labels[i] for i in np.argsort(counts, kind="stable")[: int(rare.sum())].tolist()),
    }
    level: Level = "note" if rare.any() else "good"
    advice = "items.triplets.rare" if rare.any() else ""
    yield (
        finding_from_messages("triplets", level, "items.triplets", advice, values=values),
        {"triplets": len(rows), "fewest_triplets": int(counts.min()), "items_with_few_triplets": int(rare.sum())},
    )
    error = triplet_error(items, rows)
    predicted = float((calibration[:, 0] * calibration[:, 2]).sum() / len(rows))
    excess_agreement = 1.0 - error - predicted
    is_significant = abs(excess_agreement) > 0.02 and abs(excess_agreement) > 3.0 * np.sqrt(
        error * (1.0 - error) / len(rows)
    )
    level, advice = "good", ""
    if error > 0.4:
        level, advice = "act", "items.agreement.unexplained"
    elif is_significant:
        level, advice = "note", "items.agreement.other"
    values = {"percent": _round(100 * (1.0 - error)), "predicted": _round(100 * predicted)}
    finding = finding_from_messages("agreement with the triplets", level, "items.agreement", advice, values=values)
    if noise is not None and noise.note:
        # The note of the fit is the advice.
        note = f"{noise.note[0].upper()}{noise.note[1:]}."
        finding = replace(finding, level="act", advice=note, advice_key="")
    yield (
        finding,
        {"triplet_error": error, "predicted_triplet_agreement": predicted},
    )


def measure_calibration(items: Items, rows: IntArray, response: Response) -> FloatArray:
    """Return the (bins, 3) predicted and observed fraction of agreeing triplets, and count, by predicted decile."""
    near, far = distances(rows, items.coordinates)
    length = 2.0 * np.sqrt(distances(rows[:, [1, 2, 0]], items.coordinates)[0])
    logits = response.pair_constant(length) * (far - near)
    probability = response.probability(np.abs(logits))
    agree = np.where(logits == 0, 0.5, logits > 0)
    edges = np.quantile(probability, np.linspace(0, 1, 11))
    bins = np.clip(np.searchsorted(edges, probability, side="right") - 1, 0, 9)
    counts = np.bincount(bins, minlength=10)
    sums = [np.bincount(bins, weights=values, minlength=10) for values in (probability, agree)]
    kept = counts > 0
    return np.column_stack([total[kept] / counts[kept] for total in sums] + [counts[kept]])
