"""Command ``pairseek link``: signed links for the participants of a study."""

from __future__ import annotations

import csv
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from pairseek.cli.database import current_user, find_study, open_database
from pairseek.cli.options import DatabaseOption
from pairseek.core.csv import table_rows
from pairseek.core.text import plural
from pairseek.errors import InvalidFile, InvalidParameter

_PARTICIPANT_COLUMN = "participant"


def command(
    slug: Annotated[str, typer.Argument(metavar="SLUG", help="Name of the study in its link.")],
    *,
    participants: Annotated[
        Path,
        typer.Option(
            "--participants", "-p", metavar="FILE", help="Ids, one per line, or a CSV file with a column 'participant'."
        ),
    ],
    address: Annotated[
        str, typer.Option(metavar="URL", help="Address at which people reach the server.")
    ] = "http://127.0.0.1:8421",
    days: Annotated[float, typer.Option(metavar="NUMBER", help="Days until the links expire, at most 366.")] = 30.0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write to a new CSV file instead of the terminal."),
    ] = None,
    database: DatabaseOption = None,
) -> None:
    """Create a personal link for each participant of a study.

    Links are signed: until it expires, a link proves the participant's id, and
    whoever has it can continue the session from any browser. Send each link only
    to its participant. A study with the setting [bold]invited[/] accepts nobody
    without such a link.
    """
    if not address.startswith(("http://", "https://")):
        raise InvalidParameter(f"--address is {address!r}: give the address of the server, such as https://example.org")
    names = read_participants(participants)
    with open_database(database, create=False) as opened:
        from pairseek.store import studies
        from pairseek.web.sessions.links import link_key, signed_link

        study, key = find_study(opened, slug).row, link_key(opened)
        rows = [(name, signed_link(key, address, study, name, days)) for name in names]
        opened.write(lambda connection: studies.log_action(connection, current_user(), "link", slug, count=len(rows)))
    if out is None:
        csv.writer(sys.stdout).writerows([(_PARTICIPANT_COLUMN, "link"), *rows])
        return
    try:
        # Whoever has a link can answer as its participant.
        handle = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InvalidFile(f"{out} already exists and was not changed: give another name") from None
    with os.fdopen(handle, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([(_PARTICIPANT_COLUMN, "link"), *rows])
    typer.echo(f"Wrote {plural(len(rows), 'link')} to {out}")


def read_participants(path: Path) -> list[str]:
    """Read ids, one per line or in the column ``participant``; reject duplicates."""
    lines = table_rows(path, InvalidFile, "one id per line").lines
    header = [cell.strip().casefold() for cell in lines[0][1]]
    column = header.index(_PARTICIPANT_COLUMN) if _PARTICIPANT_COLUMN in header else 0
    body = lines[1:] if _PARTICIPANT_COLUMN in header else lines
    line_of: dict[str, int] = {}
    for line, row in body:
        if column >= len(row) or (_PARTICIPANT_COLUMN not in header and len(row) > 1):
            raise InvalidFile(f"{path}, line {line}: expected one id, received {', '.join(row)[:80]!r}")
        name = row[column].strip()
        if name in line_of:
            raise InvalidFile(f"{path}, line {line}: the id {name[:50]!r} is already in line {line_of[name]}")
        line_of[name] = line
    return list(line_of)
