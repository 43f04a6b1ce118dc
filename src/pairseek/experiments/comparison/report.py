"""HTML report of a comparison: faults, then a section for each data set."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from pairseek.experiments.comparison.measures import LOWER_IS_BETTER, SCORES
from pairseek.experiments.comparison.results import ACCURACY_LEVELS, ComparisonResults, Difference
from pairseek.experiments.comparison.statistics import mean_and_error, worst_tenth
from pairseek.experiments.html_report import write_html
from pairseek.experiments.runs.toml import to_toml

TITLES = {
    "accuracy": "Accuracy on withheld pairs",
    "log_loss": "Log loss in nats (a coin: 0.693)",
    "regret": "Regret of the pick",
    "top_3": "Mean value of the top three",
}
_STYLE = """
h2 { margin-top: 3rem; border-top: 1px solid #d8d8de; padding-top: 1.2rem; }
h3 { margin: 1.8rem 0 .4rem; font-size: 1.05rem; } p.note { color: #55555f; }
.wide { overflow-x: auto; } table { font-variant-numeric: tabular-nums; margin: .6rem 0; }
th, td { padding: .22rem .8rem .22rem 0; text-align: right; white-space: nowrap; }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left; } thead th { border-bottom: 1px solid #9a9aa4; }
.se { color: #6a6a75; } tr.faulty td { color: #a02020; }
.verdicts { min-width: 12rem; text-align: left; white-space: normal; } body { max-width: 84rem; }
table:has(.verdicts) th:last-child { text-align: left; }
th:first-child, td:first-child { position: sticky; left: 0; background: #fff; }
li { overflow-wrap: anywhere; }
@media (max-width: 40rem) { td:first-child { white-space: normal; min-width: 8rem; } }
pre { background: #f5f5f7; padding: .8rem 1rem; overflow-x: auto; font-size: .82rem; } summary { cursor: pointer; }
"""


def write_comparison(path: Path, results: ComparisonResults) -> Path:
    """Write the report."""
    title = results.comparison.title or f"Comparison: {results.comparison.name}"
    return write_html(path, title, list(_body(results)), style=_STYLE)


def _body(results: ComparisonResults) -> Iterator[str]:
    yield (
        "<p>All methods asked the same people, got the same answers and predict the same pairs, which were withheld "
        "before the first question. <i>Knows</i> says what a method was shown before the first answer: only the ids of "
        "the items, also their vectors, or also what other people chose. In brackets: the standard error over people. "
        "<i>Worst tenth</i> is the mean over the tenth of people with the worst score after the last answer. The last "
        "column compares a method with a reference that knows the same; it says ahead or behind only where the "
        "difference is significant after Holm's correction for all comparisons of the table.</p>"
    )
    if results.faults:
        yield (
            "<h2>Faults</h2><p>A red row lacks the people for whom the method failed, from the step at which it did. "
            "The table faults.csv has all of them.</p>"
        )
        yield f"<ul>{''.join(f'<li>{html.escape(line)}</li>' for line in results.fault_lines())}</ul>"
    differences = results.differences()
    for dataset_index, data in enumerate(results.labels):
        yield from _section(results, dataset_index, [row for row in differences if row.data == data])
    yield f"<details><summary>The specification</summary><pre>{html.escape(to_toml(_record(results)))}</pre></details>"


def _record(results: ComparisonResults) -> dict[str, object]:
    plan = results.comparison
    settings = {"half": plan.half, "people": plan.people, "seed": plan.seed, "limit": float(plan.limit)}
    return {**settings, "methods": [entry.record for entry in plan.entries]}


def _section(results: ComparisonResults, dataset_index: int, differences: Sequence[Difference]) -> Iterator[str]:
    held = results.held[dataset_index]
    data, counts = held.dataset.label, results.counts[dataset_index]
    yield f"<h2>{html.escape(data)}</h2>"
    yield (
        f"<p>{len(held.people)} people of the {results.comparison.half} half, {len(held.dataset.choices.ids)} items, "
        f"{len(held.others.people)} other people. {html.escape(held.dataset.note)}</p>"
    )
    for score in SCORES:
        score_differences = [row for row in differences if row.score == score]
        if np.isfinite([results.scores(data, method, score) for method in results.methods]).any():
            yield f"<h3>{TITLES[score]}</h3>"
            yield table(
                ["method", "knows", *(f"{count} answers" for count in counts), "worst tenth", "compared with"],
                list(_rows(results, data, score, score_differences)),
                faulty=_faulty(results, data),
            )
    yield "<h3>Calibration, speed of learning, and processor time</h3>"
    head = ["method", "knows", *(f"calibration error, {count}" for count in counts if count)]
    head += [
        f"overconfidence, {counts[-1]}",
        *(f"answers until {level:g}" for level in ACCURACY_LEVELS),
        "ms a question",
    ]
    yield table(head, list(_facts(results, dataset_index)), faulty=_faulty(results, data))


def _faulty(results: ComparisonResults, data: str) -> dict[str, int]:
    methods = [fault.method for fault in results.faults if fault.data == data]
    return {method: methods.count(method) for method in methods}


def _rows(results: ComparisonResults, data: str, score: str, differences: Sequence[Difference]) -> Iterator[list[str]]:
    for entry in results.comparison.entries:
        values = results.scores(data, entry.label, score)
        cells = [_with_error(*mean_and_error(column)[:2]) for column in values.T]
        measured_columns = np.flatnonzero(np.isfinite(values).any(axis=0))
        worst = (
            worst_tenth(values[:, measured_columns[-1]], lower_is_better=score in LOWER_IS_BETTER)
            if len(measured_columns)
            else math.nan
        )
        compared = [row for row in differences if row.method == entry.label]
        verdicts = [f"<b>{row.verdict}</b> at {row.answers}: {_signed(row)}" for row in compared if row.verdict]
        versus_reference = (
            f"<div class=verdicts>{', '.join(verdicts) or 'not significant'} "
            f"<span class=se>({html.escape(compared[0].reference)})</span></div>"
            if compared
            else ""
        )
        yield [html.escape(entry.label), entry.knows, *cells, _number(worst), versus_reference]


def _signed(row: Difference) -> str:
    return f"{row.difference:+.3f} <span class=se>({row.standard_error:.3f})</span>"


def _facts(results: ComparisonResults, dataset_index: int) -> Iterator[list[str]]:
    data, counts = results.labels[dataset_index], results.counts[dataset_index]
    for arm, entry in enumerate(results.comparison.entries):
        errors, excess = results.calibration(data, entry.label)
        until = [results.answers_until(data, entry.label, level) for level in ACCURACY_LEVELS]
        yield [
            html.escape(entry.label),
            entry.knows,
            *(_number(error) for error, count in zip(errors, counts, strict=True) if count),
            f"{excess[-1]:+.3f}" if math.isfinite(excess[-1]) else "",
            *("" if math.isnan(answers) else f"{answers:.1f}" for answers in until),
            f"{1e3 * results.seconds_a_question(dataset_index, arm):.2f}",
        ]


def _number(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else ""


def _with_error(value: float, error: float) -> str:
    if not math.isfinite(value):
        return ""
    return f"{value:.3f}" + (f" <span class=se>({error:.3f})</span>" if math.isfinite(error) else "")


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, faulty: dict[str, int] | None = None) -> str:
    """Return a table of HTML cells; rows of methods with faults are marked with the number of people."""
    marked = {html.escape(name): count for name, count in (faulty or {}).items()}
    body = ""
    for row in rows:
        count = marked.get(row[0], 0)
        first = f"{row[0]} ({count} failed)" if count else row[0]
        cells = "".join(f"<td>{cell}</td>" for cell in [first, *row[1:]])
        body += f'<tr class="faulty">{cells}</tr>' if count else f"<tr>{cells}</tr>"
    top = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
