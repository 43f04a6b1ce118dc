"""Pairseek and its rivals on recorded and simulated people: the tables of docs/benchmarks/compare.md.

    python benchmarks/rivals.py [--people N] [--half reporting|choosing] [--out FOLDER] [--jobs N] [--write PAGE]
    python benchmarks/rivals.py --extra    # also the methods that `pairseek compare first` leaves out

Needs the folder of recorded people that PAIRSEEK_DATA names, and the extra `rivals`, best in an environment of its own.
This is `pairseek compare first` with tables for the page: a row for each method and a column for each data set. A run
goes on where it was.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pairseek.experiments import ComparisonResults, compare, read_comparison
from pairseek.experiments.comparison.entries import EXTRA_METHODS, Entry
from pairseek.experiments.comparison.report import TITLES, write_comparison

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- tables -->", "<!-- end of the tables -->"
# Each table: a score, and the column of answers that it shows, of people with many pairs and with few.
TABLES = (
    ("accuracy", 5, 4),
    ("log_loss", 5, 4),
    ("accuracy", 20, 12),
    ("log_loss", 20, 12),
    ("regret", 10, 8),
    ("top_3", 10, 8),
)
SIGNS = {"ahead": " ▲", "behind": " ▼", "": ""}


def tables(results: ComparisonResults) -> Iterator[str]:
    """Yield the lines of the tables, in Markdown."""
    summary = {(row["data"], row["method"], row["answers"]): row for row in results.summary()}
    verdicts = {(d.data, d.method, d.score, d.answers): d.verdict for d in results.differences()}
    for score, many, few in TABLES:
        shown = {
            data: many if many in counts else few
            for data, counts in zip(results.labels, results.counts, strict=True)
            if many in counts or few in counts
        }
        yield f"\n### {TITLES[score]}, after {many} answers ({few} where people have 15 or 28 pairs)\n"
        yield f"| method | knows | {' | '.join(shown)} |\n|---|---|{'---|' * len(shown)}"
        errors = []
        for entry in _compared(results, score):
            cells = []
            for data, count in shown.items():
                row = summary[data, entry.label, count]
                errors.append(row[f"{score}_se"])
                cells.append(f"{row[score]:.3f}{SIGNS[verdicts.get((data, entry.label, score, count), '')]}")
            yield f"| {entry.label} | {entry.knows} | {' | '.join(cells)} |"
        yield f"\nStandard errors: {min(errors):.3f} to {max(errors):.3f}."
    yield from _calibration(results)


def _compared(results: ComparisonResults, score: str) -> list[Entry]:
    """Return the rivals, and pairseek with the goal that they are compared with."""
    plan = results.comparison
    return [e for e in plan.entries if not e.label.startswith("pairseek") or plan.reference(score, e) is None]


def _calibration(results: ComparisonResults) -> Iterator[str]:
    yield "\n### Calibration error after 10 answers (8), and processor time of a question\n"
    yield f"| method | knows | {' | '.join(results.labels)} | ms |\n|---|---|{'---|' * (len(results.labels) + 1)}"
    for entry in _compared(results, "log_loss"):
        cells = []
        for data, counts in zip(results.labels, results.counts, strict=True):
            place = counts.index(10 if 10 in counts else 8)
            errors, excess = results.calibration(data, entry.label)
            cells.append(f"{errors[place]:.3f} ({excess[place]:+.3f})")
        arm = results.methods.index(entry.label)
        times = [results.seconds_a_question(place, arm) for place in range(len(results.labels))]
        yield f"| {entry.label} | {entry.knows} | {' | '.join(cells)} | {1e3 * sum(times) / len(times):.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=60)
    parser.add_argument("--half", choices=("reporting", "choosing"), default="reporting")
    parser.add_argument("--extra", action="store_true", help="also the methods of the extra `rivals`")
    parser.add_argument("--data", default="", help="only these data sets, separated by semicolons")
    parser.add_argument("--methods", default="", help="beginnings of labels, separated by semicolons")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=ROOT / "pairseek-results" / "rivals")
    parser.add_argument("--reuse", type=Path, nargs="*", default=[], help="earlier outputs with some of the replays")
    parser.add_argument("--write", type=Path, help="the page whose tables are replaced")
    given = parser.parse_args()
    plan = read_comparison("first", people=given.people, half=given.half)
    if given.extra:
        plan = replace(plan, methods=(*plan.methods, *EXTRA_METHODS))
    parts = {name: [p.strip() for p in getattr(given, name).split(";") if p.strip()] for name in ("methods", "data")}
    plan = plan.only(**parts)
    results = compare(plan, given.out, reuse=given.reuse, jobs=given.jobs, note=print)
    write_comparison(given.out / "report.html", results)
    text = "\n".join(tables(results)).strip()
    print(text)
    for line in results.fault_lines():
        print(line)
    if given.write:
        before, _, rest = given.write.read_text().partition(BEGIN)
        given.write.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
