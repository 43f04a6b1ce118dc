"""Food-10k, scaled by the paper's rule, or a synthetic stand-in of the same size if the data is missing.

The embeddings are looked up in the folder that PAIRSEEK_DATA names, then in ../shared next to the checkout.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np

import pairseek as ps

COUNT = 12_624
RATE = 1e-3
# Published constants of the logistic model (d: constant, normalized, decaying), for the synthetic stand-in.
CONSTANTS = {
    2: (0.9187, 2.1648, 8.0783),
    4: (0.2805, 1.5637, 9.7060),
    7: (0.2762, 1.0220, 19.0871),
    12: (0.0832, 0.6085, 66.3200),
}


def folder() -> Path | None:
    """Return the folder that has data/ and reference/, or None."""
    places = [os.environ.get("PAIRSEEK_DATA"), Path(__file__).resolve().parents[2] / "shared"]
    return next((Path(p) for p in places if p and (Path(p) / "data" / "food10k").is_dir()), None)


def items(d: int) -> ps.Items:
    """Return the items in d dimensions."""
    where = folder()
    if where is not None:
        return ps.Items(np.load(where / "data" / "food10k" / f"items-d{d:02d}.npy")).scaled()
    return ps.Items(np.random.default_rng(d).standard_normal((COUNT, d))).scaled()


def response(d: int, noise: str) -> ps.Logistic:
    """Return the logistic response with the published constant for this noise."""
    where = folder()
    if where is not None:
        record = json.loads((where / "data" / "food10k" / "noise.json").read_text())
        return ps.Logistic(record[str(d)]["k"]["logistic"][noise]["k"], noise)
    return ps.Logistic(CONSTANTS[d][("constant", "normalized", "decaying").index(noise)], noise)


def name() -> str:
    """Return the name of the data."""
    return "Food-10k" if folder() is not None else "a synthetic stand-in of Food-10k's size (the data is not here)"
