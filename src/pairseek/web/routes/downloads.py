"""Downloads of tables and bundles, for the API and the researcher's pages."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import chain, islice

from starlette.responses import Response, StreamingResponse

from pairseek.web.results import bundle, tables
from pairseek.web.service import Service
from pairseek.web.studies.catalogue import Study


def table_reply(service: Service, study: Study, table: str, ending: str) -> Response:
    """Return a table as a download."""
    columns = tables.columns_of(study, table)
    rows = tables.rows_of(service.database, study, table, service.findings.ranking)
    # Read before the first byte is sent, so that an error, or a ranking that is not ready, gets a reply of its own.
    rows = chain(list(islice(rows, 1)), rows)
    headers = {"content-disposition": f'attachment; filename="{study.row.slug}-{table}.{ending}"'}
    if ending == "parquet":
        content = tables.as_parquet(rows, columns)
        return Response(content, media_type="application/vnd.apache.parquet", headers=headers)
    return StreamingResponse(tables.as_csv(rows, columns), media_type="text/csv", headers=headers)


def bundle_reply(service: Service, study: Study) -> Response:
    """Return the bundle as a download, streamed from a temporary file."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - closed once it is sent
    bundle.write(service.database, study, file, service.findings.ranking)
    size = file.tell()
    file.seek(0)

    def chunks() -> Iterator[bytes]:
        with file:
            while chunk := file.read(256_000):
                yield chunk

    headers = {"content-disposition": f'attachment; filename="{study.row.slug}.zip"', "content-length": str(size)}
    return StreamingResponse(chunks(), media_type="application/zip", headers=headers)
