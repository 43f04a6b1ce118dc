"""Errors as records of cases, which let `unchanged.py` continue with the next case."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

CRASHED = "crashed"


def kept(run: Callable[[], Any]) -> Any:
    """Return the record of a case or, if the case fails, the error and the line that raised it."""
    try:
        return run()
    except Exception as error:  # noqa: BLE001 - a refactoring can break a case in any way
        last = traceback.extract_tb(error.__traceback__)[-1]
        return {CRASHED: f"{type(error).__name__}: {error} (line {last.lineno} of {last.filename})"}
