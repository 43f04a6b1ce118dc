"""Command ``pairseek export``: the data of a study as a bundle, as a workbook or as one table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pairseek.cli.database import find_study, open_database
from pairseek.cli.options import DatabaseOption
from pairseek.core.files import open_private
from pairseek.errors import InvalidParameter

if TYPE_CHECKING:
    from pairseek.store.database import Database
    from pairseek.web.studies.catalogue import Study


def command(
    slug: Annotated[str, typer.Argument(metavar="SLUG", help="Name of the study in its link.")],
    *,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Output file.  [dim]\\[SLUG.zip][/]")
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="Export one table instead of all: answers, participants, estimates, items, ranking or people.",
        ),
    ] = None,
    database: DatabaseOption = None,
) -> None:
    """Export the data of a study, during or after it.

    The export is a zip bundle with all tables, or with --table a single table as
    CSV or Parquet, depending on the file's extension. A file that ends in .xlsx
    gets an Excel workbook of the study. Only you can read the new file.
    [bold]pairseek replay[/] recomputes the estimates of a bundle.
    """
    with open_database(database, create=False) as opened:
        study = find_study(opened, slug)
        target = Path(f"{slug}.zip" if table is None else f"{slug}-{table}.csv") if out is None else out
        if table is None and target.suffix.lower() == ".xlsx":
            from pairseek.web.results import workbook

            with open_private(target) as file:
                workbook.write(opened, study, file)
        elif table is None:
            from pairseek.web.results import bundle

            with open_private(target) as file:
                bundle.write(opened, study, file)
        else:
            _write_table(opened, study, table, target)
    typer.echo(f"Wrote {target}")


def _write_table(database: Database, study: Study, table: str, target: Path) -> None:
    from pairseek.web.results import tables

    if table not in tables.TABLES:
        raise InvalidParameter(f"there is no table {table!r}: use one of {', '.join(tables.TABLES)}")
    rows, columns = (
        tables.rows_of(database, study, table),
        tables.columns_of(study, table, tables.variables_of(database, study)),
    )
    pieces = [tables.as_parquet(rows, columns)] if target.suffix == ".parquet" else tables.as_csv(rows, columns)
    with open_private(target) as file:
        for piece in pieces:
            file.write(piece)
