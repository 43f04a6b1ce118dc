"""Static files of the pages, compressed and with cache headers."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from pairseek.web.pages.rendering import STATIC

# Cache header of URLs with a content hash.
_IMMUTABLE = "public, max-age=31536000, immutable"
# Cache header of all other URLs.
_REVALIDATE = "no-cache"


class PageFiles(StaticFiles):
    """Static files of `STATIC`, compressed.

    Pages are never compressed: they contain secrets, which the size of a compressed reply could leak.
    """

    def __init__(self) -> None:
        super().__init__(directory=STATIC)

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return a file with its cache headers."""
        response = await super().get_response(path, scope)
        if isinstance(response, FileResponse) and "gzip" in Headers(scope=scope).get("accept-encoding", ""):
            headers = {name: response.headers[name] for name in ("etag", "last-modified", "content-type")}
            content = _compressed(Path(response.path)) if scope["method"] == "GET" else b""
            response = Response(content, headers={**headers, "content-encoding": "gzip", "vary": "accept-encoding"})
        response.headers["cache-control"] = _IMMUTABLE if scope["query_string"].startswith(b"v=") else _REVALIDATE
        return response


@cache
def _compressed(path: Path) -> bytes:
    return gzip.compress(path.read_bytes(), mtime=0)
