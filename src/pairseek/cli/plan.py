"""Command ``pairseek plan``: simulation of the number of questions that a study needs."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Annotated

import click
import typer
from rich.console import Console
from rich.table import Table as Columns
from rich.text import Text

from pairseek.cli.items import read_items
from pairseek.cli.options import AsJson, Coordinates, Jobs, Scaled, Scheduler
from pairseek.cli.progress import RunProgress
from pairseek.cli.runs import interruptible, job_count, print_paths
from pairseek.core.columns import ColumnRules
from pairseek.core.validation import one_of, whole
from pairseek.errors import InvalidParameter
from pairseek.experiments.figures.study_plan import draw_plan
from pairseek.experiments.report import Section, write_report
from pairseek.experiments.study_plan import DEFAULT_STRATEGIES, PlanningInputs, RequiredAnswers, StudyPlan, plan
from pairseek.model.items import Items
from pairseek.model.noise import NOISES
from pairseek.pairs.strategies import all_strategies
from pairseek.people.ranking.precision import RankingPrecision, ranking_precision

# Larger bounds are printed with an exponent and called uninformative.
_UNINFORMATIVE_BOUND = 1e4


def command(
    *,
    items: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Items, as CSV, .xlsx, .npy, .npz or .mat.")
    ] = None,
    people: Annotated[
        int | None, typer.Option(metavar="N", help="Number of people: plan a ranking of items without coordinates.")
    ] = None,
    answers: Annotated[int, typer.Option(metavar="N", help="Answers per person, with --people.")] = 20,
    count: Annotated[
        int | None, typer.Option(metavar="N", help="Number of items, with --people and without a file.")
    ] = None,
    coordinates: Coordinates = None,
    k: Annotated[
        float | None, typer.Option("--k", metavar="K", help="Noise constant.  [dim]\\[from the scale of the items][/]")
    ] = None,
    noise: Annotated[str, typer.Option(metavar="NOISE", help=f"Kind of noise: {', '.join(NOISES)}.")] = "normalized",
    target_radius: Annotated[
        float | None,
        typer.Option(metavar="R", help="Target for the 95 % credible radius.  [dim]\\[half the prior's][/]"),
    ] = None,
    strategies: Annotated[str, typer.Option(metavar="A,B", help="Strategies to compare.")] = ",".join(
        DEFAULT_STRATEGIES
    ),
    questions: Annotated[int, typer.Option(metavar="N", help="Maximum number of questions per user.")] = 60,
    users: Annotated[int, typer.Option(metavar="N", help="Number of simulated users.")] = 40,
    scaled: Scaled = False,
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed.")] = 2019,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder for the table, the plot and report.html.")
    ] = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    as_json: AsJson = False,
) -> None:
    """Estimate the number of questions that a study with your items needs.

    Simulated users answer according to the response model. For each strategy,
    the table shows after how many questions the 95 % radius is below the target
    for 50 % and for 90 % of the users. The theoretical minimum follows.

    With --people, the items need no coordinates: a table of simulated studies says
    how precise the ranking will be, and how likely its first item is the best.
    """
    if people is not None:
        show_precision(items, count, people=people, answers=answers, as_json=as_json)
        return
    if items is None:
        raise click.UsageError("Missing option '--items'.")
    names = tuple(part.strip() for part in strategies.split(",") if part.strip())
    for name in names:
        one_of(name, "--strategies", all_strategies())
    one_of(noise, "--noise", NOISES)
    whole(questions, "--questions", 1)
    whole(users, "--users", 2)
    catalogue = read_items(items, coordinates=coordinates)
    inputs = PlanningInputs(
        k=k,
        noise=noise,  # type: ignore[arg-type]
        target=target_radius,
        strategies=names,
        questions=questions,
        users=users,
        scaled=scaled,
        seed=seed,
    )
    console = Console(highlight=False)
    with interruptible(console), tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "plan" if out is None else out
        with RunProgress(Console(stderr=True), f"{users} simulated users on {catalogue.n} items") as progress:
            study_plan = plan(
                catalogue, inputs, folder, jobs=job_count(jobs, scheduler), scheduler=scheduler, progress=progress
            )
        paths = [] if out is None else _write(study_plan, out)
    if as_json:
        typer.echo(json.dumps({**study_plan.record(), "files": [str(path) for path in paths]}, indent=1))
        return
    _show(console, study_plan)
    print_paths(console, paths)


def _write(study_plan: StudyPlan, folder: Path) -> list[Path]:
    pictures = draw_plan(study_plan, folder)
    lines = [*_bound_lines(study_plan), *map(_summary_line, study_plan.required_answers)]
    section = Section("How many questions", pictures, study_plan.results, lines, folder)
    report = write_report(folder / "report.html", "Plan of a study", [section])
    return [report, *(path for picture in pictures for path in picture.paths)]


def _show(console: Console, study_plan: StudyPlan) -> None:
    items, response = study_plan.items, study_plan.response
    questions = study_plan.results.specification.queries
    console.print(
        Text(
            f"\n{items.n} items in {items.d} dimensions, k = {response.constant:.3g}, {response.noise} noise. "
            f"Questions until the 95 % radius is below {study_plan.target:.3g}:\n"
        )
    )
    columns = Columns(box=None, pad_edge=False, header_style="dim")
    for heading in (
        "strategy",
        "half of the users",
        "nine in ten",
        f"radius after {questions}",
        f"error after {questions}",
    ):
        columns.add_column(heading, justify="left" if heading == "strategy" else "right")
    for need in study_plan.required_answers:
        columns.add_row(
            need.strategy,
            _count_text(need.half, questions),
            _count_text(need.nine_in_ten, questions),
            f"{need.radius[-1]:.3g}",
            f"{need.error[-1]:.3g}",
        )
    console.print(columns)
    console.print(Text("\n" + "\n".join(_bound_lines(study_plan)) + "\n"))


def _count_text(value: int | None, questions: int) -> str:
    return f"over {questions}" if value is None else str(value)


def _summary_line(need: RequiredAnswers) -> str:
    reached = f"{need.reached:.0%} of the users reached the target"
    half = "fewer than half within the simulated questions"
    if need.half is not None:
        half = f"half of all users after {need.half} questions"
    nine_in_ten = "" if need.nine_in_ten is None else f", nine in ten after {need.nine_in_ten}"
    return f"{need.strategy}: {reached}, {half}{nine_in_ten}."


def _bound_lines(study_plan: StudyPlan) -> list[str]:
    lower, upper = study_plan.lower_bound, study_plan.upper_bound
    lines = [f"No strategy needs fewer than {lower} questions on average (an answer gives at most one bit)."]
    if upper is not None:
        is_informative = upper < _UNINFORMATIVE_BOUND
        bound = f"{upper:,.0f}" if is_informative else f"{upper:.1e}"
        remark = "" if is_informative else ", which says little at this noise"
        lines.append(f"With a free choice of pairs, EPMV provably needs at most {bound} on average{remark}.")
    return lines


def show_precision(items: Path | None, count: int | None, *, people: int, answers: int, as_json: bool) -> None:
    """Print the expected precision of a ranking; `count` is the number of items if no file is given."""
    if (items is None) == (count is None):
        raise InvalidParameter(
            "give either --items, a file, or --count, the number of items, together with --people", field="count"
        )
    if items is not None:
        count = Items._of_file(items, ColumnRules(media=True, optional=True)).n
    precision = ranking_precision(count or 0, people, answers)
    typer.echo(json.dumps(_record(precision), indent=1) if as_json else _text(precision))


def _record(precision: RankingPrecision) -> dict[str, float | bool]:
    return {
        "items": precision.items,
        "people": precision.people,
        "answers": precision.answers,
        "ranks": precision.ranks,
        "best_found": precision.best_found,
        "best_found_is_bound": precision.is_bound,
        "tells_apart": precision.tells_apart,
    }


def _text(precision: RankingPrecision) -> str:
    chance = f"{'at most ' if precision.is_bound else ''}{precision.best_found:.0%}"
    lines = [
        f"{precision.items:,} items, {precision.people:,} people, {precision.answers:,} answers each:",
        f"  the 90 % interval of a rank spans about {precision.ranks:,.0f} of {precision.items:,} places",
        f"  the item ranked first is the best with a probability of {chance}",
    ]
    if not precision.tells_apart:
        lines.append("  Warning: these answers cannot tell the items apart. Ask more people or use fewer items.")
    return "\n".join(lines)
