"""Searches as each model version saved them, and a command that adds those of the present version.

    python tests/helpers/earlier_models.py

Run it when `MODEL_VERSION` changes, so that later versions are tested with what users of this one have saved.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pairseek as ps
from pairseek._version import MODEL_VERSION

FOLDER = Path(__file__).resolve().parents[1] / "search" / "earlier_models"
KEY = "0123456789abcdef"
ITEMS = ps.Items(
    [[i / 4, float(i * i % 7) / 3] for i in range(12)],
    ids=[f"p{i}" for i in range(12)],
)
SETTINGS = {"default": {}, "settings": {"response": ps.Logistic(1.0)}}
"""Arguments of the saved searches by name."""


def saved(name):
    """Return a search with an observation, four answers and a pending query in every saved form."""
    search = ps.Search(ITEMS, rng=5, **SETTINGS[name])
    search.observe("p1", "p2", winner="p1")
    for number in range(4):
        query = search.ask()
        search.tell(query, winner=query.left if number % 3 else query.right)
    search.ask()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "search.json"
        search.save(path)
        file = json.loads(path.read_text())
    return {"file": file, "light": search.to_dict(), "token": search.to_token(key=KEY)}


def path_of(model):
    """Return the path of the searches that a model version saved."""
    return FOLDER / f"model-{model}.json"


if __name__ == "__main__":
    path_of(MODEL_VERSION).write_text(json.dumps({name: saved(name) for name in SETTINGS}) + "\n")
