"""Command ``pairseek report``: the findings of a study as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pairseek.cli.database import find_study, open_database
from pairseek.cli.options import DatabaseOption
from pairseek.errors import InvalidParameter


def command(
    slug: Annotated[str, typer.Argument(metavar="STUDY", help="Name of the study in its link.")],
    *,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Output file.  [dim]\\[STUDY-report.html][/]")
    ] = None,
    language: Annotated[str, typer.Option(metavar="LANGUAGE", help="Language of the report, such as en or de.")] = "en",
    everyone: Annotated[
        bool, typer.Option("--everyone", metavar="", help="Include people whose answers look careless.")
    ] = False,
    database: DatabaseOption = None,
) -> None:
    """Write the report of a study: ranking, segments, map and data quality.

    The report is a single HTML page that needs no network. You can print it to
    PDF from a browser.
    """
    with open_database(database, create=False) as opened:
        from pairseek.web.pages import languages, render_report
        from pairseek.web.results.findings import study_findings
        from pairseek.web.views.findings import report_page

        if language not in languages():
            raise InvalidParameter(f"--language is {language!r}: give one of {', '.join(languages())}")
        study = find_study(opened, slug)
        data = report_page(opened, study, study_findings(opened, study), everyone=everyone, language=language)
        target = Path(f"{slug}-report.html") if out is None else out
        target.write_text(render_report(data, language=language), encoding="utf-8")
    typer.echo(f"Wrote {target}")
