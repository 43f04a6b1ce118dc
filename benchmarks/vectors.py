"""Recommendations from vectors of many dimensions, against the average of winner minus loser.

    python benchmarks/vectors.py [--vectors products.npy ...] [--people 40]

The score is the mean utility, in logits, of ten recommended items after 5, 10 and 20 answers. Catalogues: sentence
vectors from files of (n, D) numbers; image-like clusters, with few axes of their own each; Food-10k in 20 dimensions;
vectors learned from ratings, by a singular value decomposition. People like a direction, what is near a place,
categories (clusters) or what resembles three single items; to each utility, of standard deviation 1.5, the item adds a
quarter of the variance that no vector explains. The average asks random pairs and recommends by the product with the
mean of winners' minus losers' vectors. The recipe of docs/how-to/your-own-back-end.md is compared with it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy.cluster.vq import kmeans2
from scipy.special import expit

import pairseek as ps
from food import items as food_items

AT = (5, 10, 20)
DEVIATION = 1.5
OWN_SHARE = 0.25
KINDS = ("direction", "region", "categories", "items")


def clusters(n: int = 1500, length: int = 256, count: int = 25) -> np.ndarray:
    """Return unit vectors in clusters with spectra that decay, as those of image models do."""
    rng = np.random.default_rng(3)
    spectrum = 1.0 / np.arange(1, length + 1) ** 0.6
    centres = rng.standard_normal((count, length)) * spectrum
    within = rng.standard_normal((n, length)) * np.roll(spectrum, 3) * 0.6
    vectors = centres[rng.integers(count, size=n)] + within
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def learned(n: int = 1200, people: int = 1500, length: int = 32) -> np.ndarray:
    """Return vectors learned from the ratings of simulated people, each of whom rated a tenth of the items."""
    rng = np.random.default_rng(5)
    spectrum = 1.0 / np.arange(1, 13) ** 0.35
    groups = rng.standard_normal((15, 12))
    traits = (0.8 * groups[rng.integers(15, size=n)] + 0.7 * rng.standard_normal((n, 12))) * spectrum
    ratings = rng.standard_normal((people, 12)) @ traits.T + rng.standard_normal((people, n))
    _, values, right = np.linalg.svd(np.where(rng.random((people, n)) < 0.1, ratings, 0.0), full_matrices=False)
    return right[:length].T * values[:length]


def utilities(vectors: np.ndarray, kind: str, seed: int) -> np.ndarray:
    """Return the (n,) utilities of a person, in logits."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    centred = vectors - vectors.mean(axis=0)
    if kind == "direction":
        taste = centred @ rng.standard_normal(vectors.shape[1])
    elif kind == "region":
        taste = -np.sum((centred - centred[rng.integers(len(centred))]) ** 2, axis=1)
    elif kind == "categories":
        labels = kmeans2(centred, 20, seed=1, minit="++")[1]
        taste = rng.standard_normal(20)[labels]
    else:
        liked = centred[rng.choice(len(centred), 3, replace=False)]
        taste = np.max(-np.sum((centred[:, None] - liked) ** 2, axis=2), axis=1)
    taste = (taste - taste.mean()) / taste.std()
    own = rng.standard_normal(len(taste))
    return DEVIATION * (np.sqrt(1.0 - OWN_SHARE) * taste + np.sqrt(OWN_SHARE) * own)


def by_average(vectors: np.ndarray, utility: np.ndarray, seed: int) -> list[float]:
    """Return the score of the average of winner minus loser over random pairs."""
    rng = np.random.default_rng([9, seed])
    centred, mean, scores = vectors - vectors.mean(axis=0), np.zeros(vectors.shape[1]), []
    for number in range(1, max(AT) + 1):
        p, q = rng.choice(len(vectors), 2, replace=False)
        won = rng.random() < expit(utility[p] - utility[q])
        mean += (centred[p] - centred[q]) * (1.0 if won else -1.0)
        if number in AT:
            scores.append(float(utility[np.argsort(-(centred @ mean))[:10]].mean()))
    return scores


def by_search(items: ps.Items, utility: np.ndarray, seed: int, **settings: object) -> list[float]:
    """Return the score of a search."""
    search, scores = ps.Search(items, rng=seed, **settings), []
    rng = np.random.default_rng([9, seed])
    for number in range(1, max(AT) + 1):
        query = search.ask()
        p, q = items.index(query.left), items.index(query.right)
        search.tell(query, winner=query.left if rng.random() < expit(utility[p] - utility[q]) else query.right)
        if number in AT:
            rows = [items.index(item.id) for item in search.recommend(10)]
            scores.append(float(utility[rows].mean()))
    return scores


def compare(name: str, vectors: np.ndarray, people: int) -> None:
    """Print the mean scores, and the leads over the average with their standard errors."""
    items = ps.Items.from_vectors(vectors)
    recipe = {"askable": 300, "goal": "best", "stop": ()}
    scores, averages = [], []
    for kind in KINDS:
        for seed in range(people):
            utility = utilities(vectors, kind, seed)
            averages.append(by_average(vectors, utility, seed))
            scores.append(by_search(items, utility, seed, **recipe))
    mean, average = np.mean(scores, axis=0), np.mean(averages, axis=0)
    leads = np.subtract(scores, averages)
    error = leads.std(axis=0, ddof=1) / np.sqrt(len(leads))
    cells = (f"{m:.2f} | {a:.2f} | {m - a:+.2f} ({e:.2f})" for m, a, e in zip(mean, average, error, strict=True))
    print(f"| {name} ({items.d} axes) | {' | '.join(cells)} |")
    by_kind = leads.reshape(len(KINDS), people, len(AT))[:, :, 1]
    errors = by_kind.std(axis=1, ddof=1) / np.sqrt(people)
    kinds = (f"{k} {x:+.2f} ({e:.2f})" for k, x, e in zip(KINDS, by_kind.mean(axis=1), errors, strict=True))
    print("  lead after 10 by kind:", ", ".join(kinds), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vectors", type=Path, nargs="*", default=[])
    parser.add_argument("--people", type=int, default=40)
    options = parser.parse_args()
    catalogues = {path.stem: np.load(path).astype(np.float64) for path in options.vectors}
    catalogues |= {"images": clusters(), "food": food_items(20).coordinates[::8], "ratings": learned()}
    columns = " | ".join(f"after {count} | average | lead" for count in AT)
    print(f"| catalogue | {columns} |\n" + "|---" * (1 + 3 * len(AT)) + "|")
    for name, vectors in catalogues.items():
        compare(name, vectors, options.people)


if __name__ == "__main__":
    main()
