"""Group rankings and segments compared with the truth, for simulated groups and ratings by real people.

python benchmarks/ranking.py --simulated 20     # coverage and width of intervals for ranks
python benchmarks/ranking.py --segments 10      # number of segments found
python benchmarks/ranking.py --bound 60         # what could be found if everyone's point were known
python benchmarks/ranking.py --clickers 10      # effect of random clickers
python benchmarks/ranking.py --people 20        # Kendall's tau compared with counting wins
python benchmarks/ranking.py --speed            # 200 items, 1000 people
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import os
import time
from pathlib import Path

import numpy as np
from scipy.special import logsumexp
from scipy.stats import kendalltau

import pairseek as ps
from pairseek.core.types import FloatArray
from pairseek.people.ranking import find_segments
from pairseek.people.ranking import segments as mixtures

# Noise constant, and standard deviation of people within a segment or in a group without segments.
_K, _WITHIN, _ALONE = 2.0, 0.6, 0.8
# Precision of a known point, in units in which people have variance 1.
_KNOWN = 400.0
# Number of rotations of the segments' centres over which a likelihood ratio is averaged.
_ROTATIONS = 12


def tastes(
    rng: np.random.Generator,
    n: int,
    people: int,
    segments: int,
    *,
    apart: float = 2.0,
    clickers: float = 0.0,
    appeal: float = 0.3,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return coordinates of items, everybody's utilities, and the true mean utilities of the population.

    The distance between centres is `apart` times the standard deviation within a segment.
    """
    points, own = rng.normal(size=(n, 2)), appeal * rng.normal(size=n)
    centres = 0.5 * rng.normal(size=(1, 2))
    spread = _ALONE
    if segments > 1:
        turn = rng.uniform(0.0, 2.0 * np.pi) + 2.0 * np.pi * np.arange(segments) / segments
        reach = apart * _WITHIN / (2.0 * np.sin(np.pi / segments))
        centres, spread = centres + reach * np.column_stack([np.cos(turn), np.sin(turn)]), _WITHIN
    users = centres[rng.integers(len(centres), size=people)] + spread * rng.normal(size=(people, 2))
    utility = own - _K * np.sum((points - users[:, None]) ** 2, axis=2)
    utility[: round(clickers * people)] = 0.0
    return points, utility, own - _K * (np.sum(points**2, axis=1) - 2.0 * points @ centres.mean(axis=0))


def is_won(utility: FloatArray, first: int, second: int, rng: np.random.Generator) -> bool:
    """Draw whether a person with these utilities prefers the first item."""
    return bool(rng.uniform() < 1.0 / (1.0 + np.exp(utility[second] - utility[first])))


def group(
    seed: int, n: int, people: int, segments: int, *, answers: int = 15, **options: float
) -> tuple[ps.Items, ps.Choices, FloatArray]:
    """Return items, choices about random pairs, and the true mean utilities; ``options`` are those of `tastes`."""
    rng = np.random.default_rng(seed)
    points, utility, truth = tastes(rng, n, people, segments, **options)
    rows = []
    for person in range(people):
        for _ in range(answers):
            first, second = (int(row) for row in rng.choice(n, 2, replace=False))
            rows.append(
                (person, *((first, second) if is_won(utility[person], first, second, rng) else (second, first)))
            )
    items = ps.Items(points)
    return items, ps.Choices.from_pairs(rows, ids=items.ids), truth


def simulated(worlds: int) -> None:
    """Print the coverage of 90 % intervals for ranks, and their width as a fraction of all ranks."""
    for given in (True, False):
        for n in (20, 200):
            for segments in (1, 3):
                for people in (5, 20, 100):
                    held, width = [], []
                    for seed in range(worlds):
                        items, choices, truth = group(1000 * seed + people, n, people, segments)
                        found = ps.rank(choices, items if given else None)
                        true = {int(item): place for place, item in enumerate(np.argsort(-truth), 1)}
                        held.append(np.mean([one.rank_low <= true[int(one.id)] <= one.rank_high for one in found]))
                        width.append(np.mean([one.rank_high - one.rank_low + 1 for one in found]) / n)
                    what = "coordinates" if given else "none"
                    print(
                        f"{what:12} {n:4} items {segments} segments {people:4} people: coverage {np.mean(held):.3f} "
                        f"± {np.std(held) / np.sqrt(worlds):.3f}, width {np.mean(width):.2f}",
                        flush=True,
                    )


def segmented(worlds: int) -> None:
    """Print the numbers of segments found among 100 people."""
    for segments, apart in ((1, 0.0), (3, 2.0), (3, 3.0), (3, 4.0)):
        found = [
            len(find_segments(*group(31 * seed + 500, 20, 100, segments, apart=apart)[1::-1])) for seed in range(worlds)
        ]
        print(
            f"{segments} segments {apart} apart: {found}, correct in {np.mean(np.array(found) == segments):.2f}",
            flush=True,
        )


def bounded(worlds: int) -> None:
    """Print the power to detect three segments among 100 people with known points, at a false alarm rate of one in ten.

    The first test is the likelihood ratio of the true mixture to the Gaussian with the same moments, which is the most
    powerful. The second averages it over all rotations of the centres, which is the most powerful test that does not
    know their directions. The third uses mixtures fitted to the points.
    """
    for apart in (2.0, 2.5, 3.0, 4.0):
        turn, rng = 2.0 * np.pi * np.arange(3) / 3, np.random.default_rng(1)
        centres = apart / np.sqrt(3.0) * np.column_stack([np.cos(turn), np.sin(turn)])
        deviation = float(np.sqrt(1.0 + apart**2 / 6.0))
        together, divided = (
            place + rng.normal(size=(20_000, 100, 2)) * scale
            for place, scale in ((0.0, deviation), (centres[rng.integers(3, size=(20_000, 100))], 1.0))
        )
        one, three = (_true_ratios(points, centres, deviation) for points in (together, divided))
        known = np.mean(three > np.quantile(one, 0.9))
        turned = [_rotated_ratios(points, centres, deviation) for points in (together, divided)]
        rotated = np.mean(turned[1] > np.quantile(turned[0], 0.9))
        fitted = [_fitted_ratios(points[:worlds] / deviation) for points in (together, divided)]
        estimated = np.mean(fitted[1] > np.quantile(fitted[0], 0.9))
        print(
            f"{apart} apart: {three.mean() / 100:.3f} nats per person, found in {known:.2f} with the true centres, in "
            f"{rotated:.2f} with unknown directions, in {estimated:.2f} with estimated centres",
            flush=True,
        )


def _true_ratios(points: FloatArray, centres: FloatArray, deviation: float) -> FloatArray:
    """Return the log-likelihood of the mixture minus that of the Gaussian for (worlds, people, 2) points."""
    within = np.sum((points[..., None, :] - centres) ** 2, axis=-1)
    together = -0.5 * np.sum(points**2, axis=-1) / deviation**2 - 2.0 * np.log(deviation)
    return np.asarray(np.sum(logsumexp(-0.5 * within, axis=-1) - np.log(3.0) - together, axis=1))


def _rotated_ratios(points: FloatArray, centres: FloatArray, deviation: float) -> FloatArray:
    """Return the log of the mean likelihood ratio over rotations of the centres, up to a third of a turn."""
    ratios = []
    for turn in 2.0 * np.pi / 3.0 * np.arange(_ROTATIONS) / _ROTATIONS:
        rotation = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
        ratios.append(_true_ratios(points, centres @ rotation, deviation))
    return np.asarray(logsumexp(ratios, axis=0) - np.log(_ROTATIONS))


def _fitted_ratios(points: FloatArray) -> FloatArray:
    """Return the log-likelihood of three segments minus that of one, each fitted to (worlds, people, 2) points."""
    precision = np.broadcast_to(_KNOWN * np.eye(2), (points.shape[1], 2, 2)).copy()
    out = []
    for world in points:
        data = mixtures._Likelihoods(_KNOWN * world, precision, np.ones(len(world)))
        rng = np.random.default_rng(0)
        one, three = (float(mixtures._fit(data, count, rng).scores(data).sum()) for count in (1, 3))
        out.append(three - one)
    return np.array(out)


def clicked(worlds: int) -> None:
    """Print the effect of 20 % random clickers on the five best items, in units of the intervals."""
    for people in (20, 100):
        inside, moved = [], []
        for seed in range(worlds):
            items, choices, _ = group(77 * seed + 9, 20, people, 1)
            before = ps.rank(choices, items)
            after = ps.rank(group(77 * seed + 9, 20, people, 1, clickers=0.2)[1], items)
            for one in before.items[:5]:
                inside.append(one.rank_low <= after[one.id].rank <= one.rank_high)
                moved.append(abs(after[one.id].rank - one.rank) / (one.rank_high - one.rank_low + 1))
        print(
            f"{people} people: within the interval {np.mean(inside):.2f}, moved by {np.mean(moved):.2f} of it",
            flush=True,
        )


def recorded(draws: int) -> None:
    """Print Kendall's tau between rankings from 15 answers of 100 people and everyone's mean ratings."""
    folder = Path(os.environ.get("PAIRSEEK_DATA", "../shared")) / "data" / "people"
    for name in ("gss_music", "food_world_cup"):
        ratings: dict[str, dict[str, float]] = {}
        with (folder / name / "ratings.csv").open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                # The half of the people reserved for reporting.
                if hashlib.sha256(row["person"].encode()).digest()[0] % 2:
                    ratings.setdefault(row["person"], {})[row["item"]] = float(row["rating"])
        ids = sorted({item for own in ratings.values() for item in own})
        truth = [np.mean([own[item] for own in ratings.values() if item in own]) for item in ids]
        taus: list[tuple[float, float]] = []
        for seed in range(draws):
            rng = np.random.default_rng(seed)
            usable = [person for person, own in ratings.items() if len(own) > 5]
            rows, wins, shown = [], np.zeros(len(ids)), np.zeros(len(ids))
            for person in rng.choice(usable, 100, replace=False):
                own = ratings[str(person)]
                for _ in range(15):
                    first, second = rng.choice(list(own), 2, replace=False)
                    better = own[first] - own[second] or rng.choice([-1.0, 1.0])
                    pair = (str(first), str(second)) if better > 0 else (str(second), str(first))
                    rows.append((str(person), *pair))
                    wins[ids.index(pair[0])] += 1
                    shown[[ids.index(one) for one in pair]] += 1
            found = ps.rank(ps.Choices.from_pairs(rows, ids=ids))
            order = [-found[item].rank for item in ids]
            counted = wins / np.maximum(shown, 1)
            taus.append((kendalltau(order, truth).statistic, kendalltau(counted, truth).statistic))
        table = np.array(taus)
        low, high = np.quantile(table, [0.05, 0.95], axis=0)
        lead = table[:, 0] - table[:, 1]
        print(
            f"{name}: tau {table[:, 0].mean():.3f} ({low[0]:.3f} to {high[0]:.3f}), counting wins "
            f"{table[:, 1].mean():.3f} ({low[1]:.3f} to {high[1]:.3f}), lead {lead.mean():+.3f} ± "
            f"{lead.std(ddof=1) / np.sqrt(draws):.3f}, {len(ratings)} people rated",
            flush=True,
        )


def timed() -> None:
    """Print the time of a ranking of 200 items by 1000 people."""
    items, choices, _ = group(1, 200, 1000, 1)
    ps.rank(*group(2, 20, 10, 1)[1::-1])
    ps.rank(group(2, 20, 10, 1)[1])
    for known in (items, None):
        began, used = time.perf_counter(), time.process_time()
        ps.rank(choices, known)
        what = "with" if known is not None else "without"
        wall, cpu = time.perf_counter() - began, time.process_time() - used
        print(f"{what} coordinates: {wall:.1f} s, {cpu:.1f} s of processor time", flush=True)


def main() -> None:
    """Run the parts that the options select."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("simulated", "segments", "bound", "clickers", "people"):
        parser.add_argument(f"--{name}", type=int, metavar="COUNT")
    parser.add_argument("--speed", action="store_true")
    given = parser.parse_args()
    for count, run in (
        (given.simulated, simulated),
        (given.segments, segmented),
        (given.bound, bounded),
        (given.clickers, clicked),
        (given.people, recorded),
    ):
        if count:
            run(count)
    if given.speed:
        timed()


if __name__ == "__main__":
    main()
