"""HTML report of a simulation: figures, numbers, specification and compute time."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pairseek.core.text import plural
from pairseek.experiments.figure_style import SavedFigure
from pairseek.experiments.html_report import image, write_html
from pairseek.experiments.measures import MEASURES
from pairseek.experiments.results import Results
from pairseek.experiments.specification_files import to_toml

TABLE_ANSWER_COUNTS = (20, 40, 60, 80)
_STYLE = """
h2 { margin-top: 3rem; border-top: 1px solid #d8d8de; padding-top: 1.2rem; }
h3 { margin: 1.8rem 0 .4rem; font-size: 1.05rem; } p.note, figcaption { color: #55555f; } figure { margin: 1.2rem 0; }
.wide { overflow-x: auto; } table { font-variant-numeric: tabular-nums; margin: .6rem 0; }
th, td { padding: .22rem .8rem .22rem 0; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } th:first-child { white-space: normal; min-width: 9rem; }
thead th { border-bottom: 1px solid #9a9aa4; font-weight: 600; }
.se { color: #6a6a75; } td.clear { font-weight: 600; }
pre { background: #f5f5f7; padding: .8rem 1rem; overflow-x: auto; font-size: .82rem; } summary { cursor: pointer; }
"""


@dataclass(frozen=True)
class Section:
    """One section of the report.

    Attributes
    ----------
    title
        Heading of the section.
    pictures
        Figures on disk, which the page embeds.
    results
        Results; None if no trials were simulated.
    notes
        Paragraphs of plain text.
    folder
        Folder of the table and the figures.
    """

    title: str
    pictures: Sequence[SavedFigure] = ()
    results: Results | None = None
    notes: Sequence[str] = ()
    folder: Path | None = None


def write_report(path: Path, title: str, sections: Sequence[Section], *, lag: int = 0) -> Path:
    """Write the report; ``lag`` is the lag of the figures, which the numbers share."""
    body = []
    if lag:
        body.append(
            f"<p>Shown with a lag of {lag}: the value at n answers is the estimate after n - {lag}, as in the authors' "
            f"program. The table on disk has no lag.</p>"
        )
    for section in sections:
        body += _section_html(section, lag)
    return write_html(path, title, body, style=_STYLE)


def _section_html(section: Section, lag: int) -> Iterator[str]:
    yield f"<h2>{html.escape(section.title)}</h2>"
    for note in section.notes:
        yield f"<p>{html.escape(note)}</p>"
    for picture in section.pictures:
        yield _picture_html(picture)
    if section.results is not None:
        yield from _mean_tables(section.results, lag)
        yield from _difference_tables(section.results, lag)
        yield from _run_summary(section.results, section.folder)


def _picture_html(picture: SavedFigure) -> str:
    path = min(picture.paths, key=lambda p: (".svg", ".gif", ".png").index(p.suffix))
    picture_html = image(path.read_bytes(), path.suffix, picture.caption)
    return f"<figure>{picture_html}<figcaption>{html.escape(picture.caption)}</figcaption></figure>"


def _mean_tables(results: Results, lag: int) -> Iterator[str]:
    marks = results.marks(TABLE_ANSWER_COUNTS)
    yield f"<h3>Numbers: mean (standard error) over {results.specification.trials} users</h3>"
    for setting in results.specification.settings:
        for metric in results.specification.metrics:
            header = [f"{setting.label}: {MEASURES[metric].title}", *(f"{mark} answers" for mark in marks)]
            rows = []
            for label in results.specification.labels:
                mean, error = results.curve(setting.label, label, metric, lag=lag)
                if np.all(np.isnan(mean)):
                    continue
                columns = [results.column(mark) for mark in marks]
                rows.append([label, *(_with_error(mean[i], error[i]) for i in columns)])
            yield _html_table(header, rows)


def _difference_tables(results: Results, lag: int) -> Iterator[str]:
    labels = results.specification.labels
    if len(labels) < 2 or results.specification.trials < 2:
        return
    base = "Random" if "Random" in labels else labels[0]
    marks = results.marks(TABLE_ANSWER_COUNTS)
    yield (
        f"<h3>Paired differences: each strategy minus {html.escape(base)}, over the same users</h3>"
        f'<p class="note">Negative values are better than {html.escape(base)}. Differences beyond two standard '
        f"errors are bold.</p>"
    )
    for setting in results.specification.settings:
        for metric in results.specification.metrics:
            header = [f"{setting.label}: {MEASURES[metric].title}", *(f"{mark} answers" for mark in marks)]
            rows = []
            for label in labels:
                if label == base:
                    continue
                pairs = [results.paired(setting.label, (label, base), metric, mark, lag=lag) for mark in marks]
                if all(np.isnan(paired.difference) for paired in pairs):
                    continue
                rows.append(
                    [label, *(_format_difference(paired.difference, paired.standard_error) for paired in pairs)]
                )
            yield _html_table(header, rows)


def _format_difference(value: float, error: float) -> str:
    text = _with_error(value, error, sign="+")
    return f"<b>{text}</b>" if abs(value) > 2 * error > 0 else text


def _with_error(value: float, error: float, *, sign: str = "") -> str:
    """Format both numbers to the second significant digit of the error, with at most six decimals."""
    if not (np.isfinite(error) and error > 0):
        return f"{value:{sign}.4g}"
    decimals = min(max(1 - math.floor(math.log10(error)), 0), 6)
    return f"{value:{sign}.{decimals}f} <span class=se>({error:.{decimals}f})</span>"


def _html_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    header_cells = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
    body = "".join(
        "<tr>" + f"<td>{html.escape(row[0])}</td>" + "".join(f"<td>{cell}</td>" for cell in row[1:]) + "</tr>"
        for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{header_cells}</tr></thead><tbody>{body}</tbody></table></div>'


def _run_summary(results: Results, folder: Path | None) -> Iterator[str]:
    specification = results.specification
    count = results.asked.size
    sessions = results.run.get("sessions", [])
    wall_seconds = sum(float(session.get("seconds", 0.0)) for session in sessions)
    last = sessions[-1] if sessions else {}
    jobs = f"scheduler {last['scheduler']}" if last.get("scheduler") else f"{last.get('jobs', '?')} processes"
    yield "<h3>What was run, and how long it took</h3>"
    yield (
        f"<p>{count:,} trials of {specification.queries} answers: {plural(specification.trials, 'user')}, "
        f"{plural(len(specification.settings), 'setting')}, {len(specification.strategies)} strategies, seed "
        f"{specification.seed}. {duration(float(results.seconds[..., -1].sum()))} of processor time for asking and "
        f"estimating, {duration(wall_seconds)} of wall time in {len(sessions)} "
        f"session{'s' * (len(sessions) != 1)}, {html.escape(jobs)}, on {html.escape(str(last.get('processor', '')))} "
        f"({last.get('cores', '?')} cores), Python {last.get('python', '?')}, numpy {last.get('numpy', '?')}.</p>"
    )
    rows = []
    for index, label in enumerate(specification.labels):
        seconds = results.seconds[:, index, :, -1]
        questions = np.maximum(results.asked[:, index], 1)
        rows.append(
            [
                label,
                f"{seconds.mean():.2f} s",
                f"{1e3 * float(np.mean(seconds / questions)):.1f} ms",
                f"{questions.mean():.1f}",
            ]
        )
    yield _html_table(["strategy", "compute per trial", "compute per question", "questions asked"], rows)
    yield (
        '<p class="note">Compute time is the processor time of asking and estimating on one thread; simulating the '
        "user and measuring are not counted. For strategies with their own estimate it "
        f"{'includes' if specification.procedure_posterior else 'does not include'} the Bayesian posterior, which a "
        "search always maintains.</p>"
    )
    where = "" if folder is None else f" The table and figures are in {html.escape(str(folder))}."
    yield f"<p>Specification {html.escape(str(results.run.get('identity', ''))[:16])}.{where}</p>"
    yield f"<details><summary>The specification</summary><pre>{html.escape(to_toml(specification))}</pre></details>"


def duration(seconds: float) -> str:
    """Format a time in hours, minutes or seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"
