"""Errors matched by their type and field; the wording is asserted once, beside the message."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pairseek.errors import InvalidParameter, PairseekError


@contextmanager
def refused(field: str = "", error: type[PairseekError] = InvalidParameter) -> Iterator[pytest.ExceptionInfo]:
    """Expect an error of this type whose `field` is this one."""
    with pytest.raises(error) as caught:
        yield caught
    assert caught.value.field == field
