"""FastAPI application: routers, middleware, exception handlers and lifespan."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from pairseek._version import __version__
from pairseek.errors import PairseekError
from pairseek.web.access.cors import CrossOriginMiddleware
from pairseek.web.access.error_responses import http_error, invalid_request, pairseek_error
from pairseek.web.access.security import SecurityMiddleware
from pairseek.web.operations.logs import LoggingMiddleware
from pairseek.web.pages.files import PageFiles
from pairseek.web.routes import (
    account,
    api,
    media,
    own_questions,
    participant,
    planning,
    presentation,
    recruitment,
    researcher,
    researcher_access,
    study_design,
)
from pairseek.web.routes import operations as operation
from pairseek.web.service import Service
from pairseek.web.settings import Settings
from pairseek.web.studies.catalogue import Study


def create_app(settings: Settings, preloaded: Mapping[int, Study] | None = None) -> FastAPI:
    """Create the application, which opens its database at startup; ``preloaded`` contains studies in memory by id."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service = app.state.service = Service.open(settings, preloaded)
        try:
            yield
        finally:
            service.close()

    app = FastAPI(
        title="pairseek",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        # Telemetry would send bodies, ids and messages to any exporter in the environment.
        telemetry={
            "tracing": False,
            "metrics": False,
            "logs": False,
            "operation_spans": False,
            "auto_configure": False,
        },
    )
    app.add_middleware(SecurityMiddleware, settings=settings)
    if settings.origins:
        # Added outside the security middleware, so that a page of another origin can read why it was refused.
        app.add_middleware(CrossOriginMiddleware, settings=settings)
    app.add_middleware(LoggingMiddleware)
    app.router.routes.extend(participant.plain_routes)
    app.include_router(participant.router)
    app.include_router(own_questions.router)
    app.include_router(account.router)
    app.include_router(planning.router)
    app.include_router(presentation.router)
    app.include_router(researcher.router)
    app.include_router(study_design.router)
    app.include_router(recruitment.router)
    app.include_router(media.router)
    app.include_router(operation.router)
    app.include_router(api.router)
    app.mount("/static", PageFiles(), name="static")
    app.add_exception_handler(PairseekError, pairseek_error)
    app.add_exception_handler(researcher_access.SignInFirst, researcher_access.sign_in_first)
    app.add_exception_handler(RequestValidationError, invalid_request)
    app.add_exception_handler(HTTPException, http_error)
    return app
