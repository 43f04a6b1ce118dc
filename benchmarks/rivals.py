"""Recorded people asked by pairseek and by what else one might use: predictions, picks, lists and seconds.

python benchmarks/rivals.py [--people N] [--half reporting|choosing] [--only A,B] [--data NAME] [--out FOLDER]
python benchmarks/rivals.py --report [--out FOLDER] [--draw FOLDER] [--write PAGE]

Needs the extra ``rivals`` (``pip install -e '.[cli,plots,rivals]'``, best in an environment of its own) and the ratings
of ``data/people`` in the folder that PAIRSEEK_DATA names. Everybody may ask the same pairs, gets the same answers, and
predicts the same withheld pairs: the protocol of `pairseek evaluate`, docs/benchmarks/rivals.md.
The held-out people belong to the reporting half (``data/people/SPLIT.md``), unless --half says otherwise. A run
goes on where it was; --report prints the tables of what is there, --draw the figure.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scipy.special import expit, ndtr

import pairseek as ps
from pairseek.experiments.comparison.picks import pick_measures
from pairseek.experiments.evaluation.replay import Person, Popularity, plain_items
from pairseek.pairs.sources import Candidates
from pairseek.pairs.strategies.baselines.nearest import nearest_pairs
from pairseek.search.recommending import expected_utilities

ROOT = Path(__file__).resolve().parents[1]
ANSWERS = (0, 2, 5, 10, 20)
NAMES = {"gss_music": "Music", "food_world_cup": "Food"}
DIMENSION = 4
MEASURES = ("accuracy", "log_loss", "regret", "top_3", "top_5", "liked", "seconds")
# Measures and the goal of the search that is made for each; regret is better when lower.
MATCHING = {"accuracy": "taste", "regret": "best", "top_3": "list"}
LEAST = 1e-4
BEGIN, END = "<!-- tables -->", "<!-- end of the tables -->"


@dataclass(frozen=True, eq=False)
class World:
    """What is known before the first question: the other people, and vectors learned from them."""

    population: ps.Population
    items: ps.Items
    popularity: Popularity

    @property
    def vectors(self) -> Any:
        """(n, d) coordinates of the items."""
        return np.asarray(self.items.coordinates)


class Session(Protocol):
    """One person's session with a contender."""

    def choose(self, pairs: Any) -> int:
        """Return the row of the (m, 2) pairs to ask."""
        ...

    def tell(self, winner: int, loser: int) -> None:
        """Take an answer."""
        ...

    def utilities(self) -> Any:
        """Return the (n,) scores by which items are recommended."""
        ...

    def chances(self, winner: Any, loser: Any) -> Any | None:
        """Return the (m,) probabilities of outcomes; None for a contender without a model of answers."""
        ...


@dataclass
class Scores:
    """Random questions, and scores that follow from the answers by a function."""

    rng: np.random.Generator
    score: Callable[[list[tuple[int, int]]], Any]
    logit: bool = False
    answers: list[tuple[int, int]] = field(default_factory=list)

    def choose(self, pairs: Any) -> int:
        return int(self.rng.integers(len(pairs)))

    def tell(self, winner: int, loser: int) -> None:
        self.answers.append((winner, loser))

    def utilities(self) -> Any:
        return np.asarray(self.score(self.answers), dtype=float)

    def chances(self, winner: Any, loser: Any) -> Any | None:
        if not self.logit:
            return None
        utility = self.utilities()
        return expit(utility[winner] - utility[loser])


class Pairseek:
    """A search of pairseek; without a population it knows the vectors alone."""

    def __init__(self, world: World, pairs: Any, seed: int, *, population: bool, **parts: Any) -> None:
        residual = parts.pop("residual", None)
        if population:
            known = world.population if residual is None else world.population.with_residual(residual)
            parts["population"], self.items = known, known.items
        else:
            self.items = world.items
            if residual is not None:
                parts["response"] = ps.Logistic(residual=residual)
        listed = ps.ListedPairs(tuple(map(tuple, pairs.tolist())))
        self.search = ps.Search(self.items, candidates=listed, rest=ps.Rest(pair=len(pairs)), rng=seed, **parts)

    def choose(self, pairs: Any) -> int:
        self.query = self.search.ask()
        asked = {self.items.index(self.query.left), self.items.index(self.query.right)}
        return next(row for row, pair in enumerate(pairs.tolist()) if set(pair) == asked)

    def tell(self, winner: int, loser: int) -> None:  # noqa: ARG002
        self.search.tell(self.query, winner=self.items.ids[winner])
        _ = self.search.belief

    def utilities(self) -> Any:
        return expected_utilities(self.search.modelled_items, self.search.belief, self.search.response)

    def chances(self, winner: Any, loser: Any) -> Any | None:
        items, belief = self.search.modelled_items, self.search.belief
        pairs = Candidates.of(
            items.coordinates, winner, loser, belief=belief, response=self.search.response, appeal=items.appeal
        )
        return pairs.sampled(belief)[0]


class BoTorch:
    """`PairwiseGP` with its own kernel and probit likelihood, refitted after each answer, inputs scaled to [0, 1]."""

    def __init__(self, world: World, rng: np.random.Generator, how: str) -> None:
        import torch

        self.torch, self.rng, self.how = torch, rng, how
        torch.set_num_threads(1)
        torch.manual_seed(int(rng.integers(2**31)))
        self.vectors = torch.tensor(world.vectors, dtype=torch.float64)
        self.answers: list[tuple[int, int]] = []
        self.model: Any = None

    def fitted(self) -> Any:
        if self.model is None:
            from botorch.fit import fit_gpytorch_mll
            from botorch.models.pairwise_gp import PairwiseGP, PairwiseLaplaceMarginalLogLikelihood
            from botorch.models.transforms.input import Normalize

            shown = sorted({item for answer in self.answers for item in answer})
            place = {item: row for row, item in enumerate(shown)}
            bounds = self.torch.stack([self.vectors.min(dim=0).values, self.vectors.max(dim=0).values])
            comparisons = self.torch.tensor([[place[a], place[b]] for a, b in self.answers], dtype=self.torch.long)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.model = PairwiseGP(
                    self.vectors[shown],
                    comparisons,
                    input_transform=Normalize(d=self.vectors.shape[1], bounds=bounds),
                )
                fit_gpytorch_mll(PairwiseLaplaceMarginalLogLikelihood(self.model.likelihood, self.model))
        return self.model

    def choose(self, pairs: Any) -> int:
        # The tutorials begin with random comparisons, too.
        if self.how == "random" or not self.answers:
            return int(self.rng.integers(len(pairs)))
        from botorch.acquisition import preference

        model = self.fitted()
        make = {
            "EUBO": preference.AnalyticExpectedUtilityOfBestOption,
            "BALD": preference.PairwiseBayesianActiveLearningByDisagreement,
        }[self.how]
        with self.torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return int(make(pref_model=model)(self.vectors[self.torch.tensor(pairs)]).argmax())

    def tell(self, winner: int, loser: int) -> None:
        self.answers.append((winner, loser))
        self.model = None

    def posterior(self) -> tuple[Any, Any]:
        if not self.answers:
            return np.zeros(len(self.vectors)), np.eye(len(self.vectors))
        model = self.fitted()
        with self.torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = model.posterior(self.vectors)
            return found.mean.squeeze(-1).numpy(), found.covariance_matrix.numpy()

    def utilities(self) -> Any:
        return self.posterior()[0]

    def chances(self, winner: Any, loser: Any) -> Any | None:
        mean, covariance = self.posterior()
        own = np.diag(covariance)
        variance = own[winner] + own[loser] - 2.0 * covariance[winner, loser]
        # Its likelihood is Φ((u_p - u_q)/sqrt(2)).
        return ndtr((mean[winner] - mean[loser]) / np.sqrt(2.0 + np.maximum(variance, 0.0)))


class GaussSearch:
    """`ps.GaussSearch`, held to the pairs that can be asked: the first of its pairs that is one of them."""

    def __init__(self, world: World, rng: np.random.Generator) -> None:
        self.items, self.rng = world.items, rng
        search = ps.Search(self.items, strategy=ps.GaussSearch(), rng=0)
        self.strategy: Any = search.strategy
        self.events: list[ps.Event] = []

    def choose(self, pairs: Any) -> int:
        rows = {frozenset(pair): row for row, pair in enumerate(pairs.tolist())}
        belief = self.strategy.belief(self.items, self.events)
        for pair in nearest_pairs(self.items, *belief.mirrored(500, self.rng)):
            if frozenset(pair) in rows:
                return rows[frozenset(pair)]
        return int(self.rng.integers(len(pairs)))

    def tell(self, winner: int, loser: int) -> None:
        names = self.items.ids[winner], self.items.ids[loser]
        self.events.append(ps.Event(*names, "answer", names[0]))

    def utilities(self) -> Any:
        mean = self.strategy.belief(self.items, self.events).mean
        return -np.sum((self.items.coordinates - mean) ** 2, axis=1)

    def chances(self, winner: Any, loser: Any) -> Any | None:  # noqa: ARG002
        return None


def unit(vectors: Any) -> Any:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


def average(world: World) -> Callable[[list[tuple[int, int]]], Any]:
    """Cosine similarity with the mean of the vectors of the items that won."""
    vectors = unit(world.vectors)

    def score(answers: list[tuple[int, int]]) -> Any:
        return vectors @ vectors[[winner for winner, _ in answers]].mean(axis=0) if answers else np.zeros(len(vectors))

    return score


def qdrant(world: World, how: str) -> Callable[[list[tuple[int, int]]], Any]:
    """Scores of Qdrant's recommend (average vector, best score) and context queries, by its client in memory."""
    from qdrant_client import QdrantClient, models

    n = len(world.vectors)
    client = QdrantClient(":memory:")
    size = models.VectorParams(size=world.vectors.shape[1], distance=models.Distance.COSINE)
    client.create_collection("items", vectors_config=size)
    points = [models.PointStruct(id=row, vector=vector) for row, vector in enumerate(world.vectors.tolist())]
    client.upsert("items", points)
    # Queries by vector, because points that are examples by id are left out of the results.
    vectors = world.vectors.tolist()

    def score(answers: list[tuple[int, int]]) -> Any:
        if not answers:
            return np.zeros(n)
        query: Any
        if how == "context":
            pairs = [models.ContextPair(positive=vectors[a], negative=vectors[b]) for a, b in answers]
            query = models.ContextQuery(context=pairs)
        else:
            strategy = {"average": "average_vector", "best": "best_score"}[how]
            query = models.RecommendQuery(
                recommend=models.RecommendInput(
                    positive=[vectors[a] for a, _ in answers],
                    negative=[vectors[b] for _, b in answers],
                    strategy=models.RecommendStrategy(strategy),
                )
            )
        out = np.zeros(n)
        for point in client.query_points("items", query=query, limit=n).points:
            out[point.id] = point.score
        return out

    return score


def choix_lsr(world: World) -> Callable[[list[tuple[int, int]]], Any]:
    """Bradley-Terry by iterative Luce spectral ranking, with the regularisation that sparse data need."""
    import choix

    n = len(world.vectors)
    return lambda answers: choix.ilsr_pairwise(n, answers, alpha=0.01) if answers else np.zeros(n)


def choix_ep(world: World) -> Callable[[list[tuple[int, int]]], Any]:
    """Bradley-Terry with a standard normal prior, by expectation propagation."""
    import choix

    n = len(world.vectors)
    return lambda answers: choix.ep_pairwise(n, answers, 1.0)[0] if answers else np.zeros(n)


GOALS = {"taste": ps.InfoGain(), "best": ps.EUBO()} | ({"list": ps.Shortlist()} if hasattr(ps, "Shortlist") else {})


def contenders() -> dict[str, Callable[[World, Any, np.random.Generator], Session]]:
    """Return functions that begin a session with a person, given what is known, the pairs, and a generator."""
    found: dict[str, Callable[[World, Any, np.random.Generator], Session]] = {}

    def pairseek(label: str, **parts: Any) -> None:
        found[label] = lambda world, pairs, rng: Pairseek(world, pairs, int(rng.integers(2**31)), **parts)

    for population in (True, False):
        known = "population" if population else "alone"
        for goal, strategy in GOALS.items():
            pairseek(f"pairseek {goal}, {known}", population=population, strategy=strategy)
        pairseek(f"pairseek random, {known}", population=population, strategy=ps.Random())
        for goal, strategy in GOALS.items():
            pairseek(f"pairseek {goal}, {known}, no residual", population=population, strategy=strategy, residual=0.0)
    for how in ("EUBO", "BALD", "random"):
        found[f"BoTorch {how}"] = lambda world, pairs, rng, how=how: BoTorch(world, rng, how)  # type: ignore[misc] # noqa: ARG005
    scores: dict[str, tuple[Callable[[World], Callable[[list[tuple[int, int]]], Any]], bool]] = {
        "choix I-LSR": (choix_lsr, True),
        "choix EP": (choix_ep, True),
        "average of liked": (average, False),
        "Qdrant average": (lambda world: qdrant(world, "average"), False),
        "Qdrant best score": (lambda world: qdrant(world, "best"), False),
        "Qdrant context": (lambda world: qdrant(world, "context"), False),
        "popularity": (lambda world: lambda answers: world.popularity.score, True),  # noqa: ARG005
    }
    found["GaussSearch"] = lambda world, pairs, rng: GaussSearch(world, rng)  # noqa: ARG005
    for label, (make, logit) in scores.items():
        found[label] = lambda world, pairs, rng, make=make, logit=logit: Scores(rng, make(world), logit)  # type: ignore[misc] # noqa: ARG005
    return found


def replay(person: Person, session: Session) -> list[dict[str, float]]:
    """Ask one person, and measure after each number of answers."""
    left = person.askable
    held = person.withheld
    winner, loser = person.winner[held], person.loser[held]
    shown: list[int] = []
    spent, rows = 0.0, []
    for count in range(max(ANSWERS) + 1):
        if count:
            began = time.process_time()
            at = session.choose(left)
            a, b = left[at].tolist()
            session.tell(a, b)
            spent += time.process_time() - began
            left = np.delete(left, at, axis=0)
            shown += [a, b]
        if count in ANSWERS:
            began = time.process_time()
            utility = session.utilities()
            took = time.process_time() - began
            margin = utility[winner] - utility[loser]
            chance = session.chances(winner, loser)
            loss = math.nan if chance is None else -float(np.mean(np.log(np.maximum(chance, LEAST))))
            right = float(np.mean(np.where(margin == 0.0, 0.5, margin > 0.0)))
            values = (right, loss, *pick_measures(utility, person.value, shown), took + spent / max(count, 1))
            rows.append(dict(zip(MEASURES, values, strict=True)))
    return rows


def half_of(person: str) -> str:
    return "choosing" if hashlib.sha256(person.encode()).digest()[0] % 2 == 0 else "reporting"


def data_folder() -> Path:
    folder = Path(os.environ.get("PAIRSEEK_DATA", ROOT.parent / "shared")) / "data" / "people"
    if not folder.is_dir():
        sys.exit(f"there is no folder {folder}: name the one that holds data/people in PAIRSEEK_DATA")
    return folder


def prepared(name: str, half: str, count: int, out: Path) -> tuple[ps.Choices, list[int], World]:
    """Return the choices, rows of the people who are asked, and the world that the others teach."""
    choices = ps.Choices.read(data_folder() / name / "ratings.csv")
    if half == "choosing":
        choices = choices.only([row for row, person in enumerate(choices.people) if half_of(person) == half])
    choices = choices.usable()
    able = [
        row
        for row, person in enumerate(choices.people)
        if half_of(person) == half and len(Person.of(choices, row).askable) >= max(ANSWERS)
    ]
    held = np.random.default_rng(0).permutation(able)[:count].tolist()
    others = choices.only(np.setdiff1d(np.arange(len(choices.people)), held))
    file = out / f"population-{name}-{half}-{count}.json"
    if file.exists():
        population = ps.Population.load(file)
    else:
        population = ps.Population.fit(others, dimension=DIMENSION)
        population.save(file)
    return choices, held, World(population, plain_items(population, None), Popularity.of(others))


def run(half: str, count: int, out: Path, only: Sequence[str], names: Sequence[str]) -> None:
    """Replay all people with all contenders that are not yet in the journal."""
    out.mkdir(parents=True, exist_ok=True)
    done = {(row["data"], row["contender"], row["person"]) for row in read(out, half, count)}
    ways = {label: begin for label, begin in contenders().items() if not only or any(label.startswith(o) for o in only)}
    parts = {name: prepared(name, half, count, out) for name in names}
    # Person by person, so that a run that is interrupted has the same people for everybody.
    for place in range(count):
        began = time.perf_counter()
        for name, (choices, held, world) in parts.items():
            for label, begin in ways.items():
                if place >= len(held) or (name, label, choices.people[held[place]]) in done:
                    continue
                who = choices.people[held[place]]
                person = Person.of(choices, held[place])
                rng = np.random.default_rng([int(hashlib.sha256(who.encode()).hexdigest()[:8], 16), 7])
                found = replay(person, begin(world, person.askable, rng))
                slug = "-".join(label.replace(",", "").lower().split())
                with (out / f"rivals-{half}-{count}-{slug}.jsonl").open("a") as file:
                    file.write(json.dumps({"data": name, "contender": label, "person": who, "rows": found}) + "\n")
        print(f"person {place + 1} of {count}: {time.perf_counter() - began:.0f} s", flush=True)


def read(out: Path, half: str, count: int) -> Iterator[dict[str, Any]]:
    """Read what was measured, a file for each contender: delete one to measure it again."""
    for journal in sorted(out.glob(f"rivals-{half}-{count}*.jsonl")):
        with journal.open() as file:
            for line in file:
                yield json.loads(line)


@dataclass(frozen=True, eq=False)
class Results:
    """Measures of all contenders: (answers, measures) of each person who has decided a withheld pair."""

    found: dict[tuple[str, str], dict[str, Any]]

    @classmethod
    def of(cls, rows: Iterator[dict[str, Any]]) -> Results:
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for row in rows:
            values = np.array([[one[name] for name in MEASURES] for one in row["rows"]], dtype=float)
            if not np.isnan(values[:, MEASURES.index("accuracy")]).any():
                found.setdefault((row["data"], row["contender"]), {})[row["person"]] = values
        return cls(found)

    def labels(self) -> list[str]:
        there = {label for _, label in self.found}
        return [label for label in contenders() if label in there]

    def mean(self, data: str, label: str, measure: str) -> tuple[Any, Any, int]:
        """Return the (answers,) means and standard errors, and the number of people."""
        own = self.found.get((data, label), {})
        return (*_mean([values[:, MEASURES.index(measure)] for values in own.values()]), len(own))

    def seconds(self, data: str, label: str) -> float:
        """Return the median over people of the seconds of processor that a question took."""
        own = self.found.get((data, label), {})
        return float(np.median([values[-1, MEASURES.index("seconds")] for values in own.values()])) if own else math.nan

    def lead(self, data: str, labels: tuple[str, str], measure: str) -> tuple[Any, Any, int]:
        """Return by how much the first is better than the second, person by person."""
        first, second = (self.found.get((data, label), {}) for label in labels)
        column, sign = MEASURES.index(measure), -1.0 if measure == "regret" else 1.0
        both = [sign * (first[who] - second[who])[:, column] for who in first if who in second]
        return (*_mean(both), len(both))


def _mean(values: list[Any]) -> tuple[Any, Any]:
    if not values:
        return (np.full(len(ANSWERS), np.nan),) * 2
    table = np.array(values)
    return table.mean(axis=0), table.std(axis=0, ddof=1) / np.sqrt(len(table)) if len(table) > 1 else 0.0 * table[0]


TITLES = {"accuracy": "Accuracy on withheld pairs", "regret": "Regret of the pick", "top_3": "Mean rating of the top 3"}


def report(results: Results) -> Iterator[str]:
    """Yield the lines of the tables, in Markdown."""
    columns = [ANSWERS.index(count) for count in ANSWERS if count]
    for data, title in NAMES.items():
        for measure, goal in MATCHING.items():
            yield f"\n### {title}: {TITLES[measure].lower()}, after {', '.join(str(c) for c in ANSWERS if c)} answers\n"
            yield (
                "| | people | "
                + " | ".join(str(ANSWERS[c]) for c in columns)
                + " | ahead of pairseek alone | of population |"
            )
            yield "|---|---|" + "---|" * (len(columns) + 2)
            for label in results.labels():
                mean, error, people = results.mean(data, label, measure)
                if people:
                    cells = [f"{mean[c]:.3f} ({error[c]:.3f})" for c in columns]
                    own = label.startswith("pairseek")
                    ahead = [
                        ""
                        if own
                        else _ahead(results.lead(data, (label, f"pairseek {goal}, {known}"), measure), columns)
                        for known in ("alone", "population")
                    ]
                    yield f"| {label} | {people} | {' | '.join([*cells, *ahead])} |"
    yield "\n### Seconds of processor a question, median over people\n"
    yield "| | " + " | ".join(NAMES.values()) + " |\n|---|" + "---|" * len(NAMES)
    for label in results.labels():
        cells = [f"{results.seconds(data, label):.4f}" for data in NAMES]
        yield f"| {label} | {' | '.join(cells)} |"


def _ahead(lead: tuple[Any, Any, int], columns: list[int]) -> str:
    """Say after how many answers a rival is ahead by more than two standard errors, and by how much."""
    mean, error, people = lead
    if people < 2:
        return "?"
    found = [c for c in columns if mean[c] > 2.0 * error[c]]
    return ", ".join(f"**at {ANSWERS[c]}: {mean[c]:+.3f} ({error[c]:.3f})**" for c in found) or "no"


DRAWN = {
    "pairseek {goal}, population": ("#0072B2", "-", "o"),
    "pairseek {goal}, alone": ("#0072B2", "--", "o"),
    "BoTorch EUBO": ("#D55E00", "-", "s"),
    "BoTorch BALD": ("#D55E00", "--", "s"),
    "BoTorch random": ("#D55E00", ":", "s"),
    "choix EP": ("#009E73", "-", "^"),
    "GaussSearch": ("#CC79A7", "-", "v"),
    "Qdrant average": ("#E69F00", "-", "D"),
    "average of liked": ("#E69F00", ":", "D"),
    "popularity": ("#7F7F7F", "--", ""),
}


def draw(results: Results, folder: Path) -> None:
    """Write ``rivals.png``: a row for each data set, a column for each goal."""
    from pairseek.experiments.figure_style import canvas, drawing

    with drawing():
        figure, axes = canvas(11.0, 6.6, len(NAMES), len(MATCHING))
        for place, (data, measure) in zip(axes, ((d, m) for d in NAMES for m in MATCHING), strict=True):
            for label, (colour, dash, marker) in DRAWN.items():
                mean, _, people = results.mean(data, label.format(goal=MATCHING[measure]), measure)
                if people:
                    name = label.format(goal="with the goal")
                    place.plot(ANSWERS, mean, color=colour, linestyle=dash, marker=marker, markersize=4, label=name)
            place.set_title(f"{NAMES[data]}: {TITLES[measure].lower()}")
            place.set_xticks(ANSWERS)
            place.set_xlabel("answers")
        handles, names = axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=5, frameon=False)
        folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(folder / "rivals.png", dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=60)
    parser.add_argument("--half", choices=("reporting", "choosing"), default="reporting")
    parser.add_argument("--only", default="", help="beginnings of labels, separated by commas")
    parser.add_argument("--data", default=",".join(NAMES))
    parser.add_argument("--out", type=Path, default=ROOT / "pairseek-results" / "rivals")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--write", type=Path, help="the page whose tables are replaced")
    parser.add_argument("--draw", type=Path)
    given = parser.parse_args()
    if not given.report:
        run(given.half, given.people, given.out, [o for o in given.only.split(",") if o], given.data.split(","))
    results = Results.of(read(given.out, given.half, given.people))
    tables = "\n".join(report(results)).strip()
    print(tables)
    if given.write:
        before, _, rest = given.write.read_text().partition(BEGIN)
        given.write.write_text(f"{before}{BEGIN}\n\n{tables}\n\n{END}{rest.partition(END)[2]}")
    if given.draw:
        draw(results, given.draw)


if __name__ == "__main__":
    main()
