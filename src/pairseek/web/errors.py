"""HTTP errors: status, code, message, received value and hint."""

from __future__ import annotations

import math

from pairseek.core.types import JSON
from pairseek.errors import (
    AnswerConflict,
    InvalidAnswer,
    InvalidChoices,
    InvalidFile,
    InvalidItems,
    InvalidParameter,
    PairseekError,
    StoreOutdated,
    StoreUnavailable,
    UnknownItem,
    UnknownQuery,
    Unsupported,
)


class Problem(PairseekError):
    """Error that is sent as an HTTP response.

    Parameters
    ----------
    status
        HTTP status.
    code
        Machine-readable identifier in snake_case.
    message
        Description of the error.
    hint
        What to do about it.
    received
        Value that was received; never a secret.
    wait
        Seconds after which the request can be repeated.
    field
        Form field that caused the error.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        hint: str,
        received: object = None,
        wait: int | None = None,
        field: str = "",
    ) -> None:
        super().__init__(f"{message}: {hint}")
        self.field = field
        self.status, self.code, self.message, self.hint, self.received = status, code, message, hint, received
        self.wait = wait

    @property
    def headers(self) -> dict[str, str]:
        """Additional headers of the response."""
        return {} if self.wait is None else {"retry-after": str(self.wait)}

    def record(self) -> JSON:
        """Return the JSON body of the response."""
        message, received = _encodable(self.message), _encodable(self.received)
        return {"error": {"code": self.code, "message": message, "received": received, "hint": self.hint}}


def _encodable(value: object) -> object:
    """Return a value that JSON can encode: lone surrogates are escaped, and NaN and infinity become text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


class InvalidMedia(InvalidItems):
    """The pictures, sounds or videos of items are invalid."""

    field = "images"


_PROBLEMS: dict[type[PairseekError], tuple[int, str, str]] = {
    AnswerConflict: (409, "answer_conflict", "Keep the first answer, or undo it first."),
    UnknownQuery: (404, "unknown_query", "Ask for the current query and answer that one."),
    UnknownItem: (404, "unknown_item", "Use an id from the study's items."),
    InvalidAnswer: (422, "invalid_answer", "Answer left, right, or tie and skip where they are offered."),
    InvalidChoices: (409, "nothing_to_learn", "Wait until more participants have finished."),
    InvalidItems: (422, "invalid_items", "Fix the file of items and send it again."),
    InvalidParameter: (422, "invalid_parameter", "Fix the setting and send it again."),
    InvalidFile: (422, "invalid_file", "Send the file as it was exported."),
    Unsupported: (422, "unsupported", "Choose parts that work together."),
    StoreUnavailable: (503, "store_unavailable", "Wait a moment and try again; acknowledged answers are stored."),
    StoreOutdated: (503, "store_outdated", "Follow the message; pairseek db version shows both versions."),
}


def problem_of(error: PairseekError) -> Problem:
    """Convert a library error to a `Problem`."""
    if isinstance(error, Problem):
        return error
    for kind, (status, code, hint) in _PROBLEMS.items():
        if isinstance(error, kind):
            # The driver's message may contain addresses and belongs only in the log.
            message = error.summary if isinstance(error, StoreUnavailable) else str(error)
            return Problem(status, code, message, hint=hint, field=error.field)
    return Problem(400, "not_possible", str(error), hint="Read the message, fix what it names and try again.")


def not_found(kind: str, received: object) -> Problem:
    """Return the problem for a thing of this kind that does not exist, or that the caller may not see."""
    return Problem(404, "not_found", f"there is no {kind} with this name", received=received, hint="Check the address.")


def invalid(message: str, received: object, hint: str, code: str = "invalid_parameter") -> Problem:
    """Return the problem for an invalid value."""
    return Problem(422, code, message, received=received, hint=hint)


def internal_error() -> Problem:
    """Return the problem for an unhandled exception, whose traceback is in the log."""
    hint = "Try again; if the error persists, report it to the operators. Acknowledged answers are stored."
    return Problem(500, "internal_error", "internal error of the service", hint=hint)
