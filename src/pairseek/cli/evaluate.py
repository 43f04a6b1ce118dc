"""Command ``pairseek evaluate``: evaluation of searches on recorded choices."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pairseek.cli.choices import parse_dimension, parse_residual, parse_setting, read_choices_and_items
from pairseek.cli.options import Appeal, AsJson, Coordinates, Curvature, Data, Jobs, Rescale, Residual, Samples
from pairseek.cli.progress import RunProgress
from pairseek.cli.runs import interruptible, job_count, print_paths
from pairseek.core.text import plural
from pairseek.core.validation import one_of
from pairseek.errors import InvalidParameter
from pairseek.evaluate import EvaluationResults, evaluate, strategies_from
from pairseek.experiments.comparison.person import WITHHOLD
from pairseek.experiments.evaluation.evaluation import ANSWERS
from pairseek.experiments.evaluation.figures import draw
from pairseek.experiments.evaluation.specification import FIRST_MEASURES, PICK_MEASURES, POPULARITY
from pairseek.experiments.figure_style import require_drawing
from pairseek.experiments.runs.part_records import default_label
from pairseek.pairs.strategies import Random
from pairseek.search.goals import Goal

_RANDOM = default_label(Random())
_TITLES = {
    "accuracy": "Accuracy of predicted choices",
    "log_loss": "Log loss",
    "gain": "Share of people whom answers help",
    "calibration_error": "Calibration error",
    "regret": "Regret: {value} of the person's best item minus the pick's",
    "top_3": "Mean {value} of the first 3 recommended items",
    "top_5": "Mean {value} of the first 5 recommended items",
    "liked": "Share of shown items that the person likes",
}
_LEAD_TITLES = {
    "accuracy": f"Lead in accuracy over {_RANDOM}",
    "regret": f"Regret minus the regret of {_RANDOM}",
    "top_3": f"Lead in mean {{value}} of the first 3 over {_RANDOM}",
}


def command(
    data: Data,
    *,
    items: Annotated[
        Path | None, typer.Option(metavar="ITEMS", help="Items with coordinates, as CSV, .npy, .npz or .mat.")
    ] = None,
    coordinates: Coordinates = None,
    learn: Annotated[
        str | None,
        typer.Option(metavar="D|auto", help="Learn coordinates from the other people in this many dimensions."),
    ] = None,
    appeal: Appeal = "yes",
    rescale: Rescale = "no",
    curvature: Curvature = "no",
    residual: Residual = "auto",
    goal: Annotated[
        str,
        typer.Option(
            metavar="GOAL",
            help="Goal of the search: taste, best or list. It determines the strategy and the measures shown first.",
        ),
    ] = "taste",
    strategies: Annotated[
        str | None, typer.Option(metavar="A,B", help="Strategies to compare.  [dim]\\[the goal's, random][/]")
    ] = None,
    answers: Annotated[
        str, typer.Option(metavar="N,N", help="Answer counts at which predictions are scored.")
    ] = ",".join(map(str, ANSWERS)),
    hold_out: Annotated[
        str, typer.Option(metavar="WHO", help="Cross-validation scheme: people, or leave-one-out.")
    ] = "people",
    people: Annotated[
        int | None, typer.Option(metavar="N", help="Number of held-out people per split.  [dim]\\[150, or a third][/]")
    ] = None,
    splits: Annotated[
        int,
        typer.Option(metavar="N", help="Number of splits, disjoint as far as the number of people allows."),
    ] = 3,
    withhold: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="Share of each person's pairs to withhold from the questions and predict. With 0, the search predicts "
            "the pairs that it did not ask, which flatters strategies that ask hard questions.",
        ),
    ] = WITHHOLD,
    ties: Annotated[
        str, typer.Option(metavar="HOW", help="Answer to pairs that a person left undecided: coin (at random), or tie.")
    ] = "coin",
    samples: Samples = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed.")] = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Output folder.  [dim]\\[pairseek-results/NAME][/]")
    ] = None,
    jobs: Jobs = None,
    as_json: AsJson = False,
) -> None:
    """Replay searches on recorded choices, and score the predictions.

    Each held-out person is asked only about pairs in the data, including ties,
    by a search whose population was fitted to the other people. Some of the
    person's pairs, drawn at random before the first question, are withheld, and
    the search predicts them. The baselines are random questions, the default
    model without a population, and the majority preference. If people rated the
    items or compared every pair, recommendations are scored by the person's own
    values.
    """
    choices, catalogue = read_choices_and_items(data, items, coordinates, learns_coordinates=learn is not None)
    scheme: Literal["people", "leave-one-out"] = one_of(hold_out, "--hold-out", ("people", "leave-one-out"))  # type: ignore[assignment]
    goal_name: Goal = one_of(goal, "--goal", tuple(FIRST_MEASURES))  # type: ignore[assignment]
    require_drawing()
    console = Console(highlight=False, stderr=as_json)
    for note in choices.notes:
        console.print(Text(f"{note}."), soft_wrap=True)
    folder = out or Path("pairseek-results") / f"evaluate-{data.stem}"
    with interruptible(console):
        with RunProgress(console, f"{data.name}: {plural(len(choices.ids), 'item')}") as progress:
            results = evaluate(
                choices,
                folder,
                items=catalogue,
                learn=None if learn is None else parse_dimension("--learn", learn),
                appeal=parse_setting("--appeal", appeal),
                rescale=parse_setting("--rescale", rescale),
                curvature=parse_setting("--curvature", curvature),
                residual=parse_residual(residual),
                goal=goal_name,
                strategies=() if strategies is None else strategies_from(strategies),
                answers=_counts(answers),
                hold_out=scheme,
                people=people,
                splits=splits,
                withhold=withhold,
                ties=one_of(ties, "ties", ("coin", "tie")),  # type: ignore[arg-type]
                samples=samples,
                seed=seed,
                jobs=job_count(jobs, None),
                progress=progress,
                note=lambda line: console.print(Text(f"  {line}", "dim")) if console.is_terminal else None,
            )
        pictures = draw(results, folder, title=data.stem, goal=goal_name)
    if as_json:
        typer.echo(json.dumps(_record(results), indent=1))
        return
    show(console, results, goal=goal_name, is_implied=choices.derived, is_rated=choices.ratings is not None)
    print_paths(console, [folder / "summary.csv", folder / "people.csv", *pictures[0].paths])


def _counts(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidParameter(f"--answers is {text!r}: give increasing whole numbers, such as 0,5,10,20") from None


def _record(results: EvaluationResults) -> dict[str, object]:
    agreement = results.agreement
    rows = [{k: None if v != v else v for k, v in row.items()} for row in results.summary()]
    return {
        "withhold": results.plan.withhold,
        "ties": results.plan.ties,
        "summary": rows,
        "self_agreement": None
        if agreement is None
        else {
            "share": agreement.share,
            "standard_error": agreement.standard_error,
            "people": agreement.people,
        },
    }


def _cell(value: float, error: float | None, *, sign: str = "") -> str:
    return "" if value != value else f"{value:{sign}.3f}" + ("" if error is None else f"±{error:.3f}")


def _print_table(console: Console, results: EvaluationResults, title: str, rows: Mapping[str, Sequence[str]]) -> None:
    """Print a table with one column per answer count, and the number of people behind each column."""
    console.print(Text(f"{title}, after answers:", "dim"))
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column()
    for count in results.plan.answers:
        table.add_column(str(count), justify="right")
    for arm, cells in rows.items():
        table.add_row(arm, *cells)
    people = [str(row["people"]) for row in results.summary()[: len(results.plan.answers)]]
    table.add_row("people", *people, style="dim")
    console.print(table)
    console.print()


def show(
    console: Console, results: EvaluationResults, *, goal: Goal = "taste", is_implied: bool, is_rated: bool
) -> None:
    """Print the tables of the summary, and how to read them.

    Parameters
    ----------
    goal
        Goal of the search, which determines the measures that come first.
    is_implied
        Whether the pairs are implied by ratings or rankings.
    is_rated
        Whether the values of items are ratings rather than shares of comparisons won.
    """
    summary, answers = results.summary(), results.plan.answers
    unit = "rating" if is_rated else "share of comparisons won"
    measures = [
        name for name in (*FIRST_MEASURES[goal], "calibration_error") if results.valued or name not in PICK_MEASURES
    ]
    for measure in measures:
        rows = {}
        for arm in results.plan.labels:
            # Popularity asks nothing, so it neither gains from answers nor shows items.
            if arm != POPULARITY or measure not in ("gain", "liked"):
                arm_rows = [row for row in summary if row["arm"] == arm]
                rows[arm] = [_cell(row[measure], row.get(f"{measure}_se")) for row in arm_rows]
        _print_table(console, results, _TITLES[measure].format(value=unit), rows)
        if measure == measures[0]:
            others = [arm for arm in results.plan.labels if arm not in (_RANDOM, POPULARITY)]
            leads = {arm: [results.difference((arm, _RANDOM), measure, (n, n)) for n in answers] for arm in others}
            rows = {arm: [_cell(*lead, sign="+") for lead in leads_of_arm] for arm, leads_of_arm in leads.items()}
            _print_table(console, results, f"{_LEAD_TITLES[measure].format(value=unit)}, person by person", rows)
    answer = "a coin toss" if results.plan.ties == "coin" else "a tie"
    notes = [
        f"{results.plan.predicted.capitalize()}. Pairs that they left undecided are answered with {answer}.",
        "A column leaves out people with too few pairs for that many answers.",
    ]
    if results.valued:
        notes.append(f"A person likes the items whose {unit} is above that person's mean.")
    else:
        notes.append(
            "Nobody rated the items or compared every pair of their items, so regret, the value of recommended items "
            "and the share of liked items are unknown."
        )
    if is_implied:
        notes.append(
            "The pairs are implied by ratings or rankings, which never contradict themselves: these figures are upper "
            "bounds for answers to pairs."
        )
    for line in notes:
        console.print(Text(line), soft_wrap=True)
    if results.agreement is not None:
        agreement = results.agreement
        console.print(
            Text(
                f"Self-agreement on repeated pairs: {agreement.share:.3f} ± {agreement.standard_error:.3f} "
                f"({agreement.people} people)."
            ),
            soft_wrap=True,
        )
