"""Security: response headers, cookies, CSRF tokens, body size and rate limits."""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import secrets
from collections.abc import Iterable

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pairseek.errors import PairseekError
from pairseek.web.access.auth import LOGIN_COOKIE, authenticated_caller
from pairseek.web.access.error_responses import reply_to
from pairseek.web.access.rates import Rate, address_of, network_of
from pairseek.web.access.tokens import hash_token
from pairseek.web.errors import Problem, internal_error, problem_of
from pairseek.web.settings import Settings

logger = logging.getLogger("pairseek.web")

SECURITY_HEADERS = {
    "content-security-policy": (
        "default-src 'self'; img-src 'self' data: blob:; media-src 'self' https:; object-src 'none'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
CSRF_COOKIE = "pairseek_form"
# Prefix of the cookies of a server behind TLS.
_HOST_PREFIX = b"__Host-"
_PATH = re.compile(rb"; Path=[^;]*", re.IGNORECASE)
CSRF_FIELD = "csrf"
GUARD_HEADER = "x-pairseek"
# Routes that accept uploads: forms with tables and pictures, and API routes with the scope ``write``.
_UPLOAD_FORMS = re.compile(r"/studies/(new(/columns)?|[^/]+/(items(/edit)?|edit))")
_API_UPLOADS = (
    ("POST", re.compile(r"/api/v1/studies")),
    ("PUT", re.compile(r"/api/v1/studies/[^/]+/items")),
    ("PATCH", re.compile(r"/api/v1/studies/[^/]+/attributes")),
    ("PUT", re.compile(r"/api/v1/studies/[^/]+/populations/[^/]+")),
)
# Headers that show that a request came through a proxy.
_FORWARDING_HEADERS = (
    b"x-forwarded-for",
    b"x-forwarded-host",
    b"x-forwarded-proto",
    b"x-real-ip",
    b"forwarded",
    b"via",
)
# Paths without a rate limit: cached files and health checks.
_UNLIMITED_PATHS = ("/static/", "/media/", "/healthz", "/readyz", "/metrics")


class SecurityMiddleware:
    """Middleware that sets security headers, limits rates, and rejects bodies that are too large."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app, self.settings = app, settings
        self._requests = Rate("requests from one address", settings.requests_per_minute)
        self._warned = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        scope["headers"] = [
            (name, _without_escapes(value) if name == b"cookie" else value) for name, value in scope["headers"]
        ]
        if self._is_secure(scope):
            # In place, because the outer middleware reads the route from the same scope.
            scope["headers"] = _with_own_cookies(scope["headers"])
        if scope["path"].endswith("/"):
            # The framework would redirect to the host that the request names.
            scope["path"] = scope["path"].rstrip("/") or "/"
        self._notice_proxy(scope)
        began = False

        async def send_and_note(message: Message) -> None:
            nonlocal began
            began = True
            await send(message)

        api_upload = any(scope["method"] == method and path.fullmatch(scope["path"]) for method, path in _API_UPLOADS)
        upload = api_upload or _UPLOAD_FORMS.fullmatch(scope["path"]) is not None
        limit = self.settings.most_upload if upload else self.settings.most_body
        try:
            self._admit(scope, limit)
            if api_upload:
                # The framework reads the body before it authenticates the caller.
                await run_in_threadpool(_require_write, scope)
        except PairseekError as error:
            problem = problem_of(error)
            await reply_to(Request(scope), problem)(scope, receive, self._with_headers(scope, send))
            return
        try:
            await self.app(scope, _with_size_limit(receive, limit), self._with_headers(scope, send_and_note))
        except ClientDisconnect:
            # There is nobody left to reply to.
            logger.info("client disconnected")
        except Exception:
            logger.exception("unhandled exception")
            if began:
                raise
            await reply_to(Request(scope), internal_error())(scope, receive, self._with_headers(scope, send))

    def _admit(self, scope: Scope, limit: int) -> None:
        if not scope["path"].startswith(_UNLIMITED_PATHS):
            self._requests.check(network_of((scope.get("client") or ("",))[0]))
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > limit:
            raise too_large(int(announced), limit)

    def _notice_proxy(self, scope: Scope) -> None:
        """Log once that a nearby proxy is missing in the settings, so that everyone behind it shares one address."""
        if self._warned or self.settings.proxies or not is_forwarded(scope):
            return
        address = address_of((scope.get("client") or ("",))[0])
        if address is not None and address.is_private:
            self._warned = True
            logger.warning("a proxy is not trusted: name its address in PAIRSEEK_TRUSTED_PROXIES")

    def _is_secure(self, scope: Scope) -> bool:
        return self.settings.https or scope.get("scheme") == "https"

    def _with_headers(self, scope: Scope, send: Send) -> Send:
        secure = self._is_secure(scope)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
                if secure:
                    headers.setdefault("strict-transport-security", "max-age=31536000")
                    message["headers"] = [_with_secure_cookie(*header) for header in message["headers"]]
                headers.setdefault("cache-control", _cache_control(scope))
            await send(message)

        return send_with_headers


def _require_write(scope: Scope) -> None:
    """Reject a large body from a caller who may neither create studies nor change items."""
    database = scope["app"].state.service.database
    caller = authenticated_caller(database, Headers(scope=scope).get("authorization"))
    caller.require_scope("write", None if scope["method"] == "POST" else caller.study_id)


def _with_secure_cookie(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    """Return a header; if it sets a cookie, restrict the cookie to TLS and to this host."""
    if name != b"set-cookie" or value.startswith(_HOST_PREFIX):
        return name, value
    value = _PATH.sub(b"; Path=/", value)
    return name, _HOST_PREFIX + (value if b"; Secure" in value else value + b"; Secure")


def _with_own_cookies(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the headers of a request over TLS with only the cookies that this host has set, under their plain names.

    Browsers accept the prefix ``__Host-`` only over TLS and from the host itself. A cookie without it may come from
    another subdomain, or from a connection without TLS.
    """
    return [(name, _own_cookies(value) if name == b"cookie" else value) for name, value in headers]


def _own_cookies(value: bytes) -> bytes:
    pairs = [pair.strip() for pair in value.split(b";")]
    return b"; ".join(pair.removeprefix(_HOST_PREFIX) for pair in pairs if pair.startswith(_HOST_PREFIX))


def _without_escapes(value: bytes) -> bytes:
    """Drop cookies with a backslash: ours never have one, and some Python versions parse them very slowly."""
    return value if b"\\" not in value else b";".join(pair for pair in value.split(b";") if b"\\" not in pair)


def is_forwarded(scope: Scope) -> bool:
    """Return whether the headers of a request say that it came through a proxy."""
    return any(name in _FORWARDING_HEADERS for name, _ in scope["headers"])


def _cache_control(scope: Scope) -> str:
    """Return the cache-control header: versioned static files are immutable, pages are not stored."""
    if not scope["path"].startswith("/static/"):
        return "no-store"
    return "public, max-age=31536000, immutable" if b"v=" in scope["query_string"] else "no-cache"


def _with_size_limit(receive: Receive, limit: int) -> Receive:
    seen = 0

    async def limited() -> Message:
        nonlocal seen
        message = await receive()
        if message["type"] == "http.request":
            seen += len(message.get("body", b""))
            if seen > limit:
                raise too_large(seen, limit)
        return message

    return limited


def too_large(size: int, limit: int) -> Problem:
    """Return the problem for a body that exceeds the limit."""
    return Problem(
        413, "too_large", f"the request is larger than {limit:,} bytes", received=size, hint="Send a smaller request."
    )


def signature(secret: str, purpose: str, text: str) -> str:
    """Return the HMAC of a text for one purpose."""
    return hmac.new(secret.encode(), f"{purpose}:{text}".encode(), hashlib.sha256).hexdigest()


def csrf_token(secret: str, nonce: str, login: str | None) -> str:
    """Return the CSRF token of the browser with this nonce, valid while this login lasts."""
    return signature(secret, "form", f"{nonce}:{hash_token(login or '')}")


def form_nonce(request: Request) -> str:
    """Return the browser's nonce, or a new one."""
    nonce = request.cookies.get(CSRF_COOKIE, "")
    return nonce if 20 <= len(nonce) <= 64 else secrets.token_urlsafe(24)


def check_form(request: Request, secret: str, sent: object) -> None:
    """Raise a `Problem` unless the CSRF token of a form is valid."""
    nonce = request.cookies.get(CSRF_COOKIE, "")
    expected = csrf_token(secret, nonce, request.cookies.get(LOGIN_COOKIE))
    # Bytes, because compare_digest accepts only ASCII texts.
    if not nonce or not hmac.compare_digest(expected.encode(), str(sent or "").encode(errors="replace")):
        raise Problem(
            403,
            "form_expired",
            "this form did not come from a page of this server, or the page is too old",
            hint="Load the page again and send it once more. Cookies must be allowed.",
        )


def check_guard(request: Request) -> None:
    """Raise a `Problem` unless the request has the header that cross-site requests cannot set."""
    if GUARD_HEADER not in request.headers:
        raise Problem(
            403,
            "guard_missing",
            "the request lacks the header X-Pairseek",
            hint="Send it with the header X-Pairseek: 1.",
        )


def set_cookie(
    response: Response, name: str, value: str, settings: Settings, *, path: str = "/", days: float = 30
) -> None:
    """Set an HTTP-only cookie with ``SameSite=Lax``.

    Over TLS the middleware adds the prefix ``__Host-``, which requires the path ``/``, so cookies must differ in their
    names.
    """
    response.set_cookie(
        name, value, max_age=int(days * 86400), path=path, httponly=True, samesite="lax", secure=settings.https
    )
