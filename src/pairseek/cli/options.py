"""Command-line options shared by several commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", metavar="", help="Print the result as JSON.")]
Scaled = Annotated[
    bool, typer.Option("--scaled", metavar="", help="First centre the items and scale them by the paper's rule.")
]
Coordinates = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMNS",
        help="Columns that are coordinates, such as x,y; the others are data.  [dim]\\[all numeric columns][/]",
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN=VALUE", help="Use only triplets with this value in this column. May be repeated."),
]

Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", "-j", metavar="N", help="Number of worker processes, with one thread each.  [dim]\\[all cores][/]"
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Run on the cluster of this dask scheduler, such as tcp://host:8786."),
]
Table = Annotated[str, typer.Option(metavar="FORMAT", help="Format of the table: csv or parquet.")]
LagOne = Annotated[
    bool,
    typer.Option("--lag-one", metavar="", help="Plot each estimate one answer later, as the authors' program does."),
]
Samples = Annotated[
    int | None,
    typer.Option(metavar="N", help="Number of particles; this option replaces EP by a particle posterior."),
]

Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help=(
            "Recorded choices: CSV with the columns person,item,rating or person,winner,loser; PrefLib .soc, .soi, "
            ".toc; or a study bundle .zip."
        ),
    ),
]
Appeal = Annotated[str, typer.Option(metavar="yes|no|auto", help="Learn an appeal for each item.")]
Rescale = Annotated[str, typer.Option(metavar="yes|no|auto", help="Learn a scale factor for each given coordinate.")]
Curvature = Annotated[str, typer.Option(metavar="yes|no|auto", help="Add a coordinate for the curvature.")]

DatabaseOption = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="URL",
        help="Database: a SQLite file or postgresql://USER@HOST/NAME.  [dim]\\[pairseek.db][/]",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", metavar="", help="Delete without asking.")]
Residual = Annotated[
    str,
    typer.Option(
        metavar="auto|implied|LOGITS",
        help="Standard deviation of the residual utilities, the part of a person's taste that coordinates do not "
        "explain; 0 for none; implied for answers implied by ratings, which never contradict each other.",
    ),
]
