"""Replays of recorded people, for accuracy after a few answers relative to random questions, and simulated people.

python benchmarks/people.py [--out FOLDER] [--jobs N] [--draw FOLDER]
python benchmarks/people.py --rated [POPULATIONS] [--levels 2] [--first SEED] [--journal FILE]
python benchmarks/people.py --speed
python benchmarks/people.py --held-out [PEOPLE]
python benchmarks/people.py --few [WORLDS] [--first SEED] [--journal FILE]
python benchmarks/people.py --decided

The ratings are those in ``data/people`` of the folder that PAIRSEEK_DATA names (or ``shared`` next to the checkout).
Held-out people belong to the half reserved for reporting (``data/people/SPLIT.md``). Interrupted runs resume.

--draw writes the figures of the docs. --rated measures what ratings with many and few levels teach about simulated
people. --speed measures time and memory of fits to simulated ratings, compared with fits to a tenth of the people and,
for the smaller one, to the pairs that the ratings imply. --held-out measures how well ratings and pairs predict other
people. --few tests the claims of searches that start with a population of 3, 5, 10 or 30 simulated people. --decided
compares fits to ratings and to the pairs that they decide, on the half of the people reserved for making choices.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import resource
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import log_expit

import pairseek as ps
from journal import outcomes
from pairseek.evaluate import EvaluationResults, evaluate
from pairseek.experiments.evaluation.figures import draw
from pairseek.people.population.data import PairData
from pairseek.people.population.e_step import beliefs

ROOT = Path(__file__).resolve().parents[1]
ANSWERS = (0, 5, 10, 20)
NAMES = {"gss_music": "Kinds of music", "food_world_cup": "National cuisines"}
# First seed of simulated populations and worlds.
FIRST_METHODS = 100
# Worlds of few people, and newcomers to each. The choices in `people/population/predictive.py` were made on the worlds
# with seeds 0 to 134; use --first 135 or more for reports.
WORLDS, NEWCOMERS = 96, 16
# Quadrature over a standard normal.
NODES, SHARES = hermegauss(15)[0], hermegauss(15)[1] / hermegauss(15)[1].sum()
# Data, dimension, and settings that differ from the defaults: no residual utilities, people who may answer that items
# are equal, and prediction of the pairs that a strategy did not ask.
RUNS: tuple[tuple[str, int, dict[str, Any]], ...] = (
    ("gss_music", 4, {}),
    ("food_world_cup", 4, {}),
    ("gss_music", 4, {"residual": 0.0}),
    ("food_world_cup", 4, {"residual": 0.0}),
    ("gss_music", 6, {}),
    ("gss_music", 4, {"ties": "tie"}),
    ("gss_music", 4, {"withhold": 0.0}),
)


def people() -> Path:
    """Return the folder of the ratings."""
    folder = Path(os.environ.get("PAIRSEEK_DATA", ROOT.parent / "shared")) / "data" / "people"
    if not folder.is_dir():
        sys.exit(f"there is no folder {folder}: set PAIRSEEK_DATA to the folder that has data/people")
    return folder


def reporting(person: str) -> bool:
    """Return whether a person belongs to the half for reporting results."""
    return hashlib.sha256(person.encode()).digest()[0] % 2 == 1


def show(results: EvaluationResults) -> None:
    """Print accuracy with standard errors over people, lead over random questions, log loss, gain and calibration."""
    print(f"  {'people':12} " + "  ".join(f"{row['people']:<13}" for row in results.summary()[: len(ANSWERS)]))
    for way in results.plan.labels:
        mean, error = results.curve(way, "accuracy")
        cells = "  ".join(f"{m:.3f} ± {e:.3f}" for m, e in zip(mean, error, strict=True))
        print(f"  {way:12} {cells}")
    leads = [results.difference(("InfoGain", "Random"), "accuracy", (count, count)) for count in ANSWERS]
    print(f"  {'lead':12} " + "  ".join(f"{m:.3f} ± {e:.3f}" for m, e in leads))
    share, error = results.pooled("InfoGain")
    cells = "  ".join(f"{m:.3f} ± {e:.3f}" for m, e in zip(share, error, strict=True))
    print(f"  InfoGain, over all pairs rather than by person: {cells}")
    gap, its = results.difference(("InfoGain", "Random"), "accuracy", (5, 10))
    print(f"  5 active answers minus 10 random ones, paired by person: {gap:+.4f} ± {its:.4f}")
    for way in ("InfoGain", "Random"):
        loss, gain = results.curve(way, "log_loss")[0], results.curve(way, "gain")[0]
        errors = [results.calibration_error(way, count) for count in ANSWERS]
        print(f"  {way}: log loss {loss.round(3)}, gain {gain.round(2)}, calibration error {np.round(errors, 3)}")


def rated_trial(task: tuple[int | None, bool, int]) -> tuple[Any, list[float]]:
    """Return the results of `measured` and `held_by_searches` for a simulated population of people who rate items.

    `held_by_searches` runs with the residual utilities that the fit infers, and without.
    """
    sys.path.insert(0, str(ROOT / "tests"))
    from helpers.populations import held_by_searches, measured
    from helpers.populations import rated as draw_people

    ps.set_thread_count(1)
    levels, squared, seed = task
    truth = draw_people(seed, levels=levels, squared=squared)
    population = ps.Population.fit(truth.choices, dimension=2)
    searches = [held_by_searches(truth, one, seed) for one in (population, population.with_residual(0.0))]
    return task, [*measured(truth, population, seed % FIRST_METHODS), *searches]


def rated(populations: int, levels: list[int], first: int, jobs: int, journal: Path | None) -> None:
    """Print the variance of people, and intervals and predictions for newcomers answering pairs, after fits to ratings.

    A level of 0 means continuous ratings.
    """
    kinds = list(product((count or None for count in levels), (True, False)))
    found: dict[tuple[int | None, bool], list[Any]] = {kind: [] for kind in kinds}
    tasks = [(*kind, seed) for seed in range(first, first + populations) for kind in kinds]
    for task, values in outcomes(rated_trial, tasks, jobs, journal):
        found[task[0], task[1]].append(values)
    print(f"{populations} simulated populations of 600 people who rate 18 items; newcomers answer 20 pairs")
    heads = ("variance/truth", "95 % coverage", "predicted - true", "of searches", "without residual")
    print(f"{'':34} " + " ".join(f"{head:16}" for head in heads))
    for (count, squared), values in found.items():
        mean, error = np.mean(values, axis=0), np.std(values, axis=0, ddof=1) / np.sqrt(populations)
        cells = "  ".join(f"{m:6.3f} ± {e:.3f} " for m, e in zip(mean, error, strict=True))
        name = f"{count or 'continuous'}{' levels' if count else ''}, {'with' if squared else 'without'} -k|w|²"
        print(f"{name:34} {cells}", flush=True)


def many_ratings(seed: int, people: int, n: int, per_person: int, d: int) -> ps.Choices:
    """Return ratings with five levels, in which some items are popular and some people rate a lot."""
    rng = np.random.default_rng(seed)
    points, appeal, deviation = rng.normal(size=(n, d)), 0.7 * rng.normal(size=n), np.linspace(1.0, 0.4, d)
    share = rng.gamma(1.0, size=n) + 0.05
    who = rng.normal(size=(people, d)) * deviation
    parts = []
    for person in range(people):
        count = min(n, max(5, int(rng.gamma(2.0, per_person / 2))))
        items = rng.choice(n, count, replace=False, p=share / share.sum())
        fall = 0.5 * np.sum((who[person] - points[items]) ** 2, axis=1) / np.sqrt(d)
        parts.append((np.full(count, person), items, appeal[items] - fall + rng.gumbel(size=count)))
    person, item, score = (np.concatenate(part) for part in zip(*parts, strict=True))
    level = np.searchsorted(np.quantile(score, [0.06, 0.17, 0.43, 0.78]), score)
    return ps.Choices.from_ratings(zip(person.tolist(), item.tolist(), level.tolist(), strict=True), ids=range(n))


def timed(name: str, choices: ps.Choices, d: int) -> tuple[ps.Population, float]:
    """Fit a population; print wall-clock time, processor time and peak memory so far."""
    begin, used = time.perf_counter(), time.process_time()
    population = ps.Population.fit(choices, dimension=d)
    seconds, used = time.perf_counter() - begin, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    rounds = population.provenance["rounds"]
    print(
        f"  {name:28} {seconds:7.1f} s ({used:.1f} s of processor time), {rounds} rounds, peak so far {peak:.2f} GB",
        flush=True,
    )
    return population, used


def speed() -> None:
    """Time fits of two sizes, with references in the same run."""
    for name, people, n, per_person, d in (
        ("the size of Jester", 5000, 140, 72, 4),
        ("a million ratings", 6000, 3700, 167, 8),
    ):
        begin = time.perf_counter()
        choices = many_ratings(1, people, n, per_person, d)
        assert choices.ratings is not None
        took = time.perf_counter() - begin
        print(f"{name}: {choices}, {len(choices.ratings):,} ratings, d = {d}, simulated in {took:.1f} s")
        # About as many ratings per person and per item.
        small = many_ratings(1, people // 10, max(n // 10, 140), per_person, d)
        _, tenth = timed("a tenth of the people", small, d)
        _, whole = timed("all", choices, d)
        print(f"  all / tenth: {whole / tenth:.1f}")
        if people == 5000:
            _, pairs = timed("pairs of a tenth", small.rows(np.ones(len(small), dtype=np.bool_)), d)
            print(f"  pairs / ratings, of a tenth: {pairs / tenth:.1f}")


def held_out(people: int) -> None:
    """Predict held-out people after fits to simulated ratings, and to the pairs that the ratings imply.

    The number of items per person is that of a million ratings. A tenth of the people are held out; they answer ten
    random pairs, and their other decided pairs are predicted.
    """
    choices = many_ratings(2, people, max(people * 37 // 60, 140), 167, 8)
    assert choices.ratings is not None
    new = np.random.default_rng(3).permutation(people) < max(people // 10, 100)
    others, own = (choices.only(np.flatnonzero(which)) for which in (~new, new))
    answers, hidden = withheld_pairs(own, np.random.default_rng(4))
    data = PairData.of(answers)
    print(f"{len(choices.ratings):,} ratings of {people} people, {len(choices.ids)} items, {len(hidden)} held out")
    found = {}
    for name, rows in (("ratings", others), ("pairs", others.rows(np.ones(len(others), dtype=np.bool_)))):
        population, _ = timed(name, rows, 8)
        base, factors = population.utilities()
        mean, covariance, _ = beliefs(data, base, factors, np.asarray(population.covariance))
        scores = []
        for row, (winner, loser, sure) in enumerate(hidden):
            delta = (factors[winner] - factors[loser])[sure]
            logit = (base[winner] - base[loser])[sure] + delta @ mean[row]
            spread = np.sqrt(np.einsum("ni,ij,nj->n", delta, covariance[row], delta))
            z = logit[:, None] + spread[:, None] * NODES
            scores.append(((logit > 0.0).mean(), np.log(np.exp(log_expit(z)) @ SHARES).mean()))
        found[name] = np.array(scores)
        print(f"    accuracy and log-likelihood of a pair {found[name].mean(axis=0).round(4)}", flush=True)
    lead = found["ratings"] - found["pairs"]
    mean, error = lead.mean(axis=0), lead.std(axis=0, ddof=1) / np.sqrt(len(lead))
    print(f"  ratings minus pairs: accuracy {mean[0]:+.4f} ± {error[0]:.4f}, log {mean[1]:+.4f} ± {error[1]:.4f}")


def few_trial(task: tuple[str, str, int, int, int]) -> tuple[Any, list[list[float]]]:
    """Return the mean claimed probability and fraction correct after 10 and 20 answers, over newcomers to a world."""
    sys.path.insert(0, str(ROOT / "tests"))
    from helpers import newcomers

    ps.set_thread_count(1)
    kind, noise, teachers, seed, count = task
    world = newcomers.world(kind, noise, seed)
    population = newcomers.learned(world, teachers, seed) if teachers else None
    return task, newcomers.claims(world, population, seed, count).mean(axis=0).tolist()


def few(worlds: int, first: int, jobs: int, journal: Path | None) -> None:
    """Print the claimed probability of the top pick, and the fraction correct, for newcomers to small populations.

    Standard errors are over worlds, each with its own items, population and newcomers.
    """
    sys.path.insert(0, str(ROOT / "tests"))
    from helpers import newcomers

    cells = tuple(product(newcomers.KINDS, newcomers.NOISES, (0, 3, 5, 10, 30)))
    tasks = [(*cell, seed, NEWCOMERS) for seed in range(first, first + worlds) for cell in cells]
    found: dict[tuple[str, str, int], list[Any]] = {cell: [] for cell in cells}
    for task, claims in outcomes(few_trial, tasks, jobs, journal):
        found[task[0], task[1], task[2]].append(claims)
    print(f"{worlds} worlds, 20 answers per person of a population, {NEWCOMERS} newcomers per world")
    for (kind, noise, teachers), out in found.items():
        mean, gap = np.mean(out, axis=0), np.diff(out, axis=2)[:, :, 0]
        error = gap.std(axis=0, ddof=1) / np.sqrt(worlds)
        words = "  ".join(
            f"after {count}: claimed {mean[row, 0]:.3f}, correct {mean[row, 1]:.3f}, "
            f"excess {-gap[:, row].mean():+.3f} ± {error[row]:.3f}"
            for row, count in enumerate((10, 20))
        )
        print(f"  {kind:11} {noise:10} {teachers:2} people  {words}", flush=True)


def decided(name: str) -> None:
    """Print the log-likelihood of withheld pairs after ten recorded answers, relative to a fit to decided pairs.

    A coin decides ties among the answers. A withheld tie counts as half an answer for each item. The last rows use that
    a decided pair is not a tie: its odds are f(z - t) to f(-z - t), with half-width t.
    """
    choices = ps.Choices.read(people() / name / "ratings.csv")
    choices = choices.only([row for row, person in enumerate(choices.people) if not reporting(person)])
    rng = np.random.default_rng(0)
    fold = rng.permutation(len(choices.people)) % 2
    found: dict[str, list[tuple[float, float]]] = {}
    for number in (0, 1):
        others, own = (
            choices.only(np.flatnonzero(fold != number)),
            choices.only(np.flatnonzero(fold == number)).usable(),
        )
        fits = {
            "pairs": ps.Population.fit(others.rows(np.ones(len(others), dtype=np.bool_)), dimension=4, residual=0.0),
            "ratings": ps.Population.fit(others, dimension=4, residual=0.0),
        }
        answers, hidden = withheld_pairs(own, np.random.default_rng(1))
        data = PairData.of(answers)
        for fit, population in fits.items():
            base, factors = population.utilities()
            mean, covariance, _ = beliefs(data, base, factors, np.asarray(population.covariance))
            for row, (winner, loser, sure) in enumerate(hidden):
                delta = factors[winner] - factors[loser]
                logit = base[winner] - base[loser] + delta @ mean[row]
                spread = np.sqrt(np.einsum("ni,ij,nj->n", delta, covariance[row], delta))
                z = logit[:, None] + spread[:, None] * NODES
                for width in (0.0, 0.5, 1.0, 1.5):
                    odds = np.exp(log_expit(z - width) - log_expit(-z - width))
                    value, other = np.log(odds / (1 + odds) @ SHARES), np.log(1 / (1 + odds) @ SHARES)
                    each = np.where(sure, value, 0.5 * (value + other))
                    found.setdefault(f"{fit}, t = {width}", []).append((value[sure].mean(), each.mean()))
    print(f"{name}: {len(found['pairs, t = 0.0'])} people; log-likelihood minus that of the fit to pairs")
    for way, values in found.items():
        lead = np.array(values) - np.array(found["pairs, t = 0.0"])
        mean, error = lead.mean(axis=0), lead.std(axis=0, ddof=1) / np.sqrt(len(lead))
        print(f"  {way:18} decided {mean[0]:+.4f} ± {error[0]:.4f}, all {mean[1]:+.4f} ± {error[1]:.4f}", flush=True)


def withheld_pairs(own: ps.Choices, rng: np.random.Generator) -> tuple[ps.Choices, list[tuple[Any, Any, Any]]]:
    """Return ten random answers of each person with six or more ratings, and (winner, loser, decided) of the rest."""
    assert own.ratings is not None
    rows, hidden = [], []
    for person in range(len(own.people)):
        mine = own.ratings.person == person
        item, value = own.ratings.item[mine], own.ratings.value[mine]
        order = rng.permutation(len(item) * (len(item) - 1) // 2)
        first, second = (part[order] for part in np.triu_indices(len(item), 1))
        sure = value[first] != value[second]
        up = np.where(sure, value[first] > value[second], rng.random(len(first)) < 0.5)
        winner, loser = item[np.where(up, first, second)], item[np.where(up, second, first)]
        if len(item) >= 6 and sure[10:].any():
            rows += [(person, own.ids[a], own.ids[b]) for a, b in zip(winner[:10], loser[:10], strict=True)]
            hidden.append((winner[10:], loser[10:], sure[10:]))
    return ps.Choices.from_pairs(rows, ids=own.ids), hidden


def main() -> None:
    """Run the parts that the options select."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("pairseek-results/people"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--draw", type=Path)
    parser.add_argument("--rated", type=int, nargs="?", const=16, metavar="POPULATIONS")
    parser.add_argument("--few", type=int, nargs="?", const=WORLDS, metavar="WORLDS")
    parser.add_argument(
        "--first", type=int, default=FIRST_METHODS, metavar="SEED", help="first seed of --few and --rated"
    )
    parser.add_argument("--levels", type=int, nargs="+", default=[0, 5, 3, 2], help="levels of --rated; 0: continuous")
    parser.add_argument("--journal", type=Path, help="file of outcomes of --few or --rated, to resume from")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--held-out", type=int, nargs="?", const=1200, metavar="PEOPLE")
    parser.add_argument("--decided", action="store_true")
    given = parser.parse_args()
    if not apart(given):
        replay(given.out, given.jobs, given.draw)


def apart(given: argparse.Namespace) -> bool:
    """Run the selected parts other than replays, and return whether there were any."""
    if given.few is not None:
        few(given.few, given.first, given.jobs, given.journal)
    if given.decided:
        for name in NAMES:
            decided(name)
    if given.rated is not None:
        rated(given.rated, given.levels, given.first, given.jobs, given.journal)
    if given.speed:
        speed()
    if given.held_out is not None:
        held_out(given.held_out)
    return given.speed or given.decided or any(x is not None for x in (given.few, given.rated, given.held_out))


def replay(out: Path, jobs: int, target: Path | None) -> None:
    """Evaluate recorded people, and draw the figures of the docs if a folder is given."""
    for name, d, settings in RUNS:
        choices = ps.Choices.read(people() / name / "ratings.csv")
        words = "".join(f", {key} = {value}" for key, value in settings.items())
        print(f"\n{name}, d = {d}{words}: {choices}, after {', '.join(map(str, ANSWERS))} answers", flush=True)
        folder = out / "-".join([name, str(d), *(f"{key}-{value}" for key, value in settings.items())])
        among = [person for person in choices.people if reporting(person)]
        results = evaluate(choices, folder, learn=d, answers=ANSWERS, among=among, jobs=jobs, **settings)
        show(results)
        for picture in draw(results, folder, title=f"{NAMES[name]}, {d} dimensions learned"):
            if target is not None and not settings:
                picture_file = target / f"people-{name.replace('_', '-')}-{d}.png"
                picture_file.write_bytes(picture.paths[0].read_bytes())


if __name__ == "__main__":
    main()
