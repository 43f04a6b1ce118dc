"""Searches that `unchanged.py` records: small ones with every kind of part, goal, rule and catalogue."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar

import numpy as np

import pairseek as ps
from pairseek.pairs.sources import SOURCES

UNKNOWN = ps.Unknown()
BOX = ps.UniformBox(-2.5, 2.5)
EVENTFUL = {2: "redo", 3: "skip", 5: "undo", 6: "observe"}
TIED = {1: "tie", 4: "skip", 6: "tie", 7: "redo"}


@dataclass(frozen=True, eq=False)
class Case:
    """A search, the actions of its person, and the checks after the last answer."""

    name: str
    make: Callable[[], ps.Search]
    answers: int = 12
    script: Mapping[int, str] = field(default_factory=dict)
    further: tuple[str, ...] = ()
    noise: float = 0.6

    @property
    def seed(self) -> int:
        """Seed that does not change when other cases are added."""
        return sum(ord(letter) * (place + 1) for place, letter in enumerate(self.name))


@cache
def items(d: int, n: int = 60, *, appeal: float = 0.0) -> ps.Items:
    rng = np.random.default_rng([d, n])
    points = rng.normal(size=(n, d)) * np.linspace(1.3, 0.7, d)
    liked = appeal * rng.normal(size=n) if appeal else None
    return ps.Items(points, [f"i{row}" for row in range(n)], [f"Item {row}" for row in range(n)], appeal=liked)


@cache
def unplaced(n: int = 12) -> ps.Items:
    return ps.Items(ids=[f"u{row}" for row in range(n)])


@cache
def vectors(n: int = 50) -> dict[str, np.ndarray]:
    table = np.random.default_rng(9).normal(size=(n, 10)) * np.linspace(2.0, 0.4, 10)
    return {f"i{row}": vector for row, vector in enumerate(table)}


@cache
def choices(n: int = 14, people: int = 40, pairs: int = 14) -> ps.Choices:
    """Return choices of synthetic people among the first n items in two dimensions."""
    rng, points = np.random.default_rng(21), items(2).coordinates[:n]
    rows, appeal = [], 0.5 * rng.normal(size=n)
    for person in range(people):
        utility = appeal - 0.7 * np.sum((rng.normal(size=2) - points) ** 2, axis=1)
        for _ in range(pairs):
            a, b = rng.choice(n, 2, replace=False)
            wins = rng.random() < 1.0 / (1.0 + np.exp(utility[b] - utility[a]))
            rows.append((f"p{person}", f"i{a if wins else b}", f"i{b if wins else a}"))
    return ps.Choices.from_pairs(rows, ids=[f"i{row}" for row in range(n)])


@cache
def population(kind: str) -> ps.Population:
    if kind == "placed":
        return ps.Population.fit(choices(), items(2).subset(np.arange(14)), residual=0.5)
    if kind == "inferred residual":
        return ps.Population.fit(choices(), items(2).subset(np.arange(14)))
    if kind == "vectors":
        return ps.Population.fit(choices(), vectors=vectors(), dimension=2, residual=0.4)
    return ps.Population.fit(choices(), dimension=2, residual=0.4)


@dataclass(frozen=True)
class Longest:
    """A custom strategy, whose score has no bound."""

    name: ClassVar[str] = "longest"

    def score(self, candidates: Any, belief: Any) -> Any:  # noqa: ARG002
        return candidates.length * candidates.logit_deviation


def _search(catalogue: Callable[[], Any], **parts: Any) -> Callable[[], ps.Search]:
    return lambda: ps.Search(catalogue(), **{"rng": 7, **parts})


def _of(d: int, n: int = 60, **more: Any) -> Callable[[], ps.Items]:
    return lambda: items(d, n, **more)


def every_case() -> Iterator[Case]:
    for group in (_defaults, _spaces, _strategies, _procedures, _sources, _posteriors, _responses, _unknowns):
        yield from group()
    for group in (_goals, _stops, _rests, _populations, _parts_of_catalogues, _large, _appeal, _interface):
        yield from group()


def _defaults() -> Iterator[Case]:
    for d, count in ((1, 12), (2, 24), (4, 20), (12, 12), (25, 10)):
        yield Case(f"defaults, d = {d}", _search(_of(d)), count, EVENTFUL)
    yield Case("defaults, no coordinates", _search(unplaced), 20, EVENTFUL, ("saved", "record", "token", "copied"))
    yield Case("defaults, colours", _search(ps.datasets.colours), 12)
    yield Case("defaults, careful person", _search(_of(3)), 16, noise=0.05)
    yield Case("defaults, random person", _search(_of(3)), 16, noise=8.0)
    yield Case("defaults, five items", _search(_of(2, 5)), 14)  # more questions than pairs


def _spaces() -> Iterator[Case]:
    def space() -> ps.Space:
        return ps.Space((-1.0, 0.0), (1.0, 3.0))

    strategies = (ps.InfoGain(), ps.EPMV(), ps.MCMV(), ps.GreedyMSE(), ps.Random())
    for one in strategies:
        yield Case(f"space, {one.name}", _search(space, strategy=one), 9, EVENTFUL)
    yield Case("space, defaults", _search(space), 10, further=("saved", "copied", "undone"))
    yield Case("space, probit decaying", _search(space, response=ps.Probit(noise="decaying")), 9)
    yield Case("space, unknown k", _search(space, response=ps.Logistic(UNKNOWN, lapse=UNKNOWN)), 8)
    narrow = ps.Space([0.0] * 4, [1.0] * 4, 0.1, 0.4)
    yield Case("space, four dimensions", _search(lambda: narrow, prior=ps.GaussianPrior([0.5] * 4, 0.1 * np.eye(4))), 9)
    yield Case("space, radius", _search(space, stop=(ps.RadiusBelow(0.9), ps.InformationBelow(0.02))), 12)


def _strategies() -> Iterator[Case]:
    paper = {"response": ps.Logistic(1.5), "prior": BOX}
    plain = (ps.EPMV(), ps.EPMV(0.3), ps.MCMV(), ps.MCMV(0.2), ps.EUBO(), ps.Shortlist(), ps.Shortlist(1))
    for one in (ps.InfoGain(), *plain, ps.GreedyMSE(), ps.GreedyVolume(), ps.Random()):
        given = "".join(f" {value:g}" for value in vars(one).values() if isinstance(value, int | float))
        yield Case(f"strategy {one.name}{given}, paper's model", _search(_of(3), strategy=one, **paper), 10)
        if one.name != "infogain":
            yield Case(f"strategy {one.name}{given}, defaults", _search(_of(3), strategy=one), 8, EVENTFUL)
    unknown = ps.Logistic(UNKNOWN, lapse=UNKNOWN)
    for checks in (3, "auto"):
        strategy = ps.InfoGain(checks=checks)
        asked = _search(_of(2), strategy=strategy, response=unknown)
        yield Case(f"strategy infogain, checks {checks}", asked, 10, further=("several",))
    yield Case("strategy of one's own", _search(_of(2), strategy=Longest()), 8)
    yield Case("strategy of one's own, all pairs", _search(_of(2), strategy=Longest(), candidates=ps.AllPairs()), 8)


def _procedures() -> Iterator[Case]:
    parts = {"prior": BOX, "response": ps.Logistic(1.5)}
    procedures = {
        "actrank 1": ps.ActRank(1),
        "actrank 3": ps.ActRank(3),
        "gausscloud": ps.GaussCloud(stages=2, answers=12),
        "gausssearch": ps.GaussSearch(),
        "gausssearch, own noise": ps.GaussSearch(noise=0.4),
    }
    for name, one in procedures.items():
        yield Case(f"baseline {name}", _search(_of(3, 40), strategy=one, **parts), 14)
        script = {2: "tie", 4: "skip", 6: "redo", 8: "observe", 9: "undo"}
        yield Case(f"baseline {name}, eventful", _search(_of(2, 30), strategy=one), 12, script, ("saved",))
    yield Case("baseline actrank, until it ends", _search(_of(1, 6), strategy=ps.ActRank(1), prior=BOX), 25)


def _sources() -> Iterator[Case]:
    paper = {"response": ps.Logistic(1.5), "prior": BOX}
    listed = tuple((row, (row * 7 + 3) % 60) for row in range(60) if row != (row * 7 + 3) % 60)
    sources = {
        "all pairs": ps.AllPairs(),
        "all pairs, gap and rescore": ps.AllPairs(gap=0.05, rescore=24),
        "all pairs, small budget": ps.AllPairs(gap=0.01, budget=300),
        "all pairs, listed": ps.AllPairs(gap=0.03, listed=100_000),
        "listed pairs": ps.ListedPairs(listed),
        "listed pairs, no rescore": ps.ListedPairs(listed[:20], rescore=0),
        "proposed pairs": SOURCES["proposed_pairs"](items=30, improved=3, listed=0),
        "proposed pairs, rescore": SOURCES["proposed_pairs"](items=30, improved=3, rescore=16, listed=0),
        "sampled pairs, rate": ps.SampledPairs(rate=0.05),
        "sampled pairs, count": ps.SampledPairs(count=80, rescore=10),
        "sampled pairs, shared": ps.SampledPairs(count=80, shared=True),
        "weighted pairs": SOURCES["weighted_pairs"](count=300, rescore=8),
    }
    for name, one in sources.items():
        yield Case(f"source {name}", _search(_of(4), candidates=one, **paper), 9, {3: "skip", 5: "redo"})
    for name in ("all pairs, small budget", "sampled pairs, count", "proposed pairs"):
        yield Case(f"source {name}, defaults", _search(_of(3), candidates=sources[name]), 8)


def _posteriors() -> Iterator[Case]:
    unknown = ps.Logistic(UNKNOWN, lapse=UNKNOWN)
    grid, rough = ps.Grid(points=31), ps.Particles(400)
    yield Case("posterior EP, few points", _search(_of(3), posterior=ps.EP(points=512)), 10)
    yield Case("posterior EP, box", _search(_of(3), posterior=ps.EP(), prior=BOX), 10)
    yield Case("posterior EP, hardly any noise", _search(_of(2), response=ps.Logistic(60.0), prior=BOX), 16, noise=0.0)
    yield Case("posterior particles, defaults", _search(_of(3), posterior=rough), 8)
    yield Case("posterior particles, box", _search(_of(3), posterior=rough, response=ps.Logistic(1.5), prior=BOX), 9)
    yield Case("posterior particles, unknown k and lapse", _search(_of(2), posterior=rough, response=unknown), 8)
    yield Case("posterior particles, lapse", _search(_of(2), posterior=rough, response=ps.Logistic(2.0, lapse=0.1)), 8)
    for d in (1, 2, 3):
        parts = {"posterior": grid, "response": ps.Logistic(1.5)}
        yield Case(f"posterior grid, d = {d}", _search(_of(d), **parts), 8, TIED)
    yield Case("posterior grid, box and decaying", _search(_of(2), posterior=grid, response=_probit(), prior=BOX), 9)


def _probit() -> ps.Probit:
    return ps.Probit(4.0, "decaying")


def _responses() -> Iterator[Case]:
    for kind in (ps.Logistic, ps.Probit):
        for noise in ("constant", "normalized", "decaying"):
            for prior, box in (("Gaussian", None), ("box", BOX)):
                name = f"response {kind.__name__} {noise}, {prior} prior"
                yield Case(name, _search(_of(3), response=kind(noise=noise), prior=box), 9, EVENTFUL)
    wide = ps.GaussianPrior([0.5, -0.5], [[2.0, 0.6], [0.6, 1.0]])
    yield Case("response by default, Gaussian prior given", _search(_of(2), prior=wide), 10)
    yield Case("response by default, box prior", _search(_of(2), prior=ps.UniformBox([-2, -1], [2, 3])), 10)
    widths = {"logistic": ps.Logistic(1.5, tie_width=0.5), "probit": ps.Probit(1.5, "constant", tie_width=0.8)}
    for name, one in widths.items():
        yield Case(f"ties, {name}", _search(_of(2), response=one), 12, TIED, ("simulated",))
    default = ps.Logistic(0.4, "constant", tie_width=0.5, residual=1.5, curvature=UNKNOWN)
    yield Case("ties, residual and curvature", _search(_of(2), response=default), 12, TIED)
    yield Case("ties, unknown k", _search(_of(2), response=ps.Logistic(UNKNOWN, tie_width=0.4)), 10, TIED)
    yield Case("ties that were not offered", _search(_of(2)), 12, TIED)
    yield Case("ties in a box", _search(_of(2), response=ps.Logistic(2.0, tie_width=0.3), prior=BOX), 10, TIED)


def _unknowns() -> Iterator[Case]:
    kinds = ps.NoiseKinds((2.0, 1.0, 1.0))
    responses = {
        "k": ps.Logistic(UNKNOWN),
        "k, probit constant": ps.Probit(UNKNOWN, "constant"),
        "k with a prior": ps.Logistic(ps.Unknown(ps.LogNormal.around(1.0, 0.6)), "decaying"),
        "lapse": ps.Logistic(1.5, lapse=UNKNOWN),
        "k and lapse": ps.Logistic(UNKNOWN, lapse=ps.Unknown(ps.Beta(1.0, 12.0, 0.05))),
        "reliability": ps.Logistic(1.5, reliability=UNKNOWN),
        "noise kind": ps.Logistic(noise=UNKNOWN),
        "noise kind and k": ps.Logistic(UNKNOWN, noise=ps.Unknown(kinds)),
        "curvature": ps.Logistic(0.4, "constant", curvature=UNKNOWN),
        "curvature with a prior": ps.Probit(0.3, "constant", curvature=ps.Unknown(ps.Normal(1.0, 0.4))),
        "curvature, k and lapse": ps.Logistic(UNKNOWN, "constant", lapse=UNKNOWN, residual=1.0, curvature=UNKNOWN),
    }
    for name, one in responses.items():
        yield Case(f"unknown {name}", _search(_of(2), response=one), 9, EVENTFUL)
    yield Case("unknown k in a box", _search(_of(2), response=ps.Logistic(UNKNOWN), prior=BOX), 8)
    known = {
        "lapse": ps.Logistic(1.5, lapse=0.08),
        "residual": ps.Logistic(1.5, residual=0.8),
        "curvature 0": ps.Logistic(0.4, "constant", curvature=0.0),
        "reliability": ps.Probit(1.5, reliability=0.5),
    }
    for name, one in known.items():
        yield Case(f"known {name}", _search(_of(2), response=one), 9)
    yield Case("unknown k, no coordinates", _search(unplaced, response=_reliable(UNKNOWN)), 9)
    yield Case("known residual, no coordinates", _search(unplaced, response=_reliable(1.0)), 9)


def _reliable(reliability: Any) -> ps.Logistic:
    return ps.Logistic(1.0, "constant", residual=1.2, reliability=reliability)


def _goals() -> Iterator[Case]:
    for goal in ("taste", "best", "list"):
        yield Case(f"goal {goal}", _search(_of(3), goal=goal), 22, EVENTFUL, ("saved", "record", "token"))
        yield Case(f"goal {goal}, no coordinates", _search(unplaced, goal=goal), 14)
        yield Case(f"goal {goal}, unknown k", _search(_of(2), goal=goal, response=ps.Logistic(UNKNOWN)), 9)
    yield Case("goal best, no stop", _search(_of(2), goal="best", stop=()), 12)
    yield Case("goal list, other strategy", _search(_of(2), goal="list", strategy=ps.EUBO(), stop=8), 12)


def _stops() -> Iterator[Case]:
    rules = {
        "a number": 6,
        "answers": ps.AfterAnswers(7),
        "radius": ps.RadiusBelow(1.4, 0.8),
        "information": ps.InformationBelow(0.25),
        "best item": ps.BestItemFound(0.3),
        "gain": ps.GainBelow(0.15),
        "gain of a list": ps.GainBelow(0.1, size=4),
        "several": (ps.BestItemFound(0.95), ps.RadiusBelow(0.6), ps.AfterAnswers(11)),
    }
    for name, one in rules.items():
        yield Case(f"stop, {name}", _search(_of(2, 30), stop=one), 20, {2: "skip", 4: "observe", 7: "redo"})
    for name in ("radius", "information", "best item"):
        paper = {"response": ps.Logistic(2.0), "prior": BOX}
        yield Case(f"stop, {name}, paper's model", _search(_of(2, 30), stop=rules[name], **paper), 20)


def _rests() -> Iterator[Case]:
    rests = {
        "none": ps.Rest(pair=0),
        "three questions": ps.Rest(pair=3),
        "items": ps.Rest(item=2),
        "both": ps.Rest(pair=6, item=1),
    }
    for name, one in rests.items():
        yield Case(f"rest, {name}", _search(_of(2, 8), rest=one), 14, {3: "skip", 6: "undo"}, ("several",))
    yield Case("rest, no pair left", _search(_of(2, 4), rest=ps.Rest(pair=20)), 9, further=("saved",))
    bits = ps.InformationBelow(0.01)
    yield Case("rest, no pair left, information", _search(_of(2, 4), rest=ps.Rest(pair=20), stop=bits), 9)
    yield Case("stop, answers, several at once", _search(_of(2), stop=10), 8, further=("several",))


def _populations() -> Iterator[Case]:
    placed = items(2).subset(np.arange(14))
    yield Case("population, placed items", _population("placed", lambda: placed), 10, EVENTFUL)
    yield Case("population, moved", _population("placed", lambda: placed), 9, further=("moved", "filtered"))
    yield Case("population, inferred residual", _population("inferred residual", lambda: placed), 8)
    yield Case("population, learned coordinates", _population("learned", _learned("learned")), 10, EVENTFUL)
    yield Case("population, vectors", _population("vectors", _learned("vectors")), 10)
    yield Case("population, unknown k", _population("placed", lambda: placed, response=_constant(UNKNOWN)), 8)
    yield Case("population, goal list", _population("vectors", _learned("vectors"), goal="list"), 10)
    yield Case("population, goal best", _population("learned", _learned("learned"), goal="best"), 10)


def _constant(k: Any) -> ps.Logistic:
    return ps.Logistic(k, "constant")


def _population(kind: str, catalogue: Callable[[], ps.Items], **parts: Any) -> Callable[[], ps.Search]:
    return lambda: ps.Search(catalogue(), population=population(kind), rng=7, **parts)


def _learned(kind: str) -> Callable[[], ps.Items]:
    return lambda: population(kind).items


def _parts_of_catalogues() -> Iterator[Case]:
    mask = np.arange(60) % 3 == 0
    askable = {"number": 15, "ids": [f"i{row}" for row in range(0, 60, 4)], "mask": mask}
    for name, one in askable.items():
        yield Case(f"askable, {name}", _search(_of(3), askable=one), 10, EVENTFUL, ("saved", "filtered"))
    yield Case("askable, goal best", _search(_of(2), askable=20, goal="best"), 10, further=("moved", "record"))
    yield Case("askable, appeal", _search(_of(2, 60, appeal=1.0), askable=12), 9)


def _large() -> Iterator[Case]:
    paper = {"response": ps.Logistic(1.5), "prior": ps.UniformBox(-3.0, 3.0)}
    yield Case("large, defaults, d = 4", _search(_of(4, 5000)), 10, EVENTFUL, ("several",))
    yield Case("large, defaults, d = 12", _search(_of(12, 5000)), 8)
    yield Case("large, defaults, d = 25", _search(_of(25, 5000)), 8)
    for strategy in (ps.InfoGain(), ps.EPMV(), ps.MCMV(), ps.GreedyMSE(), ps.GreedyVolume()):
        yield Case(f"large, {strategy.name}, paper's model", _search(_of(3, 5000), strategy=strategy, **paper), 8)
    yield Case("large, known k, constant", _search(_of(4, 5000), response=_constant(0.3)), 8)
    yield Case("large, decaying", _search(_of(3, 5000), response=ps.Logistic(noise="decaying")), 8)
    yield Case("large, unknown k", _search(_of(3, 5000), response=ps.Logistic(UNKNOWN)), 8)
    yield Case("large, unknown k, epmv", _search(_of(3, 5000), response=ps.Logistic(UNKNOWN), strategy=ps.EPMV()), 8)
    yield Case("large, goal best", _search(_of(4, 5000), goal="best"), 10)
    yield Case("large, goal list", _search(_of(4, 5000), goal="list"), 10)
    yield Case("large, strategy of one's own", _search(_of(3, 5000), strategy=Longest()), 8)
    yield Case("large, askable", _search(_of(4, 5000), askable=600), 8)
    yield Case("large, appeal", _search(_of(3, 5000, appeal=0.8)), 8)
    yield Case("large, items rest", _search(_of(3, 5000), rest=ps.Rest(item=3), **paper), 8)


def _appeal() -> Iterator[Case]:
    liked = _of(2, 60, appeal=0.8)
    yield Case("appeal, defaults", _search(liked), 10, EVENTFUL, ("token", "saved"))
    yield Case("appeal, normalized", _search(liked, response=ps.Logistic(1.5)), 10)
    yield Case("appeal, box", _search(liked, response=ps.Probit(1.0, "constant"), prior=BOX), 9)
    for strategy in (ps.EUBO(), ps.EPMV(), ps.MCMV()):
        yield Case(f"appeal, {strategy.name}", _search(liked, strategy=strategy), 9)


def _interface() -> Iterator[Case]:
    everything = (
        "several",
        "saved",
        "record",
        "token",
        "moved",
        "copied",
        "filtered",
        "refused",
        "simulated",
        "undone",
    )
    yield Case("interface, defaults", _search(_of(3)), 10, EVENTFUL, everything)
    paper = {"response": ps.Logistic(1.5), "prior": BOX}
    yield Case(
        "interface, paper's model", _search(_of(2), **paper), 10, TIED, tuple(e for e in everything if e != "token")
    )
    unknown = ps.Logistic(UNKNOWN, lapse=UNKNOWN)
    yield Case(
        "interface, unknown k and lapse", _search(_of(2), response=unknown), 8, further=("saved", "copied", "moved")
    )
    yield Case(
        "interface, random pairs", _search(_of(2), strategy=ps.Random()), 10, EVENTFUL, ("several", "undone", "copied")
    )
    yield Case("interface, baseline", _search(_of(2, 30), strategy=ps.GaussSearch()), 10, further=("several", "copied"))
    yield Case("interface, generator as seed", _search(_of(2), rng=np.random.default_rng(4)), 8)
    placed = ps.Items.from_vectors(vectors(), dimension=3, standardize=False)
    yield Case("interface, items from vectors", _search(lambda: placed), 10, further=("record", "moved"))
    yield Case(
        "interface, rest and stop in a record", _search(_of(2, 30), rest=ps.Rest(item=1), stop=30), 9, {}, everything
    )
