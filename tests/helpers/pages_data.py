"""Canned data for every page, in the shapes of `pairseek.web.pages.contexts`."""

from __future__ import annotations

import colorsys
import math

from helpers.recordings import tone

NAMES = ["Moss", "Clay", "Ash", "Plum", "Teal", "Sand", "Rust", "Fog"]
NAMES += ["Ink", "Rose", "Fern", "Slate", "Coral", "Straw", "Wine", "Mint"]
TEXTS = [
    "A quiet flat near the park, third floor, no lift, with a balcony that has the sun until noon.",
    "A house at the edge of town with a small garden. Forty minutes by train.",
]


def colour(number: int) -> str:
    r, g, b = colorsys.hls_to_rgb((number * 0.381966) % 1, 0.35 + 0.4 * ((number * 7) % 11) / 11, 0.45)
    return f"#{round(r * 255):02x}{round(g * 255):02x}{round(b * 255):02x}"


def label(number: int) -> str:
    return f"{NAMES[number % len(NAMES)]} {number}"


def card(number: int, kind: str = "colour") -> dict:
    # Like the service, describe a picture without a text alternative by its label.
    image = {"src": f"/picture/{number}.svg", "srcset": None, "width": 600, "height": 450, "alt": label(number)}
    values = {
        "colour": colour(number),
        "image": image,
        "text": TEXTS[number % 2],
        "audio": f"/sound/{number}.wav",
        "markdown": f"<p>Oats, <em>{label(number)}</em> and milk.</p>",
    }
    shown = {kind: values[kind]} if kind in values else {}
    return {
        "id": f"i{number}",
        "label": None if kind in ("text", "audio") else label(number),
        "name": label(number),
        "media": shown,
    }


def picture(number: int) -> str:
    back, front, radius = colour(number), colour(number + 5), 60 + number % 100
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="600" height="450">'
        f'<rect width="600" height="450" fill="{back}"/><circle cx="300" cy="225" r="{radius}" fill="{front}"/></svg>'
    )


def sound(number: int) -> bytes:
    """A tenth of a second of a tone."""
    return tone(0.1, 250.0 + 12 * number)


def near_colours() -> list[dict]:
    rows = [(4, 0.41, 0.93), (9, 0.11, 0.88), (20, 0.22, 0.87), (33, 0.05, 0.81)]
    return [{"card": card(n), "probability": p, "share": s} for n, p, s in rows]


def dots(count: int = 300) -> list[list]:
    """A sunflower of items."""
    turn = math.pi * (3 - math.sqrt(5))
    return [
        [math.sqrt(n / count) * math.cos(n * turn), math.sqrt(n / count) * math.sin(n * turn), colour(n), label(n)]
        for n in range(count)
    ]


def ellipse(x: float, y: float, wide: float, high: float) -> list[list[float]]:
    return [[x + wide * math.cos(a * math.pi / 16), y + high * math.sin(a * math.pi / 16)] for a in range(32)]


HEAD = {"slug": "colours", "title": "A colour for the hallway", "style": None, "logo": None}
PROGRESS = {"answered": 4, "total": 12, "remaining": 8, "share": 1 / 3}
CAN = {"undo": "q4", "tie": True, "skip": True}
OFFERS = {"undo": True, "tie": True, "skip": True}
USER = {"user": {"name": "ada", "admin": True}, "csrf": "c"}
WRONG = {
    "code": "invalid_items",
    "message": "The items' file has no column 'id'.",
    "received": "name, x, y",
    "hint": "Add a column 'id' with a name for each item, and send the file again.",
}


def running(kind: str, **changes) -> tuple[str, dict]:
    pair = {"query": "q5", "number": 5, "anchor": None, "left": card(4, kind), "right": card(9, kind)}
    state = {"status": "asking", "query": pair, "progress": PROGRESS, "can": CAN, "result": None}
    data = {"study": HEAD, "session": f"s-{kind}", "question": None, "state": state, "offers": OFFERS}
    return "run", {
        **data,
        "similarity": False,
        "practice": None,
        "play": "end" if kind == "audio" else None,
        "prefetch": True,
        "preview": False,
        **changes,
    }


def comparing(kind: str, **changes) -> tuple[str, dict]:
    template, data = running(kind, similarity=True, session=f"a-{kind}", **changes)
    query = data["state"]["query"] | {"anchor": card(2, kind)}
    return template, data | {"state": data["state"] | {"query": query}}


def study_row(slug: str = "colours", title: str = "A colour for the hallway", status: str = "open") -> dict:
    counts = {"items": 949, "started": 214, "finished": 187, "answers": 2544}
    times = {"created": "2026-11-02T09:12:00+00:00", "last_answer": "2026-11-15T12:58:31+00:00"}
    return {"slug": slug, "title": title, "status": status, **counts, **times}


def person_row(number: int, **changes) -> dict:
    quality = {"consistency": 0.9, "attention": 1.0, "left_share": 0.52, "fast_share": 0.0}
    quality |= {"median_ms": 1900, "flags": []}
    return {
        "session": f"{number:02x}7f3a9b5c2d4e61",
        "name": f"5f3c{number:02d}a8e2d",
        "status": "finished",
        "answers": 12,
        "started": f"2026-11-15T12:{number:02d}:00+00:00",
        "median_seconds": 1.4 + number / 10,
        "simulated": False,
        "voided": False,
        "quality": quality,
        **changes,
    }


def people() -> list[dict]:
    careless = {"consistency": 0.4, "attention": 0.5, "left_share": 0.96, "fast_share": 0.31, "median_ms": 280}
    flags = ["inconsistent", "one_sided", "fast"]
    return [
        person_row(1),
        person_row(2, status="asking", answers=5),
        person_row(3, quality={**careless, "flags": flags}, voided=True),
        person_row(4, name=None, simulated=True),
        person_row(5, name=None, median_seconds=None, answers=0, status="asking"),
    ]


def entry(action: str, who: str, what: str, study: str | None = None, **changes) -> dict:
    usual = {"when": "2026-11-15T12:58:31+00:00", "reason": None, "changes": [], "session": None}
    return {"who": who, "action": action, "what": what, "study": study, **usual, **changes}


def audit() -> list[dict]:
    return [
        entry("void", "ada", "5f3c03a8e2d", reason="Left only", when="2026-11-15T12:44:00+00:00"),
        entry("open", "ada", "", when="2026-11-02T09:30:00+00:00"),
    ]


def study_map() -> dict:
    made = []
    for number in range(24):
        x, y, *_ = dots(24)[number]
        made.append(
            {
                "session": f"{number:02x}7f3a9b5c2d4e61",
                "name": f"5f3c{number:02d}",
                "point": [0.7 * x, 0.7 * y],
                "radius": 0.08 + 0.01 * (number % 5),
                "simulated": number % 6 == 0,
                "voided": number == 3,
            }
        )
    return {"items": dots(), "people": made}


def person_map() -> dict:
    points = [[0.5 - 0.5 * 0.75**n * math.cos(n), 0.3 - 0.3 * 0.75**n * math.sin(n)] for n in range(12)]
    samples = [[0.5 + 0.12 * x, 0.3 + 0.09 * y] for x, y, *_ in dots(400)]
    return {
        "items": dots(),
        "samples": samples,
        "track": {"points": points, "radii": [0.9 * 0.82**n for n in range(12)]},
    }


def answers(kind: str = "colour") -> list[dict]:
    kinds = ["search"] * 4 + ["repeated", "random", "attention"]
    outcomes = ["left", "right", "right", "tie", "left", "skip", "right"]
    return [
        {
            "index": n + 1,
            "query": f"q{n + 1}",
            "anchor": None,
            "left": card(3 * n, kind),
            "right": card(5 * n + 1, kind),
            "outcome": outcomes[n],
            "rt_ms": 900 + 137 * n,
            "answered": f"2026-11-15T12:40:{10 + n}+00:00",
            "kind": kinds[n],
            "voided": n == 3,
        }
        for n in range(7)
    ]


def result(**changes) -> tuple[str, dict]:
    learned = [
        {"key": "sure.some", "values": {"label": label(4)}},
        {"key": "answers", "values": {"count": 12, "percent": 4}},
        {"key": "consistent", "values": {"count": 3, "same": 3}},
        {"key": "speed", "values": {"seconds": 1.8}},
    ]
    drawn = {"items": dots(949), "point": [0.32, 0.21], "ellipse": ellipse(0.32, 0.21, 0.22, 0.16), "pictures": []}
    data = {"study": HEAD, "goal": "taste", "map": drawn, "nearest": near_colours(), "learned": learned, "first": False}
    data |= {"before": 0, "answers": 12}
    ends = {
        "mine": "/s/colours/mine",
        "redirect": "https://example.org/complete?cc=C1A2B3",
        "code": "C1A2B3",
        "wait": 20,
    }
    return "result", {**data, **ends, "debrief_html": None, "preview": False, **changes}


START = {
    "study": HEAD,
    "consent_html": "<p>We keep which of two colours you chose and how long it took, under a random number and without "
    "your name. You can stop at any time.</p><ul><li>It takes about two minutes.</li><li>There is no risk.</li></ul>",
    "instructions_html": "<p>You will see two colours side by side. Choose the one you would rather have on the wall "
    "of your hallway. Your first impression is what counts.</p>",
    "answers": 12,
    "csrf": "c",
    "preview": False,
    "begun": False,
    "texts": "0" * 32,
    "changed": False,
}


def own_question(name: str, text: str, kind: str, **changes) -> dict:
    usual = {"options": [], "required": False, "typed": "", "problem": None}
    return {"name": name, "text": text, "kind": kind, **usual, **changes}


OWN_QUESTIONS = {
    "csrf": "5a" * 32,
    "study": HEAD,
    "stage": "after",
    "questions": [
        own_question(
            "where", "Where do you live?", "choice", options=["In a city", "In the country"], typed="In a city"
        ),
        own_question("age", "How old are you?", "number", required=True, typed="31"),
        own_question("why", "What did you look for?", "text"),
    ],
    "wrong": 0,
    "preview": False,
}
NEW = {
    **USER,
    "columns": ["label", "colour", "image", "text"],
    "formats": ["csv", "parquet"],
    "strategies": ["infogain", "epmv", "mcmv", "random"],
    "goals": ["taste", "best", "list"],
    "stops": ["never", "radius", "information", "best_item"],
    "responses": ["logistic", "probit"],
    "noises": ["constant", "normalized", "decaying"],
    "priors": ["uniform_box", "gaussian"],
    "languages": ["en", "de"],
    "texts": [
        {"name": "texts.start.begin", "usual": "Begin"},
        {"name": "texts.run.answered.one", "usual": "{count} answer"},
        {"name": "texts.run.answered.other", "usual": "{count} answers"},
    ],
    "values": {"answers": "20", "offer.undo": "true", "strategy": "infogain", "resume.hours": "72"},
    "errors": {},
}
LIVE = {
    "status": "open",
    "started": 214,
    "finished": 187,
    "answers": 2544,
    "answers_per_minute": 38.4,
    "median_seconds": 1.9,
    "latency_ms": 14.2,
    "updated": "2026-11-15T12:58:31+00:00",
}


def version(number: int, sessions: int, dimension: int, before: float, after: float, pairs: int, random) -> dict:
    return {
        "version": number,
        "when": f"2026-11-15T1{number}:02:10+00:00",
        "who": "pairseek",
        "sessions": sessions,
        "dimension": dimension,
        "given": False,
        "before": before,
        "after": after,
        "measured": 9,
        "random": random,
        "pairs": pairs,
        "dropped": False,
        "current": number == 3,
    }


GALLERY = {
    "summary": {
        "count": 18,
        "media": [{"medium": "image", "count": 12}, {"medium": "text", "count": 3}],
        "dimensions": 0,
        "named": "some",
    },
    "cards": [card(number, ("image", "text", "label")[number % 3]) for number in range(18)],
    "names": None,
    "switchable": True,
}
ITEMS = {
    **USER,
    "study": study_row(),
    "gallery": GALLERY,
    "paging": {"page": 2, "pages": 3, "first": 61, "total": 150},
    "editing": False,
    "editable": True,
    "begun": 2,
    "additions": 3,
    "extensible": True,
    "formats": ["csv", "parquet"],
    "errors": {},
}
EDIT = {
    **USER,
    "study": study_row(),
    "values": {
        "title": "A colour for the hallway",
        "instructions": "Choose.",
        "consent": "We keep your answers.",
        "debrief": "",
        "names": "",
        "accent": "#ffcc00",
        "accent.own": "true",
    },
    "errors": {},
    "logo": {"src": "/picture/3.svg", "srcset": "/picture/3.svg 640w", "width": 640, "height": 200} | {"alt": ""},
    "shades": {"light": "#806600", "dark": "#ffcc00", "adjusted": True},
    "usual": "#0b6b4f",
    "started": 3,
}
STUDY = {
    **USER,
    "study": study_row(),
    "gallery": {**GALLERY, "cards": GALLERY["cards"][:12]},
    "link": "https://studies.example.org/s/colours?PROLIFIC_PID={{%PROLIFIC_PID%}}",
    "recruitment": {
        "panels": [
            {"name": called.lower(), "called": called, "link": f"https://example.org/s/a?{query}"}
            for called, query in (
                ("Prolific", "PROLIFIC_PID={{%PROLIFIC_PID%}}"),
                ("MTurk", "workerId=${workerId}"),
                ("SONA", "survey_code=%SURVEY_CODE%"),
            )
        ],
        "address": "https://app.prolific.com/submissions/complete?cc={code}",
        "code": "C1ABCD",
        "quota": 300,
        "closes": "2027-01-31T18:00",
    },
    "qr": {"local": False, "size": 29, "path": "M4 4.5h7M13 4.5h1"},
    "live": LIVE,
    "map": study_map(),
    "people": people(),
    "paging": {"page": 2, "pages": 5, "first": 51, "total": 214},
    "audit": audit(),
    "simulating": 0,
    "columns": {"coordinates": ["red", "green", "blue"], "data": ["hex"], "names": "title"},
    "formats": ["csv", "parquet"],
    "scales": None,
    "retention": {"days": 90, "after": "session"},
    "learning": {
        "on": True,
        "requested": False,
        "finished": 31,
        "due": 35,
        "current": 3,
        "failure": None,
        "failed": None,
        "extensible": True,
        "versions": [
            version(3, 28, 2, 0.72, 0.76, 41, 0.73),
            version(2, 13, 0, 0.66, 0.69, 22, 0.68),
            version(1, 10, 0, 0.5, 0.67, 0, None),
        ],
    },
    "configuration": "title: A colour for the hallway\nstrategy: infogain\nanswers: 12\n",
}


def similarity() -> dict:
    placed = [
        {
            "card": card(n, "colour" if n < 16 else "label"),
            "x": 500 + 400 * x,
            "y": 400 - 300 * y,
            "undecided": 0.02 + 0.01 * (n % 9),
            "vague": n % 9 > 5,
        }
        for n, (x, y, *_) in enumerate(dots(20))
    ]
    steps = [(20, 0.45), (30, 0.36), (60, 0.28), (120, 0.22), (240, 0.19)]
    return {
        "version": 5,
        "created": "2026-11-15T12:58:31+00:00",
        "judgements": 240,
        "apart": 24,
        "error": 0.19,
        "standard_error": 0.08,
        "undecided": 0.08,
        "goal": 0.05,
        "forecast": 410,
        "usual": 300,
        "dimensions": 2,
        "recommended": 2,
        "tried": [{"dimensions": d, "error": 0.2 + 0.02 * abs(d - 2), "standard_error": 0.02} for d in (1, 2, 3, 4)],
        "k": 0.8,
        "drawing": {"width": 1000, "height": 800, "side": 92.0, "items": placed},
        "vague": [card(n, "colour") for n in (6, 7, 8)],
        "vague_count": 6,
        "curve": [{"judgements": m, "error": e, "standard_error": 0.9 / m**0.5} for m, e in steps],
        "findings": [
            quality("good", "20 items in 2 dimensions, 190 pairs", key="size")
            | {"values": {"items": 20, "dimensions": 2, "pairs": 190}},
            quality("act", "1 item in no judgement: 'Plum'", "Collect.", key="unseen")
            | {"advice_key": "unseen.advice", "values": {"count": 1, "names": "'Plum'"}},
            quality("note", "1 item is far from all others: Plum", "Look at it."),
        ],
    }


def quality(level: str, found: str, advice: str = "", key: str = "") -> dict:
    finding = {"level": level, "name": key or "outliers", "found": found, "advice": advice}
    return {**finding, "key": key, "advice_key": "", "values": {}}


def rank_row(number: int) -> dict:
    share = 0.82 - 0.035 * number
    return {
        "card": card(number, "image" if number % 3 else "colour"),
        "place": number + 1,
        "tier": 1 + number // 4,
        "share": share,
        "share_low": share - 0.09,
        "share_high": share + 0.07,
        "rank": number + 1.4,
        "rank_low": max(1, number - 1),
        "rank_high": number + 4,
        "top_1": 0.5 / (1 + number) ** 2,
        "top_3": 0.9 / (1 + number),
        "top_5": 0.99 / (1 + 0.5 * number),
        "answers": 41 - number if number < 17 else 0,
    }


def group_person(number: int) -> dict:
    x, y = 1.2 * math.cos(2.1 * number), 0.9 * math.sin(2.1 * number) + 0.1 * number / 12
    turn = [2 * math.pi * step / 24 for step in range(24)]
    return {
        "point": (x, y),
        "outline": [(x + 0.3 * math.cos(t), y + 0.2 * math.sin(t)) for t in turn],
        "segment": number % 3 + 1,
    }


def quality_row(number: int) -> dict:
    flags = ["fast", "random"] if number == 2 else []
    return {
        "session": f"{number:032x}",
        "name": None if number == 1 else f"5f{number}c",
        "answers": 15,
        "median_seconds": 1.4 + 0.3 * number,
        "median_ms": 1400 + 300 * number,
        "consistency": None if number == 1 else 0.67,
        "attention": 1.0,
        "left_share": 0.48,
        "fast_share": 0.4 if flags else 0.0,
        "flags": flags,
        "voided": number == 3,
        "left_out": bool(flags) or number == 3,
        "trust": None if flags else 0.98,
        "segment": None if flags else number % 3 + 1,
        "chance": None if flags else 0.83,
    }


FOUND = {
    "problem": None,
    "everyone": False,
    "simulated": False,
    "people": 61,
    "answers": 915,
    "left_out": 2,
    "first": "2026-11-15T09:02:11+00:00",
    "last": "2026-11-15T12:58:31+00:00",
    "tiers": 5,
    "unseen": 1,
    "item_count": 18,
    "ranking": [rank_row(number) for number in range(18)],
    "segments": [
        {
            "number": number,
            "share": 0.5 / number,
            "favourites": [card(5 * number + offset) for offset in range(5)],
            "distinctive": [card(5 * number + offset, "image") for offset in range(3)],
        }
        for number in (1, 2, 3)
    ],
    "groups": [
        {
            "text": "Where do you live?",
            "options": [
                {
                    "option": "In a city",
                    "people": 41,
                    "best": [{"card": card(n), "share": 0.7, "share_low": 0.6, "share_high": 0.8} for n in range(3)],
                },
                {"option": "In the country", "people": 2, "best": []},
            ],
        }
    ],
    "map": {
        "items": [
            {
                "card": card(number, ("image", "colour", "label")[number % 3]),
                "point": (1.5 * math.sin(1.7 * number), 1.2 * math.cos(2.3 * number)),
                "place": number + 1,
            }
            for number in range(18)
        ],
        "people": [group_person(number) for number in range(12)],
        "axes": ("sweetness", "body"),
        "segments": 3,
    },
    "quality": [quality_row(number) for number in range(5)],
}
NOTHING = FOUND | {
    "problem": {"reason": "few_people", "count": 1, "text": "only 1 person gave answers that count"},
    "people": 0,
    "answers": 0,
    "ranking": [],
    "segments": [],
    "groups": [],
    "map": None,
    "tiers": 0,
}
FINDINGS = {
    **USER,
    "study": study_row(),
    "findings": FOUND,
    "current": True,
    "computation": 1,
    "languages": ["en", "de"],
}
REPORT = {
    "title": "A colour for the hallway",
    "slug": "colours",
    "question": "Which would you rather live with?",
    "made": "2026-11-15T13:00:00+00:00",
    "version": "0.1.0",
    "findings": FOUND,
    "balanced": False,
    "codebook": [{"table": "answers", "column": "rt_ms", "meaning": "Reaction time."}],
}
TOKENS = {
    **USER,
    "tokens": [
        {"id": "1", "name": "notebook", "scopes": ["read", "answer"], "created": "2026-11-02T09:12:00+00:00"}
        | {"used": "2026-11-15T12:58:31+00:00", "revoked": None, "owner": "ada"}
        | {"expires": "2027-01-31T09:12:00+00:00", "expired": False},
        {"id": "2", "name": "old laptop", "scopes": ["read"], "created": "2026-10-02T09:12:00+00:00"}
        | {"used": None, "revoked": "2026-11-01T10:00:00+00:00", "owner": "grace"}
        | {"expires": "2026-12-31T09:12:00+00:00", "expired": False},
        {"id": "3", "name": "pilot", "scopes": ["answer"], "created": "2026-10-02T09:12:00+00:00"}
        | {"used": None, "revoked": None, "owner": "grace", "expires": "2026-10-09T09:12:00+00:00", "expired": True},
    ],
    "scopes": ["read", "write", "answer", "delete"],
    "fresh": "ps_8Jr2kQ0xVb7mY4tN1cZs9aLw5eHd3fGu",
    "expires": "2027-01-31T09:12:00+00:00",
    "lifetimes": [7, 30, 90, 366],
    "lifetime": 90,
    "error": None,
}
CONFIRM = {
    **USER,
    "kind": "participant",
    "name": "5f1a2b3c4d5e6f7a8b9c0d1e",
    "count": 2,
    "consequences": ["populations", "backups", "undone"],
    "action": "/studies/colours/people/s1/forget",
    "back": "/studies/colours/people/s1",
    "wrong": False,
}


ADMINISTRATION = {
    **USER,
    "users": [
        {"id": 1, "name": "ada", "admin": True, "tokens": 2, "created": "2026-09-01T09:12:00+00:00"}
        | {"removable": False},
        {"id": 2, "name": "grace", "admin": False, "tokens": 0, "created": "2026-10-02T09:12:00+00:00"}
        | {"removable": True},
    ],
    "audit": [
        entry("drop_population", "grace", "2", "colours"),
        entry("forget", "grace", "1", "colours"),
        entry("expire", "pairseek (retention)", "31", "pilot-with-a-rather-long-name-for-a-study"),
        entry("delete_study", "ada (command line)", "0", "test"),
        entry("remove_user", "ada", "charles"),
        entry("token", "ada", "notebook"),
        entry("revoke", "ada", ""),
        entry("password", "ada", ""),
        entry("create_study", "grace", "", "colours"),
    ],
}
LONG = "Donaudampfschifffahrtsgesellschaft: which of these landscapes would you rather walk through on a Sunday?"

#: Every page, by a name for its picture: template and data.
PAGES: dict[str, tuple[str, dict]] = {
    "start": ("start", START),
    "start-plain": (
        "start",
        {**START, "consent_html": None, "instructions_html": None, "preview": True, "begun": True},
    ),
    "run-colour": running("colour"),
    "run-image": running("image"),
    "run-text": running("text"),
    "run-html": running("markdown"),
    "run-audio": running("audio"),
    "run-label": running("label", question=LONG, preview=True),
    "run-alike": comparing("colour"),
    "run-alike-image": comparing("image"),
    "run-alike-text": comparing("text"),
    "run-practice": running(
        "colour",
        practice=True,
        session="p",
        state=running("colour")[1]["state"]
        | {"progress": {"answered": 0, "total": None, "remaining": 14, "share": 0.0}, "can": CAN | {"undo": None}},
    ),
    "result": result(),
    "result-plain": result(
        map={"items": [[x, y, None, None] for x, y, *_ in dots(12624)], "point": [0.3, 0.2]}
        | {"ellipse": ellipse(0.3, 0.2, 0.1, 0.3)},
        nearest=[{"card": card(n, "text"), "probability": 0.2, "share": 0.7} for n in range(3)],
        redirect=None,
        code=None,
        debrief_html="<p>Thank you for your patience.</p>",
    ),
    "result-none": result(map=None, nearest=[], learned=[]),
    "result-pictures": result(
        map={
            "items": [(math.cos(n), math.sin(1.3 * n), None, label(n)) for n in range(12)],
            "point": [0.3, 0.2],
            "ellipse": ellipse(0.3, 0.2, 0.3, 0.2),
            "pictures": [(math.cos(n), math.sin(1.3 * n), f"/picture/{n}.svg") for n in range(12)],
        }
    ),
    "start-branded": ("start", {**START, "study": HEAD | {"logo": EDIT["logo"]}, "changed": True}),
    "gallery": ("gallery", ITEMS),
    "gallery-editing": (
        "gallery",
        {
            **ITEMS,
            "editing": True,
            "extensible": False,
            "errors": {"items": "the label of item 'a' is blank: write one"},
        },
    ),
    "edit": ("edit", EDIT),
    "edit-wrong": (
        "edit",
        {**EDIT, "logo": None, "shades": None, "errors": {"logo": "'logo.pdf' is not a readable image: send PNG"}},
    ),
    "declined": ("declined", {"study": HEAD, "redirect": "https://example.org/?cc=NO", "code": "NOCONSENT"}),
    "closed": ("closed", {"study": HEAD, "mine": "/s/colours/mine", "full": False, "redirect": None, "code": None}),
    "closed-full": (
        "closed",
        {"study": HEAD, "mine": None, "full": True, "redirect": "https://example.org/?cc=FULL", "code": "FULL"},
    ),
    "questions": ("questions", OWN_QUESTIONS),
    "questions-wrong": (
        "questions",
        OWN_QUESTIONS
        | {
            "stage": "before",
            "wrong": 1,
            "questions": [
                OWN_QUESTIONS["questions"][0] | {"required": True, "problem": "Please answer this question."},
                OWN_QUESTIONS["questions"][1] | {"typed": "x", "problem": "Please write a number."},
            ],
        },
    ),
    "error": ("error", {"status": 413, "error": WRONG, "back": "/studies/new"}),
    "error-404": (
        "error",
        {"status": 404, "error": WRONG | {"message": "No study has this name.", "received": "/s/nothing", "hint": None}}
        | {"back": None},
    ),
    "login": ("login", {"csrf": "c", "next": None, "name": "", "error": None}),
    "login-wrong": (
        "login",
        {"csrf": "c", "next": "/studies", "name": "ada"}
        | {"error": WRONG | {"message": "Name or password is wrong.", "received": None, "hint": "Try again."}},
    ),
    "studies": (
        "studies",
        {
            **USER,
            "studies": [
                study_row(),
                study_row("walks", LONG, "closed") | {"last_answer": None},
                study_row("wine", "Wine", "closed"),
            ],
        },
    ),
    "studies-empty": ("studies", {**USER, "studies": []}),
    "study-new": ("study_new", NEW),
    "study-new-wrong": (
        "study_new",
        {
            **NEW,
            "values": {**NEW["values"], "title": "Walks", "answers": "0"},
            "errors": {
                "items": "The file has no column 'id'; it has name, x, y. Add a column 'id'.",
                "answers": "Received 0. Ask for 1 to 1000 answers.",
            },
        },
    ),
    "study": ("study", STUDY | {"simulating": 10}),
    "similarity": ("similarity", STUDY | {"map": {"items": [], "people": []}, "similarity": similarity()}),
    "similarity-empty": ("similarity", STUDY | {"map": {"items": [], "people": []}, "similarity": None}),
    "findings": ("findings", FINDINGS),
    "findings-alike": (
        "findings",
        FINDINGS
        | {
            "findings": FOUND
            | {"tiers": 1, "everyone": True, "simulated": True, "segments": FOUND["segments"][:1], "map": None}
        },
    ),
    "findings-nothing": ("findings", FINDINGS | {"findings": NOTHING}),
    "findings-pending": ("findings", FINDINGS | {"findings": None, "current": False}),
    "study-empty": (
        "study",
        STUDY
        | {
            "study": study_row(status="closed"),
            "people": [],
            "audit": [],
            "paging": {"page": 1, "pages": 1, "first": 1, "total": 0},
            "map": {"items": dots(), "people": []},
            "scales": {
                "widest": {"number": 1, "low": 150.0, "high": 550.0, "deviation": 115.5},
                "narrowest": {"number": 3, "low": 0.0, "high": 1.0, "deviation": 0.2887},
            },
        }
        | {"live": LIVE | {"started": 0, "finished": 0, "answers": 0, "median_seconds": None, "latency_ms": None}},
    ),
    "person": (
        "person",
        {
            **USER,
            "study": study_row(),
            "person": people()[2],
            "reliability": {
                "word": "noisy",
                "agreement": {"median": 0.71, "low": 0.56, "high": 0.86},
                "k": {"median": 1.31, "low": 0.42, "high": 3.94},
                "lapse": {"median": 0.09, "low": 0.003, "high": 0.34},
            },
            "ids": {"PROLIFIC_PID": "5f3c03a8e2d", "STUDY_ID": "64c1d2", "SESSION_ID": "9a8b7c"},
            "map": person_map(),
            "answers": answers(),
            "nearest": near_colours(),
            "audit": audit()[:1],
        },
    ),
    "tokens": ("tokens", TOKENS),
    "confirm-participant": ("confirm", CONFIRM),
    "confirm-study": (
        "confirm",
        {**CONFIRM, "kind": "study", "name": "a-colour-for-the-hallway", "count": 214}
        | {"consequences": ["answering", "backups", "undone"], "wrong": True},
    ),
    "confirm-user": (
        "confirm",
        {**CONFIRM, "kind": "user", "name": "grace", "count": 1, "consequences": ["studies", "record", "undone"]},
    ),
    "administration": ("administration", ADMINISTRATION),
    "docs": (
        "docs",
        {
            "operations": [
                {
                    "id": "post_answer",
                    "method": "POST",
                    "path": "/api/v1/sessions/{session}/answers",
                    "description": "Answer the open query. The same answer again is harmless.",
                    "parameters": [{"name": "session", "place": "path", "description": "Which session."}],
                    "takes": {"name": "Answer", "schema": '{"query": "p1", "outcome": "left"}'},
                    "gives": {"name": "State", "schema": '{"status": "asking"}'},
                },
                {
                    "id": "list_studies",
                    "method": "GET",
                    "path": "/api/v1/studies",
                    "description": "All studies.",
                    "parameters": [],
                    "takes": None,
                    "gives": None,
                },
            ]
        },
    ),
}
