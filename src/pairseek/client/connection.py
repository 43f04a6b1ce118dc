"""Requests to the service, with retries, and its error responses."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from http.client import HTTPMessage
from time import sleep
from typing import IO, Any

from pairseek.errors import PairseekError

_MAX_ATTEMPTS = 4
# Seconds before the first retry; they double with each retry.
_FIRST_PAUSE = 0.2
# Longest Retry-After, in seconds, that the client obeys.
_MAX_PAUSE = 10.0
# Status codes after which an idempotent request is retried. After 504, the service may still be working on it.
_RETRIED_STATUSES = (429, 502, 503)


class ServiceError(PairseekError):
    """Error response of the service.

    Attributes
    ----------
    status
        Status code of the response; 0 if the service cannot be reached.
    code
        Name of the error, such as ``"not_found"``: see the HTTP API.
    message, hint
        What is wrong, and what to do.
    received
        The value that the service rejected, if any.

    Examples
    --------
    >>> from pathlib import Path
    >>> from pairseek.client import Client, ServiceError
    >>> client = Client("http://127.0.0.1:8421", Path("token.txt").read_text().strip())
    >>> try:
    ...     client.study("wines")
    ... except ServiceError as error:
    ...     print(error.status, error.code)
    404 not_found
    """

    def __init__(self, status: int, code: str, message: str, hint: str | None = None, received: object = None) -> None:
        super().__init__(f"{message}: {hint}" if hint else message)
        self.status, self.code, self.message, self.hint, self.received = status, code, message, hint, received


class _SameOriginRedirects(urllib.request.HTTPRedirectHandler):
    """Redirects within the service only, so that no other server gets the token, and none without TLS."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        """Return the request to the new address; raise a `ServiceError` if its origin is another."""
        if _origin(newurl) != _origin(req.full_url):
            fp.close()
            raise ServiceError(
                0,
                "redirected",
                f"the service at {_origin(req.full_url)} redirects to {_origin(newurl)}, which did not get the token",
                "Give the new address to the client if you trust it.",
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _origin(address: str) -> str:
    """Return scheme, host and port of an address."""
    parts = urllib.parse.urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}".lower()


@dataclass(frozen=True)
class Connection:
    """Address of the service, token and timeout in seconds."""

    address: str
    token: str = field(repr=False)
    seconds: float = 60.0

    def send(self, method: str, path: str, body: object = None, *, is_idempotent: bool = True) -> bytes:
        """Send a request and return the body of the response; retry idempotent requests.

        A request whose response takes too long is not retried, because the service may still be working on it.
        """
        content = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        url = f"{self.address.rstrip('/')}/api/v1{path}"
        # A request that got status 429 had no effect, so it can always be retried.
        retried = _RETRIED_STATUSES if is_idempotent else (429,)
        opener = urllib.request.build_opener(_SameOriginRedirects)
        for attempt in range(_MAX_ATTEMPTS):
            is_last = attempt == _MAX_ATTEMPTS - 1
            pause = _FIRST_PAUSE * 2**attempt
            request = urllib.request.Request(url, content, headers, method=method)
            try:
                with opener.open(request, timeout=self.seconds) as reply:
                    return bytes(reply.read())
            except urllib.error.HTTPError as error:
                with error:
                    failure = _service_error(error.code, error.read())
                    retry_after = error.headers.get("Retry-After", "")
                if retry_after.isdecimal():
                    pause = max(pause, min(float(retry_after), _MAX_PAUSE))
                if error.code not in retried or is_last:
                    raise failure from None
            except TimeoutError:
                raise ServiceError(
                    0,
                    "timed_out",
                    f"the service at {self.address} did not reply within {self.seconds:g} s",
                    "It may still be working on it: look at the result later, or give the client more seconds.",
                ) from None
            except (urllib.error.URLError, ConnectionError) as error:
                if is_last or not is_idempotent:
                    raise ServiceError(
                        0,
                        "unreachable",
                        f"the service at {self.address} cannot be reached ({error})",
                        "Check the address, and that the service is running.",
                    ) from None
            sleep(pause)
        raise AssertionError("unreachable")

    def json(self, method: str, path: str, body: object = None, *, is_idempotent: bool = True) -> Any:
        """Send a request and return the body of the response, parsed as JSON."""
        return json.loads(self.send(method, path, body, is_idempotent=is_idempotent))


def _service_error(status: int, body: bytes) -> ServiceError:
    try:
        facts = json.loads(body)["error"]
        return ServiceError(status, facts["code"], facts["message"], facts["hint"], facts["received"])
    except (ValueError, KeyError, TypeError):
        return ServiceError(
            status, "not_understood", f"the service answered with status {status} but without a valid error message"
        )
