"""``pairseek replay``: a bundle's estimates computed again, or what another strategy would have believed."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pairseek._version import MODEL_VERSION
from pairseek.cli.service import need_web
from pairseek.core.text import plural
from pairseek.errors import InvalidParameter

if TYPE_CHECKING:
    from pairseek.web.data.bundle import Bundle


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
    """Compute a bundle's estimates again from its answers, and compare.

    Each session is computed with the parts that it began with. With the same
    versions and processor the estimates agree to the bit; elsewhere within a
    tenth of the radius. A bundle of another version of the model is refused.
    Exit code 1: the estimates do not agree.
    """
    need_web()
    from pairseek.web.data import bundle

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
    typer.echo(f"{read.slug}: {len(found)} sessions with answers, computed again with {where}.")
    typer.echo(f"Version of the model: {MODEL_VERSION}.")
    _left_out(read)
    if same:
        typer.echo("Every estimate is the same to the bit.")
        return
    typer.echo(f"The estimates differ by up to {worst:.2g} of their radius; the tolerance is {bundle.TOLERANCE:g}.")
    if worst > bundle.TOLERANCE or read.same_program:
        raise typer.Exit(1)


def _rethink(read: Bundle, strategy: str, out: Path | None) -> None:
    from pairseek import registry
    from pairseek.web.data import bundle

    try:
        registry.decode("strategy", {"name": strategy})
    except TypeError as error:
        raise InvalidParameter(
            f"the strategy {strategy!r} needs settings, which --strategy cannot give ({error}): name another"
        ) from None
    rows = list(bundle.rethought(read, {"name": strategy}))
    if not rows:
        raise InvalidParameter("the bundle holds no answers: there is nothing to think about")
    if out is not None:
        _write(out, rows)
    told = [row for row in rows if row["would_tell"] is not None]
    asked = sum(row["information"] for row in told) / max(1, len(told))
    wished = sum(row["would_tell"] for row in told) / max(1, len(told))
    sessions = len({row["session"] for row in rows})
    typer.echo(f"{read.slug}: {len(rows)} answers of {sessions} sessions, as {strategy} sees them.")
    _left_out(read)
    typer.echo(
        f"A pair that was asked was expected to tell {asked:.3f} bits, the one it would have asked {wished:.3f}."
    )


def _left_out(read: Bundle) -> None:
    """Say which sessions were left out, where some began with another version of the model."""
    for model in read.models:
        if model != MODEL_VERSION:
            count = sum(read.parts_of(session).model == model for session in read.sessions)
            typer.echo(f"Left out: {plural(count, 'session')} of version {model} of the model.")


def _write(path: Path, rows: list[dict[str, object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows(rows)
    typer.echo(f"Wrote {path}")
