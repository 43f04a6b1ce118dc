"""Studies that `unchanged.py` runs: settings, items, and the actions of people, programs and researchers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import unchanged_service as service

SLUG = "which"
AT = f"/studies/{SLUG}"
_SESSION = re.compile(r'"session":\s*"([0-9a-f]{32})"')


@dataclass(frozen=True, eq=False)
class ScriptedStudy:
    """A study with its run, which returns all replies and fills in the exports."""

    name: str
    run: Callable[[Any], Any]


def placed(n: int = 24, d: int = 2, seed: int = 1) -> list[dict[str, Any]]:
    points = np.random.default_rng(seed).normal(size=(n, d))
    return [{"id": f"i{k}", "label": f"Item {k}", "coordinates": point.tolist()} for k, point in enumerate(points)]


def listed(n: int = 10) -> list[dict[str, Any]]:
    return [{"id": f"dog{k}", "label": f"Dog {k}", "text": f"A dog of kind {k}."} for k in range(n)]


def create(house: Any, items: list[dict[str, Any]], **settings: Any) -> Any:
    configuration = {"title": "Which one?", "slug": SLUG, "answers": 8, "seed": 7, **settings}
    return house.api("POST", "/studies", {"configuration": configuration, "items": items})


def told(query: dict[str, Any], outcome: str, number: int) -> dict[str, Any]:
    return {
        "query": query["query"],
        "outcome": outcome,
        "rt_ms": 700 + 37 * number,
        "shown_at": f"2026-01-02T03:{number % 60:02d}:05.000Z",
        "sent_at": f"2026-01-02T03:{number % 60:02d}:06.000Z",
        "attempt": 1,
    }


@dataclass(eq=False)
class Program:
    """An API session with its own token."""

    house: Any
    items: list[dict[str, Any]]
    seed: int
    script: dict[int, str] = field(default_factory=dict)
    noise: float = 0.3

    def open(self, **identity: Any) -> Any:
        reply = self.house.api("POST", f"/studies/{SLUG}/sessions", {"seed": 100 + self.seed, **identity})
        self.session, self.token, self.state = reply[1]["session"], reply[1]["token"], reply[1]["state"]
        self.person, self.number = service.person_of(self.seed, self.items, self.noise), 0
        return reply

    def call(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        return self.house.api(method, f"/sessions/{self.session}{path}", body, token=self.token, **query)

    def answers(self, count: int = 1000) -> list[Any]:
        """Answer by the script, until the end or a number of times."""
        replies = []
        for _ in range(count):
            query = self.state["query"]
            if query is None:
                break
            action, number = self.script.get(self.number, "answer"), self.number
            self.number += 1
            outcome = action if action in ("tie", "skip") else self.person(query, number)
            reply = self.call("POST", "/answers", told(query, outcome, number))
            replies.append(reply)
            self.state = reply[1]
            if action == "undo":
                replies.append(self.call("POST", "/undo", {"query": query["query"]}))
                self.state = replies[-1][1]
        return replies

    def results(self) -> Any:
        return {
            "query": self.call("GET", "/query"),
            "estimate": self.call("GET", "/estimate"),
            "recommended": self.call("GET", "/recommendations"),
        }

    def whole(self, **identity: Any) -> Any:
        return {"opened": self.open(**identity), "answers": self.answers(), "results": self.results()}


@dataclass(eq=False)
class Visit:
    """A session in a browser, with pages, answers, undo, focus and result."""

    house: Any
    items: list[dict[str, Any]]
    seed: int
    script: dict[int, str] = field(default_factory=dict)
    link: str = f"/s/{SLUG}"

    def start(self) -> Any:
        self.browser, self.number = self.house.browser(), 0
        self.person = service.person_of(self.seed, self.items)
        pages = [self.house.page(self.link, self.browser)]
        pages.append(self.house.send(f"/s/{SLUG}/start", self.link, self.browser))
        run = self.browser.get(f"/s/{SLUG}/run")
        pages.append(service.text_of(run.text))
        self.session = (_SESSION.findall(run.text) or [None])[0]
        return pages

    def reopened(self) -> None:
        """Continue with the same cookies after a restart of the service."""
        self.browser = self.house.browser(dict(self.browser.cookies))

    def state(self) -> Any:
        return self.browser.get(f"/s/{SLUG}/state").json()

    def answers(self, count: int = 1000) -> list[Any]:
        replies = []
        for _ in range(count):
            query = self.state().get("query")
            if query is None:
                break
            number = self.number
            action, self.number = self.script.get(number, "answer"), number + 1
            outcome = action if action in ("tie", "skip", "left") else self.person(query, number)
            outcome = "right" if action == "flip" else outcome
            if action == "blur":
                lost = {"query": query["query"], "lost_at": "2026-01-02T03:04:05.000Z", "ms": 1234}
                replies.append(self.post("focus", lost))
            if action == "prefetch":
                replies.append(self.prefetched(query["query"]))
            replies.append(self.post("answer", told(query, outcome, number)))
            if action in ("undo", "flip"):
                replies.append(self.post("undo", {"query": query["query"]}))
            if action == "flip":
                # Give the other answer, which must not repair a failed attention check.
                replies.append(self.post("answer", told(self.state()["query"], "left", number)))
        return replies

    def prefetched(self, query: str) -> Any:
        """Return the pairs that may follow, for which the service may need a second."""
        for _ in range(60):
            reply = self.browser.get(f"/s/{SLUG}/prefetch", params={"query": query})
            if reply.status_code != 204:
                return reply.json()
        raise AssertionError("no pair was prefetched")

    def post(self, path: str, body: Any) -> Any:
        reply = self.browser.post(f"/s/{SLUG}/{path}", json=body, headers=service.GUARD)
        return [reply.status_code, reply.json() if reply.content else None]

    def end(self) -> Any:
        mine = self.browser.get(f"/s/{SLUG}/mine")
        return [self.house.page(f"/s/{SLUG}/result", self.browser), mine.json(), self.state()]

    def whole(self) -> Any:
        return {"pages": self.start(), "answers": self.answers(), "end": self.end()}


def people(house: Any, items: list[dict[str, Any]], count: int, script: Any = None, **more: Any) -> Any:
    """Run several people through the API, one after the other."""
    return [Program(house, items, seed, script or {}, **more).whole(participant=f"p{seed}") for seed in range(count)]


def plain_study(
    name: str, items: list[dict[str, Any]], count: int, script: Any = None, **settings: Any
) -> ScriptedStudy:
    """Return a study with people who come one after the other, and all of its exports."""

    def run(house: Any) -> Any:
        found = {"created": create(house, items, **settings), "people": people(house, items, count, script)}
        found |= {"study": house.api("GET", AT), "sessions": house.api("GET", f"{AT}/sessions")}
        house.export(SLUG, findings=settings.get("kind") != "similarity")
        return found

    return ScriptedStudy(name, run)


EVENTFUL = {2: "undo", 4: "tie", 5: "skip", 6: "undo"}
OFFER = {"tie": True, "skip": True}


def every_study() -> Iterator[ScriptedStudy]:
    yield from _preferences()
    yield ScriptedStudy("browser", _browser)
    yield ScriptedStudy("browser, German, no undo, no result", _german)
    yield ScriptedStudy("attention and quality", _attention)
    yield ScriptedStudy("restart in the middle", _restart)
    yield ScriptedStudy("replaced items", _replaced)
    yield ScriptedStudy("items only, learns by itself", _learns)
    yield ScriptedStudy("placed items, learned population", _population)
    yield ScriptedStudy("similarity", _similarity)
    yield ScriptedStudy("errors and access", _errors)
    yield ScriptedStudy("voided and forgotten", _voided)
    yield ScriptedStudy("returning by a link", lambda house: _returning(house, {"policy": "resume", "by_id": "always"}))
    yield ScriptedStudy("returning, restart", lambda house: _returning(house, {"policy": "restart"}))
    yield ScriptedStudy("returning, expired", lambda house: _returning(house, {"hours": 1e-7}))


def _preferences() -> Iterator[ScriptedStudy]:
    yield plain_study("taste, defaults", placed(), 3, EVENTFUL, offer=OFFER)
    yield plain_study(
        "taste, four dimensions, repeated and random", placed(30, 4), 2, repeated=0.2, random=0.2, answers=14
    )
    yield plain_study("goal best", placed(30, 3), 2, goal="best", answers=15)
    yield plain_study("goal list", placed(30, 3), 2, goal="list", answers=15)
    yield plain_study("goal best, items only", listed(), 2, goal="best", answers=10, learn="off")
    yield plain_study("items only, no learning", listed(), 3, EVENTFUL, offer=OFFER, learn="off", answers=9)
    rules = [{"name": "radius", "radius": 1.2}, {"name": "information", "bits": 0.2}, {"name": "best_item"}]
    yield plain_study("stop rules", placed(16), 3, stop=rules, answers=None)
    unknown = {"name": "logistic", "k": {"name": "unknown"}, "lapse": {"name": "unknown"}}
    yield plain_study("unknown k and lapse", placed(), 2, response=unknown, answers=9)
    paper = {
        "response": {"name": "logistic", "k": 1.5, "noise": "normalized"},
        "prior": {"name": "uniform_box", "low": -2.5, "high": 2.5},
        "strategy": {"name": "epmv"},
        "candidates": {"name": "sampled_pairs", "count": 60},
        "rest": {"pair": 3, "item": 1},
    }
    yield plain_study("the paper's parts", placed(), 2, scaled=True, **paper)
    yield plain_study("particles", placed(), 1, posterior={"name": "particles", "n": 300})
    probit = {"name": "probit", "k": 1.2, "noise": "decaying", "tie_width": 0.4}
    yield plain_study("probit with ties", placed(), 2, {1: "tie", 4: "tie"}, response=probit, offer={"tie": True})
    yield plain_study("gausssearch", placed(), 2, strategy="gausssearch", answers=9)
    yield plain_study("random pairs", placed(), 2, strategy="random")
    yield plain_study("askable and standardized", placed(40, 3), 2, askable=12, standardize=True)
    yield plain_study("appeal", [one | {"appeal": 0.1 * k} for k, one in enumerate(placed())], 2)


def _browser(house: Any) -> Any:
    items = placed()
    texts = {"instructions": "Choose *quickly*.", "consent": "Yes?", "debrief": "Thank you.", "question": "Nicer?"}
    found: dict[str, Any] = {"created": create(house, items, offer=OFFER, practice=True, result=True, **texts)}
    script = {1: "blur", 2: "undo", 3: "tie", 4: "skip", 5: "undo"}
    visit = Visit(house, items, 3, script)
    found["visit"] = visit.whole()
    found["again"] = house.page(f"/s/{SLUG}", visit.browser)
    found["prolific"] = Visit(house, items, 4, {}, f"/s/{SLUG}?PROLIFIC_PID=pp&STUDY_ID=st&SESSION_ID=se").whole()
    found["declined"] = house.send(f"/s/{SLUG}/decline", f"/s/{SLUG}", house.browser())
    half = Visit(house, items, 5)
    found["half"] = [half.start(), half.answers(3), house.page(f"/s/{SLUG}/result", half.browser)]
    found["live"] = house.page(f"{AT}/live.json")
    found["person"] = house.page(f"{AT}/people/{visit.session}")
    found["studies"] = house.page("/studies")
    house.export(SLUG)
    found["closed"] = [house.send(f"{AT}/close", AT), house.page(f"/s/{SLUG}", house.browser()), half.state()]
    found["open"] = [house.send(f"{AT}/open", AT), half.answers(2)]
    return found


def _german(house: Any) -> Any:
    items = placed(12)
    settings = {"language": "de", "offer": {"undo": False}, "result": False, "answers": 5}
    codes = {"finished": "DONE", "no_consent": "NO"}
    completion = {"address": "https://example.org/end?cc={code}&p={participant}", "codes": codes, "wait": 0}
    found = {"created": create(house, items, completion=completion, **settings)}
    found["visit"] = Visit(house, items, 3, {}, f"/s/{SLUG}?participant=anna").whole()
    house.export(SLUG)
    return found


def _attention(house: Any) -> Any:
    items = placed()
    pairs = [{"left": "i0", "right": "i1", "answer": "i1"}, {"left": "i2", "right": "i3", "answer": "i2"}]
    settings = {"attention": {"pairs": pairs, "every": 3, "allowed": 0}, "repeated": 0.2, "random": 0.2, "answers": 14}
    codes = {"finished": "GOOD", "failed_attention": "FAIL"}
    completion = {"address": "https://example.org/?cc={code}", "codes": codes}
    found: dict[str, Any] = {"created": create(house, items, completion=completion, **settings)}
    always = dict.fromkeys(range(40), "left")
    visits = [Visit(house, items, 1), Visit(house, items, 2), Visit(house, items, 3, always)]
    visits.append(Visit(house, items, 4, dict.fromkeys(range(40), "flip")))
    found["visits"] = [visit.whole() for visit in visits]
    found["people"] = people(house, items, 2)
    found["persons"] = [house.page(f"{AT}/people/{visit.session}") for visit in visits]
    house.export(SLUG)
    return found


def _restart(house: Any) -> Any:
    items = placed()
    found: dict[str, Any] = {"created": create(house, items, offer=OFFER, repeated=0.2, answers=12)}
    visit, program = (
        Visit(house, items, 3, {7: "prefetch", 8: "prefetch", 9: "undo"}),
        Program(house, items, 4, EVENTFUL),
    )
    found["before"] = [visit.start(), visit.answers(5), program.open(), program.answers(5)]
    house.restart(prefetch="always")
    visit.reopened()
    found["after"] = [visit.state(), visit.answers(5), program.call("GET", "/query"), program.answers(4)]
    house.restart()
    visit.reopened()
    found["at last"] = [visit.answers(), visit.end(), program.answers(), program.results()]
    house.export(SLUG)
    return found


def _replaced(house: Any) -> Any:
    items = placed(20, 3)
    found: dict[str, Any] = {"created": create(house, items, goal="list", answers=10)}
    first = Program(house, items, 1)
    found["before"] = [first.open(), first.answers(5)]
    fresh = [{"id": f"n{k}", "coordinates": (0.5 * np.arange(3) - 0.2 * k).tolist()} for k in range(6)]
    other = [*items[4:], *fresh]
    found["replaced"] = house.api("PUT", f"{AT}/items", {"items": other})
    name = found["replaced"][1]["catalogue"]
    found["after"] = [first.answers(), first.results(), Program(house, other, 2).whole()]
    wanted = {"count": 4, "catalogue": name, "diversity": 0.4, "exclude": ["n0"]}
    found["recommended"] = first.call("POST", "/recommendations", wanted)
    found["only"] = first.call("POST", "/recommendations", {"only": ["i0", "i5", "i6"]})
    found["catalogues"] = house.api("GET", f"{AT}/catalogues")
    house.export(SLUG)
    return found


def _learns(house: Any) -> Any:
    items = listed(8)
    found: dict[str, Any] = {"created": create(house, items, answers=10)}
    found["first"] = people(house, items, 10, noise=0.8)
    house.until(AT, 'name="version" value="0"')
    found["later"] = [Program(house, items, seed).whole() for seed in (20, 21)]
    found["visit"] = Visit(house, items, 22).whole()
    found["page"] = house.page(AT)
    house.export(SLUG)
    found["without"] = [house.send(f"{AT}/learning", AT, version="0"), Program(house, items, 23).whole()]
    return found


def _population(house: Any) -> Any:
    items = placed(12)
    found: dict[str, Any] = {"created": create(house, items, answers=18, offer=OFFER)}
    found["first"] = people(house, items, 12, {3: "tie"}, noise=0.1)
    found["learn"] = house.send(f"{AT}/population", AT)
    house.until(AT, 'name="version" value="0"')
    found["later"] = people(house, items, 2)
    half = Program(house, items, 9)
    found["half"] = [half.open(), half.answers(4)]
    house.restart()
    found["rest"] = [half.answers(), half.results()]
    found["off"] = [house.send(f"{AT}/learning", AT, version="0"), Program(house, items, 30).whole()]
    house.export(SLUG)
    return found


def _similarity(house: Any) -> Any:
    items = listed(9)
    settings = {"kind": "similarity", "answers": 30, "dimensions": 2, "offer": {"skip": True}, "repeated": 0.1}
    found: dict[str, Any] = {"created": create(house, items, **settings)}
    programs = [Program(house, items, seed, {3: "undo", 5: "skip"}, noise=0.1) for seed in range(3)]
    found["people"] = [[one.open(), one.answers(), one.call("GET", "/estimate")] for one in programs]
    found["visit"] = Visit(house, items, 5).whole()
    found["learn"] = house.send(f"{AT}/population", AT)
    house.until(AT, f"{AT}/search")
    house.export(SLUG, findings=False)
    found["search"] = made = house.send(f"{AT}/search", AT)
    found["map"] = house.api("GET", made[1])[1]
    return found


def _errors(house: Any) -> Any:
    items = placed(10)
    found: dict[str, Any] = {
        "wrong setting": create(house, items, answers=0),
        "wrong part": create(house, items, strategy="best"),
        "too few": create(house, listed(2)),
        "created": create(house, items, resume={"policy": "block"}, answers=5),
        "twice": create(house, items),
    }
    program = Program(house, items, 1)
    found["opened"] = [program.open(participant="one"), program.answers(2)]
    query = program.state["query"]
    first = found["opened"][0][1]["state"]["query"]
    other = {"left": "right", "right": "left"}[program.person(first, 0)]
    found["calls"] = {
        "conflict": program.call("POST", "/answers", told(first, other, 0)),
        "repeated": program.call("POST", "/answers", told(first, program.person(first, 0), 0)),
        "not offered": program.call("POST", "/answers", told(query, "tie", 2)),
        "no outcome": program.call("POST", "/answers", told(query, "up", 2)),
        "not open": program.call("POST", "/answers", told({"query": "p77"}, "left", 2)),
        "undo of another": program.call("POST", "/undo", {"query": first["query"]}),
        "blocked": house.api("POST", f"{AT}/sessions", {"participant": "one"}),
        "no token": house.api("GET", AT, token=""),
        "unknown study": house.api("GET", "/studies/nothing"),
        "unknown session": house.api("GET", f"/sessions/{'0' * 32}/query"),
        "unknown item": program.call("POST", "/recommendations", {"only": ["nothing"]}),
        "links": house.api("POST", f"{AT}/links", {"participants": ["one", "two"], "days": 2}),
    }
    link = found["calls"]["links"][1][1]["link"].removeprefix("http://testserver")
    found["by link"] = Visit(house, items, 2, {}, link).whole()
    found["closed"] = [house.api("POST", f"{AT}/close"), program.answers(1), house.api("POST", f"{AT}/sessions", {})]
    house.export(SLUG)
    return found


def _returning(house: Any, resume: dict[str, Any]) -> Any:
    """Let a person start, and return in the same browser, in another one by the link, and by an id only."""
    items = placed(12)
    found: dict[str, Any] = {"created": create(house, items, resume=resume, answers=6)}
    links = house.api("POST", f"{AT}/links", {"participants": ["one"], "days": 2})
    found["links"], link = links, links[1][0]["link"].removeprefix("http://testserver")
    first, second = Visit(house, items, 1, {}, link), Visit(house, items, 2, {}, link)
    third = Visit(house, items, 3, {}, f"/s/{SLUG}?participant=one")
    found["first"] = [first.start(), first.answers(2)]
    found["same browser"] = [house.page(first.link, first.browser), first.state(), first.answers(1)]
    found["other browser"] = [second.start(), second.state(), second.answers(1), first.state()]
    found["id alone"] = [third.start(), third.state(), third.answers()]
    found["first again"] = [first.state(), first.answers(), house.page(f"/s/{SLUG}/result", first.browser)]
    found["another session"] = [house.page(first.link, first.browser), second.start(), second.answers(), second.state()]
    house.export(SLUG)
    return found


def _voided(house: Any) -> Any:
    items = placed(12)
    found: dict[str, Any] = {"created": create(house, items, answers=7), "people": people(house, items, 4)}
    sessions = [one["session"] for one in house.api("GET", f"{AT}/sessions")[1]]
    first = f"{AT}/people/{sessions[0]}"
    found["answer"] = house.send(f"{first}/answers/p3/void", first, reason="a slip")
    found["person"] = house.send(f"{AT}/people/{sessions[1]}/void", first, reason="a robot")
    found["restored"] = [house.send(f"{first}/answers/p3/restore", first, reason="no slip"), house.page(first)]
    found["again"] = [house.send(f"{first}/answers/p4/void", first, reason="a slip"), house.page(first)]
    found["deleted"] = house.api("DELETE", f"/sessions/{sessions[2]}")
    found["forgotten"] = house.api("POST", f"{AT}/forget", {"participant": "p3"})
    found["estimate"] = house.api("GET", f"/sessions/{sessions[0]}/estimate")
    house.export(SLUG)
    found["administration"] = house.page("/administration")
    return json.loads(json.dumps(found))
