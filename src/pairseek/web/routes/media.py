"""Routes of item pictures, sounds and videos."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response, StreamingResponse

from pairseek.store import media, recordings
from pairseek.store.database import Database
from pairseek.store.recordings import PIECE_BYTES
from pairseek.web.errors import not_found
from pairseek.web.routes.ranges import Unsatisfiable, byte_range
from pairseek.web.service import Service, service_of

router = APIRouter(include_in_schema=False)

# The name is a hash of the content, so the response is immutable.
_CACHE_CONTROL = "public, max-age=31536000, immutable"
TheService = Annotated[Service, Depends(service_of)]


@router.get("/media/{slug}/{name}/{width}")
def picture(slug: str, name: str, width: int, request: Request, service: TheService) -> Response:
    """Return one size of a picture."""
    row = service.catalogue.row(slug)
    stored = None
    if 0 < width < 2**31:
        stored = service.database.read(lambda connection: media.picture(connection, row.id, name, width))
    if stored is None:
        raise not_found("picture", f"{name[:64]}/{width}")
    headers = {"cache-control": _CACHE_CONTROL, "etag": f'"{stored.name}-{stored.width}"'}
    if _is_cached(request, headers["etag"]):
        return Response(status_code=304, headers=headers)
    return Response(stored.content, media_type=stored.kind, headers=headers)


@router.get("/media/{slug}/{name}")
def recording(slug: str, name: str, request: Request, service: TheService) -> Response:
    """Return a sound or video, or a range of its bytes."""
    row = service.catalogue.row(slug)
    stored = service.database.read(lambda connection: recordings.recording(connection, row.id, name))
    if stored is None:
        raise not_found("sound or video", name[:64])
    headers = {"cache-control": _CACHE_CONTROL, "etag": f'"{stored.name}"', "accept-ranges": "bytes"}
    if _is_cached(request, headers["etag"]):
        return Response(status_code=304, headers=headers)
    try:
        requested = byte_range(request.headers, stored.size, headers["etag"])
    except Unsatisfiable:
        return Response(status_code=416, headers={"content-range": f"bytes */{stored.size}", "accept-ranges": "bytes"})
    first, end = requested or (0, stored.size)
    headers["content-length"] = str(end - first)
    if requested is not None:
        headers["content-range"] = f"bytes {first}-{end - 1}/{stored.size}"
    content = _bytes_of(service.database, row.id, name, first, end)
    status = 200 if requested is None else 206
    return StreamingResponse(content, status, headers, media_type=stored.kind)


def _is_cached(request: Request, etag: str) -> bool:
    """Return whether the client has this version, whatever the strength of its comparison."""
    known = request.headers.get("if-none-match", "")
    return known.strip() == "*" or etag in (part.strip().removeprefix("W/") for part in known.split(","))


def _bytes_of(database: Database, study_id: int, name: str, first: int, end: int) -> Iterator[bytes]:
    """Yield a range of a sound or video; each piece is read when the client has taken the one before."""
    for number in range(first // PIECE_BYTES, (end - 1) // PIECE_BYTES + 1):
        start = number * PIECE_BYTES
        content = database.read(partial(recordings.piece, study_id=study_id, name=name, number=number))
        if content is None:
            raise not_found("sound or video", name[:64])  # deleted meanwhile
        yield content[max(0, first - start) : end - start]
