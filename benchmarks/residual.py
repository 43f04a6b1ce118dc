"""Benefit of residual utilities and an unknown curvature for a search without a population.

    python benchmarks/residual.py simulated              # people whose taste the coordinates explain fully or partly
    python benchmarks/residual.py recorded               # music and food, the choosing half of the people
    python benchmarks/residual.py recorded --half reporting
    python benchmarks/residual.py cost                   # processor time of posterior and question after 40 answers

Simulated people are at a random item and answer with normalized noise. In half of the rows, their residual utilities
have a standard deviation of 1.5 logits. The pick is the item with the highest expected utility, and "near" the item
nearest to the estimate. Ranks in the person's own order of all items are given as a fraction of the catalogue.

Recorded people rated items. Only the coordinates come from a population of other people (d = 4), neither appeal nor
prior. 30 % of the pairs that a person decided are withheld before the first question, and predicted. Standard errors
are in brackets.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import time
from collections.abc import Callable

import numpy as np
from scipy.special import expit

import defaults
import food
import pairseek as ps
from pairseek.experiments.comparison.person import Person
from pairseek.pairs.context import SelectionContext
from pairseek.pairs.features import residual_unit, typical_response
from pairseek.search.defaults import default_response
from pairseek.search.recommending import expected_utilities

ASSUMED = {
    "the paper's model": lambda _: ps.Logistic(),
    "residual 1.5": lambda _: ps.Logistic(residual=1.5),
    "constant noise": lambda items: dataclasses.replace(default_response(items), curvature=1.0),
    "default": lambda _: None,
}
"""Responses by row label; the third is the default with the curvature of a distance."""
SIMULATED, RECORDED = (10, 20, 30), (0, 2, 5, 10, 20)


def ranks(items: ps.Items, person: np.ndarray, truth: ps.Logistic, residual: np.ndarray, assumed: Callable, seed: int):
    """Return the (answers, 3) ranks of the pick and the nearest item, and squared error in units of item variance."""
    search = ps.Search(items, response=assumed(items), rng=seed)
    unit = residual_unit(items.coordinates, truth)
    utility = -truth.constant * np.sum((items.coordinates - person) ** 2, axis=1) + unit * residual
    rng = np.random.default_rng([seed, 1])
    rows = []
    for count in range(1, max(SIMULATED) + 1):
        query = search.ask()
        i, j = items.index(query.left), items.index(query.right)
        slopes, offsets = truth.planes(items.coordinates[[i]], items.coordinates[[j]], np.zeros(1))
        logit = float(slopes[0] @ person + offsets[0] + residual[i] - residual[j])
        search.tell(query, winner=query.left if rng.random() < expit(logit) else query.right)
        if count in SIMULATED:
            point = search.estimate().point
            typical = typical_response(search.response, search.belief)
            picks = (
                int(np.argmax(expected_utilities(search.modelled_items, search.belief, typical))),
                int(np.argmin(np.sum((items.coordinates - point) ** 2, axis=1))),
            )
            error = float(np.sum((point - person) ** 2)) / items.spread**2
            rows.append([*(float(np.mean(utility > utility[pick])) for pick in picks), error])
    return rows


def simulated(people: int) -> None:
    catalogues = [(f"{food.name()}, d = {d}", food.items(d), food.response(d, "normalized")) for d in (4, 12)]
    for kind, d in (("normal", 3), ("clusters", 8)):
        items = defaults.synthetic(kind, d)
        catalogues.append((f"{kind}, d = {d}", items, defaults.typical(items)))
    for name, items, truth in catalogues:
        points = defaults.people(items, people)["at items"]
        for true in (0.0, 1.5):
            print(f"\n{name}: {items.n} items, {people} people, true residual {true:g}; pick, near, squared error")
            own = [true * np.random.default_rng([i, 7]).standard_normal(items.n) for i in range(people)]
            for label, assumed in ASSUMED.items():
                found = np.array(
                    [ranks(items, point, truth, own[i], assumed, i) for i, point in enumerate(points)], dtype=float
                )
                mean, error = found.mean(axis=0), found.std(axis=0) / np.sqrt(people)
                cells = "   ".join(
                    f"{n}: {mean[i, 0]:.3f} ({error[i, 0]:.3f}) {mean[i, 1]:.3f} ({error[i, 1]:.3f}) {mean[i, 2]:.2f}"
                    for i, n in enumerate(SIMULATED)
                )
                print(f"  {label:18s} {cells}", flush=True)


def predictions(items: ps.Items, person: Person, assumed: Callable, seed: int) -> list[list[float]]:
    """Return the (answers, 2) fraction of withheld pairs predicted correctly, and log loss."""
    pairs = person.askable
    search = ps.Search(
        items,
        response=assumed(items),
        candidates=ps.ListedPairs(tuple(map(tuple, pairs.tolist()))),
        rest=ps.Rest(pair=len(pairs)),
        rng=seed,
    )
    winners = {frozenset(pair): items.ids[pair[0]] for pair in pairs.tolist()}
    withheld = person.winner[person.withheld], person.loser[person.withheld]
    rows = []
    for count in range(max(RECORDED) + 1):
        if count in RECORDED:
            modelled = search.modelled_items
            context = SelectionContext.of(modelled, search.belief, typical_response(search.response, search.belief))
            chance = context.features(*withheld).outcome_probabilities()[0]
            right = float(np.mean(np.where(chance == 0.5, 0.5, chance > 0.5)))
            rows.append([right, float(-np.log(np.maximum(chance, 1e-4)).mean())])
        query = search.ask()
        search.tell(query, winner=winners[frozenset((items.index(query.left), items.index(query.right)))])
    return rows


def recorded(half: str, people: int) -> None:
    where = food.folder()
    if where is None:
        raise SystemExit("there are no ratings: set PAIRSEEK_DATA to the folder that has data/people")
    for name in ("gss_music", "food_world_cup"):
        choices = ps.Choices.read(where / "data" / "people" / name / "ratings.csv")
        chosen = [hashlib.sha256(str(one).encode()).digest()[0] % 2 == (half == "reporting") for one in choices.people]
        rows = np.random.default_rng(0).permutation(np.flatnonzero(chosen))
        population = ps.Population.fit(choices.only(np.sort(rows[120:])), dimension=4, residual=0.0)
        items = ps.Items(population.items.coordinates, ids=population.items.ids)
        persons = [(int(row), Person.of(choices, int(row))) for row in rows[:120]]
        usable = [(row, one) for row, one in persons if len(one.askable) >= 25 and one.withheld.any()][:people]
        print(f"\n{name}, {half} half: {len(usable)} people, {items.n} items; accuracy, log loss")
        reference = None
        for label, assumed in ASSUMED.items():
            found = np.array([predictions(items, one, assumed, row) for row, one in usable])
            reference = found if reference is None else reference
            error = (found - reference).std(axis=0) / np.sqrt(len(found))
            gain = (found - reference).mean(axis=0)
            cells = "   ".join(
                f"{n}: {found[:, i, 0].mean():.3f} [{gain[i, 0]:+.3f} ({error[i, 0]:.3f})] {found[:, i, 1].mean():.3f}"
                for i, n in enumerate(RECORDED)
            )
            print(f"  {label:18s} {cells}", flush=True)


def cost(people: int) -> None:
    """Print the processor time of posterior and next question after 40 answers, relative to the paper's model."""
    items, truth = food.items(4), food.response(4, "normalized")
    print(f"{food.name()}: {items.n} items, d = 4, {people} people, 40 answers each, one thread; milliseconds, ratio")
    ps.set_thread_count(1)
    reference = None
    for label, assumed in ASSUMED.items():
        spent = []
        for seed, point in enumerate(defaults.people(items, people)["at items"]):
            search = ps.Search(items, response=assumed(items), rng=seed)
            user = ps.SimulatedUser(point, truth, rng=seed)
            for _ in range(40):
                query = search.ask()
                search.tell(query, winner=user.answer(items, query))
            history = search.history
            for _ in range(5):
                again = search.continued(history)
                began = time.process_time()
                _ = again.belief
                told = time.process_time()
                again.ask()
                spent.append((told - began, time.process_time() - told))
        belief, question = (1000 * float(np.median(column)) for column in zip(*spent, strict=True))
        reference = reference or belief + question
        ratio = (belief + question) / reference
        print(
            f"  {label:18s} posterior {belief:.2f}, question {question:.2f}, both {belief + question:.2f}, {ratio:.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["simulated", "recorded", "cost"])
    parser.add_argument("--half", choices=["choosing", "reporting"], default="choosing")
    parser.add_argument("--people", type=int, default=60)
    options = parser.parse_args()
    if options.what == "cost":
        cost(min(options.people, 10))
    elif options.what == "simulated":
        simulated(options.people)
    else:
        recorded(options.half, options.people)


if __name__ == "__main__":
    main()
