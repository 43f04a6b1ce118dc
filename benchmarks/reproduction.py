"""Tables of docs/benchmarks/reproduction.md from results of `pairseek reproduce`, finished or not.

    pairseek reproduce all --preset paper --out results
    python benchmarks/reproduction.py results --write docs/benchmarks/reproduction.md

Each table is between `<!-- NAME -->` and `<!-- end NAME -->` in the page; without `--write`, all tables are printed.
With several folders, the first one that has a figure counts. The numbers of the authors' program are from
reference/accuracy.json in the folder that PAIRSEEK_DATA names.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from food import folder
from pairseek.errors import InvalidFile
from pairseek.experiments import SPECIFICATIONS, Results
from pairseek.experiments.figures.paper import MAX_DRAWN_BOUND, stopping_times, volume_thresholds
from pairseek.experiments.report import duration
from pairseek.experiments.reproduction import REPRODUCTIONS
from pairseek.experiments.results import standard_error
from pairseek.experiments.runs.journal import JOURNAL_FILE, read_journal
from pairseek.model.bounds import mse_lower_bound, stopping_time_bounds

ACTIVE = ("InfoGain", "EPMV", "MCMV")
MARKS = (20, 40, 60, 80)
KEYS = {
    "matched": "d4 matched normalized",
    "mismatched": "d4 mismatched (decaying logistic model, Gaussian normalized noise)",
}
THEIRS = {
    "squared_error": ("mse", "se"),
    "kendall_tau": ("kendall", "kendall_se"),
    "posterior_trace": ("posterior_trace", "posterior_trace_se"),
}
CLEAR = 2.0
"""Least clear difference, in standard errors."""
CLEAR_OF_THREE = 2.4
"""Least clear value of the largest of three differences: by chance, a twentieth of all cases exceed it."""
CLAIMED = {"figure2": "1, 2, 3", "dimensions": "1, 2", "supplement": "1, 2", "fitted": "not in it"}
"""The paper's claims about a panel, by their numbers in the page."""
_TIMES = 10
"""Number of times that identify a trial."""
FEWEST = 10
"""Least number of users to show a run."""


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def number(value: float, error: float, sign: str = "") -> str:
    return f"{value:{sign}.3f} ({error:.3f})"


def value_at(results: Results, setting: str, label: str, metric: str, mark: int) -> str:
    mean, error = results.curve(setting, label, metric)
    place = results.column(mark)
    return number(mean[place], error[place])


def baselines(results: Results) -> list[str]:
    return [label for label in results.specification.labels if label.startswith(("GaussCloud", "ActRank"))]


def difference(results: Results, setting: str, labels: tuple[str, ...], base: str, metric: str, mark: int):
    """Return the mean difference between some strategies and another, over the same users, with its standard error."""
    place = results.column(mark)
    mean = np.mean([results.trials(setting, label, metric)[:, place] for label in labels], axis=0)
    values = mean - results.trials(setting, base, metric)[:, place]
    return float(values.mean()), float(standard_error(values))


def best(results: Results, setting: str, labels: list[str], metric: str, mark: int) -> str:
    place = results.column(mark)
    return min(labels, key=lambda label: results.curve(setting, label, metric)[0][place])


def panel_row(results: Results, setting: str, metric: str, mark: int) -> list[str]:
    """Return a row with the Bayesian strategies, the best GaussCloud and the best ActRank."""
    cells = [value_at(results, setting, label, metric, mark) for label in (*ACTIVE, "Random")]
    for family in ("GaussCloud", "ActRank"):
        label = best(results, setting, [x for x in baselines(results) if x.startswith(family)], metric, mark)
        cells.append(f"{value_at(results, setting, label, metric, mark)}, {label.rpartition('-')[2]}")
    return cells


PANEL_HEAD = [*ACTIVE, "Random", "best GaussCloud, Q", "best ActRank, Q"]


def with_theirs(results: Results, known: dict, setting: str, label: str, metric: str, mark: int) -> str:
    """Return our value / their value, each with its standard error."""
    value, deviation = THEIRS[metric]
    theirs = known.get(label, {}).get(str(mark), {})
    ours = value_at(results, setting, label, metric, mark)
    return ours if value not in theirs else f"{ours} / {number(theirs[value], theirs[deviation])}"


def figure2(results: Results) -> str:
    where = folder()
    path = None if where is None else where / "reference" / "accuracy.json"
    reference = {} if path is None else json.loads(path.read_text())
    out = []
    for setting, key in KEYS.items():
        for metric in results.specification.metrics:
            labels = [*ACTIVE, "Random"] if metric == "posterior_trace" else list(results.specification.labels)
            rows = [
                [label, *(with_theirs(results, reference.get(key, {}), setting, label, metric, mark) for mark in MARKS)]
                for label in labels
            ]
            out.append(table([f"{metric.replace('_', ' ')}, {setting}", *(f"{mark} answers" for mark in MARKS)], rows))
    return "\n".join(out)


def dimensions(results: Results) -> str:
    out = []
    for noise in ("constant", "normalized", "decaying"):
        for mark in (20, 60):
            rows = [
                [f"d = {setting.dimension}", *panel_row(results, setting.label, "squared_error", mark)]
                for setting in results.specification.settings
                if setting.response.noise == noise
            ]
            out.append(table([f"MSE, {noise} noise, {mark} answers", *PANEL_HEAD], rows))
    return "\n".join(out)


def supplement(results: Results) -> str:
    out = []
    for mark in (20, 80):
        rows = [
            [setting.label, *panel_row(results, setting.label, "squared_error", mark)]
            for setting in results.specification.settings
        ]
        out.append(table([f"MSE, {mark} answers", *PANEL_HEAD], rows))
    return "\n".join(out)


def speed(results: Results) -> str:
    rows = []
    for setting in results.specification.settings:
        for label in results.specification.labels:
            seconds = results.seconds[results._indices_of(setting.label, label)][:, -1]
            mse = value_at(results, setting.label, label, "squared_error", 60)
            total = f"{seconds.mean():.2f} ({standard_error(seconds):.2f}) s"
            rows.append([setting.label, label, total, f"{1e3 * seconds.mean() / 60:.1f} ms", mse])
    return table(["", "strategy and β", "60 answers", "a query", "MSE at 60 answers"], rows)


def pairs(results: Results, setting: str, compared: list[tuple[str, str]]) -> str:
    out = []
    for metric in ("squared_error", "posterior_trace"):
        rows = [
            [label, *(value_at(results, setting, label, metric, mark) for mark in MARKS)]
            for label in results.specification.labels
        ]
        for one, other in compared:
            found = [difference(results, setting, (one,), other, metric, mark) for mark in MARKS]
            rows.append([f"{one} - {other}", *(number(*pair, sign="+") for pair in found)])
        out.append(table([metric.replace("_", " "), *(f"{mark} answers" for mark in MARKS)], rows))
    return "\n".join(out)


def particles(results: Results) -> str:
    return pairs(results, "matched", [(f"{label} particles", label) for label in (*ACTIVE, "Random")])


def epmv_samples(results: Results) -> str:
    compared = [("EPMV samples", "EPMV"), ("EPMV samples", "EPMV particles"), ("EPMV particles", "EPMV")]
    return pairs(results, "mismatched", compared)


def rivals(results: Results) -> str:
    out = []
    for metric in ("squared_error", "posterior_trace"):
        labels = results.specification.labels
        rows = [[label, *(value_at(results, "matched", label, metric, mark) for mark in MARKS)] for label in labels]
        for label in ("GreedyMSE", "GreedyVolume"):
            found = [difference(results, "matched", (label,), "InfoGain", metric, mark) for mark in MARKS]
            rows.append([f"{label} - InfoGain", *(number(*pair, sign="+") for pair in found)])
        out.append(table([metric.replace("_", " "), *(f"{mark} answers" for mark in MARKS)], rows))
    return "\n".join(out)


def bounds(results: Results) -> str:
    """Return EPMV's answers until three volumes with their bounds, and its error with the lower bound."""
    times, errors = [], []
    for setting in results.specification.settings:
        d, k = setting.dimension, setting.response_model(setting.dimension).constant
        volumes = volume_thresholds(results, setting.label)
        for share in (0.25, 0.5, 0.75):
            volume = volumes[int(share * (len(volumes) - 1))]
            found = stopping_times(results, setting.label, np.array([volume]))[0]
            bound = stopping_time_bounds(float(volume), k, setting.prior, d)
            upper = f"{bound.upper:,.0f}" if bound.upper < MAX_DRAWN_BOUND else "above 10,000"
            mean = f"{found.mean():.1f} ({standard_error(found):.1f})"
            times.append([setting.label, f"{volume:.2g}", f"{bound.lower:.1f}", mean, upper])
        cells = []
        for mark in (10, 20, 40):
            least = mse_lower_bound(mark, setting.prior, d)
            mean, error = results.curve(setting.label, "EPMV", "squared_error")
            place = results.column(mark)
            cells.append(f"{mean[place]:.2g} ({error[place]:.1g}) / {least:.2g}")
        errors.append([setting.label, *cells])
    head = ["", "volume ε", "lower bound", "EPMV, answers until below ε", "upper bound"]
    least = ["MSE of EPMV / lower bound", *(f"{mark} answers" for mark in (10, 20, 40))]
    return f"{table(head, times)}\n{table(least, errors)}"


TABLES = {
    "figure2": figure2,
    "dimensions": dimensions,
    "supplement": supplement,
    "speed": speed,
    "particles": particles,
    "epmv-samples": epmv_samples,
    "fitted": supplement,
    "rivals": rivals,
    "bounds": bounds,
}


def verdict(results: Results, setting: str, metric: str, mark: int, *, third: bool) -> tuple[str, str]:
    """Return the result of a panel in words, and whether it agrees with the paper.

    The paper's text makes three claims: the three strategies are below Random, they are alike, and Random is below
    GaussCloud and ActRank. The third is judged only if the paper makes it about the panel.
    """
    found = difference(results, setting, ACTIVE, "Random", metric, mark)
    words = [f"the three - Random {number(*found, sign='+')}"]
    claims = {"below Random": _sign(found)}
    if "mismatched" not in setting:
        trace = difference(results, setting, ACTIVE, "Random", "posterior_trace", mark)
        words[0] += f", trace {number(*trace, sign='+')}"
        # With a matched model, the trace is the expected squared error, with far less scatter.
        claims["below Random"] = claims["below Random"] or _sign(trace)
    gaps = [difference(results, setting, (a,), b, metric, mark) for a, b in itertools.combinations(ACTIVE, 2)]
    apart = max(abs(value) / error if error else 0.0 for value, error in gaps)
    claims["alike"] = "yes" if apart <= CLEAR_OF_THREE else "no"
    words.append("alike" if apart <= CLEAR_OF_THREE else f"apart by {apart:.1f} standard errors")
    rival = best(results, setting, baselines(results), metric, mark)
    above = difference(results, setting, ("Random",), rival, metric, mark)
    if third:
        claims["Random below GaussCloud and ActRank"] = _sign(above)
    words.append(f"Random - {rival} {number(*above, sign='+')}")
    wrong = [name for name, one in claims.items() if one == "no"]
    unclear = [name for name, one in claims.items() if one == ""]
    if wrong:
        return "; ".join(words), f"**differs**: not {', not '.join(wrong)}"
    return "; ".join(words), "agrees" if not unclear else f"no clear difference: {', '.join(unclear)}"


def _sign(found: tuple[float, float]) -> str:
    value, error = found
    return "yes" if value < -CLEAR * error else "no" if value > CLEAR * error else ""


def agreement(runs: dict[str, Results]) -> str:
    rows = []
    for name in ("figure2", "dimensions", "supplement", "fitted"):
        results = runs.get(name)
        if results is None or results.specification.trials < FEWEST:
            users = 0 if results is None else results.specification.trials
            rows.append([f"all of `{name}`", CLAIMED[name], "", f"not finished: {users} users"])
            continue
        for panel, setting, metric, mark in _panels(name, results):
            rows.append([panel, CLAIMED[name], *verdict(results, setting, metric, mark, third=name == "figure2")])
    return table(["panel", "paper", "ours", "verdict"], rows)


def _panels(name: str, results: Results) -> Iterator[tuple[str, str, str, int]]:
    settings = [setting.label for setting in results.specification.settings]
    if name == "figure2":
        for letter, (setting, metric) in zip(
            "abcd", [(s, m) for s in KEYS for m in ("squared_error", "kendall_tau")], strict=True
        ):
            yield f"Figure 2 ({letter}): {setting}, {metric.replace('_', ' ')}, 80 answers", setting, metric, 80
    elif name == "dimensions":
        for setting in settings:
            for mark in (20, 60):
                yield f"dimensions: {setting}, {mark} answers", setting, "squared_error", mark
    elif name in ("supplement", "fitted"):
        for setting in settings:
            yield f"{name}: {setting}, 80 answers", setting, "squared_error", 80


def runtime(where: dict[str, Path], runs: dict[str, Results]) -> str:
    """Return the processor times; a trial shared by several figures counts for the first of them."""
    rows, total, seen = [], 0.0, set()
    for name in (name for name in REPRODUCTIONS if name in TABLES):
        planned = SPECIFICATIONS[name]("paper")
        trials = planned.trials * len(planned.settings) * len(planned.strategies)
        outcomes = read_journal(where[name] / JOURNAL_FILE) if name in where else {}
        # Shared trials have the same times.
        own = [outcome for outcome in outcomes.values() if outcome.seconds[:_TIMES] not in seen]
        seen |= {outcome.seconds[:_TIMES] for outcome in own}
        seconds = sum(outcome.seconds[-1] for outcome in own)
        total += seconds
        users = runs[name].specification.trials if name in runs else 0
        done = f"{len(outcomes):,} of {trials:,}" + (f", {len(own):,} of its own" if len(own) < len(outcomes) else "")
        rows.append([f"`{name}`", f"{users} of {planned.trials}", done, duration(seconds)])
    rows.append(["together", "", "", duration(total)])
    return table(["run", "finished users", "trials", "processor time"], rows)


def _users(name: str, results: Results) -> str:
    """Return a sentence about the number of users, and whether the run is finished."""
    users, planned = results.specification.trials, SPECIFICATIONS[name]("paper").trials
    return f"{users} users." if users >= planned else f"Not finished: {users} of {planned} users."


def _missing(name: str, runs: dict[str, Results]) -> str:
    users = runs[name].specification.trials if name in runs else 0
    return f"Not finished: {users} of {SPECIFICATIONS[name]('paper').trials} users; shown from {FEWEST} users on.\n"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folders", nargs="+", type=Path)
    arguments.add_argument("--write", type=Path, metavar="PAGE")
    given = arguments.parse_args()
    where = {
        name: root / name
        for name in TABLES
        for root in reversed(given.folders)
        if (root / name / JOURNAL_FILE).exists()
    }
    runs = {}
    for name, path in where.items():
        try:
            runs[name] = Results.read(path, finished=True)
        except InvalidFile as error:
            print(f"{name}: {error}")
    enough = {name: results for name, results in runs.items() if results.specification.trials >= FEWEST}
    tables = {name: _missing(name, runs) for name in TABLES}
    tables |= {name: f"{_users(name, results)}\n\n{TABLES[name](results)}" for name, results in enough.items()}
    tables |= {"agreement": agreement(runs), "runtime": runtime(where, runs)}
    if given.write is None:
        print("\n".join(f"### {name}\n\n{text}" for name, text in tables.items()))
        return
    page = given.write.read_text()
    for name, text in tables.items():
        marked = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
        page, count = marked.subn(lambda match, text=text: f"{match[1]}\n{text}\n{match[2]}", page)
        if not count:
            print(f"{given.write} has no place for {name}")
    given.write.write_text(page)


if __name__ == "__main__":
    main()
