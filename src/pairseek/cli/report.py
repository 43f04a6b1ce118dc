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
    PDF from a browser. A file that ends in .svg or .png gets a slide with the
    ranking instead.
    """
    with open_database(database, create=False) as opened:
        from pairseek.web.pages import languages, png_of, render_report, render_slide
        from pairseek.web.results.findings import study_findings
        from pairseek.web.views.findings import report_page
        from pairseek.web.views.slide import slide_of

        if language not in languages():
            raise InvalidParameter(f"--language is {language!r}: give one of {', '.join(languages())}")
        study = find_study(opened, slug)
        findings, target = study_findings(opened, study), Path(f"{slug}-report.html") if out is None else out
        if target.suffix.lower() in (".svg", ".png"):
            slide = slide_of(opened, study, findings, everyone=everyone, language=language)
            svg = render_slide(slide, language=language)
            target.write_bytes(png_of(svg) if target.suffix.lower() == ".png" else svg.encode())
        else:
            data = report_page(opened, study, findings, everyone=everyone, language=language)
            target.write_text(render_report(data, language=language), encoding="utf-8")
    typer.echo(f"Wrote {target}")
