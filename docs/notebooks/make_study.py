"""The bundle docs/notebooks/teas.zip: a study of 20 teas that 36 simulated people answered.

Run it after changing the format of bundles: python docs/notebooks/make_study.py
The people answer as participants do, because rankings and fits leave out the service's own simulated people.
"""

import tempfile
from pathlib import Path

import numpy as np

import pairseek as ps
from pairseek.store import migrate
from pairseek.store.database import Database
from pairseek.web.results import bundle
from pairseek.web.sessions.advance import Answer
from pairseek.web.sessions.service import Sessions
from pairseek.web.studies.catalogue import Catalogue
from pairseek.web.studies.creation import create_study, from_record

TEAS = [
    "Assam",
    "Darjeeling",
    "Ceylon",
    "Keemun",
    "Earl-Grey",
    "Lapsang",
    "Sencha",
    "Matcha",
    "Gunpowder",
    "Genmaicha",
    "Oolong",
    "Pu-erh",
    "Jasmine",
    "White-peony",
    "Rooibos",
    "Camomile",
    "Peppermint",
    "Hibiscus",
    "Ginger",
    "Fennel",
]
PEOPLE, ANSWERS, CLICKERS = 36, 16, 4


def main() -> None:
    """Simulate the study and export its bundle."""
    rng = np.random.default_rng(11)
    items = ps.Items(
        rng.normal(size=(len(TEAS), 2)),
        ids=[tea.lower() for tea in TEAS],
        labels=[tea.replace("-", " ") for tea in TEAS],
    )
    settings = {
        "title": "Which tea would you rather drink?",
        "answers": ANSWERS,
        "slug": "teas",
        "response": {"name": "logistic", "k": "unknown", "lapse": "unknown"},
        "repeated": 0.1,
    }
    configuration, _ = from_record(settings)
    with tempfile.TemporaryDirectory() as folder:
        database = Database(str(Path(folder) / "teas.db"))
        migrate.prepare(database)
        create_study(database, configuration, items, is_open=True, who="example")
        study, sessions = (
            Catalogue(database).by_slug("teas"),
            Sessions(database, Catalogue(database)),
        )
        for number in range(PEOPLE):
            answer_all(
                sessions,
                study,
                items,
                rng,
                clicks=number >= PEOPLE - CLICKERS,
                number=number,
            )
        with Path(__file__).with_name("teas.zip").open("wb") as file:
            bundle.write(database, study, file)
        database.close()


def answer_all(sessions, study, items, rng, *, clicks, number):
    """Answer one session as a person near one of two tastes, or with coin tosses if `clicks`."""
    centre = np.array([1.2, 0.3]) if number % 3 else np.array([-1.0, -0.6])
    person = ps.SimulatedUser(centre + 0.5 * rng.normal(size=2), ps.Logistic(2.0), rng)
    session_id, _ = sessions.open(
        study, {"participant": f"person-{number + 1}"}, seed=number
    )
    state = sessions.state(sessions.by_id(session_id))
    while state["query"] is not None:
        pair = state["query"]
        left, right = pair["left"]["id"], pair["right"]["id"]
        winner = person.answer(items, ps.Query(pair["query"], left, right))
        outcome = (
            str(rng.choice(["left", "right"]))
            if clicks
            else ("left" if winner == left else "right")
        )
        milliseconds = int(1500 * np.exp(0.4 * rng.standard_normal()))
        state = sessions.answer(
            sessions.by_id(session_id),
            Answer(query=pair["query"], outcome=outcome, rt_ms=milliseconds),
        )


if __name__ == "__main__":
    main()
