"""Command ``pairseek compile``: compilation of quizzes that need no server."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from pairseek.cli.database import find_study, open_database, require_web
from pairseek.cli.options import Coordinates, DatabaseOption, Jobs
from pairseek.cli.progress import CompilationProgress
from pairseek.cli.runs import Stopped, job_count, orderly_stop
from pairseek.core.columns import named_columns
from pairseek.errors import InvalidParameter

if TYPE_CHECKING:
    from pairseek.quiz.compiler import CompiledQuiz
    from pairseek.quiz.content import QuizSource
    from pairseek.quiz.plan import QuizPlan

_STUDY_ENDINGS = (".yaml", ".yml")


def command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="STUDY|ITEMS", help="Study file (.yaml), items file, or name of a study in the database."
        ),
    ],
    *,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="New folder for the quiz.")],
    answers: Annotated[
        int | None,
        typer.Option(metavar="N", help="Number of answers.  [dim]\\[the study's; 12 for an items file][/]"),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Random seed, which decides the sides.  [dim]\\[0][/]")
    ] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the page.")] = None,
    language: Annotated[
        str | None, typer.Option(metavar="CODE", help="Language of the page, such as en or de.")
    ] = None,
    population: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With an items file: population learned from other people.")
    ] = None,
    coordinates: Coordinates = None,
    megabytes: Annotated[float, typer.Option(metavar="MB", help="Maximum size of the tree.")] = 5.0,
    minutes: Annotated[float, typer.Option(metavar="MIN", help="Maximum duration of the compilation.")] = 60.0,
    force: Annotated[bool, typer.Option("--force", metavar="", help="Replace a quiz in the folder.")] = False,
    jobs: Jobs = None,
    database: DatabaseOption = None,
) -> None:
    """Compile a study or an items file into a quiz that needs no server.

    The folder contains the next pair for every path of answers, the result at
    the end of each path, and a page that works from a file or any static host.
    """
    require_web()
    from pairseek.quiz.compiler import compile_quiz
    from pairseek.quiz.plan import QuizLimits, plan_quiz

    console = Console(highlight=False)
    limits = QuizLimits(megabytes, minutes)
    processes = job_count(jobs, None)
    try:
        with orderly_stop(), contextlib.ExitStack() as stack:
            quiz = _with_title_and_language(
                _read_source(source, population, coordinates, database, stack), title, language
            )
            plan = plan_quiz(quiz, answers=answers, seed=seed, jobs=processes, limits=limits)
            _print_plan(console, plan)
            with CompilationProgress(console, plan.cost.results) as progress:
                compiled = compile_quiz(plan, out, force=force, progress=progress)
    except Stopped as stopped:
        console.print("Stopped. Nothing was written.")
        raise typer.Exit(stopped.code) from None
    _print_quiz(console, compiled)


def _print_plan(console: Console, plan: QuizPlan) -> None:
    from pairseek.quiz.plan import duration_text

    items, cost = plan.source.items, plan.cost
    for note in plan.notes:
        console.print(f"Note: {note}.", markup=False, soft_wrap=True)
    tree = f"{cost.pairs:,} pairs, {cost.results:,} results"
    console.print(f"{items.n:,} items in {items.d} dimensions, {plan.answers} answers: {tree}", soft_wrap=True)
    pictures = ", pictures not included" if "image" in items.data else ""
    console.print(
        f"Expected: {duration_text(plan.seconds)} with {plan.jobs} processes, at most {_kilobytes(plan.size)} of "
        f"data{pictures}",
        soft_wrap=True,
    )


def _print_quiz(console: Console, quiz: CompiledQuiz) -> None:
    files = ", ".join(f"{name} {_kilobytes(size)}" for name, size in quiz.sizes.items())
    console.print(
        f"Compiled in {quiz.seconds:.1f} s: {quiz.pairs:,} pairs, {quiz.results:,} results, {quiz.items:,} items shown",
        soft_wrap=True,
    )
    console.print(f"Written: {_kilobytes(sum(quiz.sizes.values()))} ({files})", markup=False, soft_wrap=True)
    console.print(f"Open {quiz.folder / 'index.html'} in a browser.", markup=False, soft_wrap=True)


def _kilobytes(size: int) -> str:
    return f"{size / 1000:,.0f} kB"


def _read_source(
    source: str,
    population: Path | None,
    coordinates: str | None,
    database: str | None,
    stack: contextlib.ExitStack,
) -> QuizSource:
    """Read the source of a quiz; a database stays open until the stack closes."""
    from pairseek.quiz import sources

    path = Path(source)
    if path.suffix.lower() not in _STUDY_ENDINGS and (path.suffix or path.exists()):
        quiz = sources.from_items_file(path, population, None if coordinates is None else named_columns(coordinates))
        if coordinates is None and quiz.items.columns_note is not None:
            typer.echo(f"Columns of {path.name}: {quiz.items.columns_note}; choose with --coordinates.", err=True)
        return quiz
    if coordinates is not None:
        raise InvalidParameter("--coordinates with a study: a study has its own coordinates; leave the option out")
    if population is not None:
        raise InvalidParameter("--population with a study: a study has its own population; leave the option out")
    if path.suffix:
        return sources.from_study_file(path)
    opened = stack.enter_context(open_database(database, create=False))
    return sources.from_database(opened, find_study(opened, source))


def _with_title_and_language(source: QuizSource, title: str | None, language: str | None) -> QuizSource:
    """Return the source with this title and language, where they are given."""
    from pairseek.web.studies.checks import check
    from pairseek.web.studies.configuration import configured

    changes = {name: value for name, value in (("title", title), ("language", language)) if value is not None}
    if not changes:
        return source
    configuration = configured(source.configuration.model_dump(mode="json") | changes)
    check(configuration, source.items)
    return replace(source, configuration=configuration)
