"""What keeps visitors apart and pages clean: headers, cookies, forms that were really ours, sizes and rates."""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
import threading
import time
from collections import OrderedDict

from fastapi import Request, Response
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pairseek.web.problems import Problem
from pairseek.web.replies import broken, reply_to
from pairseek.web.settings import Settings

logger = logging.getLogger("pairseek.web")

HEADERS = {
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
CSRF_FIELD = "csrf"
GUARD_HEADER = "x-pairseek"
# These take files; all others are small.
UPLOADS = ("/studies/new", "/api/v1/studies")


class Guard:
    """Headers on every reply, and no body that is larger than allowed, announced or not."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app, self.settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = False

        async def noted(message: Message) -> None:
            nonlocal began
            began = True
            await send(message)

        most = self.settings.most_upload if scope["path"] in UPLOADS else self.settings.most_body
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > most:
            problem = too_large(int(announced), most)
            await reply_to(Request(scope), problem)(scope, receive, self._guarded(scope, send))
            return
        try:
            await self.app(scope, _limited(receive, most), self._guarded(scope, noted))
        except Exception:
            logger.exception("an error that nobody foresaw")
            if began:
                raise
            await reply_to(Request(scope), broken())(scope, receive, self._guarded(scope, send))

    def _guarded(self, scope: Scope, send: Send) -> Send:
        secure = self.settings.https or scope.get("scheme") == "https"

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if secure:
                    headers.setdefault("strict-transport-security", "max-age=31536000")
                    message["headers"] = [_secured(*header) for header in message["headers"]]
                headers.setdefault("cache-control", _keeping(scope))
            await send(message)

        return guarded


def _secured(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    return (name, value + b"; Secure") if name == b"set-cookie" and b"; Secure" not in value else (name, value)


def _keeping(scope: Scope) -> str:
    """How long a reply may be kept: files that are named with their version for good, pages not at all."""
    if not scope["path"].startswith("/static/"):
        return "no-store"
    return "public, max-age=31536000, immutable" if b"v=" in scope["query_string"] else "no-cache"


def _limited(receive: Receive, most: int) -> Receive:
    seen = 0

    async def limited() -> Message:
        nonlocal seen
        message = await receive()
        if message["type"] == "http.request":
            seen += len(message.get("body", b""))
            if seen > most:
                raise too_large(seen, most)
        return message

    return limited


def too_large(size: int, most: int) -> Problem:
    """More was sent than is taken."""
    return Problem(
        413, "too_large", f"the request is larger than {most:,} bytes", received=size, hint="Send less at once."
    )


def csrf_token(secret: str, nonce: str) -> str:
    """What a form must send back, for the browser that holds this nonce."""
    return hmac.new(secret.encode(), nonce.encode(), hashlib.sha256).hexdigest()


def form_nonce(request: Request) -> str:
    """The browser's nonce, new if it has none."""
    known = request.cookies.get(CSRF_COOKIE, "")
    return known if 20 <= len(known) <= 64 else secrets.token_urlsafe(24)


def check_form(request: Request, secret: str, sent: object) -> None:
    """Refuse a form that did not come from one of our own pages."""
    nonce = request.cookies.get(CSRF_COOKIE, "")
    if not nonce or not hmac.compare_digest(csrf_token(secret, nonce), str(sent or "")):
        raise Problem(
            403,
            "form_expired",
            "this form did not come from a page of this server, or the page is too old",
            hint="Load the page again and send it once more. Cookies must be allowed.",
        )


def check_guard(request: Request) -> None:
    """Refuse a request that another site's page could have made a browser send."""
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
    """A cookie that scripts cannot read and other sites cannot make use of."""
    response.set_cookie(
        name, value, max_age=int(days * 86400), path=path, httponly=True, samesite="lax", secure=settings.https
    )


class Rate:
    """At most so many in a while, for each key, in this worker.

    Parameters
    ----------
    count, seconds
        How many in how long.
    """

    def __init__(self, count: int, seconds: float) -> None:
        self._count, self._seconds = count, seconds
        self._lock = threading.Lock()
        self._known: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def check(self, key: str) -> None:
        """Count one more; a `Problem` where it is one too many."""
        moment = time.monotonic()
        with self._lock:
            # A bucket that refills steadily: (what is left, when).
            left, since = self._known.pop(key, (float(self._count), moment))
            left = min(self._count, left + (moment - since) * self._count / self._seconds)
            self._known[key] = (max(0.0, left - 1), moment)
            while len(self._known) > 20_000:
                self._known.popitem(last=False)
        if left < 1:
            raise Problem(
                429,
                "too_many",
                f"more than {self._count} requests in {self._seconds:g} seconds",
                hint="Wait and try again.",
            )
