"""Command ``pairseek replay``: recomputation of a bundle's estimates, also with another strategy."""

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
            help="Replay with another strategy: show which pairs it would have asked, given the same answers.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the rows to this CSV file.")
    ] = None,
) -> None:
    """Recompute the estimates of a bundle from its answers, and compare them.

    Each session is recomputed with its stored prior, response model, posterior
    and strategy. With the same versions and processor the estimates are
    identical to the bit; otherwise they agree within a tenth of the radius.
    Sessions that began with an earlier model version are recomputed with the
    present model, and not compared. The exit code is 1 if the estimates disagree.
    """
    require_web()
    from pairseek.web.results import bundle

    read = bundle.read(path)
    if strategy is not None and read.configuration.is_similarity:
        raise InvalidParameter("the bundle is of a similarity study, which has only one strategy: leave --strategy out")
    if strategy is not None:
        _replay_with(read, strategy, out)
        return
    everything = list(bundle.replayed(read))
    replays = [replay for replay in everything if replay.model == MODEL_VERSION]
    same, worst = all(replay.same for replay in replays), max((replay.difference for replay in replays), default=0.0)
    if out is not None:
        columns = ("session", "model", "answers", "radius", "same", "difference")
        _write(out, [{column: getattr(replay, column) for column in columns} for replay in everything])
    where = "the same versions and processor" if read.same_program else "other versions or another processor"
    typer.echo(f"{read.slug}: {len(everything)} sessions with answers, recomputed with {where}.")
    typer.echo(f"Model version: {MODEL_VERSION}.")
    _print_left_out(read)
    if not replays:
        return
    if read.configuration.is_similarity:
        typer.echo(f"Largest share of questions in a session that would be different now: {worst:.2g}.")
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
            f"the strategy {strategy!r} needs settings, which --strategy does not support ({error}): give another one"
        ) from None
    rows = list(bundle.replayed_with(read, {"name": strategy}))
    if not rows:
        raise InvalidParameter("the bundle contains no answers: there is nothing to replay")
    if out is not None:
        _write(out, rows)
    compared = [row for row in rows if row["would_tell"] is not None]
    asked = sum(row["information"] for row in compared) / max(1, len(compared))
    other = sum(row["would_tell"] for row in compared) / max(1, len(compared))
    sessions = len({row["session"] for row in rows})
    typer.echo(f"{read.slug}: {len(rows)} answers from {sessions} sessions, replayed with {strategy}.")
    _print_left_out(read)
    typer.echo(
        f"Mean expected information: {asked:.3f} bits for the pairs asked, {other:.3f} bits for the pairs that "
        f"{strategy} would have asked."
    )


def _print_left_out(read: Bundle) -> None:
    """Print how many sessions are left out or not compared, by reason."""
    if read.dropped_sessions:
        count = plural(len(read.dropped_sessions), "session")
        typer.echo(f"Left out: {count} that began with a population learned from somebody who was forgotten since.")
    for model in read.model_versions:
        if model != MODEL_VERSION:
            parts = [read.parts_of(session) for session in read.sessions if read.parts_of(session).model == model]
            usable = sum(session_parts.is_usable for session_parts in parts)
            later = sum(session_parts.dropped is None for session_parts in parts) - usable
            if usable:
                typer.echo(f"Recomputed but not compared: {plural(usable, 'session')} of model version {model}.")
            if later:
                typer.echo(f"Left out: {plural(later, 'session')} of model version {model}.")


def _write(path: Path, rows: list[dict[str, object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows(rows)
    typer.echo(f"Wrote {path}")
