"""Route of item pictures."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from pairseek.store import media
from pairseek.web.errors import not_found
from pairseek.web.service import Service, service_of

router = APIRouter(include_in_schema=False)

# The name is a hash of the content, so the response is immutable.
_CACHE_CONTROL = "public, max-age=31536000, immutable"


@router.get("/media/{slug}/{name}/{width}")
def picture(slug: str, name: str, width: int, service: Annotated[Service, Depends(service_of)]) -> Response:
    """Return one size of a picture."""
    row = service.catalogue.row(slug)
    stored = None
    if 0 < width < 2**31:
        stored = service.database.read(lambda connection: media.picture(connection, row.id, name, width))
    if stored is None:
        raise not_found("picture", f"{name[:64]}/{width}")
    return Response(stored.content, media_type=stored.kind, headers={"cache-control": _CACHE_CONTROL})
