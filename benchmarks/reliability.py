"""Unknown reliability: its cost and benefit, and the detection of people who click at random.

    python benchmarks/reliability.py speed      # time of an answer and a question, relative to a known k
    python benchmarks/reliability.py error      # squared error with k known, unknown or fixed at a guess; the figure
    python benchmarks/reliability.py clickers   # area under the ROC curve of the reported agreement
    python benchmarks/reliability.py fidelity   # the tabulated score compared with I(w; y) from samples
    python benchmarks/reliability.py crowd      # with a population: clickers, and people with a quarter to four times r
    python benchmarks/reliability.py crowd --people gss_music    # with a population of recorded people
    python benchmarks/reliability.py noise      # unknown kind of noise, where the assumed one is wrong

In `error`, all methods have the same users. Times are processor times on one thread, so that ratios do not depend on
other work on the machine. With --journal FILE, interrupted runs resume. Recorded people are from the half reserved for
making choices (``data/people/SPLIT.md``); the people who answer are simulated.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
from functools import lru_cache
from pathlib import Path

import numpy as np

import pairseek as ps
from food import folder, items, name, response
from journal import outcomes
from pairseek.pairs.context import SelectionContext
from pairseek.pairs.features import typical_response
from pairseek.pairs.sources.sampled import sampled_pairs

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
METHODS = ("known", "unknown", "fixed")
D = 4
TWINS = 6
STRATEGIES = {"default": None, "infogain": ps.InfoGain(), "random": ps.Random()}
_shown: dict[int, ps.Items] = {}


def catalogue(count):
    """Return this number of items, the same for everyone."""
    if count not in _shown:
        whole = items(D)
        rows = np.random.default_rng(0).choice(whole.n, size=min(count, whole.n), replace=False)
        _shown[count] = ps.Items(whole.coordinates[np.sort(rows)])
    return _shown[count]


def believed(method, guess, k):
    """Return the response model of the search."""
    if method == "unknown":
        return ps.Logistic(ps.Unknown(ps.LogNormal.around(guess)))
    if method == "both":
        return ps.Logistic(ps.Unknown(ps.LogNormal(guess)), lapse=ps.Unknown())
    return ps.Logistic(k if method == "known" else guess)


def error_trial(task):
    """Return the expected squared error after each answer, and the inferred k relative to the guess.

    Users are drawn from the prior, so given the answers, the user is distributed as the posterior at the true k. The
    mean squared error over that posterior, from its trace and the distance to its mean, has the same expectation as the
    squared error to the user, and varies far less.
    """
    factor, method, seed, answers, shown_items = task
    ps.set_thread_count(1)
    guess = response(D, "normalized").k
    rng = np.random.default_rng([seed, D])
    shown = catalogue(shown_items)
    user = ps.SimulatedUser(rng.uniform(-1, 1, D), ps.Logistic(guess * factor), rng=seed)
    search = ps.Search(
        shown,
        response=believed(method, guess, guess * factor),
        prior=ps.UniformBox(),
        candidates=ps.SampledPairs(count=20_000, rescore=512, shared=True),
        rng=seed,
    )
    judge = ps.Search(shown, response=user.response, prior=search.prior, rng=seed + 1)
    errors = []
    for _ in range(answers):
        query = search.ask()
        winner = user.answer(shown, query, repeat=0)
        search.tell(query, winner=winner)
        judge.observe(query.left, query.right, winner=winner)
        truth = judge.belief
        away = ps.metrics.squared_error(search.estimate().point, truth.mean)
        errors.append(float(np.trace(truth.covariance)) + away)
    known = search.belief.reliability
    return task, errors, None if known is None else (known.typical_k / guess, known.spread)


def clicker_trial(task):
    """Return the reported agreement of a good person or a random clicker."""
    random, strategy, seed, answers = task
    ps.set_thread_count(1)
    shown = catalogue(2000)
    rng = np.random.default_rng([seed, 1])
    good = ps.SimulatedUser(rng.uniform(-1, 1, D), ps.Logistic(2 * np.sqrt(3), lapse=0.05), rng=seed)
    search = ps.Search(
        shown,
        response=ps.Logistic(ps.Unknown(), lapse=ps.Unknown()),
        prior=ps.UniformBox(),
        strategy=STRATEGIES[strategy],
        candidates=ps.SampledPairs(count=800),
        rng=seed,
    )
    for _ in range(answers):
        query = search.ask()
        toss = query.left if rng.random() < 0.5 else query.right
        search.tell(query, winner=toss if random else good.answer(shown, query, repeat=0))
    estimate = search.estimate()
    width = float(np.trace(search.belief.covariance) / np.trace(search.prior.moments(D)[1]))
    return task, estimate.reliability.agreement.median, estimate.reliability.word, width


def error(options):
    answers = 40
    tasks = [
        (factor, method, seed, answers, options.items)
        for seed in range(options.users)
        for factor in FACTORS
        for method in options.methods
    ]
    found: dict[tuple[float, str], list] = {(factor, method): [] for factor in FACTORS for method in options.methods}
    learned: dict[float, list] = {factor: [] for factor in FACTORS}
    for task, errors, known in outcomes(error_trial, tasks, options.jobs, options.journal):
        found[tuple(task[:2])].append((task[2], errors))
        if known is not None:
            learned[task[0]].append(known)
    curves = {key: np.array([errors for _, errors in sorted(runs)]) for key, runs in found.items()}
    print(f"\n{name()}, d = {D}, normalized noise, {options.users} users, squared error after {answers} answers\n")
    others = [f"{method}/known" for method in options.methods if method != "known"]
    heads = {"true k/guess": 14, **dict.fromkeys(options.methods, 16), **dict.fromkeys(others, 20)}
    print("".join(f"{head:>{width}}" for head, width in {**heads, "k/guess": 10, "spread": 8}.items()))
    for factor in FACTORS:
        last = {method: curves[factor, method][:, -1] for method in options.methods}
        cells = [f"{x.mean():.3f} ± {x.std(ddof=1) / np.sqrt(len(x)):.3f}" for x in last.values()]
        ratios = [ratio(last[method], last["known"]) for method in options.methods if method != "known"]
        k, spread = np.exp(np.mean(np.log([x[0] for x in learned[factor]]))), np.mean([x[1] for x in learned[factor]])
        print(
            f"{factor:>14g}"
            + "".join(f"{c:>16}" for c in cells)
            + "".join(f"{r:>20}" for r in ratios)
            + f"{k:>10.2f}{spread:>8.2f}"
        )
    if options.figure:
        draw(curves, answers, options.figure)


def ratio(values, base):
    """Return the ratio of two means over the same users, with its standard error."""
    r = values.mean() / base.mean()
    return f"{r:.2f} ± {np.std(values - r * base, ddof=1) / np.sqrt(len(base)) / base.mean():.2f}"


def draw(curves, answers, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    colours = {"known": "#222222", "unknown": "#0b6e99", "fixed": "#c1440e"}
    labels = {"known": "k known", "unknown": "k unknown", "fixed": "k fixed at the guess"}
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.6), constrained_layout=True)
    for method in METHODS:
        last = [curves[factor, method][:, -1] for factor in FACTORS]
        mean = np.array([x.mean() for x in last])
        bars = 2 * np.array([x.std(ddof=1) / np.sqrt(len(x)) for x in last])
        left.errorbar(
            FACTORS, mean, bars, color=colours[method], marker="o", ms=4, lw=1.6, capsize=2, label=labels[method]
        )
        right.plot(
            range(1, answers + 1), curves[4.0, method].mean(axis=0), color=colours[method], lw=1.6, label=labels[method]
        )
    left.set_xscale("log", base=2)
    left.set_xticks(FACTORS, ["1/4", "1/2", "1", "2", "4"])
    left.set_xlabel("true k, as a multiple of the guess")
    left.set_ylabel(f"mean squared error after {answers} answers")
    right.set_xlabel("answers, true k four times the guess")
    right.set_ylabel("mean squared error")
    for axes in (left, right):
        axes.set_yscale("log")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    left.legend(frameon=False)
    figure.savefig(path, dpi=150)
    print(f"\nwrote {path}")


def clickers(options):
    tasks = [(seed % 5 == 0, strategy, seed, 40) for seed in range(options.users) for strategy in STRATEGIES]
    found: dict[tuple[bool, str], list] = {}
    for task, agreement, word, width in outcomes(clicker_trial, tasks, options.jobs, options.journal):
        found.setdefault(tuple(task[:2]), []).append((agreement, word, width))
    print(f"\n{name()}, d = {D}: {options.users} people, one in five clicks at random, 40 answers\n")
    for strategy in STRATEGIES:
        good, bad = ([x[0] for x in found[random, strategy]] for random in (False, True))
        area = np.mean(np.subtract.outer(good, bad) > 0)
        words = [
            {w: sum(x[1] == w for x in found[random, strategy]) for w in ("consistent", "noisy", "random")}
            for random in (False, True)
        ]
        widths = [np.mean([x[2] for x in found[random, strategy]]) for random in (False, True)]
        print(f"questions by {strategy}: area under the curve {area:.3f}; good people {words[0]}, clickers {words[1]}")
        print(f"  share of the prior's variance remaining: good people {widths[0]:.2f}, clickers {widths[1]:.2f}")


def speed(options):
    ps.set_thread_count(1)
    print(f"\n{name()}, default candidates, answers 1 to {options.answers}: milliseconds on one thread\n")
    print(f"{'':24}{'update':>10}{'question':>10}{'both':>10}{'update':>12}{'question':>10}{'both':>8}")
    for d in (4, 12):
        k = response(d, "normalized").k
        responses = {
            "k known": ps.Logistic(k),
            "k unknown": ps.Logistic(ps.Unknown(ps.LogNormal.around(k))),
            "k and lapse unknown": ps.Logistic(ps.Unknown(ps.LogNormal(k)), lapse=ps.Unknown()),
        }
        for answering in responses.values():
            timed(items(d), answering, k, options.answers)
        runs = [{name: timed(items(d), r, k, options.answers) for name, r in responses.items()} for _ in range(3)]
        for label in responses:
            mean = 1e3 * np.mean([run[label] for run in runs], axis=0)
            base = 1e3 * np.mean([run["k known"] for run in runs], axis=0)
            cells = [*mean, mean.sum()]
            ratios = [*(mean / base), mean.sum() / base.sum()]
            print(
                f"{f'd = {d}, {label}':24}"
                + "".join(f"{c:>10.2f}" for c in cells)
                + f"{ratios[0]:>11.2f}x{ratios[1]:>9.2f}x{ratios[2]:>7.2f}x"
            )


def timed(shown, answering, k, answers):
    """Return the mean processor time of an update and of a question."""
    search = ps.Search(shown, response=answering, prior=ps.UniformBox(), rng=7)
    user = ps.SimulatedUser(np.random.default_rng(3).uniform(-1, 1, shown.d), ps.Logistic(k), rng=5)
    times = []
    for _ in range(answers):
        began = time.process_time()
        search.belief  # noqa: B018 - the posterior is inferred on first access
        middle = time.process_time()
        query = search.ask()
        times.append((middle - began, time.process_time() - middle))
        search.tell(query, winner=user.answer(shown, query))
    return np.mean(times, axis=0)


def fidelity(options):
    """Print the ratio of the chosen to the best pair's I(w; y), judged by samples, for 500 random pairs per state."""
    shown = items(D)
    k = response(D, "normalized").k
    print(f"\n{name()}, d = {D}, InfoGain: the pair chosen from 500, judged by the samples of six other beliefs\n")
    for method in ("unknown", "both"):
        for answers in (0, 5, 15, 40):
            shares = [state_fidelity(shown, believed(method, k, k), k, answers, seed) for seed in range(options.states)]
            by_table, again = np.array(shares).T
            print(
                f"{method:8} after {answers:>2} answers: from the table {by_table.mean():.3f} (worst "
                f"{by_table.min():.3f}), scored again {again.mean():.3f} (worst {again.min():.3f})"
            )


def state_fidelity(shown, answering, k, answers, seed):
    search = ps.Search(
        shown,
        response=answering,
        prior=ps.UniformBox(),
        candidates=ps.SampledPairs(count=2000),
        rng=seed,
    )
    user = ps.SimulatedUser(np.random.default_rng(seed).uniform(-1, 1, D), ps.Logistic(k), rng=seed)
    for _ in range(answers):
        query = search.ask()
        search.tell(query, winner=user.answer(shown, query))
    first, second = sampled_pairs(shown.n, 500, np.random.default_rng(seed))
    judged = np.zeros(len(first))
    for other in range(TWINS):
        posterior = ps.Particles(2000, seed=other)
        twin = ps.Search(shown, response=answering, prior=ps.UniformBox(), posterior=posterior, rng=1000)
        for event in search.history:
            twin.observe(event.left, event.right, winner=event.winner)
        judge = SelectionContext.of(shown, twin.belief, typical_response(answering, twin.belief), ps.InfoGain())
        judged += judge.rescored(judge.features(first, second)) / TWINS
    scene = SelectionContext.of(shown, search.belief, typical_response(search.response, search.belief), ps.InfoGain())
    pairs = scene.features(first, second)
    scores = scene.scores(pairs)
    rows = np.argsort(-scores)[:32]
    again = rows[np.argmax(scene.rescored(pairs.take(rows)))]
    best = judged.max()
    return judged[np.argmax(scores)] / best, judged[again] / best


def learned_from(people, path):
    """Save the population of recorded people unless it exists, fitted to pairs so that k is that of their choices."""
    if not path.exists():
        choices = ps.Choices.read(folder() / "data" / "people" / people / "ratings.csv")
        half = [row for row, who in enumerate(choices.people) if hashlib.sha256(who.encode()).digest()[0] % 2 == 0]
        pairs = choices.only(half)
        pairs = pairs.rows(np.ones(len(pairs), dtype=np.bool_))
        # The people who answer have no residual utilities.
        ps.Population.fit(pairs, dimension=D, residual=0.0).save(path)
    return str(path)


@lru_cache(maxsize=1)
def crowd_population(saved):
    """Return items with appeal, k and prior of a saved population, or of a made-up one."""
    if saved is not None:
        found = ps.Population.load(saved)
        return found.items, found.k, ps.GaussianPrior(found.mean, found.covariance)
    rng = np.random.default_rng(11)
    appeal = rng.normal(size=18)
    appeal = 1.1 * (appeal - appeal.mean()) / appeal.std()
    return ps.Items(0.8 * rng.normal(size=(18, D)), appeal=appeal), 0.35, ps.GaussianPrior(np.zeros(D), np.eye(D))


def crowd_trial(task):
    """Return the word for the reliability and its median, and whether the 95 % region contains the point."""
    reliability, seed, answers, saved = task
    ps.set_thread_count(1)
    shown, k, prior = crowd_population(saved)
    mean, covariance = prior.moments(shown.d)
    point = np.random.default_rng([seed, 5]).multivariate_normal(mean, covariance)
    user = ps.SimulatedUser(point, ps.Logistic(k, "constant", reliability=reliability), rng=seed)
    response = ps.Logistic(ps.Unknown(ps.LogNormal(k, 1.5)), "constant", ps.Unknown())
    search = ps.Search(shown, response=response, prior=prior, rest=ps.Rest(pair=0), rng=seed)
    for _ in range(answers):
        query = search.ask()
        search.tell(query, winner=user.answer(shown, query))
    estimate = search.estimate()
    inside = bool(np.linalg.norm(point - estimate.point) <= estimate.credible_radius(0.95))
    return task, estimate.reliability.word, float(np.log(estimate.reliability.k.median / k)), inside


def crowd(options):
    """Simulate people with a population's appeal; reliability multiplies the whole logit, so 0 is random clicking."""
    # Defaults were chosen with smaller seeds.
    saved = None if options.people is None else learned_from(options.people, options.population)
    tasks = [(r, 1000 + seed, 40, saved) for seed in range(options.users) for r in (0.0, 0.25, 1.0, 4.0)]
    found: dict[float, list] = {}
    for task, *rest in outcomes(crowd_trial, tasks, options.jobs, options.journal):
        found.setdefault(task[0], []).append(rest)
    shown = crowd_population(saved)[0]
    print(
        f"\n{options.people or 'a made-up population'}: {shown.n} items, d = {D}, appeal with a deviation of "
        f"{np.std(shown.appeal):.2f} logits, k and lapse unknown, 40 answers, {options.users} people each\n"
    )
    for r, rows in sorted(found.items()):
        words = {w: sum(row[0] == w for row in rows) for w in ("consistent", "noisy", "random")}
        held = np.mean([row[2] for row in rows])
        error = np.sqrt(held * (1 - held) / len(rows))
        medians = np.array([row[1] for row in rows])
        spread = medians.std(ddof=1) / np.sqrt(len(rows))
        print(
            f"reliability {r:<5g} called {words}; the 95 % region contains the point in {held:.3f} ± {error:.3f}; "
            f"geometric mean of the medians {np.exp(medians.mean()):.2f} (factor {np.exp(spread):.2f})"
        )


def noise_trial(task):
    """Return squared error and trace after 80 answers by a person with Gaussian normalized noise."""
    method, seed = task
    ps.set_thread_count(1)
    shown = items(D)
    truth = ps.Probit(probit_constant(), "normalized")
    user = ps.SimulatedUser(np.random.default_rng([seed, 77]).uniform(-1, 1, D), truth, rng=seed)
    unknown = ps.Logistic(ps.Unknown(), noise=ps.Unknown())
    search = ps.Search(
        shown,
        response=unknown if method == "unknown" else response(D, "decaying"),
        prior=ps.UniformBox(),
        candidates=ps.SampledPairs(count=8000),
        rng=seed,
    )
    for _ in range(80):
        query = search.ask()
        search.tell(query, winner=user.answer(shown, query, repeat=0))
    belief = search.belief
    return task, ps.metrics.squared_error(belief.mean, user.point), float(np.trace(belief.covariance))


def noise(options):
    """Print results in the paper's mismatched setting: decaying noise assumed, Gaussian normalized noise in truth."""
    tasks = [(method, seed) for seed in range(options.users) for method in ("decaying", "unknown")]
    found: dict[str, dict] = {"decaying": {}, "unknown": {}}
    for task, error, trace in outcomes(noise_trial, tasks, options.jobs, options.journal):
        found[task[0]][task[1]] = error, trace
    print(f"\n{name()}, d = {D}, 80 answers by people with Gaussian normalized noise, {options.users} users\n")
    columns = {method: np.array([runs[seed] for seed in sorted(runs)]) for method, runs in found.items()}
    for method, values in columns.items():
        error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
        mean = values.mean(axis=0)
        print(
            f"{method:9} squared error {mean[0]:.3f} ± {error[0]:.3f}, trace {mean[1]:.3f} ± {error[1]:.3f}, "
            f"trace over error {mean[1] / mean[0]:.2f}"
        )
    print(f"squared error, unknown over decaying: {ratio(columns['unknown'][:, 0], columns['decaying'][:, 0])}")


def probit_constant():
    """Return the published Gaussian constant for normalized noise."""
    where = folder()
    if where is None:
        return 0.6 * response(D, "normalized").k
    record = json.loads((where / "data" / "food10k" / "noise.json").read_text())[str(D)]["k"]
    return record["probit" if "probit" in record else "gaussian"]["normalized"]["k"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("speed", "error", "clickers", "fidelity", "crowd", "noise"))
    parser.add_argument("--users", type=int, default=200)
    parser.add_argument("--answers", type=int, default=60)
    parser.add_argument("--items", type=int, default=12_624, help="number of items in `error`")
    parser.add_argument("--states", type=int, default=4)
    parser.add_argument("--figure", type=Path, help="file of the figure of `error`")
    parser.add_argument("--people", choices=("gss_music", "food_world_cup"), help="recorded people of `crowd`")
    parser.add_argument("--population", type=Path, default=Path("crowd.json"), help="file of that population")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS, help="methods of `error`")
    parser.add_argument("--journal", type=Path, help="file of outcomes to resume from, one for each part")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    parts = {
        "speed": speed,
        "error": error,
        "clickers": clickers,
        "fidelity": fidelity,
        "crowd": crowd,
        "noise": noise,
    }
    for part in (options.what,) if options.what else parts:
        parts[part](options)


if __name__ == "__main__":
    main()
