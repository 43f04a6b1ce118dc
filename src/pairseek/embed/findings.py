"""Findings of a health check: each has a sentence, its numbers, and advice."""

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

LEVEL = 0.95
NEAR, NEARER = 1e-3, 0.02
"""Near-duplicates are closer than these shares of the spread and of the median nearest-neighbour distance."""
FAR = 5.0
"""Items whose fifth neighbour is farther than this multiple of the median are outliers."""
NARROW = 0.1
"""Directions below this share of the widest standard deviation are narrow."""
INFORMATIVE = 0.1
"""Expected information, in bits, from which a pair counts as informative."""
_NEIGHBOURS = 5
MOST_ANSWERS = 100
"""Largest number of simulated answers; people do not give more in one session."""
_CANDIDATES = 2000
_PAIRS, _USERS, _CHUNK = 4000, 400, 500
_FEWEST_TRIPLETS = 5


@dataclass(frozen=True)
class Finding:
    """One aspect of a catalogue.

    Attributes
    ----------
    name
        Name of the aspect.
    level
        ``"good"``, ``"note"`` (worth knowing) or ``"act"`` (to be fixed before people are asked).
    found
        Description of the finding with its numbers, in English.
    advice
        Recommended action, in English; empty if none is needed.
    key, advice_key
        Keys of the two sentences among the messages, below ``finding.``, by which a page says them in its language.
    values
        Numbers and names in the sentences.

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


def stated(name: str, level: Level, key: str, advice_key: str = "", *, values: JSON | None = None) -> Finding:
    """Return a finding whose sentences are messages."""
    say, values = words().say, values or {}
    found = say(f"finding.{key}", **values)
    advice = say(f"finding.{advice_key}", **values) if advice_key else ""
    return Finding(name, level, found, advice, key, advice_key, values)


def of_map(finding: Finding) -> Finding:
    """Return a finding as it is said of a map that was learned from judgements.

    Messages below ``items.`` are about items that a researcher brings along. Each has a counterpart for the items of a
    map, whose key lacks this word.
    """
    keys = (finding.key.removeprefix("items."), finding.advice_key.removeprefix("items."))
    return stated(finding.name, finding.level, *keys, values=finding.values)


Part = tuple[Finding, JSON]


def few(names: Iterable[str], limit: int = 5) -> str:
    """Join the first names, in no language; an ellipsis stands for the others."""
    known = list(names)
    return ", ".join(known[:limit]) + (", …" if len(known) > limit else "")


def size(items: Items) -> Part:
    """Report the number of items and dimensions."""
    n, d = items.n, items.d
    pairs = n * (n - 1) // 2
    numbers: JSON = {"items": n, "dimensions": d}
    values: JSON = {**numbers, "pairs": pairs, "count": d}
    if n < 10 * d:
        return stated("size", "act", "size", "size.few", values=values), numbers
    return stated("size", "good", "size", values=values), numbers


def scales(items: Items) -> Part:
    """Compare the standard deviations of the columns."""
    contrast = items.scale_contrast
    if contrast is None:
        return stated("scales", "good", "items.scales.none"), {"scale_ratio": None}
    numbers: JSON = {"scale_ratio": contrast.ratio}
    values: JSON = {"ratio": _short(contrast.ratio) if contrast.ratio < 1e6 else f"{contrast.ratio:.0e}"}
    values |= {"widest": str(contrast.widest), "narrow": str(contrast.narrowest)}
    if not contrast.uneven:
        return stated("scales", "good", "items.scales", values=values), numbers
    keys = ("items.scales.uneven", "items.scales.uneven.advice")
    return stated("scales", "act", *keys, values=values), numbers


def directions(items: Items) -> Part:
    """Report the standard deviation along each principal direction."""
    values = np.linalg.eigvalsh(np.atleast_2d(np.cov(items.coordinates, rowvar=False)))[::-1]
    deviations = np.sqrt(np.maximum(values, 0.0))
    share = deviations / deviations[0]
    flat, narrow = int((share <= 1e-6).sum()), int((share < NARROW).sum())
    level: Level = "act" if flat else "note" if narrow else "good"
    advice = "items.directions.flat" if flat else "directions.narrow" if narrow else ""
    said: JSON = {"widest": _short(deviations[0]), "narrowest": _short(deviations[-1]), "count": flat or narrow}
    said |= {"rest": items.d - said["count"], "all": ", ".join(f"{x:.3g}" for x in deviations)}
    name = "spread along each direction"
    return stated(name, level, "items.directions", advice, values=said), {"spread": deviations.tolist()}


def neighbours(items: Items) -> tuple[FloatArray, IntArray]:
    """Return the (n, k) distances to the nearest neighbours and the (n,) index of the nearest."""
    count = min(_NEIGHBOURS, items.n - 1)
    reach, which = scipy.spatial.cKDTree(items.coordinates).query(items.coordinates, k=count + 1)
    # With several items at one point, an item may not be first among its own neighbours.
    own = which[:, 0] == np.arange(items.n)
    return reach[:, 1:], np.where(own, which[:, 1], which[:, 0])


def crowded(items: Items, reach: FloatArray) -> BoolArray:
    """Return the (n,) mask of near-duplicates of another item."""
    near = min(NEAR * items.spread, NEARER * float(np.median(reach[:, 0])))
    return np.asarray(reach[:, 0] <= near)


def lonely(reach: FloatArray) -> BoolArray:
    """Return the (n,) mask of outliers."""
    last = reach[:, -1]
    usual = float(np.median(last))
    return np.asarray((last > FAR * usual) & (usual > 0))


def near_duplicates(items: Items, duplicates: BoolArray, nearest: IntArray) -> Part:
    """Report items with nearly equal coordinates."""
    count = int(duplicates.sum())
    if not count:
        return stated("near-duplicates", "good", "duplicates.none"), {"near_duplicates": 0}
    first = int(duplicates.argmax())
    level: Level = "act" if count > 0.05 * items.n else "note"
    values = {
        "count": count,
        "percent": _short(100 * count / items.n),
        "first": items.labels[first],
        "second": items.labels[int(nearest[first])],
    }
    keys = ("duplicates", "duplicates.advice")
    return stated("near-duplicates", level, *keys, values=values), {"near_duplicates": count}


def outlying(items: Items, outliers: BoolArray) -> Part:
    """Report items far from all others."""
    count = int(outliers.sum())
    if not count:
        return stated("outliers", "good", "outliers.none"), {"outliers": 0}
    level: Level = "act" if count > 0.05 * items.n else "note"
    values = {
        "count": count,
        "percent": _short(100 * count / items.n),
        "names": few(items.labels[i] for i in np.flatnonzero(outliers).tolist()),
    }
    return stated("outliers", level, "outliers", "outliers.advice", values=values), {"outliers": count}


def box(items: Items, prior: Prior, outside: BoolArray) -> Part:
    """Report whether the prior covers the items."""
    share = float(outside.mean())
    low, high = prior.box(items.d)
    numbers: JSON = {"outside_prior": share, "prior_covers_items": not outside.any()}
    if not np.all(np.isfinite(low)):
        return stated("prior", "good", "prior.normal"), numbers
    values: JSON = {"low": _vector(low), "high": _vector(high), "percent": _short(100 * share)}
    if not outside.any():
        wide = (high - low) > 3.0 * np.ptp(items.coordinates, axis=0)
        if wide.any():
            return stated("prior", "act", "prior.wide", "prior.wide.advice", values=values), numbers
        return stated("prior", "good", "prior.covers", values=values), numbers
    return stated("prior", "note", "prior.outside", "items.prior.outside.advice", values=values), numbers


def _short(value: float) -> float:
    """Round to three significant digits."""
    return float(f"{value:.3g}")


def _vector(values: FloatArray) -> str:
    return f"{values[0]:.3g}" if np.ptp(values) == 0 else "(" + ", ".join(f"{x:.3g}" for x in values) + ")"


def first_pairs(items: Items, prior: Prior, response: Response, rng: np.random.Generator) -> tuple[FloatArray, float]:
    """Return the (pairs,) expected information of random first pairs, and the mean share of agreeing answers."""
    users = prior.sample(_USERS, items.d, rng)
    first = rng.integers(items.n, size=_PAIRS)
    second = (first + rng.integers(1, items.n, size=_PAIRS)) % items.n
    information = np.empty(_PAIRS)
    agreeing = 0.0
    for start in range(0, _PAIRS, _CHUNK):
        p, q = first[start : start + _CHUNK], second[start : start + _CHUNK]
        appeal = items.appeal[p] - items.appeal[q]
        slopes, offsets = response.planes(items.coordinates[p], items.coordinates[q], appeal)
        chance = response.probability(slopes @ users.T + offsets[:, None])
        information[start : start + _CHUNK] = _entropy(chance.mean(axis=1)) - _entropy(chance).mean(axis=1)
        agreeing += float(np.maximum(chance, 1.0 - chance).sum())
    return np.maximum(information, 0.0), agreeing / (_PAIRS * _USERS)


def _entropy(chance: FloatArray) -> FloatArray:
    return np.asarray(-(scipy.special.xlogy(chance, chance) + scipy.special.xlogy(1 - chance, 1 - chance)) / np.log(2))


def informative(information: FloatArray) -> Part:
    """Report the share of informative pairs."""
    share, best = float(np.mean(information >= INFORMATIVE)), float(information.max())
    numbers: JSON = {"informative_pairs": share, "best_pair_bits": best}
    values: JSON = {"percent": round(100 * share), "bits": INFORMATIVE, "best": round(best, 2)}
    level: Level = "good"
    advice = ""
    if best < INFORMATIVE:
        level, advice = "act", "items.informative.random"
    elif share < 0.05:
        level, advice = "note", "informative.few"
    return stated("informative pairs", level, "informative", advice, values=values), numbers


def agreeing(response: Response, agreement: float) -> Part:
    """Report the expected share of answers that agree with the model."""
    numbers: JSON = {"agreeing_answers": agreement}
    values: JSON = {"percent": round(100 * agreement), "k": _short(response.constant)}
    values |= {"response": response.name, "noise": str(response.noise)}
    level: Level = "good"
    advice = ""
    if agreement < 0.6:
        level, advice = "act", "agreeing.random"
    elif agreement > 0.98:
        level, advice = "note", "items.agreeing.always"
    return stated("predicted agreement", level, "items.agreeing", advice, values=values), numbers


def answers(
    items: Items,
    response: Response,
    prior: Prior,
    radius: float | None,
    *,
    people: int,
    rng: np.random.Generator,
) -> Part:
    """Report the number of answers that simulated people need to reach a credible radius."""
    first = _search(items, response, prior, None, rng).estimate().credible_radius(LEVEL)
    target = first / 2 if radius is None else radius
    middle = (people - 1) // 2
    needed: list[int] = []
    for _ in range(people):
        needed.append(_needed(items, response, prior, target, rng))
        # The median exceeds the limit, whatever the remaining people need.
        if sum(count > MOST_ANSWERS for count in needed) >= people - middle:
            break
    half = sorted(needed, reverse=True)[people - 1 - middle]
    numbers: JSON = {
        "start_radius": first,
        "target_radius": target,
        "expected_answers": half if half <= MOST_ANSWERS else None,
    }
    values: JSON = {
        "count": min(half, MOST_ANSWERS),
        "percent": round(100 * LEVEL),
        "first": _short(first),
        "target": _short(target),
        "people": people,
    }
    if half > MOST_ANSWERS:
        keys = ("answers.many", "items.answers.many.advice")
        return stated("expected answers", "act", *keys, values=values), numbers
    advice = "answers.advice" if half else ""
    return stated("expected answers", "good", "answers", advice, values=values), numbers


def _search(items: Items, response: Response, prior: Prior, target: float | None, rng: np.random.Generator) -> Search:
    # Fewer candidates than in a real search: faster, with nearly the same number of answers.
    return Search(
        items,
        response=response,
        prior=prior,
        candidates=SampledPairs(count=min(_CANDIDATES, items.n * (items.n - 1) // 2)),
        stop=None if target is None else RadiusBelow(target, LEVEL),
        rng=int(rng.integers(2**31)),
    )


def _needed(items: Items, response: Response, prior: Prior, target: float, rng: np.random.Generator) -> int:
    """Return the number of answers of one simulated person; the limit plus one if the target is not reached."""
    search = _search(items, response, prior, target, rng)
    user = SimulatedUser(prior.sample(1, items.d, rng)[0], response, rng)
    while search.finished is None:
        if search.answers == MOST_ANSWERS:
            return MOST_ANSWERS + 1
        query = search.ask()
        search.tell(query, winner=user.answer(items, query))
    return search.answers


def judgements(items: Items, rows: IntArray, noise: NoiseFit | None, calibration: FloatArray) -> Iterator[Part]:
    """Report the coverage of the items by triplets, and the agreement between them."""
    counts = np.bincount(rows.ravel(), minlength=items.n)
    rare = counts < _FEWEST_TRIPLETS * items.d
    values: JSON = {
        "triplets": len(rows),
        "mean": round(float(counts.mean())),
        "fewest": int(counts.min()),
        "count": int(rare.sum()),
        "wanted": _FEWEST_TRIPLETS * items.d,
        "names": few(items.labels[i] for i in np.argsort(counts, kind="stable")[: int(rare.sum())].tolist()),
    }
    level: Level = "note" if rare.any() else "good"
    advice = "items.triplets.rare" if rare.any() else ""
    yield (
        stated("triplets", level, "items.triplets", advice, values=values),
        {"triplets": len(rows), "fewest_triplets": int(counts.min()), "items_with_few_triplets": int(rare.sum())},
    )
    error = triplet_error(items, rows)
    predicted = float((calibration[:, 0] * calibration[:, 2]).sum() / len(rows))
    gap = 1.0 - error - predicted
    clear = abs(gap) > 0.02 and abs(gap) > 3.0 * np.sqrt(error * (1.0 - error) / len(rows))
    level, advice = "good", ""
    if error > 0.4:
        level, advice = "act", "items.agreement.unexplained"
    elif clear:
        level, advice = "note", "items.agreement.other"
    said: JSON = {"percent": _short(100 * (1.0 - error)), "predicted": _short(100 * predicted)}
    finding = stated("agreement with the triplets", level, "items.agreement", advice, values=said)
    if noise is not None and noise.note:
        # What is wrong with a fit is said by the fit.
        note = f"{noise.note[0].upper()}{noise.note[1:]}."
        finding = replace(finding, level="act", advice=note, advice_key="")
    yield (
        finding,
        {"triplet_error": error, "predicted_triplet_agreement": predicted},
    )


def calibrated(items: Items, rows: IntArray, response: Response) -> FloatArray:
    """Return (bins, 3) predicted share, observed share and count of agreeing triplets, by deciles of prediction."""
    near, far = distances(rows, items.coordinates)
    length = 2.0 * np.sqrt(distances(rows[:, [1, 2, 0]], items.coordinates)[0])
    logits = response.pair_constant(length) * (far - near)
    chance = response.probability(np.abs(logits))
    agree = np.where(logits == 0, 0.5, logits > 0)
    edges = np.quantile(chance, np.linspace(0, 1, 11))
    bins = np.clip(np.searchsorted(edges, chance, side="right") - 1, 0, 9)
    counts = np.bincount(bins, minlength=10)
    sums = [np.bincount(bins, weights=values, minlength=10) for values in (chance, agree)]
    kept = counts > 0
    return np.column_stack([total[kept] / counts[kept] for total in sums] + [counts[kept]])
