"""Downloads of tables, workbooks, slides and bundles, for the API and the researcher's pages."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from io import SEEK_END
from itertools import chain, islice
from typing import Any, BinaryIO, cast

from anyio import to_thread
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from pairseek.errors import InvalidChoices
from pairseek.web.pages import png_of, render_slide
from pairseek.web.results import bundle, tables, workbook
from pairseek.web.results.findings import GroupFindings, no_ranking
from pairseek.web.service import Service
from pairseek.web.studies.catalogue import Study
from pairseek.web.views.slide import slide_of


async def table_reply(service: Service, study: Study, table: str, ending: str, *, for_excel: bool = False) -> Response:
    """Return a table as a download; a CSV file for Excel begins with a byte order mark."""
    findings = await _current_findings(service, study) if table in ("ranking", "people") else None
    headers = {"content-disposition": f'attachment; filename="{study.row.slug}-{table}.{ending}"'}

    def build_reply() -> Response:
        columns = tables.columns_of(study, table, tables.variables_of(service.database, study))
        rows = tables.rows_of(service.database, study, table, findings)
        if ending == "parquet":
            content = tables.as_parquet(rows, columns)
            return Response(content, media_type="application/vnd.apache.parquet", headers=headers)
        # Read before the first byte is sent, so that an error gets a reply of its own.
        rows = chain(list(islice(rows, 1)), rows)
        chunks = service.stream(tables.as_csv(rows, columns, for_excel=for_excel))
        return StreamingResponse(chunks, media_type="text/csv", headers=headers)

    return await service.run_for_result(build_reply)


async def bundle_reply(service: Service, study: Study) -> Response:
    """Return the bundle as a download, streamed from a temporary file."""
    findings = await _current_findings(service, study)
    file = await _temporary_file(service, lambda file: bundle.write(service.database, study, file, findings))
    return _file_reply(file, f"{study.row.slug}.zip", "application/zip")


async def workbook_reply(service: Service, study: Study, language: str) -> Response:
    """Return the workbook as a download, streamed from a temporary file."""
    findings = await _current_findings(service, study)
    file = await _temporary_file(
        service, lambda file: workbook.write(service.database, study, file, findings, language)
    )
    return _file_reply(file, f"{study.row.slug}.xlsx", workbook.MEDIA_TYPE)


async def slide_reply(
    service: Service, study: Study, ending: str, language: str, *, everyone: bool = False
) -> Response:
    """Return the slide about the ranking as a download, from the latest findings; without any, wait for them."""
    if study.configuration.is_similarity:
        raise no_ranking(study)
    findings = await to_thread.run_sync(lambda: service.findings.look(study).findings, limiter=service.waiting)
    if findings is None:
        findings = await to_thread.run_sync(service.findings.wait_for_current, study, limiter=service.waiting)
    headers = {"content-disposition": f'attachment; filename="{study.row.slug}-{language}.{ending}"'}

    def draw_slide() -> Response:
        slide = slide_of(service.database, study, findings, everyone=everyone, language=language)
        svg = render_slide(slide, language=language)
        if ending == "svg":
            return Response(svg, media_type="image/svg+xml", headers=headers)
        return Response(png_of(svg), media_type="image/png", headers=headers)

    return await service.run_for_result(draw_slide)


async def _temporary_file(service: Service, write: Callable[[BinaryIO], None]) -> BinaryIO:
    """Return a temporary file that a function has written to; it is closed if that fails."""
    file = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115 - closed once it is sent
    try:
        await service.run_for_result(lambda: write(file))
    except BaseException:
        file.close()
        raise
    return file


def _file_reply(file: BinaryIO, name: str, kind: str) -> Response:
    size = file.seek(0, SEEK_END)
    file.seek(0)
    headers = {"content-disposition": f'attachment; filename="{name}"', "content-length": str(size)}
    return _FileReply(file, media_type=kind, headers=headers)


class _FileReply(StreamingResponse):
    """A download of a file, which is closed even if the client leaves before the first byte."""

    def __init__(self, file: BinaryIO, **options: Any) -> None:
        super().__init__(iter(lambda: file.read(256_000), b""), **options)
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file."""
        with self._file:
            await super().__call__(scope, receive, send)


async def _current_findings(service: Service, study: Study) -> Callable[[Study], GroupFindings]:
    """Wait for the current findings, outside the threads that compute, and return a function that returns them."""

    def awaited() -> GroupFindings | InvalidChoices:
        try:
            return service.findings.group_findings(study)
        except InvalidChoices as error:
            return error

    findings = await to_thread.run_sync(awaited, limiter=service.waiting)

    def stored_findings(_: Study) -> GroupFindings:
        if isinstance(findings, InvalidChoices):
            raise findings
        return findings

    return stored_findings
