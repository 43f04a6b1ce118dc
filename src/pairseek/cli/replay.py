"""Command ``pairseek replay``: recomputation of a bundle's estimates, or of its questions with another strategy."""

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
            help="Replay with another strategy: show which pairs it would have asked after the same answers.",
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
    present model but not compared. The exit code is 1 if the estimates disagree.
    """
    require_web()
    from pairseek.web.results import bundle

    contents = bundle.read(path)
    if strategy is not None and contents.configuration.is_similarity:
        raise InvalidParameter("the bundle is of a similarity study, which has only one strategy: leave --strategy out")
    if strategy is not None:
        _replay_with(contents, strategy, out)
        return
    all_replays = list(bundle.replayed(contents))
    replays = [replay for replay in all_replays if replay.model == MODEL_VERSION]
    are_same = all(replay.same for replay in replays)
    largest = max((replay.difference for replay in replays), default=0.0)
    if out is not None:
        columns = ("session", "model", "answers", "radius", "same", "difference")
        _write(out, [{column: getattr(replay, column) for column in columns} for replay in all_replays])
    where = "the same versions and processor" if contents.same_program else "other versions or another processor"
    typer.echo(f"{contents.slug}: {len(all_replays)} sessions with answers, recomputed with {where}.")
    typer.echo(f"Model version: {MODEL_VERSION}.")
    _print_left_out(contents)
    if not replays:
        return
    if contents.configuration.is_similarity:
        typer.echo(f"Largest share of a session's questions that would be different now: {largest:.2g}.")
        if largest > 0.0 and contents.same_program:
            raise typer.Exit(1)
        return
    if are_same:
        typer.echo("All estimates are identical to the bit.")
        return
    typer.echo(
        f"The estimates differ by up to {largest:.2g} of their radius; the tolerance is {bundle.RADIUS_TOLERANCE:g}."
    )
    if largest > bundle.RADIUS_TOLERANCE or contents.same_program:
        raise typer.Exit(1)


def _replay_with(contents: Bundle, strategy: str, out: Path | None) -> None:
    from pairseek.web.results import bundle

    try:
        serialization.decode("strategy", {"name": strategy})
    except TypeError as error:
        raise InvalidParameter(
            f"the strategy {strategy!r} needs settings, which --strategy does not support ({error}): give another"
        ) from None
    rows = list(bundle.replayed_with(contents, {"name": strategy}))
    if not rows:
        raise InvalidParameter("the bundle contains no answers: there is nothing to replay")
    if out is not None:
        _write(out, rows)
    compared = [row for row in rows if row["would_tell"] is not None]
    asked_bits = sum(row["information"] for row in compared) / max(1, len(compared))
    other_bits = sum(row["would_tell"] for row in compared) / max(1, len(compared))
    sessions = len({row["session"] for row in rows})
    typer.echo(f"{contents.slug}: {len(rows)} answers from {sessions} sessions, replayed with {strategy}.")
    _print_left_out(contents)
    typer.echo(
        f"Mean expected information: {asked_bits:.3f} bits for the pairs asked, {other_bits:.3f} bits for the pairs "
        f"that {strategy} would have asked."
    )


def _print_left_out(contents: Bundle) -> None:
    """Print how many sessions are left out or not compared, and why."""
    if contents.dropped_sessions:
        count = plural(len(contents.dropped_sessions), "session")
        typer.echo(f"Left out: {count} that began with a population learned from somebody who was since forgotten.")
    for model in contents.model_versions:
        if model != MODEL_VERSION:
            parts = [contents.parts_of(row) for row in contents.sessions if contents.parts_of(row).model == model]
            usable = sum(session_parts.is_usable for session_parts in parts)
            unusable = sum(session_parts.dropped_population is None for session_parts in parts) - usable
            if usable:
                typer.echo(f"Recomputed but not compared: {plural(usable, 'session')} of model version {model}.")
            if unusable:
                typer.echo(f"Left out: {plural(unusable, 'session')} of model version {model}.")


def _write(path: Path, rows: list[dict[str, object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows(rows)
    typer.echo(f"Wrote {path}")
