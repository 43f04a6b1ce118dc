"""Command ``pairseek replay``: recomputation of the estimates of a bundle, also with another strategy."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pairseek._version import MODEL_VERSION
from pairseek.cli.database import require_web
from pairseek.core.text import plural
from pairseek.errors import InvalidParameter
from pairseek.search import serialization

if TYPE_CHECKING:
    from pairseek.web.results.bundle import Bundle


def command(
    path: Annotated[Path, typer.Argument(metavar="BUNDLE", help="Bundle .zip written by pairseek export.")],
    *,
    strategy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Replay with another strategy: the pairs that it would have asked, given the same answers.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the rows to this CSV file.")
    ] = None,
) -> None:
    """Recompute the estimates of a bundle from its answers, and compare them.

    Each session is recomputed with its stored prior, response model, posterior
    and strategy. With the same versions and processor the estimates are equal
    to the bit; otherwise they agree within a tenth of the radius. A bundle of
    another model version is an error. The exit code is 1 if the estimates
    disagree.
    """
    require_web()
    from pairseek.web.results import bundle

    read = bundle.read(path)
    if strategy is not None and read.configuration.is_similarity:
        raise InvalidParameter("the bundle is of a similarity study, which has no other strategy: leave --strategy out")
    if strategy is not None:
        _replay_with(read, strategy, out)
        return
    found = list(bundle.replayed(read))
    same, worst = all(one.same for one in found), max((one.difference for one in found), default=0.0)
    if out is not None:
        _write(out, [{"session": one.session, "answers": one.answers, "radius": one.radius, "same": one.same,
                      "difference": one.difference} for one in found])  # fmt: skip
    where = "the same versions and processor" if read.same_program else "other versions or another processor"
    typer.echo(f"{read.slug}: {len(found)} sessions with answers, recomputed with {where}.")
    typer.echo(f"Model version: {MODEL_VERSION}.")
    _print_left_out(read)
    if read.configuration.is_similarity:
        typer.echo(f"Share of questions that would be others now: {worst:.2g} in the worst session.")
        if worst > 0.0 and read.same_program:
            raise typer.Exit(1)
        return
    if same:
        typer.echo("All estimates are the same to the bit.")
        return
    typer.echo(f"The estimates differ by up to {worst:.2g} of their radius; the tolerance is {bundle.TOLERANCE:g}.")
    if worst > bundle.TOLERANCE or read.same_program:
        raise typer.Exit(1)


def _replay_with(read: Bundle, strategy: str, out: Path | None) -> None:
    from pairseek.web.results import bundle

    try:
        serialization.decode("strategy", {"name": strategy})
    except TypeError as error:
        raise InvalidParameter(
            f"the strategy {strategy!r} needs settings, which --strategy does not support ({error}): use another"
        ) from None
    rows = list(bundle.replayed_with(read, {"name": strategy}))
    if not rows:
        raise InvalidParameter("the bundle contains no answers: there is nothing to replay")
    if out is not None:
        _write(out, rows)
    told = [row for row in rows if row["would_tell"] is not None]
    asked = sum(row["information"] for row in told) / max(1, len(told))
    wished = sum(row["would_tell"] for row in told) / max(1, len(told))
    sessions = len({row["session"] for row in rows})
    typer.echo(f"{read.slug}: {len(rows)} answers of {sessions} sessions, replayed with {strategy}.")
    _print_left_out(read)
    typer.echo(
        f"Mean expected information: {asked:.3f} bits of the pairs asked, {wished:.3f} bits of the pairs that "
        f"{strategy} would have asked."
    )


def _print_left_out(read: Bundle) -> None:
    """Print the numbers of sessions that are left out: without their population, and of other model versions."""
    if read.dropped:
        count = plural(len(read.dropped), "session")
        typer.echo(f"Left out: {count} that began with a population learned from someone who was forgotten.")
    for model in read.models:
        if model != MODEL_VERSION:
            count = sum(read.parts_of(session).model == model for session in read.sessions)
            typer.echo(f"Left out: {plural(count, 'session')} of model version {model}.")


def _write(path: Path, rows: list[dict[str, object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows(rows)
    typer.echo(f"Wrote {path}")
