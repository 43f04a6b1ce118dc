"""``pairseek replay``: work out a bundle's estimates again, or what another strategy would have thought."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated

import typer

from pairseek.cli._web import need_web
from pairseek.errors import InvalidParameter


def command(
    path: Annotated[Path, typer.Argument(metavar="BUNDLE", help="A zip from pairseek export.")],
    *,
    strategy: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What this strategy would have thought and asked, given the same answers."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the rows to this CSV file.")
    ] = None,
) -> None:
    """Work out a bundle's estimates again from its answers, and compare.

    With the same versions and processor they agree to the bit; elsewhere
    within a tenth of the radius, and it says which. Exit code 1: they do not.
    """
    need_web()
    from pairseek.web import bundle

    read = bundle.read(path)
    if strategy is not None:
        _rethink(read, strategy, out)
        return
    found = list(bundle.replayed(read))
    same, worst = all(one.same for one in found), max((one.difference for one in found), default=0.0)
    if out is not None:
        _write(out, [{"session": one.session, "answers": one.answers, "radius": one.radius, "same": one.same,
                      "difference": one.difference} for one in found])  # fmt: skip
    where = "the same versions and processor" if read.same_program else "other versions or another processor"
    typer.echo(f"{read.slug}: {len(found)} sessions with answers, worked out again with {where}.")
    if same:
        typer.echo("Every estimate is the same to the bit.")
        return
    typer.echo(f"The estimates differ by up to {worst:.2g} of their radius; the tolerance is {bundle.TOLERANCE:g}.")
    if worst > bundle.TOLERANCE or read.same_program:
        raise typer.Exit(1)


def _rethink(read: object, strategy: str, out: Path | None) -> None:
    from pairseek import registry
    from pairseek.web import bundle

    assert isinstance(read, bundle.Bundle)
    registry.decode("strategy", {"name": strategy})
    other = read.configuration.model_copy(update={"strategy": {"name": strategy}})
    rows = list(bundle.rethought(read, other))
    if not rows:
        raise InvalidParameter("the bundle holds no answers: there is nothing to think about")
    if out is not None:
        _write(out, rows)
    told = [row for row in rows if row["would_tell"] is not None]
    asked = sum(row["information"] for row in told) / max(1, len(told))
    wished = sum(row["would_tell"] for row in told) / max(1, len(told))
    sessions = len({row["session"] for row in rows})
    typer.echo(f"{read.slug}: {len(rows)} answers of {sessions} sessions, as {strategy} sees them.")
    typer.echo(
        f"A pair that was asked was expected to tell {asked:.3f} bits, the one it would have asked {wished:.3f}."
    )


def _write(path: Path, rows: list[dict[str, object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows(rows)
    typer.echo(f"Wrote {path}")
