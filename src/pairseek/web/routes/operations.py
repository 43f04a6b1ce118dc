"""Routes for operators: health, readiness, metrics and API reference."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import FileResponse, Response

from pairseek.core.types import JSON
from pairseek.web.access.auth import authenticated_caller
from pairseek.web.access.rates import address_of
from pairseek.web.access.security import is_forwarded
from pairseek.web.operations.metrics import exposition
from pairseek.web.pages import plotly_script
from pairseek.web.service import Service, service_of
from pairseek.web.views.docs import docs_page

router = APIRouter(include_in_schema=False)

TheService = Annotated[Service, Depends(service_of)]


@router.get("/healthz")
async def healthz() -> JSON:
    """Report that the process is alive."""
    return {"status": "ok"}


@router.get("/readyz")
async def readyz(service: TheService) -> JSON:
    """Report that the worker is ready, and which background work keeps failing."""
    await service.readiness.check()
    problems = service.readiness.problems()
    return {"status": "degraded", "problems": problems} if problems else {"status": "ready"}


@router.get("/metrics")
def metrics(request: Request, service: TheService) -> Response:
    """Return Prometheus metrics to loopback addresses, or to a token with the scope ``read``."""
    if not _is_local(request):
        authenticated_caller(service.database, request.headers.get("authorization")).require_scope("read")
    content, kind = exposition()
    return Response(content, media_type=kind)


@router.get("/docs")
def docs(request: Request, service: TheService) -> Response:
    """Show the reference of the HTTP API."""
    return service.page(request, "docs", docs_page(request.app.openapi()))


@router.get("/static/plotly.min.js")
def plotly() -> Response:
    """Return the script of the plotly package."""
    return FileResponse(plotly_script(), media_type="text/javascript", headers={"cache-control": "max-age=86400"})


def _is_local(request: Request) -> bool:
    """Return whether a request comes from this machine and did not pass through a proxy on it."""
    address = address_of(request.client.host if request.client else "")
    return address is not None and address.is_loopback and not is_forwarded(request.scope)
