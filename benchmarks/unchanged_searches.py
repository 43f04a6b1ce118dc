"""Searches that `unchanged.py` records: questions, beliefs, recommendations and forecasts for fixed people."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import pairseek as ps
import unchanged_cases
from pairseek.indexes import CatalogueIndex, ExactIndex
from unchanged_cases import Case
from unchanged_crashes import kept

KEY = b"a key of thirty-two bytes, fixed"
_KEPT = 64
"""Number of entries of a large array to write out; a hash covers the rest."""


@dataclass(frozen=True, eq=False)
class Person:
    """A person whose answers do not depend on pairseek: by distance or a utility per item, with fixed noise."""

    seed: int
    items: ps.Items | ps.Space
    noise: float = 0.6

    def utility(self, side: Any) -> float:
        rng, d = np.random.default_rng(self.seed), self.items.d
        if isinstance(self.items, ps.Space):
            low, high = np.array(self.items.low), np.array(self.items.high)
            return -8.0 * float(np.sum(((np.array(side) - rng.uniform(low, high)) / (high - low)) ** 2))
        row = self.items.index(side)
        if not d:
            return float(rng.normal(size=self.items.n)[row])
        point = self.items.coordinates[rng.integers(self.items.n)] + 0.3 * rng.normal(size=d)
        spread = float(np.mean(np.var(self.items.coordinates, axis=0)))
        return -float(np.sum((self.items.coordinates[row] - point) ** 2)) / (spread * d**0.5)

    def winner(self, query: ps.Query, number: int) -> Any:
        draw = self.noise * np.random.default_rng([self.seed, number]).logistic()
        return query.left if self.utility(query.left) - self.utility(query.right) + draw > 0 else query.right


def cases(wanted: str = "") -> Iterator[tuple[str, Any]]:
    for case in unchanged_cases.every_case():
        if wanted in case.name:
            # Users see warnings, too, and the same code may warn only once per process.
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                record = kept(lambda case=case: recorded(case))
            words = sorted({f"{one.category.__name__}: {one.message}" for one in said})
            yield case.name, record | ({"warnings": words} if words else {})


def recorded(case: Case) -> dict[str, Any]:
    """Run a search, and return its record."""
    search = case.make()
    person = Person(case.seed, search.items, case.noise)
    configuration = search.configuration
    steps, looks = [], {}
    for number in range(case.answers):
        if search.finished:
            break
        try:
            steps.append(step(search, person, number, case.script.get(number, "answer")))
        except ps.errors.NoPairLeft as error:
            steps.append({"error": str(error)})
            break
        if number + 1 in (case.answers // 3, 2 * case.answers // 3):
            looks[f"after {number + 1}"] = look(search)
    looks["at the end"] = look(search)
    further = {name: attempted(lambda act=act: act(search, person)) for name, act in further_of(case).items()}
    return {"configuration": shortened(configuration), "steps": steps, "looks": looks, **further}


def step(search: ps.Search, person: Person, number: int, action: str) -> dict[str, Any]:
    """Ask, act, and return the record of both."""
    query = search.ask()
    found = {"query": shown(query)}
    if action == "skip":
        search.skip(query)
    elif action == "tie":
        search.tell(query, tie=True)
    else:
        winner = person.winner(query, number)
        search.tell(query, winner=winner)
        found["winner"] = winner
    if action == "redo":
        # Undo the answer, which opens the same query again, and answer it once more.
        undone = search.undo()
        found |= {"undone": event(undone), "again": shown(search.ask())}
        search.tell(search.ask(), winner=undone.winner)
    elif action == "undo":
        found["undone"] = [event(search.undo()) for _ in range(min(2, len(search.history)))]
    elif action == "observe":
        space = isinstance(search.items, ps.Space)
        names = (search.items.low, search.items.high) * 20 if space else search.items.ids
        search.observe(names[number], names[-1 - number], winner=names[number])
    return found | ({"action": action} if action != "answer" else {})


def shown(query: ps.Query | None) -> Any:
    return query and {"id": query.id, "left": query.left, "right": query.right, "info": numbers(query.info)}


def event(one: ps.Event) -> Any:
    return [one.outcome, one.left, one.right, one.winner, one.query and one.query.id]


def numbers(info: Any) -> Any:
    """Return information as plain data, without its time."""
    return info and {name: value for name, value in asdict(info).items() if name != "seconds"}


def listed(array: Any) -> Any:
    """Return an array as lists; for a large one, some numbers and a hash of all bits."""
    array = np.ascontiguousarray(array)
    if array.size <= _KEPT:
        return array.tolist()
    return {"shape": list(array.shape), "first": array.ravel()[: _KEPT // 2].tolist(), "sha256": digest(array)}


def digest(*arrays: Any) -> str:
    found = hashlib.sha256()
    for array in arrays:
        # 0.0 and -0.0 must have the same hash.
        found.update((np.ascontiguousarray(array, dtype=np.float64) + 0.0).tobytes())
    return found.hexdigest()[:16]


def shortened(record: Any) -> Any:
    """Return a record with hashes in place of long lists, such as priors in many dimensions."""
    if isinstance(record, dict):
        return {name: shortened(value) for name, value in record.items()}
    text = json.dumps(record)
    return record if len(text) < 400 else f"sha256 {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def attempted(act: Callable[[], Any]) -> Any:
    """Return a result, or the error message, which users see, too."""
    try:
        return act()
    except ps.PairseekError as error:
        return {"error": f"{type(error).__name__}: {error}"}


def look(search: ps.Search) -> dict[str, Any]:
    """Return the public state of a search."""
    belief, estimate = search.belief, search.estimate()
    found: dict[str, Any] = {
        "answers": search.answers,
        "events": len(search.history),
        "mean": listed(belief.mean),
        "covariance": listed(belief.covariance),
        "belief": numbers(belief.info),
        "samples": digest(belief.samples, belief.weights),
        "point": listed(estimate.point),
        "note": estimate.note,
        "radius": [attempted(lambda level=level: estimate.credible_radius(level)) for level in (0.5, 0.95)],
        "reliability": estimate.reliability and asdict(estimate.reliability),
        "finished": search.finished,
        "forecast": attempted(search.forecast),
        "recommended": attempted(lambda: recommended(search.recommend(5))),
    }
    if belief.reliability is not None:
        found["noise"] = belief.reliability.noise
    if belief.residuals is not None:
        found["residuals"] = [belief.residuals.rows.tolist(), belief.residuals.deviation]
        found["residual moments"] = digest(belief.residuals.mean, belief.residuals.covariance, belief.residuals.cross)
    if isinstance(search.items, ps.Items):
        names = search.items.ids
        pairs = ((names[0], names[1]), (names[2], names[-1]), (names[-2], names[3]))
        found["expected"] = [attempted(lambda pair=pair: numbers(search.expect(*pair))) for pair in pairs]
        found["shares"] = attempted(lambda: search.choice_shares(names[:4]))
    return found


def recommended(found: list[ps.Recommendation]) -> Any:
    return [[one.id, one.label, one.probability, one.expected_utility, one.distance] for one in found]


# Checks after the answers of a case


def brief(search: ps.Search) -> Any:
    """Return what distinguishes searches: belief, open query, next query and recommendations."""
    return {
        "seed": search.seed,
        "events": [event(one) for one in search.history],
        "pending": [shown(one) for one in search.pending],
        "mean": listed(search.belief.mean),
        "covariance": digest(search.belief.covariance),
        "next": attempted(lambda: shown(search.ask())),
        "recommended": attempted(lambda: recommended(search.recommend(3))),
    }


def _several(search: ps.Search, person: Person) -> Any:
    """Ask several queries at once, undo an answer while others are open, and answer them in another order."""
    queries = search.ask_many(3)
    found: dict[str, Any] = {"asked": [shown(one) for one in queries]}
    search.tell(queries[-1], winner=queries[-1].left)
    found["one answered"] = brief(search)
    found["taken back"] = [event(search.undo()), *(shown(one) for one in search.pending)]
    found["more"] = [shown(one) for one in search.ask_many(4)]
    for number, query in enumerate(reversed(queries)):
        search.tell(query, winner=person.winner(query, 100 + number))
    return found | {"after": brief(search), "undone": event(search.undo()), "before": brief(search)}


def _saved(search: ps.Search, person: Person) -> Any:  # noqa: ARG001
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "search.json"
        search.save(path)
        whole = brief(ps.Search.load(path))
        keys = sorted(json.loads(path.read_text()))
        if not isinstance(search.items, ps.Items):
            return {"keys": keys, "loaded": whole}
        other = brief(ps.Search.load(path, strategy=ps.MCMV(), stop=ps.AfterAnswers(40)))
        search.save(path, light=True)
        light = path.read_text()
        again = brief(ps.Search.load(path, items=search.items, **_named_only(search)))
    return {
        "keys": keys,
        "loaded": whole,
        "light": shortened(json.loads(light)),
        "loaded light": again,
        "other parts": other,
    }


def _named_only(search: ps.Search) -> dict[str, Any]:
    """Return the askable items, which a light record lacks."""
    return {} if search.askable is search.items else {"askable": list(search.askable.ids)}


def _record(search: ps.Search, person: Person) -> Any:  # noqa: ARG001
    record = json.loads(json.dumps(search.to_dict()))
    return {"record": shortened(record), "again": brief(ps.Search.from_dict(record, items=search.items))}


def _token(search: ps.Search, person: Person) -> Any:  # noqa: ARG001
    token = search.to_token(key=KEY)
    again = ps.Search.from_token(token, items=search.items, key=KEY, goal=search.goal.name)
    return {"length": len(token), "again": brief(again)}


def _moved(search: ps.Search, person: Person) -> Any:  # noqa: ARG001
    """Move to a catalogue that lacks some asked items, and has new ones."""
    items = search.items
    gone = {search.history[0].left, search.history[-1].right}
    rows = [row for row in range(items.n) if items.ids[row] not in gone]
    fresh = np.random.default_rng(77).normal(size=(5, items.d))
    names = [*(items.ids[row] for row in rows), *(f"new {n}" for n in range(5))]
    other = ps.Items(np.concatenate([items.coordinates[rows], fresh]), names)
    moved = search.moved_to(other)
    found = {"moved": brief(moved)}
    record = json.loads(json.dumps(moved.to_dict()))
    found["record"] = brief(ps.Search.from_dict(record, items=other, **_named_only(moved)))
    found["other catalogue"] = attempted(
        lambda: brief(ps.Search.from_dict(search.to_dict(), items=other, catalogues=[items]))
    )
    moved.undo()
    return found | {"after undo": brief(moved), "back": brief(moved.moved_to(items))}


def _copied(search: ps.Search, person: Person) -> Any:
    copies = {
        "copy": copy.copy(search),
        "deepcopy": copy.deepcopy(search),
        "pickle": pickle.loads(pickle.dumps(search)),
    }
    for one in copies.values():
        query = one.ask()
        one.tell(query, winner=person.winner(query, 200))
    found = {name: brief(one) for name, one in copies.items()}
    half = search.history[: len(search.history) // 2]
    return found | {"continued": brief(search.continued(half, rng=3)), "itself": brief(search)}


def _filtered(search: ps.Search, person: Person) -> Any:  # noqa: ARG001
    names = search.items.ids
    other = ps.Items(np.random.default_rng(5).normal(size=(30, search.items.d)), [f"t{n}" for n in range(30)])
    return {
        "only": recommended(search.recommend(3, only=names[:12])),
        "exclude": recommended(search.recommend(3, exclude=names[:12])),
        "among": recommended(search.recommend(3, among=other)),
        "diverse": recommended(search.recommend(4, diversity=0.5)),
        "index": [one.id for one in search.recommend(4, among=CatalogueIndex.of(ExactIndex(), other))],
        "repr": repr(search),
        "notebook": hashlib.sha256(search._repr_html_().encode()).hexdigest()[:16],
    }


def _refused(search: ps.Search, person: Person) -> Any:
    """Return errors, which are part of the interface."""
    last = search.history[-1]
    other = last.right if last.winner == last.left else last.left
    query = search.ask()
    acts: dict[str, Callable[[], Any]] = {
        "another answer": lambda: search.tell(last.query.id, winner=other),
        "the same answer": lambda: search.tell(last.query.id, winner=last.winner),
        "no winner": lambda: search.tell(query),
        "a stranger": lambda: search.tell(query, winner="nobody"),
        "unknown query": lambda: search.skip("q999"),
        "one item twice": lambda: search.expect(query.left, query.left),
        "nothing to undo": lambda: ps.Search(search.items, rng=1).undo(),
        "wrong key": lambda: ps.Search.from_token(search.to_token(key=KEY), items=search.items, key=KEY[::-1]),
    }
    return {name: attempted(act) for name, act in acts.items()} | {"still": shown(person and search.ask())}


def _undone(search: ps.Search, person: Person) -> Any:
    """Undo everything and answer again, which must repeat the search."""
    undone = []
    while search.history:
        undone.append(event(search.undo()))
    start = brief(search)
    for number in range(4):
        query = search.ask()
        search.tell(query, winner=person.winner(query, number))
    return {"undone": undone, "start": start, "again": brief(search)}


def _simulated(search: ps.Search, person: Person) -> Any:
    """Return answers of pairseek's simulated people."""
    width = search.response.tie_width
    users = {
        "near": ps.SimulatedUser(search.estimate().point, None, rng=person.seed),
        "noisy": ps.SimulatedUser(search.estimate().point, ps.Logistic(1.0, lapse=0.1, tie_width=width), rng=3),
    }
    queries = [search.ask(), *(one.query for one in search.history if one.query)]
    return {name: [user.answer(search.items, query) for query in queries] for name, user in users.items()}


FURTHER: dict[str, Callable[[ps.Search, Person], Any]] = {
    "several": _several,
    "saved": _saved,
    "record": _record,
    "token": _token,
    "moved": _moved,
    "copied": _copied,
    "filtered": _filtered,
    "refused": _refused,
    "undone": _undone,
    "simulated": _simulated,
}


def further_of(case: Case) -> dict[str, Callable[[ps.Search, Person], Any]]:
    return {name: FURTHER[name] for name in case.further}
