"""Noise constants fitted by `fit_noise` to simulated triplets, compared with the published ones.

    python benchmarks/constants.py 4 5 6 7 9 12

The triplets of Food-10k are not part of the project. For each dimension, random triplets of items are answered by the
logistic model with the highest published likelihood, whose constant looks sound, and all six models are fitted.
"""

from __future__ import annotations

import sys

import numpy as np

import pairseek as ps
from pairseek.embed.noise import fit_noise

TRIPLETS = 200_000


def simulated_triplets(items, response, rng):
    """Return (m, 3) rows of anchor, near and far item, judged by the response model."""
    drawn = rng.integers(0, items.n, size=(3, TRIPLETS)).T
    distinct = (drawn[:, 0] != drawn[:, 1]) & (drawn[:, 0] != drawn[:, 2]) & (drawn[:, 1] != drawn[:, 2])
    drawn = drawn[distinct]
    anchors, one, other = (items.coordinates[drawn[:, column]] for column in range(3))
    slopes, offsets = response.planes(one, other, np.zeros(len(drawn)))
    logits = np.einsum("md,md->m", slopes, anchors) + offsets
    first = rng.random(len(drawn)) < 1.0 / (1.0 + np.exp(-logits))
    near, far = np.where(first, drawn[:, 1], drawn[:, 2]), np.where(first, drawn[:, 2], drawn[:, 1])
    return np.column_stack([drawn[:, 0], near, far])


def main():
    print("| d | response | noise | fitted | published |\n|---|---|---|---|---|")
    for d in map(int, sys.argv[1:]):
        items, facts = ps.datasets.food10k(d).scaled(), ps.datasets.food10k_facts(d)
        truth = facts.response("logistic", facts.best["logistic"])
        rows = simulated_triplets(items, truth, np.random.default_rng(d))
        for fit in fit_noise(items, rows, folds=None):
            found = fit.response
            published = facts.response(found.name, found.noise).typical_k
            print(f"| {d} | {found.name} | {found.noise} | {found.typical_k:.5f} | {published:.5f} |", flush=True)


if __name__ == "__main__":
    main()
