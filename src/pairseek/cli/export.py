"""``pairseek export``: a study's data as tables or as one bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pairseek.cli.service import DatabaseOption, opened, study_named
from pairseek.errors import InvalidParameter


def command(
    slug: Annotated[str, typer.Argument(metavar="SLUG", help="Name of the study in its link.")],
    *,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Where to write.  [dim]\\[SLUG.zip][/]")
    ] = None,
    table: Annotated[
        str | None, typer.Option(metavar="TABLE", help="answers, participants, estimates or items, instead of all.")
    ] = None,
    database: DatabaseOption = None,
) -> None:
    """Write a study's data, while it runs or after.

    Everything in one zip, or one table as CSV or Parquet, by the file's ending.
    [bold]pairseek replay[/] works the zip out again.
    """
    found = opened(database, new=False)
    try:
        from pairseek.web.data import bundle, tables

        study = study_named(found, slug)
        target = Path(f"{slug}.zip" if table is None else f"{slug}-{table}.csv") if out is None else out
        if table is None:
            with target.open("wb") as file:
                bundle.write(found, study, file)
        else:
            if table not in tables.TABLES:
                raise InvalidParameter(f"there is no table {table!r}: use one of {', '.join(tables.TABLES)}")
            rows, columns = tables.rows_of(found, study, table), tables.columns_of(study, table)
            pieces = [tables.as_parquet(rows, columns)] if target.suffix == ".parquet" else tables.as_csv(rows, columns)
            with target.open("wb") as file:
                for piece in pieces:
                    file.write(piece)
    finally:
        found.close()
    typer.echo(f"Wrote {target}")
