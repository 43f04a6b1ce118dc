"""Errors of a case as its record, so that `unchanged.py` goes on with the next one."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

CRASHED = "crashed"


def kept(run: Callable[[], Any]) -> Any:
    """Return what a case records; where it fails, the error and the line that raised it."""
    try:
        return run()
    except Exception as error:  # noqa: BLE001 - a refactoring can break a case in any way
        last = traceback.extract_tb(error.__traceback__)[-1]
        return {CRASHED: f"{type(error).__name__}: {error} (line {last.lineno} of {last.filename})"}
