"""Downloads of tables and bundles, for the API and the researcher's pages."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from itertools import chain, islice

from anyio import to_thread
from starlette.responses import Response, StreamingResponse

from pairseek.errors import InvalidChoices
from pairseek.people.ranking import Ranking
from pairseek.web.results import bundle, tables
from pairseek.web.service import Service
from pairseek.web.studies.catalogue import Study


async def table_reply(service: Service, study: Study, table: str, ending: str) -> Response:
    """Return a table as a download."""
    ranking = await _current_ranking(service, study) if table == "ranking" else None
    headers = {"content-disposition": f'attachment; filename="{study.row.slug}-{table}.{ending}"'}

    def begun() -> Response:
        columns = tables.columns_of(study, table, tables.variables_of(service.database, study))
        rows = tables.rows_of(service.database, study, table, ranking)
        if ending == "parquet":
            content = tables.as_parquet(rows, columns)
            return Response(content, media_type="application/vnd.apache.parquet", headers=headers)
        # Read before the first byte is sent, so that an error gets a reply of its own.
        rows = chain(list(islice(rows, 1)), rows)
        chunks = service.streamed(tables.as_csv(rows, columns))
        return StreamingResponse(chunks, media_type="text/csv", headers=headers)

    return await service.for_result(begun)


async def bundle_reply(service: Service, study: Study) -> Response:
    """Return the bundle as a download, streamed from a temporary file."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - closed once it is sent
    ranking = await _current_ranking(service, study)
    await service.for_result(lambda: bundle.write(service.database, study, file, ranking))
    size = file.tell()
    file.seek(0)

    def chunks() -> Iterator[bytes]:
        with file:
            while chunk := file.read(256_000):
                yield chunk

    headers = {"content-disposition": f'attachment; filename="{study.row.slug}.zip"', "content-length": str(size)}
    return StreamingResponse(chunks(), media_type="application/zip", headers=headers)


async def _current_ranking(service: Service, study: Study) -> Callable[[Study], Ranking]:
    """Wait for the current group ranking, outside the threads that compute, and return a function that returns it."""

    def awaited() -> Ranking | InvalidChoices:
        try:
            return service.findings.ranking(study)
        except InvalidChoices as error:
            return error

    ranking = await to_thread.run_sync(awaited, limiter=service.waiting)

    def known(_: Study) -> Ranking:
        if isinstance(ranking, InvalidChoices):
            raise ranking
        return ranking

    return known
